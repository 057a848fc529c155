"""CascadeLinTS."""

from typing import ClassVar

from firstclick.kernels.posterior import observe_slate, sample
from firstclick.kernels.search.tree import rank_by_product
from firstclick.policies._linear import LinearPolicy


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

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        theta = sample(state.moment, state.factor, numbers.sigma, noise)
        return rank_by_product(theta, catalog, request, key, slate)

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        observe_slate(state, catalog, request, slate, examined, clicks, numbers.sigma, 1.0)
