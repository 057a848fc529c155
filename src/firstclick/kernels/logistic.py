"""A Gaussian in place of the posterior of a logistic model, moved by one observation at a time.

    P(click) = 1 / (1 + exp(-z'theta)),   theta ~ N(mean, Q^-1),   z = an item's features and a 1

An observation moves the mean to where Gaussian times likelihood is largest, and adds p (1 - p) z z' to Q,
with p the probability there: the curvature at the top (Laplace). The new mean is mean + a Q^-1 z with one
unknown a, the root of an equation, found to rounding.
"""

from math import exp, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.compiling import kernel, shared_kernel
from firstclick.kernels.posterior import REFRESH, add_to_factor, factorise, solve, solve_transposed
from firstclick.kernels.ranking import features_at

# Newton's steps nearly always end after five; bisection, where they leave the bracket, after a hundred.
MOST_STEPS = 200
CLOSE = 1e-14


class LogisticState(NamedTuple):
    """What a logistic policy knows, intercept last. `factor` is the R of R'R = precision."""

    precision: NDArray[np.float64]
    mean: NDArray[np.float64]
    factor: NDArray[np.float64]
    observations: NDArray[np.int64]
    time: NDArray[np.int64]


@kernel
def logistic(score):  # type: ignore[no-untyped-def]
    """1 / (1 + exp(-score)), without overflow."""
    if score >= 0.0:
        return 1.0 / (1.0 + exp(-score))
    small = exp(score)
    return small / (1.0 + small)


@kernel
def top_score(held, spread, clicked):  # type: ignore[no-untyped-def]
    """The score of an item, once held to be N(held, spread), that is likeliest after one observation of it.

    It is the root of s - held - spread (clicked - logistic(s)), which rises in s.
    """
    low, high = held - spread * (1 - clicked), held + spread * clicked
    score = held
    for _ in range(MOST_STEPS):
        p = logistic(score)
        surprise = logistic(-score) if clicked else -p
        excess = score - held - spread * surprise
        if excess > 0.0:
            high = score
        else:
            low = score
        better = score - excess / (1.0 + spread * p * (1.0 - p))
        if not low <= better <= high:
            better = 0.5 * (low + high)
        if abs(better - score) <= CLOSE * (1.0 + abs(score)):
            break
        score = better
    return score


@kernel
def _product_and_spread(state, x, z):  # type: ignore[no-untyped-def]
    """z'mean and z'Q^-1 z of an item with features x; `z` becomes R'^-1 z."""
    mean = state.mean
    d = len(x)
    held = mean[d]
    for i in range(d):
        held += mean[i] * x[i]
        z[i] = x[i]
    z[d] = 1.0
    solve_transposed(state.factor, z)
    spread = 0.0
    for i in range(d + 1):
        spread += z[i] * z[i]
    return held, spread


@shared_kernel
def observe_clicks(state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
    """Learn from the examined positions of one slate, one after the other."""
    mean, precision, factor, observations = state.mean, state.precision, state.factor, state.observations
    d = len(mean) - 1
    z, v = np.empty(d + 1), np.empty(d + 1)
    for position in range(examined):
        x = features_at(catalog, request, slate[position], position)
        held, spread = _product_and_spread(state, x, z)
        score = top_score(held, spread, clicks[position])
        p = logistic(score)
        solve(factor, z)
        surprise = logistic(-score) if clicks[position] else -p
        root = sqrt(p * logistic(-score))
        for i in range(d + 1):
            mean[i] += surprise * z[i]
            v[i] = root * (x[i] if i < d else 1.0)
        for i in range(d + 1):
            row = precision[i]
            vi = v[i]
            for j in range(d + 1):
                row[j] += vi * v[j]
        add_to_factor(factor, v)
        observations[0] += 1
        if observations[0] % REFRESH == 0:
            factorise(precision, factor)
    state.time[0] += 1


@kernel
def draw_coefficients(state, noise):  # type: ignore[no-untyped-def]
    """One theta from N(mean, Q^-1) without its intercept, made of the standard normal numbers `noise`."""
    theta = noise.copy()
    solve(state.factor, theta)
    for i in range(len(theta)):
        theta[i] += state.mean[i]
    return theta[: len(theta) - 1]


@shared_kernel
def estimate_probabilities(state, catalog, request, rows, means, deviations):  # type: ignore[no-untyped-def]
    """For each of the rows the probability of a click at the mean of theta; its deviation to first order."""
    z = np.empty(len(state.mean))
    for j in range(len(rows)):
        held, spread = _product_and_spread(state, features_at(catalog, request, rows[j], j), z)
        means[j] = logistic(held)
        deviations[j] = logistic(held) * logistic(-held) * sqrt(spread)
