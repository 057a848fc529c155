"""Weighed draws from a Gaussian that was fitted to a walk: what Monte Carlo of Gaussian scores shares."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

WALKED = 1536  # steps of a walk, of which the first third is thrown away
WEIGHED, MOST_WEIGHED = 512, 200_000  # draws that are weighed at once, and at most
# Weights are skewed: after few draws the standard error is often too small, and it is what ends them.
LEAST_WEIGHED = 2048
# The fitted Gaussian is made wider by this factor: its tails must not be lighter than those of the target.
WIDER = 1.25


class Estimate(NamedTuple):
    """A probability, its standard error, and how many draws it took."""

    chance: float
    error: float
    draws: int


def fitted(points: Numbers) -> tuple[Numbers, Numbers]:
    """The centre of the points of a walk, and the root of their covariance, made a little wider."""
    points = points[len(points) // 3 :]
    spread = np.cov(points, rowvar=False, ddof=0).reshape(points.shape[1], -1)
    # Where the walk did not get about, it still is some width.
    spread += (1e-4 * np.trace(spread) / len(spread) + 1e-12) * np.eye(len(spread))
    root = np.linalg.cholesky(WIDER * spread)
    return np.asarray(points.mean(0)), np.asarray(root, np.float64)


def weighed_mean(weigh: Callable[[int, Numbers], None], relative_error: float) -> Estimate:
    """The mean of weights, drawn until its standard error is small enough, or MOST_WEIGHED are drawn.

    `weigh(first, weights)` fills in the weights of the draws from number `first` on.
    """
    total = squares = 0.0
    counted, weights = 0, np.empty(WEIGHED)
    while True:
        weigh(counted, weights)
        counted += WEIGHED
        total += float(weights.sum())
        squares += float(weights @ weights)
        chance = total / counted
        error = float(np.sqrt(max(squares / counted - chance * chance, 0.0) / counted))
        enough = counted >= LEAST_WEIGHED and 0 < error <= relative_error * chance
        if enough or counted >= MOST_WEIGHED:
            return Estimate(chance, error, counted)
