"""CascadeUCB1."""

from math import inf, log, sqrt

from firstclick.kernels.compiling import kernel
from firstclick.kernels.search.groups import ranker_by
from firstclick.parameters import param
from firstclick.policies._counts import PESSIMISTIC, ConfidencePolicy


@kernel
def _bound(hits, examined, budget):  # type: ignore[no-untyped-def]
    """The bound, and its tangent in the budget, a little raised: a root lies under its tangents."""
    if examined == 0:
        return inf, inf, 0.0
    radius = sqrt(budget / examined)
    bound = hits / examined + radius
    if radius == 0.0:
        return bound, inf, 0.0
    half = 0.5 * radius
    return bound, (bound - half) * (1 + 1e-12), half / budget * (1 + 1e-12)


_rank_by_bound = ranker_by(_bound)


class CascadeUCB1(ConfidencePolicy):
    """Rank items by the upper confidence bound of their own click rate.

    U(e) = hits / examined + sqrt(radius * log(t) / examined), with t the slates learned from.
    """

    name = "cascade-ucb1"
    paper = "Kveton et al. 2015, Algorithm 1"
    draws = False
    made_for = ("few-items",)
    look = "amber"
    grouped_from = 256
    radius: float = param(1.5, "weight of the confidence radius", above=0)

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        budget = numbers.radius * log(max(state.time[0], 1))
        return _rank_by_bound(state, numbers.start == PESSIMISTIC, budget, catalog, request, key, slate)
