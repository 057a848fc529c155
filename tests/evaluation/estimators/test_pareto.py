"""The tail of the weights, beside arviz 0.23.4 (`arviz.psislw` and its fit, in an environment of its own)."""

import math

import numpy as np
import pytest

from firstclick.evaluation.estimators.pareto import pareto_k, pareto_shape
from firstclick.evaluation.estimators.support import SupportSums
from firstclick.evaluation.estimators.weighted_slates import WeightedSlates


def weights(k):
    uniform = (np.arange(2000) + 0.5) / 2000
    return ((1 - uniform) ** -k - 1) / k * (1 + 0.1 * np.sin(np.arange(2000))) + 1


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


def test_zeros_and_scale_do_not_matter():
    found = pareto_k(weights(0.5))
    assert found is not None
    assert pareto_k(np.concatenate([np.zeros(500), 7 * weights(0.5)])) == pytest.approx(found, abs=1e-9)


def test_equal_weights_have_no_tail_and_few_have_none_to_tell_of():
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
