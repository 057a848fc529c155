"""Intervals: what they are made of, and how often they hold."""

import math

import numpy as np
import pytest
from scipy import stats

from firstclick.evaluation.estimators.intervals import (
    bernstein,
    lower_mean,
    normal,
    stabilised,
    stabilising_weights,
)
from firstclick.evaluation.estimators.pareto import pareto_k, pareto_shape
from firstclick.evaluation.estimators.support import SupportSums
from firstclick.evaluation.estimators.weighted_slates import WeightedSlates


def test_normal_interval_is_mean_and_standard_error():
    rng = np.random.default_rng(1)
    terms, shown = rng.normal(2, 3, 4000), rng.normal(1, 1, 4000)
    found = normal(terms, shown, 0.9)
    for interval, values, error in ((found.value, terms, 1e-3), (found.difference, terms - shown, 2e-3)):
        mean, reach = values.mean(), stats.norm.ppf(0.95) * values.std() / math.sqrt(4000)
        assert interval == pytest.approx((mean, mean - reach, mean + reach), rel=error)
    # Stabilised terms with equal weights are normal ones.
    terms, shown = rng.random((2, 100))
    same, expected = stabilised(terms, shown, np.full(100, 0.3), 0.95), normal(terms, shown, 0.95)
    assert (*same.value, *same.difference) == pytest.approx((*expected.value, *expected.difference))
    # Clicks that are shared cancel in the difference.
    shown = (rng.random(5000) < 0.3) * 1.0
    found = normal(shown * rng.choice([0.9, 1.1], 5000), shown, 0.95)
    assert _width(found.difference) < 0.2 * _width(found.value)
    # Few large terms widen the interval, as Student says.
    terms = np.zeros(10_000)
    terms[:8] = 100.0
    found = normal(terms, np.zeros(10_000), 0.95)
    error = terms.std() / math.sqrt(10_000)
    assert _width(found.value) / 2 / error == pytest.approx(stats.t.ppf(0.975, 7), rel=0.01)


def test_stabilising_weights_make_up_for_spread():
    spread = np.array([[1.0, 1.0], [4.0, 4.0], [100.0, 100.0]])
    np.testing.assert_allclose(stabilising_weights(spread), [1.0, 0.5, 0.1])
    assert stabilising_weights(np.array([[1.0, 31.0]]))[0] == pytest.approx(1 / math.sqrt(2 / 3 + 31 / 3))


def test_a_weighted_mean_covers_where_the_spread_changes_with_the_past():
    """A term's scale follows the sign of the sum before it. 400 logs; a 95 % interval misses in more than
    9 % of them with a probability below 0.001."""
    rng = np.random.default_rng(4)
    held = 0
    for _ in range(400):
        noise, scales, total = rng.choice([-1.0, 1.0], 500), np.empty(500), 0.0
        for t in range(500):
            scales[t] = 8.0 if total < 0 else 1.0
            total += noise[t]
        terms = 0.5 + scales * noise
        value = stabilised(terms, np.zeros(500), 1 / scales, 0.95).value
        held += value.low <= 0.5 <= value.high
    assert held / 400 > 0.91


def test_bernstein_bounds_hold_for_rare_huge_terms_where_normal_ones_do_not():
    """A logger that matches the target once in 100 slates. 300 logs: a 95 % interval misses in more than 9 %
    with a probability below 0.002."""
    rng = np.random.default_rng(5)
    held, naive = 0, 0
    for _ in range(300):
        matched = rng.random(400) < 0.01
        clicks = rng.random(400) < 0.5
        terms, mirrored = matched * clicks * 100.0, matched * ~clicks * 100.0
        found = bernstein(terms, mirrored, clicks * 1.0, 1, 0.95)
        held += found.value.low <= 0.5 <= found.value.high
        assert 0 <= found.value.low <= found.value.high <= 1
        error = 1.96 * terms.std() / 20
        naive += abs(terms.mean() - 0.5) <= error
    assert held / 300 > 0.91
    assert naive / 300 < 0.91


def test_bernstein_bounds_close_in_on_the_mean():
    rng = np.random.default_rng(6)
    terms = (rng.random(200_000) < 0.3) * 1.0
    bound = lower_mean(terms, 0.0, 1.0, 0.025)
    error = math.sqrt(0.21 / 200_000)
    assert terms.mean() - 4.5 * error < bound < terms.mean() - 1.96 * error


def test_the_bernstein_difference_holds_while_what_is_shown_improves():
    rng = np.random.default_rng(7)
    n = 20_000
    rates = np.linspace(0.1, 0.5, n)
    shown = (rng.random(n) < rates) * 1.0
    matched = rng.random(n) < 0.25
    clicks = rng.random(n) < 0.6
    shown = np.where(matched, clicks, shown)
    terms, mirrored = matched * clicks * 4.0, matched * ~clicks * 4.0
    truth = 0.6 - (0.75 * rates.mean() + 0.25 * 0.6)
    found = bernstein(terms, mirrored, shown, 1, 0.95).difference
    assert found.low < truth < found.high
    assert _width(found) < 0.25


def _width(bounds):
    _, low, high = bounds
    return float(high - low)


def weights(k):
    uniform = (np.arange(2000) + 0.5) / 2000
    return ((1 - uniform) ** -k - 1) / k * (1 + 0.1 * np.sin(np.arange(2000))) + 1


# From arviz 0.23.4: `arviz.psislw` and the fit within it, in an environment of its own.
@pytest.mark.parametrize(
    ("k", "by_psis", "by_fit"),
    [
        (-0.3, -0.1641493772605102, -0.4380578692039701),
        (0.2, 0.22718884436965367, -0.027858416863434012),
        (0.5, 0.4958320214612826, 0.19720228321108188),
        (0.9, 0.8506241437892242, 0.5204547184891455),
    ],
)
def test_the_shape_is_that_of_arviz(k, by_psis, by_fit):
    assert pareto_k(weights(k)) == pytest.approx(by_psis, abs=1e-9)
    assert pareto_shape(np.sort(weights(k)) - 0.5) == pytest.approx(by_fit, abs=1e-9)


def test_tail_of_scaled_equal_and_few_weights():
    scaled = pareto_k(np.concatenate([np.zeros(500), 7 * weights(0.5)]))
    assert scaled == pytest.approx(pareto_k(weights(0.5)), abs=1e-9)
    assert pareto_k(np.repeat([0.0, 20.0], 500)) == -math.inf
    assert pareto_k(weights(0.5)[-99:]) is None


def test_batches_give_the_same_tail_as_the_whole():
    rng = np.random.default_rng(1)
    ratio = rng.pareto(3.0, (30_000, 1)) * 0.01
    whole = WeightedSlates(np.zeros((30_000, 1)), np.full((30_000, 1), 0.5), ratio / 2)
    sums = SupportSums(1)
    for start in range(0, 30_000, 7000):
        part = WeightedSlates(*(one[start : start + 7000] for one in whole[:3]))
        sums.add(part, part.target / part.logged)
    assert sums.positions(None)[0].pareto_k == pytest.approx(pareto_k(ratio[:, 0]), abs=1e-12)
