"""CascadeKL-UCB."""

from math import inf

import numpy as np

from firstclick.kernels.bounds import kl_bound, kl_budget, kl_ceiling
from firstclick.kernels.ranking import asked, n_asked, place
from firstclick.policies._counts import PESSIMISTIC, ConfidencePolicy


class CascadeKLUCB(ConfidencePolicy):
    """Rank items by the Kullback-Leibler upper confidence bound of their own click rate.

    U(e) = max{q : examined * KL(hits / examined, q) <= log t + 3 log log t}, with t the step, from 1.
    """

    name = "cascade-kl-ucb"
    paper = "Kveton et al. 2015, Algorithm 1"

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        best = np.empty(len(slate))
        budget = kl_budget(state.time[0] + 1)
        n = 0
        for j in range(n_asked(catalog, request)):
            item = asked(request, j)
            if item < 0:
                continue
            examined = state.examined[item] + (numbers.start == PESSIMISTIC)
            score = inf
            if examined > 0:
                rate = state.hits[item] / examined
                width = budget / examined
                # Most items cannot enter the slate: a cheap ceiling says so without the root search.
                if n == len(slate) and kl_ceiling(rate, width) < best[n - 1]:
                    continue
                score = kl_bound(rate, width)
            n = place(slate, best, n, item, score, catalog, key)
        return n
