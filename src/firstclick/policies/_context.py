"""What policies share that are told of the user: a context, combined with the features of each item."""

from dataclasses import replace
from typing import Self

from firstclick.errors import InvalidInput
from firstclick.kernels.combining import combined
from firstclick.kernels.posterior import LinearState, estimate_products, observe_slate
from firstclick.parameters import param
from firstclick.policies._linear import LinearPolicy

COMBINATIONS = ("concatenation", "product", "bilinear")  # In the order of kernels.combining.


class ContextPolicy(LinearPolicy):
    """A policy that holds z'theta for an item's attraction, z being made of its features and the context."""

    family = "users"
    made_for = ("types", "vectors")

    context: int | None = param(
        None,
        "numbers that a request brings; as many as the world gives, and elsewhere none",
        kind=int,
        at_least=0,
    )
    combine: str = param(
        "bilinear", "how the context and the features of an item make one vector", words=COMBINATIONS
    )
    rank: int | None = param(
        None,
        "bilinear: only the first so many features have a part that depends on the context",
        kind=int,
        at_least=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank is not None and self.combine != "bilinear":
            raise InvalidInput(f"needs combine=bilinear, got combine={self.combine}", "rank", self.name)

    @property
    def n_context(self) -> int:
        return self.context or 0

    def with_context(self, n_context: int) -> Self:
        return replace(self, context=n_context) if self.context is None and n_context else self

    def combined_size(self, n_features: int) -> int:
        """How many numbers z has."""
        if self.n_context == 0:
            return n_features
        if self.combine == "concatenation":
            return n_features + self.n_context
        if self.combine == "product":
            if self.n_context != n_features:
                raise InvalidInput(
                    f"must be {n_features}, the number of features, for combine=product, got "
                    f"{self.n_context}; use combine=bilinear",
                    "context",
                    self.label,
                )
            return n_features
        if self.rank is None:
            return n_features * self.n_context
        if self.rank > n_features:
            raise InvalidInput(f"must be at most the number of features, {n_features}", "rank", self.label)
        return n_features + self.rank * self.n_context

    def initial_state(self, n_items: int, n_features: int, k: int) -> LinearState:
        return self._prior((), self.combined_size(n_features))

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        size = len(state.moment)
        asked = combined(catalog, request, slate[:examined], numbers.combine, numbers.rank, size)
        observe_slate(state, catalog, asked, slate, examined, clicks, numbers.sigma, 1.0)

    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):  # type: ignore[no-untyped-def]
        asked = combined(catalog, request, rows, numbers.combine, numbers.rank, len(state.moment))
        estimate_products(state, catalog, asked, rows, numbers.sigma, 1.0, means, deviations)
