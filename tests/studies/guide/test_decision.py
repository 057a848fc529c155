"""Which policy to take: the first line says it in plain words, or that the runs cannot tell."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t

from firstclick.registry import DEFAULT_POLICY
from firstclick.studies.guide.data_worlds import LIMITS, DataWorld
from firstclick.studies.guide.decision import answer, decision_block, decision_page
from firstclick.studies.guide.fitting import Contender
from firstclick.studies.guide.standings import lines_of

WORLD = DataWorld("films.csv", "--interactions films.csv", 4, "Films.")
OTHERS = ("other-a", "other-b", "other-c", "other-d")


def lines(regrets, random=(900, 1000, 1100, 1000)):
    played = []
    for name, regret in {**regrets, "random": random}.items():
        reason = "" if regret else f"{name} needs more"
        regret = np.array(regret or [], float)
        played.append(Contender(WORLD, name, SimpleNamespace(label=name), "", 9, 4, reason, regret, regret))
    return lines_of(played, 5000)


D, A, B = DEFAULT_POLICY, "other-a", "other-b"
GOOD, BAD = (100, 115, 110, 115), (300, 310, 320, 310)
TAKE_D, TAKE_A, NO_VERDICT = f"Take {D}: ", f"Take {A}: ", "The runs cannot tell: "
ONE_RUN = "One run cannot tell: "


@pytest.mark.parametrize(
    ("regrets", "random", "verdict", "ends"),
    [
        ({D: GOOD, A: (200, 190, 210, 220)}, None, TAKE_D, "all others lost clearly more."),
        ({D: GOOD, A: (90, 130, 110, 130)}, None, TAKE_D, f"{A} cannot be told from it in 4 runs."),
        # Two runs that are both worse by a little.
        ({D: (100, 120), A: (101, 140), B: (300, 322)}, (900, 925), TAKE_D, "from it in 2 runs."),
        ({D: BAD, A: GOOD, B: (99, 117, 111, 117)}, None, TAKE_A, f" {B} cannot be told from it in 4 runs."),
        ({D: None, A: GOOD, B: BAD}, None, TAKE_A, "all others lost clearly more."),
        # The worst run is worse than that of the default.
        (
            {D: [300] * 20, A: [100] * 19 + [400]}, [1000] * 20, TAKE_A,
            "its worst run lost 400, that of the default 300.",
        ),
        ({D: GOOD, A: (60, 150, 70, 130)}, None, f"{NO_VERDICT}{A} lost least", ""),
        # No better than random order.
        ({D: (950, 990, 1120, 900), A: (980, 940, 1090, 1000)}, None, f"{NO_VERDICT}no policy", ""),
        ({D: (100,), A: (50,)}, (900,), f"{ONE_RUN}{A} lost least, 50.0 clicks in 5,000 steps", "--runs."),
    ],
)  # fmt: skip
def test_answer_is_a_policy_or_no_verdict(regrets, random, verdict, ends):
    text = answer(lines(regrets, **{} if random is None else {"random": random}))
    assert text.startswith(verdict)
    assert text.endswith(ends)
    assert ("worst run" in text) == ("worst run" in ends)


def test_answer_gives_regret_and_the_interval_of_the_difference():
    text = answer(lines({D: BAD, A: GOOD}))
    assert "110.0 ± 3.5 clicks in 5,000 steps, 200 fewer than" in text
    assert "interval: 192 to 208" in text


def test_the_best_of_many_must_be_further_ahead_than_the_only_one():
    # Ahead by t = 3.8 with 3 degrees of freedom: enough for one (2.4), too little for the best of four (4.2).
    default, better = (100, 100, 100, 100), (100 - 27 - 10 * 3**0.5, 73, 73, 73 + 10 * 3**0.5)
    more = np.subtract(better, default)
    score = -more.mean() / (more.std(ddof=1) / 2)
    assert t.ppf(0.95, 3) < score < t.ppf(1 - 0.05 / 4, 3)
    alone = {DEFAULT_POLICY: default, "other-a": better}
    assert answer(lines(alone)).startswith("Take other-a")
    many = alone | dict.fromkeys(OTHERS[1:], (500, 510, 505, 500))
    assert answer(lines(many)).startswith("The runs cannot tell: other-a lost least")


def test_the_table_has_spread_and_the_paired_difference():
    given = lines({DEFAULT_POLICY: (300, 310, 320, 310), "other-a": (100, 115, 110, 115), "other-b": None})
    block = decision_block(given)
    assert block.columns[-1] == f"more than {DEFAULT_POLICY} (90 %)"
    best, default, random = block.rows
    assert best == ("other-a", "110.0 ± 3.5", "115", "115", "−200 (−208 to −192)")
    assert default == (DEFAULT_POLICY, "310.0 ± 4.1", "317", "320", "–")
    assert random[0] == "random"
    assert block.bold == {"other-a"}


def test_the_page_begins_with_the_answer_and_says_what_the_file_cannot_tell():
    given = lines({DEFAULT_POLICY: (300, 310, 320, 310), "other-a": (100, 115, 110, 115)})
    page = decision_page(given, WORLD)
    title, _, first = page.splitlines()[:3]
    assert title == "# Which policy for films.csv?"
    assert first == answer(given)
    assert "| other-a | 110.0 ± 3.5 | 115 | 115 | −200 (−208 to −192) |" in page
    assert all(f"- {limit}" in page for limit in LIMITS)
    assert "How many items to show" not in page
