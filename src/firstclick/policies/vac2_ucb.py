"""VAC2-UCB."""

from math import sqrt
from typing import ClassVar

import numpy as np

from firstclick.kernels.compiling import kernel
from firstclick.kernels.posterior import mean, observe, squared_width
from firstclick.kernels.ranking import features_at, product
from firstclick.parameters import param
from firstclick.policies.cascade_lin_ucb import CascadeLinUCB


@kernel
def _largest_variance(lower, upper):  # type: ignore[no-untyped-def]
    """The largest p (1 - p) of the probabilities between the bounds; 0 where there are none."""
    if upper <= 0.5:
        return max(upper, 0.0) * (1.0 - upper)
    if lower >= 0.5:
        return lower * max(1.0 - lower, 0.0)
    return 0.25


class VAC2UCB(CascadeLinUCB):
    """CascadeLinUCB that trusts clicks the more, the less they vary: made for small attractions.

    Assumes a cascade, and attractions linear in the features. An examined item adds sigma^-2 x x'/V to M and,
    if it was clicked, x/V to B, where V is the largest variance p (1 - p) for which p lies within x'mean -+ c
    sqrt(x'M^-1 x): 1/4 if 1/2 does. Regret O(d sqrt(n)) but for logarithms, whatever K. The default
    c = 2, the floor of V, and taking V when the feedback comes are our choices. variance=1 is CascadeLinUCB
    of the same c; with V, c=theory is still Theorem 1's number, but no theorem.
    """

    name = "vac2-ucb"
    paper = "Liu et al. 2023, Algorithm 2"
    draws = False
    made_for = ("rare-clicks",)
    # An observation counts by what was known before it.
    mergeable: ClassVar[bool] = False
    order_free: ClassVar[bool] = False

    c: float | str = param(
        2.0, "width of the confidence interval, or 'theory' for Theorem 1", above=0, words=("theory",)
    )
    variance: float | None = param(
        None, "variance of every click, in place of an estimate for each item", kind=float, above=0
    )
    floor: float = param(0.02, "least variance that an estimate may have", above=0, at_most=0.25)

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        sigma, scale, factor = numbers.sigma, numbers.scale, state.factor
        theta = mean(state.moment, factor, sigma)
        weights, z = np.empty(examined), np.empty(len(theta))
        # All weights before the first observation: they follow from what was known before the slate.
        for position in range(examined):
            variance = numbers.variance
            if variance == 0.0:  # It is not given.
                x = features_at(catalog, request, slate[position], position)
                centre = scale * product(x, theta)
                width = numbers.c * scale * sqrt(squared_width(x, factor, z))
                variance = max(_largest_variance(centre - width, centre + width), numbers.floor)
            weights[position] = 1.0 / variance
        for position in range(examined):
            x = features_at(catalog, request, slate[position], position)
            observe(state, x, clicks[position], sigma, scale, weights[position])
        state.time[0] += 1
