"""Verdicts on paired runs: synthetic evidence on which each comparison holds, fails or is undecided."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from firstclick.studies.paper import claims as words
from firstclick.studies.paper.claims import best_gains_more, can_learn, gap_increases, performs_well, regrets
from firstclick.studies.paper.evidence import Case, Evidence
from firstclick.studies.paper.verdicts import FAILS, HOLDS, UNTESTABLE
from tests.support.made_evidence import LIN_TS, RANKED, UCB1, Made

NINE = "experiment 9"


def found(criterion, regrets, **more):
    return criterion.find(Made(regrets, **more).evidence())


def pair(word, value, **more):
    """What is found when UCB1 has `value` times the regret of LinTS, at 16 items."""
    above, below = Case(UCB1, 16), Case(LIN_TS, 16)
    return found(regrets(NINE, word, (above, below)), {above: 700 * value, below: 700.0}, **more)


RATIO_WORDS = [
    word for word in words.WORDS if word.is_ratio and word not in (words.PERFORMS_WELL, words.CAN_LEARN)
]


@pytest.mark.parametrize("word", RATIO_WORDS, ids=lambda word: word.phrase)
def test_ratio_holds_between_its_limits_fails_beyond_and_is_undecided_at_them(word):
    limits = [limit for limit in (word.low, word.high) if math.isfinite(limit)]
    inside = math.sqrt(word.low * word.high) if len(limits) == 2 else 1.3 * limits[0]
    assert pair(word, inside).verdict == HOLDS
    assert pair(word, 0.8 * word.low).verdict == FAILS
    assert pair(word, 1.2 * limits[-1]).verdict == (FAILS if len(limits) == 2 else HOLDS)
    for limit in limits:
        finding = pair(word, limit)
        assert finding.verdict == UNTESTABLE
        assert re.match(rf"undecided with 11 runs: .*the limit {re.escape(f'{limit:.3g}')}", finding.reason)


def test_the_words_of_one_language_fit_together():
    # Section 4.4 calls learners similar although one has about two times another's regret.
    assert words.SIMILAR.low < words.ABOUT_TWO_TIMES.low
    assert words.ABOUT_TWO_TIMES.high <= words.SIMILAR.high == words.ALMOST_THREE_TIMES.low
    assert words.ALMOST_THREE_TIMES.high < words.ORDERS_OF_MAGNITUDE.low == 10**2
    for doubles, halves in (
        (words.ROUGHLY_DOUBLES.low, words.ROUGHLY_HALVES.high),
        (words.SIMILAR.high, words.SIMILAR.low),
    ):
        assert doubles * halves == pytest.approx(1)


def test_figures_have_the_ratio_its_interval_limits_and_order_of_magnitude():
    finding = pair(words.ORDERS_OF_MAGNITUDE, 40.0)
    (part,) = finding.figures["parts"]
    assert part["estimate"] == pytest.approx(40)
    assert 39 < part["low"] < 40 < part["high"] < 41
    assert part["limits"] == [100.0, None]
    assert part["orders_of_magnitude"] == pytest.approx(math.log10(40))
    assert part["means"] == pytest.approx([28_000, 700])
    assert (part["runs"], part["confidence"], part["kind"]) == (11, 0.95, "ratio")
    assert (finding.verdict, finding.reason) == (FAILS, "not above 100")
    assert re.search(r"28,000 / 700 = 40\.\d+ \(39\.\d+ to 40\.\d+\), 1\.6 orders", finding.measured[0])


A, B = Case(RANKED, 16), Case(LIN_TS, 16)
BY_K = [Case(k=k) for k in (4, 8, 12)]
RISING = [(BY_K[1], BY_K[0]), (BY_K[2], BY_K[1])]


def by_k(*values):
    return dict(zip(BY_K, values, strict=False))


def by_items(ranked, lin_ts):
    policies = (words.RANKED, ranked), (words.LIN_TS, lin_ts)
    return {
        case: value for cases, values in policies for case, value in zip(cases.values(), values, strict=True)
    }


@pytest.mark.parametrize(
    ("criterion", "holds", "fails", "undecided"),
    [
        (regrets(NINE, words.LOWER, (A, B)), {A: 900, B: 800}, {A: 800, B: 900}, {A: 800, B: 801}),
        (
            regrets(NINE, words.INCREASES, *RISING),
            by_k(700, 800, 900),
            by_k(700, 900, 800),
            by_k(700, 900, 901),
        ),
        (
            gap_increases((words.RANKED, words.LIN_TS)),
            by_items((900, 1300, 2000), (800, 1000, 1400)),
            by_items((900, 1300, 2000), (500, 1200, 1400)),
            by_items((900, 1300, 2000), (800, 1200, 1400)),
        ),
        # The best slate gains 10,000 clicks from 4 to 8: a regret that rises was gained less.
        (best_gains_more(RISING[0]), by_k(700, 900), by_k(900, 700), by_k(900, 901)),
        (performs_well(NINE, [Case()]), {Case(): 7_000}, {Case(): 9_000}, {Case(): 8_000}),
        (performs_well(NINE, [Case()]), {Case(): -500}, {Case(): 40_000}, {Case(): 8_010}),
    ],
    ids=["lower", "rising", "wider gap", "best gains", "performs well", "performs well, negative regret"],
)
def test_a_comparison_holds_fails_and_is_undecided(criterion, holds, fails, undecided):
    assert found(criterion, holds).verdict == HOLDS
    assert found(criterion, fails).verdict == FAILS
    finding = found(criterion, undecided)
    assert finding.verdict == UNTESTABLE
    assert "undecided with 11 runs" in finding.reason


def test_reward_rises_where_the_best_slate_gains_more_than_the_regret_grows():
    criterion = regrets(NINE, words.INCREASES, *RISING, measure="reward")
    assert found(criterion, by_k(700, 2_000, 4_000)).verdict == HOLDS
    assert found(criterion, by_k(700, 2_000, 9_000)).verdict == FAILS


@pytest.mark.parametrize(("at_first", "verdict"), [(0.3, HOLDS), (0.05, FAILS)])
def test_policy_learns_if_it_loses_less_per_step_later_than_at_first(at_first, verdict):
    finding = found(can_learn(NINE, [Case()]), {Case(): 700.0}, at_first=at_first)
    assert finding.verdict == verdict
    (part,) = finding.figures["parts"]
    assert part["estimate"] == pytest.approx((1 - at_first) / 9 / at_first)


def test_learning_in_some_runs_or_in_short_ones_is_not_testable():
    evidence = Made({Case(): 700.0}).evidence()
    evidence.early_regret[Case()] *= np.array([1.0, 0.1] * 5 + [0.333])
    finding = can_learn(NINE, [Case()]).find(evidence)
    assert (finding.verdict, "crosses the limit 1;" in finding.reason) == (UNTESTABLE, True)
    finding = found(can_learn(NINE, [Case()]), {Case(): 7.0}, steps=9)
    assert (finding.verdict, "not played" in finding.reason) == (UNTESTABLE, True)


def test_one_pair_outside_refutes_what_the_others_support():
    criterion = regrets(NINE, words.SIMILAR, (A, B), (Case(RANKED), Case()), (A, Case(k=8)))
    regret = {A: 900.0, B: 800.0, Case(RANKED): 4_000.0, Case(): 1_000.0}
    finding = found(criterion, regret)
    assert finding.verdict == FAILS
    assert finding.reason == "not between 0.4 and 2.5: ranked-lin-ts / cascade-lin-ts"
    assert len(finding.measured) == len(finding.figures["parts"]) == 2
    finding = found(criterion, {**regret, Case(RANKED): 2_000.0})
    assert (finding.verdict, "not played" in finding.reason) == (UNTESTABLE, True)
    # Equal regrets are not lower.
    assert found(regrets(NINE, words.LOWER, (A, A)), {A: 900.0}).verdict == FAILS


@pytest.mark.parametrize("regret", [0.0, -300.0])
def test_no_ratio_is_formed_with_a_regret_that_is_not_above_zero(regret):
    finding = found(regrets(NINE, words.SIMILAR, (A, B)), {A: 900.0, B: regret})
    assert finding.verdict == UNTESTABLE
    assert finding.reason.startswith("no ratio can be formed with 11 runs")
    assert finding.measured


def test_fewer_than_six_runs_decide_nothing_however_clear_they_are():
    for runs, figures in ((1, r": 7\d\d / 7\d\d$"), (5, r" = 0\.99\d \(")):
        finding = pair(words.SIMILAR, 1.0, n_runs=runs)
        assert (finding.verdict, "at least 6" in finding.reason) == (UNTESTABLE, True)
        assert re.search(figures, finding.measured[0])
    assert pair(words.SIMILAR, 1.0, n_runs=6).verdict == HOLDS
    # To refute one of five pairs the chance of an error is five times smaller.
    beside = [Case(LIN_TS, 16, rank) for rank in range(1, 5)]
    criterion = regrets(NINE, words.SIMILAR, (A, B), *((case, B) for case in beside))
    regret = {A: 4_000.0, B: 800.0, **dict.fromkeys(beside, 800.0)}
    finding = found(criterion, regret, n_runs=6)
    assert (finding.verdict, "at least 8" in finding.reason) == (UNTESTABLE, True)
    assert found(criterion, regret, n_runs=8).verdict == FAILS


def run_by_run(criterion, runs):
    """What is found when every case has the regrets it is given, one per run."""
    regret = {case: np.array(values) for case, values in runs.items()}
    return criterion.find(Evidence(False, 100_000, {}, {}, "", regret))


def differing(values, beside=0):
    """What is found on "lower" when the runs of A exceed those of B by these, and so many pairs are true."""
    others = [Case(UCB1, 16, rank) for rank in range(beside)]
    runs = {A: [1_000.0 + value for value in values], B: [1_000.0] * len(values)}
    runs |= {other: [3_000.0] * len(values) for other in others}
    return run_by_run(regrets(NINE, words.LOWER, (A, B), *((other, B) for other in others)), runs)


def test_one_of_many_pairs_must_be_further_outside_to_refute():
    # Just outside with 95 % confidence, and not with 99.5 %.
    just = [100.0] * 10 + [700.0]
    assert differing([-value for value in just]).verdict == FAILS
    finding = differing([-value for value in just], beside=9)
    assert finding.verdict == UNTESTABLE
    assert "the 99.5% interval" in finding.reason
    # Ten of eleven are enough for one pair, and not for one of ten.
    nearly = [-300.0] * 10 + [10.0]
    assert differing(nearly).verdict == FAILS
    finding = differing(nearly, beside=9)
    assert finding.verdict == UNTESTABLE
    assert "only in 10 of the runs" in finding.reason
    # To hold, every pair has to pass its own test and no more.
    assert differing(just).verdict == differing(just, beside=9).verdict == HOLDS


def test_interval_that_single_runs_do_not_support_decides_nothing():
    mostly = [300.0, 310.0, 320.0, 290.0, 280.0, 305.0, 295.0, 315.0]
    assert differing([*mostly, 300.0, -10.0]).verdict == HOLDS  # 9 of 10
    finding = differing([*mostly, -5.0, -10.0])
    (part,) = finding.figures["parts"]
    assert (part["low"] > 100, part["runs_inside"]) == (True, 8)
    assert (finding.verdict, "only in 8 of the runs" in finding.reason) == (UNTESTABLE, True)
    finding = differing([-value for value in (*mostly, -5.0, -10.0)])
    assert finding.figures["parts"][0]["high"] < -100
    assert (finding.verdict, "only in 8 of the runs" in finding.reason) == (UNTESTABLE, True)
    assert differing([-value for value in (*mostly, 300.0, -10.0)]).verdict == FAILS


def test_runs_must_be_between_both_limits_of_a_word():
    def found_of(above):
        return run_by_run(regrets(NINE, words.SIMILAR, (A, B)), {A: above, B: [1_000.0] * 11})

    def verdict(low, high):
        """Of eleven ratios so many are just below 0.4, so many just above 2.5, and the others are 1.4."""
        return found_of([300.0] * low + [2_600.0] * high + [1_400.0] * (11 - low - high)).verdict

    assert [verdict(1, 0), verdict(0, 1), verdict(1, 1)] == [HOLDS] * 3
    assert [verdict(2, 0), verdict(0, 2)] == [UNTESTABLE] * 2
    for limit in (400.0, 2_500.0):
        (part,) = found_of([limit] * 2 + [1_400.0] * 9).figures["parts"]
        assert part["runs_inside"] == 9, "a run at a limit is not inside"


def test_largest_of_very_uneven_runs_is_shown_beside_the_mean():
    criterion = performs_well(NINE, [Case()])
    finding = found(criterion, {Case(): 700.0}, stuck={Case(): 8_000.0})
    (uneven,) = finding.figures["parts"][0]["uneven"]
    assert uneven["largest"] > 8_600
    assert uneven["median"] == pytest.approx(700, rel=0.03)
    assert re.search(r"1,42\d .*uneven.* \d{3}, .* 8,[67]\d\d$", finding.measured[0])
    even = found(criterion, {Case(): 700.0}, stuck={Case(): 1_300.0})
    assert "uneven" not in even.figures["parts"][0]


def test_a_word_with_other_limits_changes_the_rule_and_the_verdict():
    made, strict = {A: 1_200.0, B: 800.0}, replace(words.SIMILAR, low=0.7, high=1.4)
    wide, narrow = (regrets(NINE, word, (A, B)) for word in (words.SIMILAR, strict))
    assert "between 0.4 and 2.5" in wide.rule
    assert "between 0.7 and 1.4" in narrow.rule
    assert (found(wide, made).verdict, found(narrow, made).verdict) == (HOLDS, FAILS)
