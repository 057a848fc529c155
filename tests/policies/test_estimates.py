"""What a policy holds for items, and how uncertain it is, against the formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from firstclick.catalog.features import longest_norm
from firstclick.policies.base import Policy
from firstclick.policies.cascade_lin_ts import CascadeLinTS
from firstclick.policies.cascade_ts import CascadeTS
from firstclick.policies.random import Random
from firstclick.registry import USUAL_POLICIES
from firstclick.testing import Driver
from firstclick.testing.checks import estimates_follow_what_is_observed
from tests.support.policies import OTHERS, policies

K = 3

LINEAR = ["cascade-lin-ts", "cascade-lin-ts:sigma=0.3", "cascade-lin-ucb:c=0.2,sigma=2"]
SCALED = "cascade-lin-ucb:c=theory,horizon=5000,sigma=2"
COUNTING = ["cascade-ts", "cascade-ts:a=0.5,b=3", "cascade-ucb1", "cascade-kl-ucb:start=pessimistic"]


def gaussian(x, log, sigma, scale=1.0, positions=None):
    """x'mean and sqrt(x'M^-1 x) from the log, by inverses; of some positions only if they are given."""
    x = scale * x
    M, B = np.eye(x.shape[1]), np.zeros(x.shape[1])
    for slate, click in log:
        for position, item in enumerate(slate):
            if (click is None or position <= click) and (positions is None or position in positions):
                M += np.outer(x[item], x[item]) / sigma**2
                B += x[item] * (position == click)
    covariance = np.linalg.inv(M)
    return x @ covariance @ B / sigma**2, np.sqrt(np.diag(x @ covariance @ x.T))


def beta(n_items, log, a, b):
    """Mean and deviation of the Beta posterior of each item."""
    hits, misses = np.zeros(n_items), np.zeros(n_items)
    for slate, click in log:
        for position, item in enumerate(slate):
            if click is None or position <= click:
                hits[item] += position == click
                misses[item] += position != click
    posterior = stats.beta(a + hits, b + misses)
    return posterior.mean(), posterior.std()


def expected(driver, x, log):
    policy = driver.policy
    if policy.name == "ranked-lin-ts":
        return gaussian(x, log, policy.sigma, positions=[0])
    if policy.needs_features:
        scale = 1 / max(longest_norm(x), 1) if getattr(policy, "c", None) == "theory" else 1
        return gaussian(x, log, policy.sigma, scale)
    return beta(len(x), log, getattr(policy, "a", 1), getattr(policy, "b", 1))


@pytest.mark.parametrize(
    "policy", policies([*LINEAR, SCALED, "ranked-lin-ts", "ranked-lin-ts:sigma=3", *COUNTING])
)
@settings(max_examples=15)
@given(
    n_items=st.integers(K, 200),
    n_features=st.integers(1, 9),
    size=st.sampled_from([0.1, 1.0, 10.0]),
    steps=st.integers(0, 60),
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(0, 200),
)
def test_estimates_are_those_of_the_formulas(policy, n_items, n_features, size, steps, seed, n_rows):
    draw = np.random.default_rng(seed)
    x = size * draw.standard_normal((n_items, n_features))
    driver = Driver(policy, x, k=K, seed=seed)
    log = driver.play(steps, seed=seed)
    rows = draw.integers(0, n_items, n_rows)
    means, deviations = driver.estimate(rows)
    wanted_means, wanted_deviations = expected(driver, x, log)
    np.testing.assert_allclose(means, wanted_means[rows], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(deviations, wanted_deviations[rows], rtol=1e-7, atol=1e-8)


@OTHERS
def test_the_formulas_are_tried_where_features_are_rescaled():
    x = np.array([[3.0, 4.0], [0.0, 2.5], [1.0, 0.0]])
    driver = Driver(SCALED, x)
    assert driver.numbers.scale == pytest.approx(0.2)
    # Nothing learned: theta is standard normal, and x'theta has the deviation |x| / 5.
    assert driver.estimate([0, 1, 2])[1] == pytest.approx([1.0, 0.5, 0.2])


@pytest.mark.parametrize("policy", policies(sorted(USUAL_POLICIES)))
def test_every_policy_but_random_holds_something(policy):
    driver = Driver(policy)
    driver.play(10)
    held = driver.estimate(range(17))
    assert np.isnan(held).all() if policy == "random" else np.isfinite(held).all()


def test_counts_of_millions_keep_their_digits():
    driver = Driver("cascade-ts", np.ones((3, 1)), k=1)
    driver.state.examined[:] = [10**12, 10**12, 3]
    driver.state.hits[:] = [10**12, 10**11, 0]
    wanted = stats.beta([1 + 1e12, 1 + 1e11, 1], [1, 1 + 9e11, 4])
    means, deviations = driver.estimate([0, 1, 2])
    np.testing.assert_allclose(means, wanted.mean(), rtol=1e-12)
    np.testing.assert_allclose(deviations, wanted.std(), rtol=1e-9)


# Policies whose estimates are wrong in one way each. Without a name of their own they are not registered.


class ChangesTheState(CascadeTS):
    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):
        state.examined[0] += 1
        means[:] = 0.5
        deviations[:] = 0.5


class GoesByPlace(CascadeTS):
    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):
        for j in range(len(rows)):
            means[j] = state.hits[j]
            deviations[j] = 0.5


class FillsTheMeansOnly(CascadeTS):
    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):
        for j in range(len(rows)):
            means[j] = state.hits[rows[j]]


class IsUncertainBelowNought(CascadeTS):
    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):
        for j in range(len(rows)):
            means[j] = state.hits[rows[j]]
            deviations[j] = -1.0


class HoldsSomethingForSome(CascadeTS):
    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):
        for j in range(len(rows)):
            seen = state.examined[rows[j]] > 0
            means[j] = state.hits[rows[j]] if seen else np.nan
            deviations[j] = 0.5 if seen else np.nan


class GetsUncertain(CascadeTS):
    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):
        for j in range(len(rows)):
            means[j] = state.hits[rows[j]]
            deviations[j] = state.examined[rows[j]]


class HoldsNothing(CascadeLinTS):
    estimate = staticmethod(Policy.estimate)


@OTHERS
@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (ChangesTheState, r"^estimate changed examined: it must only read the state"),
        (GoesByPlace, r"^rows in another order have other estimates"),
        (FillsTheMeansOnly, r"^estimates must be finite"),
        (IsUncertainBelowNought, r"^estimates must be finite, deviations not negative"),
        (HoldsSomethingForSome, r"^estimates must be finite, .*or all NaN at all times"),
        (GetsUncertain, r"^row 4 was examined 300 times; its deviation went from 0.0 to "),
    ],
)
def test_wrong_estimates_are_caught_by_the_conformance_check(policy, sentence):
    with pytest.raises(AssertionError, match=sentence):
        estimates_follow_what_is_observed(policy())


@OTHERS
def test_a_policy_that_holds_nothing_passes_the_conformance_check():
    estimates_follow_what_is_observed(HoldsNothing())
    estimates_follow_what_is_observed(Random())
