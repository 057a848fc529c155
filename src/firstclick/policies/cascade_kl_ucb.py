"""CascadeKL-UCB."""

from math import inf

import numpy as np

from firstclick.kernels.bounds import kl_bound, kl_budget, kl_ceiling
from firstclick.kernels.compiling import kernel
from firstclick.kernels.ranking import rank, rows_of
from firstclick.policies._counts import PESSIMISTIC, ConfidencePolicy


@kernel
def _rate_and_width(numbers, state, item, budget):  # type: ignore[no-untyped-def]
    """The click rate and how far KL may stray from it; nothing bounds an unseen item."""
    examined = state.examined[item] + (numbers.start == PESSIMISTIC)
    if examined == 0:
        return 0.0, inf
    return state.hits[item] / examined, budget / examined


class CascadeKLUCB(ConfidencePolicy):
    """Rank items by the Kullback-Leibler upper confidence bound of their own click rate.

    U(e) = max{q : examined * KL(hits / examined, q) <= log t + 3 log log t}, with t the step, from 1.
    """

    name = "cascade-kl-ucb"
    paper = "Kveton et al. 2015, Algorithm 1"

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        budget = kl_budget(state.time[0] + 1)
        rows = rows_of(catalog, request)
        scores = np.empty(len(rows))
        for j in range(len(rows)):
            scores[j] = kl_ceiling(*_rate_and_width(numbers, state, rows[j], budget))
        # The bound is a root search, its ceiling is cheap: an item whose ceiling does not reach the
        # smallest bound of K items cannot be among the best K.
        least = inf
        found = rank(rows, scores, catalog, request, key, slate)
        for position in range(found):
            least = min(least, kl_bound(*_rate_and_width(numbers, state, slate[position], budget)))
        for j in range(len(rows)):
            if scores[j] >= least:
                scores[j] = kl_bound(*_rate_and_width(numbers, state, rows[j], budget))
            else:
                scores[j] = -inf
        return rank(rows, scores, catalog, request, key, slate)
