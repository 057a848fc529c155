"""The intervals over paired runs: against scipy, and by simulation."""

import numpy as np
import pytest
from scipy import stats

from firstclick.streams import stream
from firstclick.studies.paper.statistics import (
    CHANCE,
    Interval,
    fewest_runs,
    mean_interval,
    ratio_interval,
    sign_chance,
)

ABOVE = np.array([112.0, 131.0, 98.0, 127.0, 105.0, 140.0, 119.0])
BELOW = np.array([55.0, 61.0, 52.0, 49.0, 58.0, 66.0, 50.0])


@pytest.mark.parametrize("chance", [0.05, 0.01, 0.05 / 7])
def test_the_interval_of_a_paired_difference_is_scipys(chance):
    interval = mean_interval(ABOVE - BELOW, chance)
    expected = stats.ttest_rel(ABOVE, BELOW).confidence_interval(1 - chance)
    assert interval.estimate == pytest.approx((ABOVE - BELOW).mean())
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("chance", [0.05, 0.01, 0.05 / 7])
@pytest.mark.parametrize("sign", [1, -1])
def test_at_both_ends_of_a_ratios_interval_the_paired_t_test_is_on_the_verge(chance, sign):
    interval = ratio_interval(sign * ABOVE, BELOW, chance)
    assert interval.estimate == pytest.approx(sign * ABOVE.mean() / BELOW.mean())
    assert interval.low < interval.estimate < interval.high
    for end in (interval.low, interval.high):
        assert stats.ttest_1samp(sign * ABOVE - end * BELOW, 0).pvalue == pytest.approx(chance)


def misses(draw, chance):
    """In how many of 2,000 experiments of 10 runs the interval does not hold the true ratio, 2.5."""
    rng = stream(3, "coverage", draw)
    missed = 0
    for _ in range(2000):
        shared, above, below = rng.standard_normal((3, 10))
        if draw == "normal":
            numerators, denominators = 500 + 60 * shared + 40 * above, 200 + 30 * shared + 20 * below
        else:
            numerators = 500 * np.exp(0.3 * (shared + above) - 0.09)
            denominators = 200 * np.exp(0.3 * (shared + below) - 0.09)
        interval = ratio_interval(numerators, denominators, chance)
        missed += interval is not None and not interval.low <= 2.5 <= interval.high
    return missed


def test_interval_of_a_ratio_misses_as_often_as_it_says():
    for chance in (0.05, 0.01):
        # For a true chance, a count outside these is seen once in 1,000 tries.
        low, high = stats.binom.ppf([0.0005, 0.9995], 2000, chance)
        assert low <= misses("normal", chance) <= high
    # Skewed: if it misses at most 8 times in 100, more than this is seen less than once in 10,000 tries.
    assert misses("skewed", 0.05) <= stats.binom.ppf(0.9999, 2000, 0.08)


def test_no_ratio_is_formed_where_the_denominator_is_not_above_zero():
    for denominators in ([3.0, -2.0, 1.0, 4.0], [0.0] * 4, [-55.0, -61.0, -52.0, -49.0]):
        assert ratio_interval(ABOVE[:4], np.array(denominators)) is None
    # More confidence can take the ratio away.
    denominators = np.array([3.0, 1.0, 2.5, 4.0])
    assert ratio_interval(ABOVE[:4], denominators, 0.05) is not None
    assert ratio_interval(ABOVE[:4], denominators, 0.001) is None
    # Equal runs leave no doubt.
    assert mean_interval(np.full(5, 0.1)) == Interval(0.1, 0.1, 0.1)
    interval = ratio_interval(np.full(5, 0.3), np.full(5, 0.7))
    assert (interval.low, interval.high) == pytest.approx((3 / 7, 3 / 7), rel=1e-12)


def test_the_sign_test_is_scipys():
    for agreeing, runs in ((0, 7), (5, 7), (7, 7), (9, 10), (63, 100)):
        expected = stats.binomtest(agreeing, runs, alternative="greater").pvalue
        assert sign_chance(agreeing, runs) == pytest.approx(expected)


@pytest.mark.parametrize("chance", [CHANCE / 2, CHANCE / 20, 1 / 64])
def test_the_fewest_runs_pass_the_sign_test_if_all_agree_and_one_fewer_do_not(chance):
    runs = fewest_runs(chance)
    assert sign_chance(runs, runs) <= chance < sign_chance(runs - 1, runs - 1)
