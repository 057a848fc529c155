"""The catalog: item ids, their features, and which of them are withdrawn."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.errors import InvalidInput, UnknownName
from firstclick.kernels.ranking import IndexArrays
from firstclick.protocol import catalog_arrays, check_features

ItemId = str | int

# Rows that may come after an index before a new one is made: this many, or this share of those it covers.
MOST_AFTER = 256
SHARE_AFTER = 0.02


def _item_id(item: object) -> ItemId:
    if isinstance(item, np.integer):
        return int(item)
    if isinstance(item, str):
        return str(item)  # NumPy's texts become plain ones.
    if isinstance(item, int) and not isinstance(item, bool):
        return item
    raise InvalidInput(f"an item id must be a text or a whole number, got {item!r}")


def _item_ids(items: Iterable[ItemId]) -> list[ItemId]:
    # A text is iterable too: 'b12' would quietly mean the items 'b', '1' and '2'.
    if isinstance(items, str):
        raise InvalidInput(f"items must be a list of ids, got the text {items!r}; say [{items!r}]")
    try:
        given = list(items)
    except TypeError:
        raise InvalidInput(f"items must be a list of ids, got {items!r}") from None
    return [_item_id(item) for item in given]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


class Catalog:
    """Items in rows. A row, once given, keeps its item and its features for ever.

    A withdrawn item leaves its row behind, hidden; added again, it gets a new one. So whatever
    was shown can still be learned from, with the features it was shown with.
    """

    def __init__(self, items: Iterable[ItemId], features: ArrayLike | None = None) -> None:
        self.items: list[ItemId] = []
        self.hidden = np.empty(0, np.uint8)
        self.n_hidden = 0
        self._row_of: dict[ItemId, int] = {}
        self._features: NDArray[np.float64] | None = None
        self._append(items, features)

    def __len__(self) -> int:
        """The number of items that can be shown."""
        return len(self.items) - self.n_hidden

    def __repr__(self) -> str:
        return f"Catalog({len(self)} items, {self.n_features or 'no'} features)"

    @property
    def n_features(self) -> int | None:
        """The number of features of each item, or None for a catalog without features."""
        return None if self._features is None else self._features.shape[1]

    @property
    def features(self) -> NDArray[np.float64] | None:
        """The features of every row, withdrawn ones included."""
        return self._features

    def add(self, items: Iterable[ItemId], features: ArrayLike | None = None) -> None:
        """Add items that are not in the catalog now; all of them, or none and an error."""
        if (features is None) != (self._features is None):
            has = "no features" if self._features is None else f"{self.n_features} features an item"
            raise InvalidInput(f"the catalog has {has}; added items must be the same")
        self._append(items, features)

    def withdraw(self, items: Iterable[ItemId]) -> None:
        """Never show these items again; all of them, or none and an error."""
        rows = [self._shown_row(item) for item in _item_ids(items)]
        self.hidden[rows] = 1
        self.n_hidden = int(self.hidden.sum())

    def rows(self, items: Iterable[ItemId]) -> NDArray[np.int64]:
        """The rows of the given items, each once; withdrawn ones are left out, unknown ones refused."""
        rows: dict[int, None] = {}
        for item in _item_ids(items):
            row = self._row_of.get(item)
            if row is None:
                raise UnknownName(f"no item {item!r} in the catalog{self._of_other_type(item)}")
            if not self.hidden[row]:
                rows[row] = None
        return np.fromiter(rows, np.int64, len(rows))

    def known_rows(self, items: Iterable[ItemId]) -> list[int]:
        """The rows of those of the given items that the catalog has; 5 for '5' is a mistake and refused."""
        rows = []
        for item in _item_ids(items):
            row = self._row_of.get(item)
            if row is not None:
                rows.append(row)
            elif hint := self._of_other_type(item):
                raise UnknownName(f"no item {item!r} in the catalog{hint}")
        return rows

    def _of_other_type(self, item: ItemId) -> str:
        """A hint for the end of an error message where text and number were mixed up, else empty."""
        other: ItemId = str(item) if isinstance(item, int) else int(item) if _is_number(item) else item
        return f", but there is {other!r}" if other != item and other in self._row_of else ""

    def _shown_row(self, item: ItemId) -> int:
        row = self._row_of.get(item)
        if row is None or self.hidden[row]:
            raise UnknownName(f"no item {item!r} in the catalog{self._of_other_type(item)}")
        return row

    def _append(self, items: Iterable[ItemId], features: ArrayLike | None) -> None:
        ids = _item_ids(items)
        if not ids:
            raise InvalidInput("no items given")
        for item in ids:
            row = self._row_of.get(item)
            if row is not None and not self.hidden[row]:
                raise InvalidInput(f"item {item!r} is in the catalog already")
        if len(set(ids)) < len(ids):
            twice = next(item for item in ids if ids.count(item) > 1)
            raise InvalidInput(f"item {twice!r} is given twice")
        rows = None if features is None else check_features(features, len(ids))
        if rows is not None and self._features is not None:
            if rows.shape[1] != self.n_features:
                raise InvalidInput(f"items must have {self.n_features} features, got {rows.shape[1]}")
            rows = np.concatenate([self._features, rows])
        self._row_of.update((item, len(self.items) + i) for i, item in enumerate(ids))
        self.items += ids
        self.hidden = np.concatenate([self.hidden, np.zeros(len(ids), np.uint8)])
        self._features = rows
        self.arrays = catalog_arrays(rows, len(self.items), index=self._index_to_keep())

    def _index_to_keep(self) -> IndexArrays | None:
        """The index there is, as long as few rows came after it: they are looked at one by one."""
        if not hasattr(self, "arrays"):
            return None
        tree = self.arrays.tree
        after = len(self.items) - tree.covered
        return tree if after <= max(MOST_AFTER, SHARE_AFTER * tree.covered) else None

    @classmethod
    def restored(
        cls, items: Sequence[ItemId], features: NDArray[np.float64] | None, hidden: NDArray[np.uint8]
    ) -> "Catalog":
        """A catalog as it was saved, row by row."""
        catalog = cls.__new__(cls)
        catalog.items = [_item_id(item) for item in items]
        catalog.hidden = hidden
        catalog.n_hidden = int(hidden.sum())
        # A later row of the same id stands for it: earlier ones were withdrawn.
        catalog._row_of = {item: row for row, item in enumerate(catalog.items)}
        catalog._features = features
        catalog.arrays = catalog_arrays(features, len(catalog.items))
        return catalog
