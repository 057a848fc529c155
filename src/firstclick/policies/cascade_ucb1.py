"""CascadeUCB1."""

from math import inf, log, sqrt

import numpy as np

from firstclick.declaration import param
from firstclick.kernels.ranking import asked, n_asked, place
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
        best = np.empty(len(slate))
        budget = numbers.radius * log(max(state.time[0], 1))
        n = 0
        for j in range(n_asked(catalog, request)):
            item = asked(request, j)
            if item < 0:
                continue
            examined = state.examined[item] + (numbers.start == PESSIMISTIC)
            score = inf
            if examined > 0:
                score = state.hits[item] / examined + sqrt(budget / examined)
            n = place(slate, best, n, item, score, catalog, key)
        return n
