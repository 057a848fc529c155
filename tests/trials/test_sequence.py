"""Intervals over buckets: against direct formulas, over periods, and whenever you look."""

import math
from itertools import product

import numpy as np
import pytest

from firstclick.trials.sequence import (
    MIXTURE,
    Estimate,
    decided_by_units,
    effective_clicks,
    estimate,
    is_worse,
    level_of_each,
    multiplier,
    reach,
)  # fmt: skip
from firstclick.trials.tally import CLICKS, PAGES, Tally
from tests.support.made_trials import full, played


def by_hand(period, arm):
    """Rate, variance and effective buckets of an arm, one bucket after the other."""
    counts = [
        (int(p), int(c))
        for p, c, owner in zip(period.pages, period.clicks, period.owner, strict=True)
        if owner == arm and p
    ]
    pages = sum(p for p, _ in counts)
    rate = sum(c for _, c in counts) / pages
    effective = pages**2 / sum(p * p for p, _ in counts)
    errors = sum(((c - rate * p) / pages) ** 2 for p, c in counts)
    return rate, errors * effective / (effective - 1), effective


def test_the_variance_is_the_one_over_buckets():
    tally = played(Tally([0.7, 0.3]), np.random.default_rng(3), 3_000)
    found = estimate(tally, 1, 0)
    rate, variance, effective = by_hand(tally.periods[0], 1)
    rate0, variance0, effective0 = by_hand(tally.periods[0], 0)
    assert found.rate == pytest.approx(rate)
    assert found.rate_against == pytest.approx(rate0)
    assert found.error == pytest.approx(math.sqrt(variance + variance0))
    assert found.buckets <= min(effective, effective0)
    pages = tally.periods[0].sums[PAGES]
    assert found.harmonic_pages == pytest.approx(pages[0] * pages[1] / sum(pages))


def test_page_without_a_unit_is_a_unit_of_its_own():
    tally = Tally([0.5, 0.5])
    for page in range(1_000):
        tally.add(page % 2, None, clicked=page % 5 == 0)
    found = estimate(tally, 1, 0, units=False)
    assert found.error == pytest.approx(math.sqrt(0.2 * 0.8 / 499 * 2))
    assert estimate(tally, 1, 0) is None
    assert not decided_by_units(tally)


def test_periods_are_weighted_by_pages_and_a_bucket_counts_once():
    tally = full()
    found = estimate(tally, 1, 0)
    total = np.array([sum(one.sums[PAGES]) for one in tally.periods])
    weights = total / total.sum()
    error = np.zeros((2, 10_000))
    rates = np.zeros(2)
    for weight, period in zip(weights, tally.periods, strict=True):
        for row, arm in enumerate((1, 0)):
            rate, _, effective = by_hand(period, arm)
            rates[row] += weight * rate
            mine = np.where(period.owner == arm, period.clicks - rate * period.pages, 0)
            error[row] += weight * mine / period.sums[PAGES][arm] * math.sqrt(effective / (effective - 1))
    assert (found.rate, found.rate_against) == pytest.approx(tuple(rates))
    assert found.error == pytest.approx(math.sqrt(((error[0] - error[1]) ** 2).sum()))
    # Buckets have moved from one arm to the other.
    assert found.covariance != 0


def test_periods_are_never_pooled():
    """Rates double when the share of arm 1 grows: pooled, arm 1 would look better (Simpson's paradox)."""
    tally = Tally([0.9, 0.1])
    for bucket in range(10_000):
        tally.add(int(tally.owner[bucket]), bucket, clicked=bucket % 10 == 0)
    tally.change_shares([0.5, 0.5])
    for bucket in range(10_000):
        tally.add(int(tally.owner[bucket]), bucket, clicked=bucket % 5 == 0)
    pooled = [clicks / pages for clicks, pages in zip(tally.clicks, tally.pages, strict=True)]
    assert pooled[1] - pooled[0] > 0.04
    assert estimate(tally, 1, 0).difference(1).value == pytest.approx(0)


def test_a_period_in_which_an_arm_has_hardly_any_pages_is_left_out():
    tally = Tally([0.5, 0.5])
    for bucket in range(10_000):
        tally.add(int(tally.owner[bucket]), bucket, clicked=bucket % 4 == 0)
    before = estimate(tally, 1, 0)
    tally.change_shares([1.0, 0.0])
    for bucket in range(3_000):
        tally.add(0, bucket, clicked=True)
    assert estimate(tally, 1, 0) == before


def some(rate=0.12, against=0.1, variance=1e-5, variance_against=2e-5, covariance=0.0):
    return Estimate(rate, against, variance, variance_against, covariance, 5_000.0, 20_000, 100.0)


@pytest.mark.parametrize("covariance", [0.0, 5e-6])
def test_ratio_has_every_multiple_that_the_difference_does_not_exclude(covariance):
    """At 1 it excludes it if and only if the interval of the difference excludes 0."""
    for rate, errors in product([0.0, 0.05, 0.1, 0.114, 0.118, 0.12, 0.3], [0.5, 3.0, 20.0, 40.0]):
        found = some(rate, covariance=covariance)
        difference, ratio = found.difference(errors), found.ratio(errors)
        highest = math.inf if ratio.high is None else ratio.high
        assert (difference.low <= 0 <= difference.high) == (ratio.low <= 1 <= highest)
        for q in np.linspace(0, 4, 201) if errors < 20 else ():
            variance = found.variance - 2 * q * found.covariance + q * q * found.variance_against
            inside = (found.rate - q * found.rate_against) ** 2 <= errors**2 * variance
            assert inside == (ratio.low <= q <= highest)
    # With 40 standard errors the other rate may be 0, and the ratio anything.
    assert found.ratio(40.0).high is None


def test_the_boundary_is_that_of_the_papers():
    """Waudby-Smith et al. 2021, theorem 2.2, for n pages of variance 1 and their rho^2 = 1 / MIXTURE."""
    for n, alpha in ((10, 0.05), (800, 0.05), (50_000, 0.01)):
        rho2 = 1 / MIXTURE
        theirs = math.sqrt(2 * (n * rho2 + 1) / (n * n * rho2) * math.log(math.sqrt(n * rho2 + 1) / alpha))
        assert multiplier(n, alpha) / math.sqrt(n) == pytest.approx(theirs)


def test_a_brownian_motion_crosses_the_boundary_as_rarely_as_promised():
    generator = np.random.default_rng(6)
    steps = np.diff(np.geomspace(1, 1e6, 3_000), prepend=0)
    time = np.cumsum(steps)
    bound = np.array([multiplier(one, 0.05) for one in time]) * np.sqrt(time)
    paths = np.cumsum(generator.standard_normal((2_000, len(steps))) * np.sqrt(steps), axis=1)
    crossed = (np.abs(paths) > bound).any(axis=1).mean()
    assert 0.02 < crossed <= 0.05


def test_arm_without_any_click_is_worse_and_few_users_give_no_interval():
    tally, few = Tally([0.1, 0.9]), Tally([0.5, 0.5])
    for bucket in range(10_000):
        arm = int(tally.owner[bucket])
        tally.add(arm, bucket, clicked=arm == 0 and bucket % 7 == 0)
    assert (is_worse(tally, 1, 0), is_worse(tally, 0, 1)) == (True, False)
    for page in range(20_000):
        bucket = (page % 14) * 700
        few.add(int(few.owner[bucket]), bucket, clicked=page % 14 > 6)
    # Each arm has 7 users, all of one mind.
    assert sum(few.periods[0].sums[CLICKS]) == 9_997
    assert (estimate(few, 1, 0), is_worse(few, 0, 1)) == (None, False)
    assert level_of_each(0.95, 2) == pytest.approx(0.05)
    assert level_of_each(0.95, 6) == pytest.approx(0.01)
    assert reach(some(), 0.01) > reach(some(), 0.05) > 1.96


def test_clicks_of_few_users_give_no_interval():
    """Effective buckets by clicks, at the better rate, for the smaller arm: in either order of the arms."""
    big, small = (9_000.0, 900.0, 9_000.0, 900.0, 1_800.0), (1_000.0, 200.0, 1_000.0, 200.0, 500.0)
    assert effective_clicks(*big, *small) == effective_clicks(*small, *big) == 200**2 / 500
    worse = (1_000.0, 50.0, 1_000.0, 50.0, 50.0)
    assert effective_clicks(*big, *worse) == effective_clicks(*worse, *big) == 900**2 / 1_800 / 9
    nothing = (1_000.0, 0.0, 1_000.0, 0.0, 0.0)
    assert effective_clicks(*nothing, *nothing) == 0
