"""CascadeUCB-V."""

from math import inf, log, sqrt

from firstclick.kernels.compiling import kernel
from firstclick.kernels.search.groups import ranker_by
from firstclick.parameters import param
from firstclick.policies._counts import PESSIMISTIC, ConfidencePolicy

# More than rounding can take from a bound, relative to it.
ROUNDING = 1e-12


@kernel
def _bound(hits, examined, budget):  # type: ignore[no-untyped-def]
    """The bound, and its tangent in the budget, a little raised: a root lies under its tangents."""
    if examined == 0:
        return inf, inf, 0.0
    rate = hits / examined
    root = sqrt(2.0 * rate * (1.0 - rate) * budget / examined)
    slope = 3.0 / examined
    bound = rate + root + slope * budget
    if budget == 0.0:
        return bound, inf, 0.0
    return bound, (rate + 0.5 * root) * (1 + ROUNDING), (0.5 * root / budget + slope) * (1 + ROUNDING)


_rank_by_bound = ranker_by(_bound)


class CascadeUCBV(ConfidencePolicy):
    """Rank items by the upper confidence bound of their own click rate that knows its variance.

    For the cascade: the first click ends the slate, items attract independently, and tastes stay as they are.
    Made for attractions that are all small, as clicks mostly are: then the variance is small too, and fewer
    observations suffice than cascade-ucb1 asks for.

    U(e) = rate + sqrt(2 rate (1 - rate) b / examined) + 3 b / examined, with b = radius * log(t) and t the
    slates learned from. Regret O(sqrt(L n)) but for logarithms, where cascade-ucb1 has sqrt(K) times as much.

    The form is that of UCB-V (Audibert, Munos and Szepesvari 2009), whose weight must be above 1; 1.2
    is our choice. A public code of
    others has radius=2.
    """

    name = "cascade-ucb-v"
    draws = False
    paper = "Vial et al. 2022 (CascadeUCB-V)"
    made_for = ("rare-clicks",)
    radius: float = param(1.2, "weight of the logarithm in the confidence radius", above=0)

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        budget = numbers.radius * log(max(state.time[0], 1))
        return _rank_by_bound(state, numbers.start == PESSIMISTIC, budget, catalog, request, key, slate)
