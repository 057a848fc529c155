"""Comparisons of paired runs: made-up evidence in which each kind holds, fails and cannot be told."""

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from made_evidence import LIN_TS, RANKED, UCB1, Made

from firstclick.report.claims import FAILS, HOLDS, UNTESTABLE
from firstclick.studies.paper import thresholds as words
from firstclick.studies.paper.checks import Cell, Finding, Rule
from firstclick.studies.paper.paired_tests import (
    Part,
    best_outgrows,
    every,
    learns,
    more,
    performs_well,
    ratio,
    rising,
    wider_gap,
)


def found(parts: Rule | Part | list[Part] | tuple[Part, ...], **evidence: Any) -> Finding:
    if not isinstance(parts, Rule):
        parts = every("experiment 9", *([parts] if isinstance(parts, Part) else parts))
    return parts.check(Made(**evidence))


def pair(word: words.Word, value: float, **more_of_it: Any) -> Finding:
    """What is found when UCB1 has `value` times the regret of LinTS, at 16 items."""
    above, below = Cell(UCB1, 16), Cell(LIN_TS, 16)
    return found(ratio(word, above, below), regrets={above: 700 * value, below: 700.0}, **more_of_it)


RATIO_WORDS = [
    word for word in words.WORDS if word.is_ratio and word not in (words.PERFORMS_WELL, words.CAN_LEARN)
]


@pytest.mark.parametrize("word", RATIO_WORDS, ids=lambda word: word.phrase)
def test_a_ratio_holds_between_its_limits_fails_beyond_them_and_is_undecided_at_them(
    word: words.Word,
) -> None:
    limits = [limit for limit in (word.low, word.high) if math.isfinite(limit)]
    inside = math.sqrt(word.low * word.high) if len(limits) == 2 else 1.3 * limits[0]
    assert pair(word, inside).verdict == HOLDS
    assert pair(word, 0.8 * word.low).verdict == FAILS
    assert pair(word, 1.2 * limits[-1]).verdict == (FAILS if len(limits) == 2 else HOLDS)
    for limit in limits:
        finding = pair(word, limit)
        assert finding.verdict == UNTESTABLE
        assert re.fullmatch(
            r"undecided with 11 runs: the 95% interval [\d.,]+ to [\d.,]+ of cascade-ucb1 / "
            rf"cascade-lin-ts, 16 items crosses the limit {re.escape(f'{limit:.3g}')}; more runs would tell",
            finding.reason,
        )


def test_the_words_of_one_language_fit_together() -> None:
    # Section 4.4 calls learners similar although one has about two times another's regret.
    assert words.SIMILAR.low < words.ABOUT_TWO_TIMES.low
    assert words.ABOUT_TWO_TIMES.high <= words.SIMILAR.high == words.ALMOST_THREE_TIMES.low
    assert words.ALMOST_THREE_TIMES.high < words.ORDERS_OF_MAGNITUDE.low == 10**2
    for doubles, halves in (
        (words.ROUGHLY_DOUBLES.low, words.ROUGHLY_HALVES.high),
        (words.SIMILAR.high, words.SIMILAR.low),
    ):
        assert doubles * halves == pytest.approx(1)


def test_figures_carry_the_ratio_its_interval_its_limits_and_the_order_of_magnitude() -> None:
    finding = pair(words.ORDERS_OF_MAGNITUDE, 40.0)
    (part,) = finding.figures["parts"]
    assert part["estimate"] == pytest.approx(40)
    assert 39 < part["low"] < 40 < part["high"] < 41
    assert part["limits"] == [100.0, None]
    assert part["orders_of_magnitude"] == pytest.approx(math.log10(40))
    assert part["means"] == pytest.approx([28_000, 700])
    assert (part["runs"], part["confidence"], part["kind"]) == (11, 0.95, "ratio")
    assert finding.verdict == FAILS
    assert re.fullmatch(
        r"cascade-ucb1 / cascade-lin-ts, 16 items: 28,000 / 700 = 40\.\d+ "
        r"\(39\.\d+ to 40\.\d+\), 1\.6 orders of magnitude",
        finding.measured[0],
    )
    assert finding.reason == "not above 100"


A, B = Cell(RANKED, 16), Cell(LIN_TS, 16)
BY_K = [Cell(k=k) for k in (4, 8, 12)]


@pytest.mark.parametrize(
    ("parts", "holds", "fails", "undecided"),
    [
        (more(words.LOWER, A, B), {A: 900, B: 800}, {A: 800, B: 900}, {A: 800, B: 801}),
        (
            rising(BY_K),
            dict(zip(BY_K, (700, 800, 900), strict=True)),
            dict(zip(BY_K, (700, 900, 800), strict=True)),
            dict(zip(BY_K, (700, 900, 901), strict=True)),
        ),
        (
            wider_gap(RANKED, LIN_TS, 16, 256),
            {A: 900, B: 800, Cell(RANKED): 1300, Cell(): 1000},
            {A: 900, B: 500, Cell(RANKED): 1300, Cell(): 1200},
            {A: 900, B: 800, Cell(RANKED): 1300, Cell(): 1200},
        ),
        # The best slate gains 10,000 clicks from 4 to 8: a regret that rises was gained less.
        (
            best_outgrows("experiment 9", BY_K[:2]),
            {BY_K[0]: 700, BY_K[1]: 900},
            {BY_K[0]: 900, BY_K[1]: 700},
            {BY_K[0]: 900, BY_K[1]: 901},
        ),
        (performs_well(Cell()), {Cell(): 7_000}, {Cell(): 9_000}, {Cell(): 8_000}),
        (performs_well(Cell()), {Cell(): -500}, {Cell(): 40_000}, {Cell(): 8_010}),
    ],
    ids=["lower", "rising", "wider gap", "best outgrows", "performs well", "performs well, negative regret"],
)
def test_a_comparison_holds_fails_and_is_undecided(
    parts: Any, holds: dict[Cell, float], fails: dict[Cell, float], undecided: dict[Cell, float]
) -> None:
    assert found(parts, regrets=holds).verdict == HOLDS
    assert found(parts, regrets=fails).verdict == FAILS
    finding = found(parts, regrets=undecided)
    assert finding.verdict == UNTESTABLE
    assert "undecided with 11 runs" in finding.reason


def test_the_reward_rises_where_the_best_slate_gains_more_than_the_regret_grows() -> None:
    regrets = dict(zip(BY_K, (700.0, 2_000.0, 4_000.0), strict=True))
    assert found(rising(BY_K, "reward"), regrets=regrets).verdict == HOLDS
    regrets[BY_K[2]] = 9_000.0
    assert found(rising(BY_K, "reward"), regrets=regrets).verdict == FAILS


def test_the_best_slate_outgrows_the_learner_exactly_where_regret_rises() -> None:
    regrets = dict(zip(BY_K, (700.0, 701.0, 900.0), strict=True))
    by_reward = found(best_outgrows("experiment 9", BY_K), regrets=regrets)
    by_regret = found(rising(BY_K), regrets=regrets)
    assert by_reward.verdict == by_regret.verdict
    kept = ("estimate", "low", "high", "means", "runs_inside")
    for one, other in zip(by_reward.figures["parts"], by_regret.figures["parts"], strict=True):
        assert [one[name] for name in kept] == [other[name] for name in kept]
    assert "this is the test of the row on regret" in best_outgrows("experiment 9", BY_K).text


@pytest.mark.parametrize(("at_first", "verdict"), [(0.3, HOLDS), (0.05, FAILS)])
def test_a_learner_learns_if_it_loses_less_per_step_later_than_at_first(
    at_first: float, verdict: str
) -> None:
    finding = found(learns(Cell()), regrets={Cell(): 700.0}, at_first=at_first)
    assert finding.verdict == verdict
    (part,) = finding.figures["parts"]
    assert part["estimate"] == pytest.approx((1 - at_first) / 9 / at_first)


def test_runs_shorter_than_ten_steps_show_no_learning() -> None:
    assert found(learns(Cell()), regrets={Cell(): 7.0}, steps=9).verdict == UNTESTABLE


def test_equal_regrets_are_not_lower() -> None:
    assert found(more(words.LOWER, A, A), regrets={A: 900.0}).verdict == FAILS


def test_one_part_outside_refutes_what_the_others_support_and_whatever_was_not_played() -> None:
    parts = [
        ratio(words.SIMILAR, A, B),
        ratio(words.SIMILAR, Cell(RANKED), Cell()),
        ratio(words.SIMILAR, A, Cell(k=8)),
    ]
    regrets = {A: 900.0, B: 800.0, Cell(RANKED): 4_000.0, Cell(): 1_000.0}
    finding = found(parts, regrets=regrets)
    assert finding.verdict == FAILS
    assert finding.reason == "not between 0.4 and 2.5: ranked-lin-ts / cascade-lin-ts"
    assert len(finding.measured) == len(finding.figures["parts"]) == 2
    regrets[Cell(RANKED)] = 2_000.0
    finding = found(parts, regrets=regrets)
    assert finding.verdict == UNTESTABLE
    assert finding.reason == "experiment 9 was not played: there is no cascade-lin-ts, 8 shown"


@pytest.mark.parametrize("regret", [0.0, -300.0])
def test_no_ratio_is_formed_with_a_regret_that_is_not_above_zero(regret: float) -> None:
    finding = found(ratio(words.SIMILAR, A, B), regrets={A: 900.0, B: regret})
    assert finding.verdict == UNTESTABLE
    assert finding.reason.startswith("no ratio can be formed with 11 runs: ranked-lin-ts / cascade-lin")
    assert finding.measured


def test_one_run_decides_nothing_and_shows_its_figures() -> None:
    finding = pair(words.SIMILAR, 1.0, n_runs=1)
    assert (finding.verdict, finding.reason) == (UNTESTABLE, "a single run decides nothing: play at least 6")
    assert re.search(r": 7\d\d / 7\d\d$", finding.measured[0])


def test_fewer_than_six_runs_decide_nothing_however_clear_they_are() -> None:
    finding = pair(words.SIMILAR, 1.0, n_runs=5)
    assert (finding.verdict, finding.reason) == (UNTESTABLE, "5 runs decide nothing: play at least 6")
    assert re.search(r" = 0\.99\d \(", finding.measured[0])
    assert pair(words.SIMILAR, 1.0, n_runs=6).verdict == HOLDS
    # To refute one of five parts the chance of an error is five times smaller.
    inside, outside = ratio(words.SIMILAR, B, B), ratio(words.SIMILAR, A, B)
    regrets = {A: 4_000.0, B: 800.0}
    finding = found([outside, *[inside] * 4], regrets=regrets, n_runs=6)
    assert (finding.verdict, finding.reason) == (UNTESTABLE, "6 runs decide nothing: play at least 8")
    assert found([outside, *[inside] * 4], regrets=regrets, n_runs=8).verdict == FAILS


class ByRun(Made):
    """Evidence in which every cell has the runs it is given."""

    def runs(self, policy: str, **setting: Any) -> Any:
        return np.array(self.regrets[Cell(policy, setting["items"])])


def differing(values: list[float], beside: int = 0) -> Finding:
    """What is found on "lower" when the runs of A exceed those of B by these, and so many parts are true."""
    c = Cell(UCB1, 16)
    runs: Any = {A: [1_000.0 + value for value in values], B: [1_000.0] * len(values)}
    runs[c] = [3_000.0] * len(values)
    parts = [more(words.LOWER, A, B), *[more(words.LOWER, c, B)] * beside]
    return every("experiment 9", *parts).check(ByRun(runs))


def test_one_of_many_parts_must_be_further_outside_to_refute() -> None:
    # Just outside with 95 % confidence, and not with 99.5 %.
    just = [100.0] * 10 + [700.0]
    assert differing([-value for value in just]).verdict == FAILS
    finding = differing([-value for value in just], beside=9)
    assert finding.verdict == UNTESTABLE
    assert "the 99.5% interval" in finding.reason
    # Ten of eleven are enough for one part, and not for one of ten.
    nearly = [-300.0] * 10 + [10.0]
    assert differing(nearly).verdict == FAILS
    finding = differing(nearly, beside=9)
    assert finding.verdict == UNTESTABLE
    assert "only in 10 of the runs" in finding.reason
    # To hold, every part has to pass its own test and no more.
    assert differing(just).verdict == differing(just, beside=9).verdict == HOLDS


def test_an_interval_that_the_single_runs_do_not_bear_out_decides_nothing() -> None:
    mostly = [300.0, 310.0, 320.0, 290.0, 280.0, 305.0, 295.0, 315.0]
    assert differing([*mostly, 300.0, -10.0]).verdict == HOLDS  # 9 of 10
    finding = differing([*mostly, -5.0, -10.0])
    assert finding.figures["parts"][0]["low"] > 100
    assert finding.figures["parts"][0]["runs_inside"] == 8
    assert finding.verdict == UNTESTABLE
    assert finding.reason == (
        "undecided with 10 runs: ranked-lin-ts − cascade-lin-ts, 16 items is above 0 by its interval, but "
        "only in 8 of the runs, too few for the sign test; the runs are too uneven"
    )
    finding = differing([-value for value in (*mostly, -5.0, -10.0)])
    assert finding.figures["parts"][0]["high"] < -100
    assert finding.verdict == UNTESTABLE
    assert "is not above 0 by its interval, but only in 8 of the runs" in finding.reason
    assert differing([-value for value in (*mostly, 300.0, -10.0)]).verdict == FAILS


def test_runs_must_be_between_both_limits_of_a_word() -> None:
    def verdict(low: int, high: int) -> str:
        """Of eleven ratios so many are just below 0.4, so many just above 2.5, and the others are 1.4."""
        above = [300.0] * low + [2_600.0] * high + [1_400.0] * (11 - low - high)
        runs: Any = {A: above, B: [1_000.0] * 11}
        return every("experiment 9", ratio(words.SIMILAR, A, B)).check(ByRun(runs)).verdict

    assert [verdict(1, 0), verdict(0, 1), verdict(1, 1)] == [HOLDS] * 3
    assert [verdict(2, 0), verdict(0, 2)] == [UNTESTABLE] * 2


def test_the_largest_of_very_uneven_runs_is_shown_beside_the_mean() -> None:
    finding = found(performs_well(Cell()), regrets={Cell(): 700.0}, stuck={Cell(): 8_000.0})
    (part,) = finding.figures["parts"]
    (uneven,) = part["uneven"]
    assert uneven["largest"] > 8_600
    assert uneven["median"] == pytest.approx(700, rel=0.03)
    assert re.search(
        r"; 1,42\d is a mean of uneven runs: median \d{3}, largest 8,[67]\d\d$", finding.measured[0]
    )
    even = found(performs_well(Cell()), regrets={Cell(): 700.0}, stuck={Cell(): 1_300.0})
    assert "uneven" not in even.figures["parts"][0]
    assert "uneven" not in even.measured[0]


def test_a_word_with_other_limits_changes_the_rule_and_the_verdict() -> None:
    def rule(word: words.Word) -> Rule:
        return every("experiment 9", ratio(word, A, B))

    made, strict = Made({A: 1_200.0, B: 800.0}), replace(words.SIMILAR, low=0.7, high=1.4)
    assert "between 0.4 and 2.5" in rule(words.SIMILAR).text
    assert "between 0.7 and 1.4" in rule(strict).text
    assert (rule(words.SIMILAR).check(made).verdict, rule(strict).check(made).verdict) == (HOLDS, FAILS)
