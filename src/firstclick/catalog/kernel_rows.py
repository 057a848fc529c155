"""The rows of a catalog as kernels see them: features in one scale, and the search tree over them."""

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.feature_scale import FeatureScale
from firstclick.catalog.search_tree import build_tree, catalog_arrays
from firstclick.kernels.arrays import TreeArrays

# Rows that may come after a tree before a new one is made: this many, or this share of those it covers.
MOST_AFTER = 256
SHARE_AFTER = 0.02


class KernelRows:
    """`arrays` are the rows as of the last `follow` or `change`.

    Rows that come later are written behind them, or the arrays are left behind and larger ones made. Rows
    that change are changed in place, and `arrays` is a new tuple then: shortcuts that belong to the old one
    are out of date.
    """

    def __init__(self, table: NDArray[np.float64], scale: FeatureScale | None = None) -> None:
        """The rows of this table, as they are or in a scale."""
        self._scale = scale
        self.arrays = self._room = catalog_arrays(self._scaled(table), len(table))
        self._covered = len(table)

    def _scaled(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        return table if self._scale is None else self._scale.apply(table)

    def follow(self, table: NDArray[np.float64]) -> None:
        """Take up the rows that were added to the table."""
        held, n_rows = len(self.arrays.rows), len(table)
        if n_rows == held:
            return
        new = self._scaled(table[held:])
        if n_rows > len(self._room.rows):
            # By half at least: however many are added one by one, each is moved two times on average.
            self._make_room(held, max(n_rows, held + held // 2))
        room = self._room
        room.columns[:, held:n_rows] = new.T
        if self._scale is not None:
            room.features[held:n_rows] = new
            table = room.features[:n_rows]
        self.arrays = room._replace(
            features=table,
            rows=room.rows[:n_rows],
            labels=room.labels[:n_rows],
            tree=self._tree(table),
        )

    def change(self, table: NDArray[np.float64], rows: NDArray[np.int64]) -> None:
        """Take up rows of the table that were changed."""
        new = self._scaled(table[rows])
        self._room.columns[:, rows] = new.T
        if self._scale is not None:
            self._room.features[rows] = new
        tree = self.arrays.tree
        if (rows < tree.covered).any():
            self._covered = len(self.arrays.rows)
            tree = build_tree(self.arrays.features)
        self.arrays = self.arrays._replace(tree=tree)

    def _make_room(self, held: int, room: int) -> None:
        """Move the first `held` rows to new arrays that have room for so many."""
        arrays = self._room
        n_features = len(arrays.columns)
        columns = np.empty((n_features, room))
        columns[:, :held] = arrays.columns[:, :held]
        features = arrays.features
        if self._scale is not None:
            features = np.empty((room, n_features))
            features[:held] = arrays.features[:held]
        labels = np.arange(room, dtype=np.uint64)
        self._room = arrays._replace(features=features, columns=columns, rows=np.arange(room), labels=labels)

    def _tree(self, features: NDArray[np.float64]) -> TreeArrays:
        """The tree there is, as long as few rows came after it: they are looked at one by one.

        No tree, for too few items or for equal ones, is kept as long.
        """
        if len(features) - self._covered <= max(MOST_AFTER, SHARE_AFTER * self._covered):
            return self.arrays.tree
        self._covered = len(features)
        return build_tree(features)
