"""What policies share that care for variety: items cover topics, and what counts is what one adds."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.kernels.arrays import CatalogArrays
from firstclick.kernels.compiling import kernel
from firstclick.kernels.posterior import mean, observe
from firstclick.kernels.ranking import as_shown, features_at, scan_by_bound, with_hidden
from firstclick.kernels.search.tree import rank_by_bound
from firstclick.kernels.search.widths import with_widths
from firstclick.parameters import param
from firstclick.policies._linear import LinearPolicy
from firstclick.policies.base import PlainParameters

# Stands for 0 where something is divided by it: its square, a part of a width, is 0.
NEARLY_NOTHING = 1e-200


@kernel
def _cover(left, x):  # type: ignore[no-untyped-def]
    """Take from `left`, the part of each topic that is not covered, what an item covers of it."""
    for i in range(len(left)):
        left[i] *= 1.0 - x[i]


class CoveragePolicy(LinearPolicy):
    """A policy that holds v'theta for an item's attraction below others: v is its features, of which the
    first `topics` count for what the items above leave of them."""

    family = "variety"
    made_for: ClassVar[tuple[str, ...]] = ("topics",)
    unit_features: ClassVar[bool] = True

    c: float = param(1.0, "width of the confidence interval", above=0)

    @property
    def best_by_estimates(self) -> bool:
        return False  # What is below other items attracts as they leave it room.

    def n_topics(self, n_features: int) -> int:
        """How many of the features are topics."""
        return n_features

    def numbers(self, k: int, features: NDArray[np.float64]) -> PlainParameters:
        topics = self.n_topics(features.shape[1])
        self._check_topics(features[:, :topics])
        return self._pack(topics=topics)

    def admit(self, numbers: PlainParameters, features: NDArray[np.float64]) -> None:
        self._check_topics(features[:, : numbers.topics])

    def _check_topics(self, topics: NDArray[np.float64]) -> None:
        outside = (topics < 0) | (topics > 1)
        if outside.any():
            row, column = np.argwhere(outside)[0]
            raise InvalidInput(
                f"must be topics, shares from 0 to 1 of what an item covers, for {self.label}, got "
                f"{topics[row, column]:g} in row {row}, column {column}",
                "features",
            )

    def shortcuts(self, catalog: CatalogArrays) -> CatalogArrays:
        return with_widths(super().shortcuts(catalog))

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        sigma, c, topics = numbers.sigma, numbers.c, numbers.topics
        if topics == 0:
            return rank_by_bound(state, sigma, c, catalog, request, key, slate)
        # Nothing is covered yet: the first item is found with all shortcuts.
        n = rank_by_bound(state, sigma, c, catalog, request, key, slate[:1])
        theta, factor = mean(state.moment, state.factor, sigma), state.factor
        hidden = np.zeros(len(catalog.rows), np.uint8)
        hidden[: len(request.hidden)] = request.hidden
        asked = with_hidden(request, hidden)
        left = np.ones(topics)
        seen, tilted = theta.copy(), factor.copy()
        while 0 < n < len(slate):
            last = slate[n - 1 : n]
            hidden[last[0]] = 1
            _cover(left, features_at(catalog, as_shown(request, last), last[0], 0))
            # v = diag(left) x: v'theta and R'^-1 v are those of x with other numbers for theta and R.
            for i in range(topics):
                seen[i] = theta[i] * left[i]
                divisor = left[i] if abs(left[i]) > NEARLY_NOTHING else NEARLY_NOTHING
                for h in range(i + 1):
                    tilted[h, i] = factor[h, i] / divisor
            found = scan_by_bound(seen, tilted, c, catalog, asked, key, slate[n : n + 1])
            if found == 0:
                break
            n += 1
        return n

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        left = np.ones(numbers.topics)
        for position in range(examined):
            x = features_at(catalog, request, slate[position], position)
            v = x.copy()
            for i in range(numbers.topics):
                v[i] *= left[i]
            observe(state, v, clicks[position], numbers.sigma, 1.0, 1.0)
            _cover(left, x)
        state.time[0] += 1
