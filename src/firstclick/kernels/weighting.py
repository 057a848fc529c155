"""Observations of a linear learner that count for more or less than one."""

from math import sqrt

import numpy as np

from firstclick.kernels.compiling import kernel, shared_kernel
from firstclick.kernels.posterior import mean, observe_weighted, solve_transposed
from firstclick.kernels.ranking import features_at


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

    Examined up to the end of the slate means that the page does not tell: then what comes after the last
    click counts with the chance that the user went on.
    """
    sure, weight = examined, 1.0
    if examined == len(slate):
        last = examined - 1
        while last >= 0 and not clicks[last]:
            last -= 1
        if last >= 0:
            sure = last + 1
            weight = _chance_of_going_on(state, catalog, request, slate, sure, sigma, scale, stop)
    for position in range(examined):
        counted = 1.0 if position < sure else weight
        if counted > 0.0:
            x = features_at(catalog, request, slate[position], position)
            observe_weighted(
                state.precision, state.moment, state.factor, state.observations,
                x, clicks[position], sigma, scale, counted,
            )  # fmt: skip
    state.time[0] += 1


@kernel
def _chance_of_going_on(state, catalog, request, slate, start, sigma, scale, stop):  # type: ignore[no-untyped-def]
    """The chance that the user looked at all positions from `start` on, none of which was clicked."""
    theta = mean(state.moment, state.factor, sigma)
    silent = 1.0 - stop  # the chance of going on, and of no click then
    for position in range(start, len(slate)):
        x = features_at(catalog, request, slate[position], position)
        silent *= 1.0 - probability_of(x, theta, scale)
    return silent / (stop + silent)


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
