"""TS-Cascade."""

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.arrays import CatalogArrays, Request
from firstclick.kernels.ranking import rank, rows_of
from firstclick.policies._counts import CountPolicy
from firstclick.policies.base import PlainParameters, State
from firstclick.policies.score_laws import GaussianScores


class TSCascade(CountPolicy):
    """Rank items by their click rate plus one normal draw, the same for all items, times their own spread.

    For the cascade: the first click ends the slate, items attract independently, and tastes stay as they are.

    score(e) = rate + z max(sqrt(rate (1 - rate) log(t + 1) / (examined + 1)), log(t + 1) / (examined + 1)),
    with one z ~ N(0, 1) a step, t the step, from 1, and a rate of 0 for an item that was never examined. A
    slate is bold about all items at once where z is above 0, and careful about all where it is below: with a
    z for each item it would be another policy. Regret O(sqrt(K L n) log n + L log^(5/2) n).
    """

    name = "ts-cascade"
    paper = "Cheung, Tan and Zhong 2019 (TS-Cascade)"
    made_for = ("few-items",)

    def noise_size(self, k: int, n_features: int) -> int:
        return 1

    def score_law(
        self,
        numbers: PlainParameters,
        state: State,
        catalog: CatalogArrays,
        request: Request,
        rows: NDArray[np.int64],
    ) -> GaussianScores:
        examined, budget = state.examined[rows], log(state.time[0] + 2.0)
        rates, widths = state.hits[rows] / np.maximum(examined, 1), budget / (examined + 1)
        loads = np.maximum(np.sqrt(rates * (1.0 - rates) * widths), widths)
        return GaussianScores(rates, loads[:, None])

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        rows = rows_of(catalog, request)
        scores = np.empty(len(rows))
        z, budget = noise[0], log(state.time[0] + 2.0)
        for j in range(len(rows)):
            examined = state.examined[rows[j]]
            rate = state.hits[rows[j]] / max(examined, 1)
            width = budget / (examined + 1)
            scores[j] = rate + z * max(sqrt(rate * (1.0 - rate) * width), width)
        return rank(rows, scores, catalog, request, key, slate)
