"""RankedLinTS."""

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.arrays import CatalogArrays, Request
from firstclick.kernels.posterior import LinearState, observe, sample
from firstclick.kernels.ranking import features_at
from firstclick.kernels.search.tree import rank_by_product
from firstclick.policies._linear import LinearPolicy
from firstclick.policies.base import PlainParameters, State
from firstclick.policies.score_laws import PlaceScores, features_of, posterior_scores


class RankedLinTS(LinearPolicy):
    """Let each position learn for itself: K linear Thompson samplers, one after the other.

    Position k takes the best item that is not yet in the slate under its own draw of theta, and
    learns from the steps in which it was examined.
    """

    name = "ranked-lin-ts"
    paper = "Zong et al. 2016, Algorithm 4"
    look = "green"

    def initial_state(self, n_items: int, n_features: int, k: int) -> LinearState:
        return self._prior((k,), n_features)

    def noise_size(self, k: int, n_features: int) -> int:
        return k * n_features

    def score_law(
        self,
        numbers: PlainParameters,
        state: State,
        catalog: CatalogArrays,
        request: Request,
        rows: NDArray[np.int64],
    ) -> PlaceScores:
        x = features_of(catalog, request, rows)
        posteriors = zip(state.moment, state.factor, strict=True)
        return PlaceScores(tuple(posterior_scores(x, *one, numbers.sigma) for one in posteriors))

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        d = state.moment.shape[1]
        own = np.empty(len(slate), np.int64)
        for position in range(len(slate)):
            theta = sample(
                state.moment[position], state.factor[position], numbers.sigma, noise[position * d :][:d]
            )
            # Of the position's own best items one more than are taken: one of them is free.
            found = rank_by_product(theta, catalog, request, key, own[: position + 1])
            if found <= position:
                return position
            for item in own[:found]:
                if item not in slate[:position]:
                    slate[position] = item
                    break
        return len(slate)

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        for k in range(examined):
            x = features_at(catalog, request, slate[k], k)
            own = LinearState(
                state.precision[k],
                state.moment[k],
                state.factor[k],
                state.observations[k : k + 1],
                state.time,
            )
            observe(own, x, clicks[k], numbers.sigma, 1.0, 1.0)
        state.time[0] += 1
