"""The catalog: item ids, their features and groups, and which of them are withdrawn."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.catalog.cold_items import split_off_cold, typical_row
from firstclick.catalog.groups import Group, numbered
from firstclick.catalog.ids import ItemId, item_id, item_ids, new_ids
from firstclick.catalog.search_tree import build_index, catalog_arrays
from firstclick.errors import InvalidInput, UnknownName
from firstclick.kernels.arrays import CatalogArrays, IndexArrays
from firstclick.validation.quoting import quoted

# Rows that may come after an index before a new one is made: this many, or this share of those it covers.
MOST_AFTER = 256
SHARE_AFTER = 0.02


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


def _with_room(arrays: CatalogArrays, held: int, room: int) -> CatalogArrays:
    """The first `held` rows in new arrays that have room for so many."""
    n_features = arrays.features.shape[1]
    features, columns = np.empty((room, n_features)), np.empty((n_features, room))
    features[:held] = arrays.features[:held]
    columns[:, :held] = arrays.columns[:, :held]
    labels = np.arange(room, dtype=np.uint64)
    return arrays._replace(features=features, columns=columns, rows=np.arange(room), labels=labels)


class Catalog:
    """Items in rows. A row, once given, keeps its item and its features for ever.

    An id is a text, or a whole number of at most 2^128 - 1 in size. Features are plain numbers: masked
    values, dates and times are refused.

    A withdrawn item leaves its row behind, hidden: `show_again` shows it as it was, `add` gives it a new row.
    So whatever was shown can still be learned from, with the features it was shown with.

    An item without features in a catalog that has some is *cold*: its row is None, or NaN throughout. It gets
    the mean of all rows that have features when it is added, those added with it included: to a learner with
    features it is a typical item, and one cold item like another. Learners without features do not care. When
    its features become known, withdraw it and add it again.

    `groups`, a name for each item or None for no group, are what `recommend(at_most=)` limits.

    `arrays` are the rows there are now, for kernels. Rows that come later are written behind them, or the
    arrays are left behind and larger ones made: whoever holds `arrays` keeps what he was given.
    """

    def __init__(
        self,
        items: Iterable[ItemId],
        features: ArrayLike | None = None,
        *,
        groups: Iterable[Group | None] | None = None,
    ) -> None:
        ids = new_ids(items)
        self._has_features = False
        rows, cold = (None, []) if features is None else self.completed(features, len(ids))
        self._start(ids, rows, np.zeros(len(ids), np.uint8), cold, groups)

    def _start(
        self,
        items: list[ItemId],
        features: NDArray[np.float64] | None,
        hidden: NDArray[np.uint8],
        cold: list[int],
        groups: Iterable[Group | None] | None,
    ) -> None:
        """Begin with these rows."""
        self.items = items
        self._has_features = features is not None
        self.cold_rows = cold
        self.group_names: dict[Group, int] = {}
        self.group_of = self._group_of = self._numbered(groups, len(items))
        self.hidden = self._hidden = hidden
        self._find_rows()
        self.arrays = self._arrays = catalog_arrays(features, len(items))
        self._indexed = len(items)

    def _find_rows(self) -> None:
        """Which row stands for each item: the one that is shown, or else the newest."""
        self.n_hidden = int(self.hidden.sum())
        self._row_of = {item: row for row, item in enumerate(self.items)}
        # The newest row of items that an older one stands for, until that is withdrawn.
        self._newest: dict[ItemId, int] = {}
        if self.n_hidden and len(self._row_of) < len(self.items):
            for row in np.flatnonzero(self.hidden == 0).tolist():
                item = self.items[row]
                if row < (newest := self._row_of[item]):
                    self._row_of[item], self._newest[item] = row, newest

    def __len__(self) -> int:
        """The number of items that can be shown."""
        return len(self.items) - self.n_hidden

    def __repr__(self) -> str:
        return f"Catalog({len(self)} items, {self.n_features or 'no'} features)"

    @property
    def n_features(self) -> int | None:
        """The number of features of each item, or None for a catalog without features."""
        return self.arrays.features.shape[1] if self._has_features else None

    @property
    def features(self) -> NDArray[np.float64] | None:
        """The features of every row, withdrawn ones included."""
        return self.arrays.features if self._has_features else None

    @property
    def groups(self) -> list[Group | None]:
        """The group of every row, withdrawn ones included; None for no group."""
        names = [None, *self.group_names]
        return [names[number] for number in self.group_of.tolist()]

    @property
    def cold(self) -> list[ItemId]:
        """The items that are shown and have no features of their own."""
        return [self.items[row] for row in self.cold_rows if not self.hidden[row]]

    def _numbered(self, groups: Iterable[Group | None] | None, n_items: int) -> NDArray[np.int32]:
        """The group of each item as a number; names are kept only if all are right."""
        if groups is None:
            return np.zeros(n_items, np.int32)
        names = dict(self.group_names)
        numbers = numbered(groups, names)
        if len(numbers) != n_items:
            raise InvalidInput(
                f"must have a name for each of the {n_items} items, or None, got {len(numbers)}", "groups"
            )
        self.group_names = names
        return numbers

    def completed(
        self, features: ArrayLike, n_items: int | None = None
    ) -> tuple[NDArray[np.float64], list[int]]:
        """The features of items to add, cold ones filled in; and which of these items are cold."""
        rows, cold = split_off_cold(features, n_items, self.n_features)
        if self._has_features and rows.shape[1] != self.n_features:
            raise InvalidInput(f"must have {self.n_features} features, got {rows.shape[1]}", "items")
        if cold:
            known = np.delete(rows, cold, axis=0)
            if self._has_features:
                known = np.concatenate([np.delete(self.arrays.features, self.cold_rows, axis=0), known])
            rows[cold] = typical_row(known)
        return rows, cold

    def add(
        self,
        items: Iterable[ItemId],
        features: ArrayLike | None = None,
        *,
        groups: Iterable[Group | None] | None = None,
    ) -> None:
        """Add items that are not shown now, in new rows; all of them, or none and an error."""
        if (features is not None) != self._has_features:
            if self._has_features:
                raise InvalidInput(
                    f"the catalog has {self.n_features} features an item; added items must have them too, or "
                    "None as their row"
                )
            raise InvalidInput("the catalog has no features; added items must be the same")
        ids = new_ids(items)
        for item in ids:
            if (row := self._row_of.get(item)) is not None and not self.hidden[row]:
                raise InvalidInput(f"item {quoted(item)} is in the catalog already")
        rows, cold = (None, []) if features is None else self.completed(features, len(ids))
        numbers = self._numbered(groups, len(ids))
        held, n_rows = len(self.items), len(self.items) + len(ids)
        if n_rows > len(self._hidden):
            # By half at least: however many are added one by one, each is moved two times on average.
            room = max(n_rows, held + held // 2)
            self._arrays = _with_room(self._arrays, held, room)
            self._hidden = np.concatenate([self.hidden, np.zeros(room - held, np.uint8)])
            self._group_of = np.concatenate([self.group_of, np.zeros(room - held, np.int32)])
        arrays = self._arrays
        if rows is not None:
            arrays.features[held:n_rows] = rows
            arrays.columns[:, held:n_rows] = rows.T
        self.arrays = arrays._replace(
            features=arrays.features[:n_rows],
            rows=arrays.rows[:n_rows],
            labels=arrays.labels[:n_rows],
            tree=self._index(arrays.features[:n_rows]),
        )
        self.hidden = self._hidden[:n_rows]
        self._group_of[held:n_rows] = numbers
        self.group_of = self._group_of[:n_rows]
        self.cold_rows += [held + place for place in cold]
        self._row_of.update(zip(ids, range(held, n_rows), strict=True))
        self.items += ids

    def withdraw(self, items: Iterable[ItemId]) -> None:
        """Show these items no longer; all of them, or none and an error."""
        rows = {self._shown_row(item): item for item in item_ids(items)}
        self.hidden[list(rows)] = 1
        self.n_hidden += len(rows)
        for item in self._newest.keys() & rows.values():
            self._row_of[item] = self._newest.pop(item)

    def show_again(self, items: Iterable[ItemId]) -> None:
        """Show withdrawn items again, in the row they had; all of them, or none and an error.

        An item that is shown already stays as it is.
        """
        rows = {row for row in self._rows_of(item_ids(items)) if self.hidden[row]}
        self.hidden[list(rows)] = 0
        self.n_hidden -= len(rows)

    def show_as(self, hidden: NDArray[np.uint8]) -> None:
        """Show what this catalog showed when `hidden` was its own; rows that came later stay, hidden."""
        self.hidden[:] = 1
        self.hidden[: len(hidden)] = hidden
        self._find_rows()

    def row_of(self, item: ItemId) -> int | None:
        """The row that stands for the item, its shown one or else its newest; None if it never had one."""
        return self._row_of.get(item_id(item))

    def is_shown(self, row: int) -> bool:
        """Whether there is such a row and it is not hidden."""
        return 0 <= row < len(self.items) and not self.hidden[row]

    def rows(self, items: Iterable[ItemId]) -> NDArray[np.int64]:
        """The rows of the given items, each once; withdrawn ones are left out, unknown ones refused."""
        different = dict.fromkeys(self._rows_of(item_ids(items)))
        rows = np.fromiter(different, np.int64, len(different))
        return rows[self.hidden[rows] == 0] if self.n_hidden else rows

    def known_rows(self, items: Iterable[ItemId]) -> list[int]:
        """The rows of those of the given items that the catalog has; 5 for '5' is a mistake and refused."""
        rows = []
        for item in item_ids(items):
            row = self._row_of.get(item)
            if row is not None:
                rows.append(row)
            elif hint := self._of_other_type(item):
                raise UnknownName(f"no item {quoted(item)} in the catalog{hint}")
        return rows

    def _of_other_type(self, item: ItemId) -> str:
        """A hint for the end of an error message where text and number were mixed up, else empty."""
        other: ItemId = str(item) if isinstance(item, int) else int(item) if _is_number(item) else item
        return f", but there is {other!r}" if other != item and other in self._row_of else ""

    def _rows_of(self, items: list[ItemId]) -> list[int]:
        """The row that stands for each of the given items, hidden or not; unknown ones are refused."""
        try:
            return [self._row_of[item] for item in items]
        except KeyError as error:
            item = error.args[0]
            raise UnknownName(f"no item {quoted(item)} in the catalog{self._of_other_type(item)}") from None

    def _shown_row(self, item: ItemId) -> int:
        row = self._row_of.get(item)
        if row is None or self.hidden[row]:
            raise UnknownName(f"no item {quoted(item)} in the catalog{self._of_other_type(item)}")
        return row

    def _index(self, features: NDArray[np.float64]) -> IndexArrays:
        """The index there is, as long as few rows came after it: they are looked at one by one.

        No index, for too few items or for equal ones, is kept as long.
        """
        if len(features) - self._indexed <= max(MOST_AFTER, SHARE_AFTER * self._indexed):
            return self.arrays.tree
        self._indexed = len(features)
        return build_index(features)

    @classmethod
    def restored(
        cls,
        items: Sequence[ItemId],
        features: NDArray[np.float64] | None,
        hidden: NDArray[np.uint8],
        *,
        cold_rows: Sequence[int] = (),
        groups: Sequence[Group | None] | None = None,
    ) -> "Catalog":
        """A catalog as it was saved, row by row."""
        catalog = cls.__new__(cls)
        # Arrays that are read-only, as those made of bytes are, would be another type to compile for.
        rows = None if features is None else np.require(features, np.float64, ("C", "W"))
        catalog._start(item_ids(items), rows, hidden.copy(), list(cold_rows), groups)
        return catalog
