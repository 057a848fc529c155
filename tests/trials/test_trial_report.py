"""The answer of a trial: its verdict, its last pages, its text and its JSON."""

import json
import re

import numpy as np
import pytest
from scipy.special import stdtrit

from firstclick.trials.report import more_needed, report, verdict
from firstclick.trials.sequence import Estimate, estimate, reach
from firstclick.trials.tally import Tally
from tests.support.made_trials import full, played
from tests.support.refusals import check_refused

NAMES = ["baseline", "policy"]


def found(rate, against, pages, buckets=1_000.0):
    """The estimate from so many independent pages, half of them in each arm."""
    half = pages / 2
    variances = rate * (1 - rate) / half, against * (1 - against) / half
    return Estimate(rate, against, *variances, 0.0, half / 2, pages, buckets)


@pytest.mark.parametrize(
    ("rate", "against", "pages", "kind", "numbers"),
    [
        (0.2, 0.15, 10_000, "better", "16% to 53% more clicks"),
        (0.15, 0.2, 10_000, "worse", "14% to 35% fewer clicks"),
        (0.1505, 0.15, 800_000, "no difference", "2.2%.* 1.5% fewer .* 2.2% more"),
        (0.1505, 0.15, 20_000, "not yet", "9.4% fewer .* 11% more .* 88,000 more pages"),
    ],
)
def test_verdict_has_a_kind_and_a_sentence_with_its_numbers(rate, against, pages, kind, numbers):
    given = verdict(found(rate, against, pages), "new", "old", 0.05, 0.05)
    assert given.kind == kind
    assert re.match(f"{kind}.*{numbers}", given.sentence, re.IGNORECASE)
    assert re.search(r" new\b.* than old\b", given.sentence)


def test_verdict_waits_for_users():
    few = verdict(found(0.2, 0.15, 10_000, buckets=5.0), "new", "old", 0.05, 0.05)
    assert (few.kind, few.more_pages) == ("not yet", 20_000)
    assert "few users" in few.sentence
    assert verdict(None, "new", "old", 0.05, 0.05).more_pages is None
    # A difference that is too small is out of sight.
    assert more_needed(found(0.1500001, 0.15, 1_000), 0.05, 1e-6) is None


@pytest.mark.parametrize("rates", [(0.16, 0.15), (0.14, 0.15), (0.1501, 0.15)])
def test_so_many_more_pages_decide_it_if_nothing_changes(rates):
    now = found(*rates, 4_000)
    factor = more_needed(now, 0.05, 0.05)
    assert verdict(found(*rates, round(4_000 * factor * 1.01)), "a", "b", 0.05, 0.05).kind != "not yet"
    assert verdict(found(*rates, round(4_000 * factor * 0.95)), "a", "b", 0.05, 0.05).kind == "not yet"


def test_the_report_of_a_trial_is_plain_json():
    answer = report(full(), ["a", "b", "c"], recommended=[500, 500, 500]).as_json()
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    assert [one["arm"] for one in answer["comparisons"]] == ["b", "c"]
    assert [one["against"] for one in answer["comparisons"]] == ["a", "a"]
    assert sum(one["pages"] for one in answer["arms"]) == 1_200
    assert [one["corrected"] for one in answer["arms"]] == [0, 0, 1]
    assert answer["periods"] == 2


def test_more_arms_split_the_level():
    tally = played(Tally([0.4, 0.3, 0.3]), np.random.default_rng(7), 4_000)
    answer = report(tally, ["a", "b", "c"], against=1)
    assert [one.arm for one in answer.comparisons] == ["a", "c"]
    assert any("97.5%" in one for one in answer.assumptions)
    alone, split = (verdict(found(0.17, 0.15, 14_000), "a", "b", level, 0.01).kind for level in (0.05, 0.005))
    assert (alone, split) == ("better", "not yet")
    # The interval is that of the sequence.
    tally = played(Tally([0.5, 0.5]), np.random.default_rng(10), 3_000)
    now = estimate(tally, 1, 0)
    shown = report(tally, NAMES, confidence=0.9).comparisons[0].units.difference
    assert shown == now.difference(reach(now, 0.1))


def test_the_last_pages_have_a_figure_of_their_own():
    """The policy was worse for 4,000 pages and is better now."""
    tally = Tally([0.5, 0.5], stretch=4_000)
    generator = np.random.default_rng(8)
    for page in range(8_500):
        bucket = int(generator.integers(10_000))
        arm = int(tally.owner[bucket])
        rate = 0.2 if arm == 0 else 0.1 if page < 4_000 else 0.3
        tally.add(arm, bucket, bool(generator.random() < rate))
    last = report(tally, NAMES).comparisons[0].last
    assert (last.size, last.complete, last.under_way) == (4_000, 2, 500)
    assert last.rate_against == pytest.approx(0.2, abs=0.02)
    assert last.rate == pytest.approx(0.3, abs=0.02)
    assert last.difference.low > 0
    assert last.ratio.low > 1


def test_later_stretches_have_wider_intervals_so_that_all_hold_at_once():
    tally = Tally([0.5, 0.5], stretch=2_000)
    widths = []
    for page in range(20_000):
        tally.add(page % 2, 5_000 * (page % 2) + (page // 2) % 1_000, clicked=page % 10 < 2)
        if page % 2_000 == 1_999:
            last = report(tally, NAMES).comparisons[0].last
            widths.append(last.difference.high - last.difference.low)
    assert widths == sorted(widths)
    # Student's quantiles of 0.05 / 2 and 0.05 / 110, each on two sides, with half the 200 buckets that click.
    assert widths[-1] / widths[0] == pytest.approx(stdtrit(100, 0.025 / 110) / stdtrit(100, 0.0125))


def test_pages_without_a_unit_are_reported_separately():
    some, none = (
        report(played(Tally([0.5, 0.5]), np.random.default_rng(9), 3_000, unit_share=share), NAMES)
        for share in (0.7, 0.0)
    )
    assert some.comparisons[0].by_units
    assert some.comparisons[0].singles.difference is not None
    assert "without unit" in some.text()
    (comparison,) = none.comparisons
    assert (comparison.by_units, comparison.decisive.pages) == (False, 3_000)
    assert comparison.verdict.kind == "better"
    assert any(one.startswith("Pages without a unit") for one in none.assumptions)


def test_text_has_the_table_the_verdict_the_intervals_and_the_checks():
    tally = Tally([0.5, 0.5])
    for bucket in range(10_000):
        tally.add(bucket // 5_000, bucket, clicked=bucket % 5 == 0 or bucket > 9_500)
    tally.correct(1)
    text = report(tally, NAMES, recommended=[6_000, 6_000], learn_from_all=True).text()
    table, _, checks = text.partition("\nChecks\n")
    assert table == TABLE
    assert [line.partition(" ")[2].partition(":")[0] for line in checks.splitlines()[:2]] == ["ok", "ok"]
    assert "83.3%, policy 83.3%" in checks
    assert "too late and are not in the rates: policy 1." in checks
    assert "arms learn from the slates of all arms" in checks.lower()


TABLE = """\
arm       share  pages  clicks    rate
baseline  50.0%  5,000   1,000  20.00%
policy    50.0%  5,000   1,400  28.00%

Better: policy gets 25% to 57% more clicks per page than baseline.

95% intervals     policy  baseline     difference in points                ratio
10,000 pages      28.00%    20.00%  +8.00 (+5.39 to +10.61)  1.40 (1.25 to 1.57)
last full 10,000  28.00%    20.00%   +8.00 (+6.09 to +9.91)  1.40 (1.29 to 1.52)
"""


@pytest.mark.parametrize("pages", [0, 1, 3])
def test_trial_that_has_just_begun_has_a_report(pages):
    tally = Tally([0.9, 0.1])
    for page in range(pages):
        tally.add(0, page, clicked=True)
    answer = report(tally, NAMES, recommended=[pages, 0])
    assert answer.comparisons[0].verdict.kind == "not yet"
    json.dumps(answer.as_json(), allow_nan=False)
    assert "too few pages" in answer.text()


def test_wrong_arguments_of_a_report_are_refused():
    for argument, value in (
        ("names", ["a"]), ("against", 2), ("against", -1), ("confidence", 95), ("confidence", 0),
        ("margin", 0), ("margin", 1),
    ):  # fmt: skip
        wrong = {"names": NAMES} | {argument: value}
        check_refused(lambda wrong=wrong: report(Tally([0.9, 0.1]), **wrong), argument)
