"""CascadeLinUCB."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.features import longest_norm
from firstclick.errors import InvalidInput
from firstclick.kernels.arrays import CatalogArrays
from firstclick.kernels.posterior import estimate_products, linear, observe_slate
from firstclick.kernels.search.tree import rank_by_bound
from firstclick.kernels.search.widths import with_widths
from firstclick.parameters import param
from firstclick.policies._linear import LinearPolicy
from firstclick.policies.base import PlainParameters
from firstclick.theory import confidence_width


class CascadeLinUCB(LinearPolicy):
    """Rank items by the upper confidence bound of x'theta.

    U(e) = min(x'mean + c sqrt(x'M^-1 x), 1). Items at the clip of 1 are ordered by the value
    before the clip, so that the clip never changes a slate. With c=theory, c is the value of
    Theorem 1 for `horizon` steps, and the features are rescaled to norms of at most 1.
    """

    name = "cascade-lin-ucb"
    paper = "Zong et al. 2016, Algorithms 2 and 3"
    draws = False
    made_for: ClassVar[tuple[str, ...]] = ("linear", "long-tail")
    look = "sky"
    derived = ("scale",)
    c: float | str = param(
        1.0, "width of the confidence interval, or 'theory' for Theorem 1", above=0, words=("theory",)
    )
    horizon: int | None = param(None, "steps that c=theory holds for", kind=int, at_least=1)
    theta_norm: float = param(
        1.0, "bound on |theta| for c=theory, theta being that of the rescaled features", at_least=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.c == "theory" and self.horizon is None:
            raise InvalidInput(
                "must be given with c=theory: the number of steps, such as horizon=100000",
                "horizon",
                self.name,
            )
        if self.c != "theory" and self.horizon is not None:
            raise InvalidInput(f"needs c=theory, got c={self.c:g}", "horizon", self.name)

    def numbers(self, k: int, features: NDArray[np.float64]) -> PlainParameters:
        if not isinstance(self.c, str):
            return self._pack(scale=1.0)
        assert self.horizon is not None
        d, steps = features.shape[1], self.horizon
        c = confidence_width(n_features=d, k=k, steps=steps, sigma=self.sigma, theta_norm=self.theta_norm)
        return self._pack(c=c, scale=1.0 / max(longest_norm(features), 1.0))

    def admit(self, numbers: PlainParameters, features: NDArray[np.float64]) -> None:
        longest = longest_norm(features) * numbers.scale
        if self.c == "theory" and longest > 1 + 1e-12:
            raise InvalidInput(
                f"must have a norm of at most {1 / numbers.scale:.4g} for {self.name} with c=theory, got "
                f"{longest / numbers.scale:.4g}; start a new ranker with these items",
                "features",
            )

    def notes(self, numbers: PlainParameters, steps: int) -> tuple[str, ...]:
        if self.c != "theory":
            return ()
        assert self.horizon is not None
        told = f"{self.name}: Theorem 1 gives c = {numbers.c:.4g}"
        if numbers.scale < 1.0:
            told += f"; features multiplied by {numbers.scale:.4g} so that no norm exceeds 1, "
            told += "and theta_norm taken for these"
        if self.horizon < steps:
            told += f"; it holds for {self.horizon:,} steps, and {steps:,} are played"
        return (told,)

    def shortcuts(self, catalog: CatalogArrays) -> CatalogArrays:
        return with_widths(super().shortcuts(catalog))

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        # A common scale multiplies mean and width alike: it changes no order, and is left out.
        return rank_by_bound(linear(state), numbers.sigma, numbers.c, catalog, request, key, slate)

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        observe_slate(state, catalog, request, slate, examined, clicks, numbers.sigma, numbers.scale)

    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):  # type: ignore[no-untyped-def]
        estimate_products(
            linear(state), catalog, request, rows, numbers.sigma, numbers.scale, means, deviations
        )
