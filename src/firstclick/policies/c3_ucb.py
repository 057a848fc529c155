"""C3-UCB."""

from math import log, log1p, sqrt

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.arrays import CatalogArrays
from firstclick.kernels.combining import combined, form_seen_by, scan_by_form, seen_by
from firstclick.kernels.compiling import kernel
from firstclick.kernels.posterior import mean, observe
from firstclick.kernels.ranking import features_at
from firstclick.kernels.search.tree import rank_by_bound
from firstclick.kernels.search.widths import with_widths
from firstclick.parameters import param
from firstclick.policies._context import ContextPolicy
from firstclick.policies.base import PlainParameters

# Clicks are 0 or 1: as Hoeffding's lemma has it, no wider than noise of this deviation.
SUB_GAUSSIAN = 0.5


@kernel
def _width(numbers, size, time):  # type: ignore[no-untyped-def]
    """The c of this step, for z of this size."""
    if numbers.c > 0.0:
        return numbers.c
    growth = size * log1p(numbers.weights * (time + 1) / (numbers.sigma * numbers.sigma * size))
    return (SUB_GAUSSIAN * sqrt(growth - 2.0 * log(numbers.delta)) + numbers.sigma) / numbers.sigma


class C3UCB(ContextPolicy):
    """Rank items by the upper confidence bound of z'theta, with less weight on what lies further down.

    It takes clicks for those of a cascade, worth g^k at position k = 0, 1, ..., and attraction for linear in
    z, which is made of the context and the features as context-lin-ts has it, or is what a request gives in
    place of the features. An item examined at position k adds g^2k sigma^-2 z z' to M and, if it was clicked,
    g^2k z to B; U = min(z'mean + c sqrt(z'M^-1 z), 1), where the clip never changes a slate.

    The authors allow any discounts that fall from 1; in their experiments they are powers of one number,
    0.9 for most, else 0.95 or 1. Their ridge lambda is sigma^2, their beta c * sigma. With c=theory it is
    beta = R sqrt(log((1 + C t / (lambda d))^d / delta^2)) + sqrt(lambda), of C = sum of the g^2k, which holds
    for z and theta of norm at most 1; R = 1/2, c = 1 and delta are our choice. Regret O(d / p sqrt(n K) log
    n), p being the least chance that a slate is examined to its end, for lambda of at least C.

    With discount=1 and no context it is cascade-lin-ucb, slate by slate, and as quick. With a context the
    width is another quadratic form of the features for each user, so that none can be kept between requests:
    each takes O(L d^2) for L items, nine times as long as context-lin-ts at 3,000 items.
    """

    name = "c3-ucb"
    paper = "Li et al. 2016, Algorithm 1"
    draws = False
    derived = ("weights",)
    c: float | str = param(
        1.0,
        "width of the confidence interval, or 'theory' for that of the authors",
        above=0,
        words=("theory",),
    )
    discount: float = param(0.9, "g: what a position counts for, against the one above", above=0, at_most=1)
    delta: float = param(0.05, "c=theory: the chance that some interval does not hold", above=0, below=1)

    def numbers(self, k: int, features: NDArray[np.float64]) -> PlainParameters:
        weights = sum(self.discount ** (2 * position) for position in range(k))
        # 0 for the c of the authors, which grows with time.
        return self._pack(c=0.0 if isinstance(self.c, str) else self.c, weights=weights)

    def shortcuts(self, catalog: CatalogArrays) -> CatalogArrays:
        catalog = super().shortcuts(catalog)
        return with_widths(catalog) if self.n_context == 0 else catalog

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        c = _width(numbers, len(state.moment), state.time[0])
        user, d = request.context, catalog.features.shape[1]
        if len(user) == 0:
            return rank_by_bound(state, numbers.sigma, c, catalog, request, key, slate)
        how, rank = numbers.combine, numbers.rank
        theta = seen_by(mean(state.moment, state.factor, numbers.sigma), user, how, rank, d)
        form = form_seen_by(state.factor, user, how, rank, d)
        return scan_by_form(theta, form, c, catalog, request, key, slate)

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        size = len(state.moment)
        asked = combined(catalog, request, slate[:examined], numbers.combine, numbers.rank, size)
        worth = 1.0
        for position in range(examined):
            z = features_at(catalog, asked, slate[position], position)
            # The square of `worth` weighs the click too, which `observe` does not know of.
            observe(state, z, False, numbers.sigma / worth, 1.0, 1.0)
            if clicks[position]:
                for i in range(size):
                    state.moment[i] += worth * worth * z[i]
            worth *= numbers.discount
        state.time[0] += 1
