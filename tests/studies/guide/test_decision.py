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


def test_the_default_is_taken_if_all_others_lost_clearly_more():
    said = answer(lines({DEFAULT_POLICY: (100, 110, 120, 110), "other-a": (200, 190, 210, 220)}))
    lost = "it lost least, 110.0 ± 4.1 clicks in 5,000 steps"
    assert said == f"Take {DEFAULT_POLICY}: {lost}; all others lost clearly more."


def test_who_cannot_be_told_from_the_best_is_named():
    said = answer(lines({DEFAULT_POLICY: (100, 110, 120, 110), "other-a": (90, 130, 110, 130)}))
    assert said.startswith(f"Take {DEFAULT_POLICY}: it lost least")
    assert said.endswith("; other-a cannot be told from it in 4 runs.")


def test_another_policy_is_taken_if_it_is_better_for_sure():
    said = answer(
        lines(
            {
                DEFAULT_POLICY: (300, 310, 320, 310),
                "other-a": (100, 115, 110, 115),
                "other-b": (99, 117, 111, 117),
            }
        )
    )
    assert said.startswith(
        f"Take other-a: it lost least, 110.0 ± 3.5 clicks in 5,000 steps, 200 fewer than {DEFAULT_POLICY}, "
        "the default (90 % interval: 192 to 208)."
    )
    assert said.endswith(" other-b cannot be told from it in 4 runs.")
    assert "worst run" not in said


def test_a_worse_worst_run_is_told():
    regrets = {DEFAULT_POLICY: [300.0] * 20, "other-a": [100.0] * 19 + [400.0]}
    said = answer(lines(regrets, random=[1000.0] * 20))
    assert said.startswith("Take other-a: ")
    assert said.endswith("But its worst run lost 400, that of the default 300.")


def test_a_difference_that_may_be_chance_is_no_reason_to_leave_the_default():
    said = answer(lines({DEFAULT_POLICY: (100, 110, 120, 110), "other-a": (60, 150, 70, 130)}))
    assert said.startswith("The runs cannot tell: other-a lost least, ")
    assert "which may be chance. Take the default, or play more --runs." in said


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


def test_one_run_and_no_better_than_random_order_cannot_tell():
    said = answer(lines({DEFAULT_POLICY: (100,), "other-a": (50,)}, random=(900,)))
    lost = "other-a lost least, 50.0 clicks in 5,000 steps"
    assert said == f"One run cannot tell: {lost}, which may be luck. Play more --runs."
    said = answer(lines({DEFAULT_POLICY: (950, 990, 1120, 900), "other-a": (980, 940, 1090, 1000)}))
    assert said.startswith(
        "The runs cannot tell: no policy is clearly better than random order in 5,000 steps."
    )


def test_without_the_default_the_best_is_taken():
    said = answer(
        lines({DEFAULT_POLICY: None, "other-a": (100, 110, 120, 110), "other-b": (200, 190, 210, 220)})
    )
    assert said.startswith("Take other-a: it lost least, 110.0 ± 4.1 clicks in 5,000 steps; all others")


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


@pytest.mark.parametrize(
    "word", ["what was shown", "does not attract", "Popular items", "leave", "New items"]
)
def test_the_limits_name_what_such_a_file_lacks(word):
    assert sum(word in limit for limit in LIMITS) == 1


def test_two_runs_that_are_both_worse_by_a_little_are_no_clear_loss():
    regrets = {DEFAULT_POLICY: (100, 120), "other-a": (101, 140), "other-b": (300, 322)}
    said = answer(lines(regrets, random=(900, 925)))
    assert said.endswith("; other-a cannot be told from it in 2 runs.")
