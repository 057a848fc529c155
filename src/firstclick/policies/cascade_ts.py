"""CascadeTS."""

import numpy as np

from firstclick.declaration import param
from firstclick.kernels.hashing import beta
from firstclick.kernels.ranking import asked, n_asked, place
from firstclick.policies._counts import CountPolicy


class CascadeTS(CountPolicy):
    """Rank items by a draw from the Beta posterior of their own click rate.

    The baseline that Zong et al. leave out: it has no features, and wins when items are few.
    """

    name = "cascade-ts"
    paper = "Cheung, Tan and Zhong 2019 (CTS); Thompson 1933"
    a: float = param(1.0, "prior attractions: the posterior is Beta(a + hits, b + misses)", above=0)
    b: float = param(1.0, "prior misses", above=0)

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        best = np.empty(len(slate))
        n = 0
        for j in range(n_asked(catalog, request)):
            item = asked(request, j)
            if item < 0:
                continue
            hits = state.hits[item]
            misses = state.examined[item] - hits
            score = beta(key, catalog.labels[item], numbers.a + hits, numbers.b + misses)
            n = place(slate, best, n, item, score, catalog, key)
        return n
