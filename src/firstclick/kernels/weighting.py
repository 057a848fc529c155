"""Observations of a linear policy that count for more or less than one."""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.clicks import UNTOLD
from firstclick.kernels.compiling import kernel, shared_kernel
from firstclick.kernels.posterior import linear, mean, observe_slate, observe_weighted, solve_transposed
from firstclick.kernels.ranking import features_at

# What stands for a chance of leaving that nobody knows, and for learning down to the last click alone.
LEARNED, LAST_CLICK = -1.0, 0.0


class DependentState(NamedTuple):
    """What a linear policy of several clicks knows: the posterior, and how often users go on after one."""

    precision: NDArray[np.float64]
    moment: NDArray[np.float64]
    factor: NDArray[np.float64]
    observations: NDArray[np.int64]
    time: NDArray[np.int64]
    going_on: NDArray[np.float64]  # how many were seen to go on, and how many would be if all did


@kernel
def probability_of(x, theta, scale):  # type: ignore[no-untyped-def]
    """The product of `scale * x` and theta, moved into [0, 1] if it lies outside."""
    product = 0.0
    for i in range(len(theta)):
        product += theta[i] * x[i]
    return min(max(scale * product, 0.0), 1.0)


@shared_kernel
def observe_dependent_clicks(  # type: ignore[no-untyped-def]
    state, catalog, request, slate, examined, clicks, sigma, scale, stop
):
    """Learn from a slate whose user leaves with chance `stop` after each click, unseen by the page.

    Where the page does not tell how far was examined, what comes after the last click counts with the chance
    that the user went on. If `stop` is LEARNED, it follows from how many were seen to go on: by a click
    further down, which those who go on make with a chance that follows from what is held of the items there.
    """
    if stop == LAST_CLICK:
        observe_slate(linear(state), catalog, request, slate, examined, clicks, sigma, scale)
        return
    seen, n = state.going_on, len(slate)
    end = n if examined == UNTOLD else examined
    last = end - 1
    while last >= 0 and not clicks[last]:
        last -= 1
    sure, weight = end, 1.0
    if examined == UNTOLD:
        sure = last + 1
        if stop == LEARNED:
            stop = 1.0 - min((seen[0] + 0.5) / (seen[1] + 1.0), 1.0)
        theta = mean(state.moment, state.factor, sigma)
        silent = 1.0  # the chance that somebody who looks at all positions below clicks none
        for position in range(n - 1, -1, -1):
            if clicks[position]:
                seen[0] += position < last
                seen[1] += 1.0 - silent
            if position == last:
                went_on = (1.0 - stop) * silent
                weight = went_on / (stop + went_on) if went_on > 0.0 else 0.0
            x = features_at(catalog, request, slate[position], position)
            silent *= 1.0 - probability_of(x, theta, scale)
    else:
        for position in range(min(end, n - 1)):  # After the last place nobody can go on.
            seen[0] += clicks[position] and position + 1 < end
            seen[1] += clicks[position]
    for position in range(end):
        counted = 1.0 if position < sure else weight
        if counted > 0.0:
            x = features_at(catalog, request, slate[position], position)
            observe_weighted(
                state.precision, state.moment, state.factor, state.observations,
                x, clicks[position], sigma, scale, counted,
            )  # fmt: skip
    state.time[0] += 1


@shared_kernel
def observe_by_variance(  # type: ignore[no-untyped-def]
    state, catalog, request, slate, examined, clicks, sigma, scale, c, fixed, least
):
    """Learn from the examined positions of one slate, each weighted by the inverse variance of its click.

    The variance is `fixed`, or if that is 0 the largest that the confidence bounds of the item allow, as they
    were before the slate, but not less than `least`.
    """
    theta = mean(state.moment, state.factor, sigma)
    weights, z = np.empty(examined), np.empty(len(theta))
    for position in range(examined):
        variance = fixed
        if variance == 0.0:
            x = features_at(catalog, request, slate[position], position)
            centre, squares = 0.0, 0.0
            for i in range(len(z)):
                centre += theta[i] * x[i]
                z[i] = x[i]
            solve_transposed(state.factor, z)
            for i in range(len(z)):
                squares += z[i] * z[i]
            centre, width = scale * centre, c * scale * sqrt(squares)
            variance = max(_largest_variance(centre - width, centre + width), least)
        weights[position] = 1.0 / variance
    for position in range(examined):
        x = features_at(catalog, request, slate[position], position)
        observe_weighted(
            state.precision, state.moment, state.factor, state.observations,
            x, clicks[position], sigma, scale, weights[position],
        )  # fmt: skip
    state.time[0] += 1


@kernel
def _largest_variance(lower, upper):  # type: ignore[no-untyped-def]
    """The largest p (1 - p) of the probabilities between the bounds; 0 where there are none."""
    if upper <= 0.5:
        return max(upper, 0.0) * (1.0 - upper)
    if lower >= 0.5:
        return lower * max(1.0 - lower, 0.0)
    return 0.25
