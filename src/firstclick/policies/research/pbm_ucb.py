"""PBM-UCB."""

from math import inf, log, sqrt

import numpy as np

from firstclick.kernels.ranking import rank, rows_of
from firstclick.policies.research._positions import PositionPolicy, spread, sums_of


class PbmUCB(PositionPolicy):
    """Rank items by the upper confidence bound of their clicks per examination to be expected.

    For clicks by position: each position is examined by its own chance, which is known (`examination`), and
    an item that is examined is clicked if it attracts, whatever stands elsewhere. Of an item that was shown N
    times and clicked S times, E = the sum of the chances of its positions are examinations to be expected: U
    = S / E + sqrt(N / E) sqrt(budget / (2 E)), with budget = (1 + eps) log t; unseen items come first. The
    item of largest U goes where it is most likely examined. Regret O(L / gap log n).

    With all chances 1 it is cascade-ucb1:start=first with radius (1 + eps) / 2 that hears of every position.
    Ours: eps = 0.01 by default (the authors ask for more than 0); t, the slates learned from. What the page
    tells of how far the user came cuts a slate short, and changes no chance above.
    """

    name = "pbm-ucb"
    draws = False
    paper = "Lagree, Vernade and Cappe 2016 (PBM-UCB)"

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        budget = (1.0 + numbers.eps) * log(max(state.time[0], 1))
        rows = rows_of(catalog, request)
        scores = np.empty(len(rows))
        for j in range(len(rows)):
            shown, examined, hits = sums_of(state, rows[j])
            if examined > 0.0:
                scores[j] = hits / examined + sqrt(shown / examined) * sqrt(0.5 * budget / examined)
            else:
                scores[j] = inf
        n = rank(rows, scores, catalog, request, key, slate)
        spread(slate, n, state.examination)
        return n
