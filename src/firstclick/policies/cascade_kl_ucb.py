"""CascadeKL-UCB."""

from math import inf
from typing import ClassVar

from firstclick.kernels.bounds import kl_bound, kl_budget
from firstclick.kernels.compiling import kernel
from firstclick.kernels.search.groups import ranker_by
from firstclick.policies._counts import PESSIMISTIC, ConfidencePolicy

# More than rounding can take from a bound or its tangent.
ROUNDING = 1e-9


@kernel
def _bound(hits, examined, budget):  # type: ignore[no-untyped-def]
    """The bound, and its tangent in the budget, a little raised: KL is convex, so its inverse lies below."""
    if examined == 0:
        return inf, inf, 0.0
    rate = hits / examined
    bound = kl_bound(rate, budget / examined)
    if bound - rate < ROUNDING:
        return bound, inf if rate < 1.0 else 1.0, 0.0
    slope = bound * (1.0 - bound) / ((bound - rate) * examined)
    return bound, bound - slope * budget + ROUNDING, slope


_rank_by_bound = ranker_by(_bound)


class CascadeKLUCB(ConfidencePolicy):
    """Rank items by the Kullback-Leibler upper confidence bound of their own click rate.

    U(e) = max{q : examined * KL(hits / examined, q) <= log t + 3 log log t}, with t the step, from 1.
    """

    name = "cascade-kl-ucb"
    paper = "Kveton et al. 2015, Algorithm 1"
    draws = False
    made_for: ClassVar[tuple[str, ...]] = ("few-items", "rare-clicks")
    look = "vermilion"

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        budget = kl_budget(state.time[0] + 1)
        return _rank_by_bound(state, numbers.start == PESSIMISTIC, budget, catalog, request, key, slate)
