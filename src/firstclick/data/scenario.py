"""The paper's experiment: features from one half of the users, clicks from the other."""

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from firstclick.data.features import truncated_svd
from firstclick.data.matrix import most_attractive
from firstclick.data.split import split
from firstclick.errors import InvalidInput
from firstclick.streams import stream
from firstclick.validation.whole_number import whole_number
from firstclick.worlds.base import Stage
from firstclick.worlds.matrix import MatrixWorld, check_matrix

Floats = NDArray[np.float64]

PICKS = ("popular", "random", "source")


class FeedbackScenario:
    """The paper's experiment: half of the users give the features, the other half click. Each run splits
    anew.

    >>> from firstclick import simulate
    >>> from firstclick.data import synthetic_matrix
    >>> matrix = synthetic_matrix(seed=1, n_users=200, n_items=40).matrix
    >>> scenario = FeedbackScenario(matrix, rank=3, n_items=16)
    >>> results = simulate(["random"], scenario, k=4, steps=50, runs=1, seed=1)
    >>> results.n_items
    16

    Args:
        matrix: A feedback matrix, users x items.
        rank: Number of features, by truncated SVD; no features by default.
        n_items: How many items to keep; all by default.
        pick: Which items to keep: `"popular"`, `"random"` (new ones in each run) or `"source"` (the first by
            `item_ranks`).
        scaled: Features are rows of V Sigma; `False`: of V.
        intercept: Add a constant feature.
        one_split: All runs share the split, features and items of run 0.
        with_replacement: Draw training users with replacement; see `split`.
        cut_first: Compute the SVD from the kept items only.
        item_names: Names of the items; by default their numbers.
        item_ranks: The rank of each item, for `pick="source"`.
    """

    def __init__(
        self,
        matrix: Any,
        *,
        rank: int | None = None,
        n_items: int | None = None,
        pick: str = "popular",
        scaled: bool = True,
        intercept: bool = False,
        one_split: bool = False,
        with_replacement: bool = False,
        cut_first: bool = False,
        item_names: Sequence[str] | None = None,
        item_ranks: ArrayLike | None = None,
    ) -> None:
        self.matrix = check_matrix(matrix)
        columns = self.matrix.shape[1]
        if pick not in PICKS:
            raise InvalidInput(f"must be one of {', '.join(PICKS)}, got {pick!r}", "pick")
        n_items = columns if n_items is None else n_items
        self.n_items = whole_number(
            "n_items", n_items, at_least=1, at_most=columns, because=", the items there are"
        )
        self.rank, self.pick, self.scaled, self.intercept = rank, pick, scaled, intercept
        self.one_split, self.with_replacement, self.cut_first = one_split, with_replacement, cut_first
        self.item_names = [f"item {item}" for item in range(columns)] if item_names is None else item_names
        if len(self.item_names) != columns:
            raise InvalidInput(f"must name all {columns} items, got {len(self.item_names)}", "item_names")
        self.item_ranks = None if item_ranks is None else np.asarray(item_ranks, np.int64)
        if pick == "source" and (self.item_ranks is None or self.item_ranks.shape != (columns,)):
            raise InvalidInput(f"pick 'source' needs item_ranks, one for each of {columns} items")
        # The two parts of the users, and the features that the first part taught, by rank; of the latest run.
        self._halves: dict[tuple[int, int], tuple[Any, Any, dict[int, Floats]]] = {}
        self._latest: tuple[tuple[int, int], Stage] | None = None

    def resized(self, n_items: int, rank: int | None) -> "FeedbackScenario":
        """The same scenario with another number of items and features. Both share splits and SVDs.

        Args:
            n_items: How many items to keep.
            rank: Number of features; None for no features.
        """
        other = copy(self)
        other.n_items = whole_number(
            "n_items", n_items, at_least=1, at_most=self.matrix.shape[1], because=", the items there are"
        )
        other.rank, other._latest = rank, None
        return other

    def stage(self, seed: int, run: int) -> Stage:
        key = seed, 0 if self.one_split else run
        if self._latest is None or self._latest[0] != key:
            self._latest = key, self._make(*key)
        return self._latest[1]

    def _make(self, seed: int, run: int) -> Stage:
        items = self._items(seed, run)
        if (seed, run) not in self._halves:
            self._halves.clear()
            halves = split(self.matrix, seed, run=run, with_replacement=self.with_replacement)
            self._halves[seed, run] = *halves, {}
        train, test, taught = self._halves[seed, run]
        features = None
        if self.rank is not None and self.cut_first:
            features = self._features(train[:, items])
        elif self.rank is not None:
            # Before the cut: what all items say about users helps to place the few that are kept.
            if self.rank not in taught:
                taught[self.rank] = self._features(train)
            features = np.ascontiguousarray(taught[self.rank][items])
        return Stage(MatrixWorld(test[:, items]), features, [self.item_names[item] for item in items])

    def _features(self, train: sparse.csr_matrix) -> Floats:
        assert self.rank is not None
        return truncated_svd(train, self.rank, scaled=self.scaled, intercept=self.intercept)

    def _items(self, seed: int, run: int) -> NDArray[np.int64]:
        if self.pick == "random":
            chosen = stream(seed, "run", run, "items").choice(
                self.matrix.shape[1], self.n_items, replace=False
            )
            return np.asarray(np.sort(chosen), np.int64)
        if self.pick == "source":
            assert self.item_ranks is not None
            return np.argsort(self.item_ranks, kind="stable")[: self.n_items]
        return most_attractive(self.matrix, self.n_items)
