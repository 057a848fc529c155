"""CascadeUCB1."""

from math import inf, log, sqrt

import numpy as np

from firstclick.declaration import param
from firstclick.kernels.ranking import rank, rows_of
from firstclick.policies._counts import PESSIMISTIC, ConfidencePolicy


class CascadeUCB1(ConfidencePolicy):
    """Rank items by the upper confidence bound of their own click rate.

    U(e) = hits / examined + sqrt(radius * log(t) / examined), with t the slates learned from.
    """

    name = "cascade-ucb1"
    paper = "Kveton et al. 2015, Algorithm 1"
    radius: float = param(1.5, "weight of the confidence radius", above=0)

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        budget = numbers.radius * log(max(state.time[0], 1))
        rows = rows_of(catalog, request)
        scores = np.empty(len(rows))
        for j in range(len(rows)):
            examined = state.examined[rows[j]] + (numbers.start == PESSIMISTIC)
            scores[j] = inf
            if examined > 0:
                scores[j] = state.hits[rows[j]] / examined + sqrt(budget / examined)
        return rank(rows, scores, catalog, request, key, slate)
