"""The paper's experiment: features from one half of the users, clicks from the other."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.data.features import truncated_svd
from firstclick.data.matrix import most_attractive
from firstclick.data.split import split
from firstclick.errors import InvalidInput
from firstclick.protocol import Stage
from firstclick.streams import stream
from firstclick.whole_number import whole_number
from firstclick.worlds.matrix import MatrixWorld, check_matrix

PICKS = ("popular", "random")


class FeedbackScenario:
    """Each run splits the users anew: one half teaches the features, the other answers with clicks.

    `rank` features by truncated SVD of all items, of which `n_items` are then kept: the most
    attractive, or random ones of each run. Without a rank there are no features. With `one_split`
    all runs share the split, features and items of run 0, and differ in users and draws only.
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
        item_names: Sequence[str] | None = None,
    ) -> None:
        self.matrix = check_matrix(matrix)
        columns = self.matrix.shape[1]
        if pick not in PICKS:
            raise InvalidInput(f"pick must be one of {', '.join(PICKS)}, got {pick!r}")
        n_items = columns if n_items is None else n_items
        self.n_items = whole_number(
            "n_items", n_items, at_least=1, at_most=columns, because=", the items there are"
        )
        self.rank, self.pick, self.scaled, self.intercept = rank, pick, scaled, intercept
        self.one_split = one_split
        self.item_names = [f"item {item}" for item in range(columns)] if item_names is None else item_names
        if len(self.item_names) != columns:
            raise InvalidInput(f"item_names must name all {columns} items, got {len(self.item_names)}")
        self._latest: tuple[tuple[int, int], Stage] | None = None

    def stage(self, seed: int, run: int) -> Stage:
        key = seed, 0 if self.one_split else run
        if self._latest is None or self._latest[0] != key:
            self._latest = key, self._make(*key)
        return self._latest[1]

    def _make(self, seed: int, run: int) -> Stage:
        train, test = split(self.matrix, seed, run=run)
        items = self._items(seed, run)
        features = None
        if self.rank is not None:
            # Before the cut: what all items say about users helps to place the few that are kept.
            every = truncated_svd(train, self.rank, scaled=self.scaled, intercept=self.intercept)
            features = np.ascontiguousarray(every[items])
        return Stage(MatrixWorld(test[:, items]), features, [self.item_names[item] for item in items])

    def _items(self, seed: int, run: int) -> NDArray[np.int64]:
        if self.pick == "random":
            chosen = stream(seed, "run", run, "items").choice(
                self.matrix.shape[1], self.n_items, replace=False
            )
            return np.asarray(np.sort(chosen), np.int64)
        return most_attractive(self.matrix, self.n_items)
