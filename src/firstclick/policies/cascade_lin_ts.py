"""CascadeLinTS."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.arrays import CatalogArrays, Request
from firstclick.kernels.posterior import observe_slate, sample
from firstclick.kernels.search.tree import rank_by_product
from firstclick.policies._linear import LinearPolicy
from firstclick.policies.base import PlainParameters, State
from firstclick.policies.score_laws import GaussianScores, features_of, posterior_scores


class CascadeLinTS(LinearPolicy):
    """Draw theta from its posterior and rank items by x'theta.

    theta ~ N(sigma^-2 M^-1 B, M^-1); each examined item adds sigma^-2 x x' to M and, if it was
    clicked, x to B.
    """

    name = "cascade-lin-ts"
    paper = "Zong et al. 2016, Algorithms 1 and 3"
    made_for: ClassVar[tuple[str, ...]] = ("linear", "long-tail")
    look = "blue"

    def noise_size(self, k: int, n_features: int) -> int:
        return n_features

    def score_law(
        self,
        numbers: PlainParameters,
        state: State,
        catalog: CatalogArrays,
        request: Request,
        rows: NDArray[np.int64],
    ) -> GaussianScores:
        x = features_of(catalog, request, rows)
        return posterior_scores(x, state.moment, state.factor, numbers.sigma)

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        theta = sample(state.moment, state.factor, numbers.sigma, noise)
        return rank_by_product(theta, catalog, request, key, slate)

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        observe_slate(state, catalog, request, slate, examined, clicks, numbers.sigma, 1.0)
