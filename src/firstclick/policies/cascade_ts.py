"""CascadeTS."""

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.arrays import CatalogArrays, Request
from firstclick.kernels.bounds import estimate_rates
from firstclick.kernels.hashing import beta
from firstclick.kernels.ranking import rank, rows_of
from firstclick.parameters import param
from firstclick.policies._counts import CountPolicy
from firstclick.policies.base import PlainParameters, State
from firstclick.policies.score_laws import BetaScores


class CascadeTS(CountPolicy):
    """Rank items by a draw from the Beta posterior of their own click rate.

    The baseline that Zong et al. leave out: it has no features, and is hard to beat when items are few.
    """

    name = "cascade-ts"
    paper = "Huyuk and Tekin 2019; Zhong, Cheung and Tan 2021 (CTS)"
    made_for = ("few-items",)
    look = "pink"
    a: float = param(1.0, "prior attractions: the posterior is Beta(a + hits, b + misses)", above=0)
    b: float = param(1.0, "prior misses", above=0)

    def score_law(
        self,
        numbers: PlainParameters,
        state: State,
        catalog: CatalogArrays,
        request: Request,
        rows: NDArray[np.int64],
    ) -> BetaScores:
        hits = state.hits[rows]
        return BetaScores(numbers.a + hits, numbers.b + state.examined[rows] - hits)

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        rows = rows_of(catalog, request)
        scores = np.empty(len(rows))
        for j in range(len(rows)):
            hits = state.hits[rows[j]]
            misses = state.examined[rows[j]] - hits
            scores[j] = beta(key, catalog.labels[rows[j]], numbers.a + hits, numbers.b + misses)
        return rank(rows, scores, catalog, request, key, slate)

    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):  # type: ignore[no-untyped-def]
        estimate_rates(state, rows, numbers.a, numbers.b, means, deviations)
