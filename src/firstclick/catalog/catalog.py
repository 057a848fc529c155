"""The catalog: item ids, their features and groups, and which of them can be shown."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.catalog.encoder import Encoder
from firstclick.catalog.feature_scale import FeatureScale, listed
from firstclick.catalog.features import split_off_cold, typical_row
from firstclick.catalog.file import CatalogFile, catalog_from_frame, read_catalog
from firstclick.catalog.groups import Group, checked_groups
from firstclick.catalog.ids import IDS, ItemId, ids_to_find, item_id, item_ids, new_ids
from firstclick.catalog.kernel_rows import KernelRows
from firstclick.errors import InvalidInput, UnknownName
from firstclick.in_pieces import pieces
from firstclick.kernels.arrays import CatalogArrays
from firstclick.validation.quoting import quoted


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


class Catalog:
    """The items that can be recommended, with their features, groups and stock.

    >>> from firstclick import Catalog
    >>> catalog = Catalog(["tea", "milk", "jam"], [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    >>> catalog
    Catalog(3 items, 2 features)
    >>> catalog.withdraw(["jam"])
    >>> len(catalog), catalog.has("jam")
    (2, False)

    `read` and `from_frame` build a catalog from a table and turn its columns into features.

    Each item has a row, and keeps it. A withdrawn item stays in its row, hidden, so that a late click on it
    can still be learned. `show_again` brings it back in the same row; `add` gives it a new one.
    `set_available` hides an item that is out of stock, and shows it again.

    An item without features in a catalog that has features is *cold*. It gets the mean of all known rows, so
    that a policy with features treats it as a typical item. Give it features with `Ranker.change_items` once
    they are known.

    Args:
        items: Ids, each a string or an integer of at most 2^128 - 1 in size. No id may occur twice.
        features: One row of numbers per item. `None`, or NaN throughout, as a row: the item is cold. Leave it
            out for a catalog without features.
        groups: The group of each item, `None` for no group. `recommend(at_most=...)` limits groups.
        scale: The scale that the features are already in. By default they are in their own units, and
            policies scale them.
        encoder: Turns values of table columns into features. `read` and `from_frame` set it.
        values: The values of the table columns by item, in the order of the encoder's inputs. `read` and
            `from_frame` set it.

    Raises:
        InvalidInput: An id occurs twice, or the features are not a table of finite numbers with one row per
            item.
    """

    def __init__(
        self,
        items: Iterable[ItemId],
        features: ArrayLike | None = None,
        *,
        groups: Iterable[Group | None] | None = None,
        scale: FeatureScale | None = None,
        encoder: Encoder | None = None,
        values: dict[ItemId, list[Any]] | None = None,
    ) -> None:
        ids = new_ids(items)
        self.scale, self.encoder, self.values = scale, encoder, values or {}
        self._has_features = False
        rows, cold = (None, []) if features is None else self.completed(features, len(ids))
        self._start(ids, rows, np.zeros(len(ids), np.uint8), cold, groups, ())

    def _start(
        self,
        items: list[ItemId],
        features: NDArray[np.float64] | None,
        withdrawn: NDArray[np.uint8],
        cold: list[int],
        groups: Iterable[Group | None] | None,
        unavailable: Iterable[ItemId],
    ) -> None:
        """Begin with these rows."""
        self.items = items
        self._has_features = features is not None
        self.cold_rows = cold
        self.group_of: dict[ItemId, Group | None] = {}
        self._numbered: tuple[dict[Group, int], NDArray[np.int32]] = {}, np.empty(0, np.int32)
        self.regroup(items, groups)
        self.unavailable = set(unavailable)
        self.withdrawn = self._withdrawn = withdrawn
        self.hidden = self._hidden = withdrawn.copy()
        self._find_rows()
        self.table = self._table = np.empty((len(items), 0)) if features is None else features
        self._plain: KernelRows | None = None
        self._scaled: WeakValueDictionary[FeatureScale, KernelRows] = WeakValueDictionary()

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        id: str | None = None,
        ignore: Sequence[str] = (),
        category: Sequence[str] = (),
        number: Sequence[str] = (),
        embedding: Sequence[str] = (),
        encoding: str | None = None,
        unscaled: bool = False,
    ) -> "Catalog":
        """Read a catalog from a CSV, TSV, Parquet or JSON lines file.

        >>> from pathlib import Path
        >>> _ = Path("drinks.csv").write_text("id,price,kind\\ne1,2.2,coffee\\nt1,1.9,tea\\nt2,3.1,tea\\n")
        >>> Catalog.read("drinks.csv")
        Catalog(3 items, 3 features)

        The columns `name`, `group` and `available` mean what they say. Every other column becomes one or more
        features, or is left out. `catalog.encoder.decisions` and `firstclick catalog describe` list what each
        column became.

        Args:
            path: The file.
            id: The column of ids. By default `id`, or else a column such as `sku` that is complete and
                unique.
            ignore: Columns to leave out.
            category: Columns to read as categories, such as a year.
            number: Columns to read as numbers. Other cells in them count as missing.
            embedding: Prefixes. Columns `PREFIX0`, `PREFIX1`, ... become one embedding, scaled as a whole.
            encoding: The encoding of a text file; UTF-8 by default.
            unscaled: Keep numbers as they are, for policies with topics.

        Raises:
            InvalidInput: The file cannot be read, has no usable column of ids, or has a row of the wrong
                width.
        """
        file = read_catalog(
            path, id=id, ignore=ignore, category=category, number=number, embedding=embedding,
            encoding=encoding,
        )  # fmt: skip
        return cls._of_table(file, unscaled=unscaled)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        id: str | None = None,
        ignore: Sequence[str] = (),
        category: Sequence[str] = (),
        number: Sequence[str] = (),
        embedding: Sequence[str] = (),
        unscaled: bool = False,
    ) -> "Catalog":
        """Build a catalog from a pandas or polars frame, or from a dict of columns, as `read` does from a
        file.

        >>> drinks = {"id": ["e1", "t1", "t2"], "price": [2.2, 1.9, 3.1], "kind": ["coffee", "tea", "tea"]}
        >>> Catalog.from_frame(drinks)
        Catalog(3 items, 3 features)

        Args:
            frame: The table. A named pandas index counts as a column.
            id: The column of ids. By default `id`, or else a column such as `sku` that is complete and
                unique.
            ignore: Columns to leave out.
            category: Columns to read as categories, such as a year.
            number: Columns to read as numbers. Other cells in them count as missing.
            embedding: Prefixes. Columns `PREFIX0`, `PREFIX1`, ... become one embedding, scaled as a whole.
            unscaled: Keep numbers as they are, for policies with topics.
        """
        file = catalog_from_frame(
            frame, id=id, ignore=ignore, category=category, number=number, embedding=embedding
        )
        return cls._of_table(file, unscaled=unscaled)

    @classmethod
    def _of_table(cls, file: CatalogFile, *, unscaled: bool) -> "Catalog":
        encoder = file.encoder(unscaled=unscaled)
        values = [list(line) for line in encoder.values_of(file.columns, len(file.ids))]
        features = encoder.encode(values)[0] if encoder.n_features else None
        known = dict(zip(file.ids, values, strict=True))
        catalog = cls(file.ids, features, groups=file.groups, encoder=encoder, values=known)
        catalog.set_available(
            [item for item, there in zip(file.ids, file.available, strict=True) if there is False], False
        )
        return catalog

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_scaled": dict(self._scaled)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _scaled=WeakValueDictionary(state["_scaled"]))

    def kernel_rows(self, scale: FeatureScale | None = None) -> KernelRows:
        """The rows for kernels, in this scale or as they are. All who use one scale share them."""
        if scale is None or scale == self.scale:
            rows = self._plain = self._plain or KernelRows(self.table)
        elif (found := self._scaled.get(scale)) is not None:
            rows = found
        else:
            rows = self._scaled[scale] = KernelRows(self.table, scale)
        rows.follow(self.table)
        return rows

    @property
    def arrays(self) -> CatalogArrays:
        """The rows as they are, for kernels."""
        return self.kernel_rows().arrays

    def _find_rows(self) -> None:
        """Which row stands for each item: the one that is not withdrawn, or else the newest."""
        self._moves = object()  # another one whenever a known item gets another row
        self._row_of = {item: row for row, item in enumerate(self.items)}
        # The newest row of items that an older one stands for, until that is withdrawn.
        self._newest: dict[ItemId, int] = {}
        if len(self._row_of) < len(self.items):
            for row in np.flatnonzero(self.withdrawn == 0).tolist():
                item = self.items[row]
                if row < (newest := self._row_of[item]):
                    self._row_of[item], self._newest[item] = row, newest
        self.hidden[:] = self.withdrawn
        self._hide_or_show(self.unavailable)

    def _hide_or_show(self, items: Iterable[ItemId]) -> None:
        """Bring `hidden` up to date for these items."""
        for item in items:
            row = self._row_of[item]
            self.hidden[row] = self.withdrawn[row] or item in self.unavailable
        self.n_hidden = int(self.hidden.sum())

    def __len__(self) -> int:
        """The number of items that can be shown."""
        return len(self.items) - self.n_hidden

    def __repr__(self) -> str:
        return f"Catalog({len(self)} items, {self.n_features or 'no'} features)"

    @property
    def n_features(self) -> int | None:
        """The number of features per item; None without features."""
        return self.table.shape[1] if self._has_features else None

    @property
    def features(self) -> NDArray[np.float64] | None:
        """The features of every row, including withdrawn items; None without features."""
        return self.table if self._has_features else None

    @property
    def groups(self) -> list[Group | None]:
        """The group of every row, including withdrawn items; None for no group."""
        return [self.group_of[item] for item in self.items]

    def regroup(self, items: Sequence[ItemId], groups: Iterable[Group | None] | None) -> None:
        """Put these items into these groups, one for each; None: into no group."""
        named = [None] * len(items) if groups is None else checked_groups(groups, len(items))
        new = dict(zip(items, named, strict=True))
        if any(item in self.group_of and self.group_of[item] != group for item, group in new.items()):
            self._numbered = {}, np.empty(0, np.int32)
        self.group_of |= new

    def numbered_groups(self) -> tuple[dict[Group, int], NDArray[np.int32]]:
        """The number of each group, and the number of the group of each row; 0 for no group."""
        names, numbers = self._numbered
        if len(numbers) < len(self.items):
            groups = [self.group_of[item] for item in self.items[len(numbers) :]]
            more = [0 if group is None else names.setdefault(group, len(names) + 1) for group in groups]
            self._numbered = names, np.concatenate([numbers, np.array(more, np.int32)])
        return self._numbered

    def completed(
        self, features: ArrayLike, n_items: int | None = None
    ) -> tuple[NDArray[np.float64], list[int]]:
        """The features of items to add, cold ones filled in; and which of these items are cold."""
        rows, cold = split_off_cold(features, n_items, self.n_features)
        if self._has_features and rows.shape[1] != self.n_features:
            raise InvalidInput(f"must have {self.n_features} columns, got {rows.shape[1]}", "features")
        if cold:
            known = np.delete(rows, cold, axis=0)
            if self._has_features:
                known = np.concatenate([np.delete(self.table, self.cold_rows, axis=0), known])
            rows[cold] = typical_row(known)
        return rows, cold

    def add(
        self,
        items: Iterable[ItemId],
        features: ArrayLike | None = None,
        *,
        groups: Iterable[Group | None] | None = None,
        encoded: bool = False,
    ) -> None:
        """Add new items: all of them, or none if one is wrong.

        Args:
            items: Ids that are not in the catalog now. A withdrawn item gets a new row.
            features: One row per item, required if the catalog has features. `None` as a row: the item is
                cold. In a catalog read from a table, a row is a dict by column name, or a list of all values.
            groups: The group of each item; none by default.
            encoded: The features are numbers already, although the catalog was read from a table.

        Raises:
            InvalidInput: An item is in the catalog already, or its features do not fit.
        """
        if (features is not None) != self._has_features:
            if self._has_features:
                raise InvalidInput(
                    f"must be given, because the catalog has {self.n_features} per item; a row may be None",
                    "features",
                )
            raise InvalidInput("must be left out, because the catalog has none", "features")
        ids = new_ids(items)
        for item in ids:
            if self.has(item):
                raise InvalidInput(f"must be new to the catalog, got {quoted(item)}", "items")
        values: list[list[Any]] = []
        if features is not None and self.encoder is not None and not encoded:
            values = self.values_with(ids, features)
            features, _ = self.encoder.encode(values)
        rows, cold = (None, []) if features is None else self.completed(features, len(ids))
        self.regroup(ids, groups)
        held, n_rows = len(self.items), len(self.items) + len(ids)
        if n_rows > len(self._hidden):
            # By half at least: however many are added one by one, each is moved two times on average.
            room = max(n_rows, held + held // 2)
            self._table = np.concatenate([self.table, np.empty((room - held, self.table.shape[1]))])
            more = np.zeros(room - held, np.uint8)
            self._hidden = np.concatenate([self.hidden, more])
            self._withdrawn = np.concatenate([self.withdrawn, more])
        if rows is not None:
            self._table[held:n_rows] = rows
        self.table = self._table[:n_rows]
        self.hidden, self.withdrawn = self._hidden[:n_rows], self._withdrawn[:n_rows]
        self.cold_rows += [held + place for place in cold]
        if not self._row_of.keys().isdisjoint(ids):
            self._moves = object()
        self._row_of.update(zip(ids, range(held, n_rows), strict=True))
        self.items += ids
        self.values.update(zip(ids, values, strict=False))
        self._hide_or_show(self.unavailable.intersection(ids))

    def change(self, items: Sequence[ItemId], features: NDArray[np.float64]) -> None:
        """Give items that the catalog has other features, checked already, in the rows they have."""
        rows = np.array(self.rows_of(list(items)), np.int64)
        self._replace(rows, features)

    def _replace(self, rows: NDArray[np.int64], features: NDArray[np.float64]) -> None:
        if not len(rows):
            return
        self.table[rows] = features
        known = set(rows.tolist())
        self.cold_rows = [row for row in self.cold_rows if row not in known]
        for kept in (self._plain, *self._scaled.values()):
            if kept is not None:
                kept.follow(self.table)
                kept.change(self.table, rows)

    def withdraw(self, items: Iterable[ItemId]) -> None:
        """Take items out of the catalog: all of them, or none if one is unknown.

        Args:
            items: Ids of items that are in the catalog.

        Raises:
            UnknownName: An item is not in the catalog.
        """
        ids = list(dict.fromkeys(item_ids(items)))
        for item in ids:
            if not self.has(item):
                raise self._unknown(item)
        self.withdrawn[[self._row_of[item] for item in ids]] = 1
        self._hide_or_show(ids)
        for item in self._newest.keys() & set(ids):
            self._row_of[item] = self._newest.pop(item)
            self._moves = object()

    def show_again(self, items: Iterable[ItemId]) -> None:
        """Put withdrawn items back, in the rows they had: all of them, or none if one is unknown.

        Items that were not withdrawn stay as they are. Items that are not available stay hidden.

        Args:
            items: Ids that the catalog has had.

        Raises:
            UnknownName: The catalog never had an item.
        """
        ids = item_ids(items)
        self.withdrawn[self.rows_of(ids)] = 0
        self._hide_or_show(ids)

    def set_available(self, items: Iterable[ItemId], available: bool) -> None:
        """Mark items as in stock or sold out: all of them, or none if one is unknown.

        The mark stays until it is set again, even if the item is withdrawn, put back or changed.

        Args:
            items: Ids that the catalog has had.
            available: Whether these items may be shown.

        Raises:
            UnknownName: The catalog never had an item.
        """
        if not isinstance(available, bool):
            raise InvalidInput(f"must be True or False, got {quoted(available)}", "available")
        ids = item_ids(items)
        self.rows_of(ids)  # Refuses those that it never had.
        if available:
            self.unavailable.difference_update(ids)
        else:
            self.unavailable.update(ids)
        self._hide_or_show(ids)

    def show_as(self, withdrawn: NDArray[np.uint8], features: NDArray[np.float64] | None = None) -> None:
        """Have the items of the time when `withdrawn` and `features` were those of this catalog.

        Rows that came later stay, withdrawn. What is available stays as it is.
        """
        self.withdrawn[:] = 1
        self.withdrawn[: len(withdrawn)] = withdrawn
        self._find_rows()
        if features is not None:
            differ = np.flatnonzero((self.table[: len(features)] != features).any(axis=1))
            self._replace(differ, features[differ])

    def row_of(self, item: ItemId) -> int | None:
        """The row of an item; None if the catalog never had it.

        If an item had several rows, this is the row that can be shown, or else the newest.

        Args:
            item: An id.
        """
        return self._row_of.get(item_id(item))

    def has(self, item: ItemId) -> bool:
        """Whether the item is in the catalog and not withdrawn. It may be out of stock.

        Args:
            item: An id.
        """
        row = self._row_of.get(item)
        return row is not None and not self.withdrawn[row]

    def is_shown(self, row: int) -> bool:
        """Whether there is such a row and it is not hidden."""
        return 0 <= row < len(self.items) and not self.hidden[row]

    def subset(self, items: Iterable[ItemId]) -> "Subset":
        """Look up items once, for requests that name the same items again and again.

        >>> catalog = Catalog(["tea", "coffee", "cocoa"])
        >>> hot = catalog.subset(["tea", "cocoa"])
        >>> catalog.withdraw(["cocoa"])
        >>> hot, catalog.rows(hot)
        (Subset(2 items), array([0]))

        Args:
            items: Ids that the catalog has had.

        Returns:
            A subset that `recommend` takes as `candidates` or `exclude`.

        Raises:
            UnknownName: The catalog never had an item.
        """
        return Subset(self, items)

    def rows(self, items: "Iterable[ItemId] | Subset", name: str = "items") -> NDArray[np.int64]:
        """The rows of these items, each once, without items that are hidden now.

        Args:
            items: Ids, or a subset of this catalog.
            name: What an error message calls the items.

        Raises:
            UnknownName: The catalog never had an item.
        """
        if isinstance(items, Subset):
            rows = items.rows_in(self, name)
        else:
            found = self.rows_of(ids_to_find(items, name), name)
            rows = np.fromiter(found, np.int64, len(found))
            in_order = np.sort(rows)
            if (in_order[1:] == in_order[:-1]).any():
                rows = np.array(list(dict.fromkeys(found)), np.int64)
        return rows[self.hidden[rows] == 0] if self.n_hidden else rows

    def known_rows(self, items: "Iterable[ItemId] | Subset", name: str = "items") -> list[int]:
        """The rows of those of the given items that the catalog has; 5 for '5' is a mistake and refused."""
        if isinstance(items, Subset):
            return items.rows_in(self, name).tolist()
        rows = []
        for item in item_ids(items, name):
            row = self._row_of.get(item)
            if row is not None:
                rows.append(row)
            elif self._of_other_type(item):
                raise self._unknown(item, name)
        return rows

    def _of_other_type(self, item: ItemId) -> str:
        """A hint for the end of an error message where text and number were mixed up, else empty."""
        other: ItemId = str(item) if isinstance(item, int) else int(item) if _is_number(item) else item
        return f"; did you mean {other!r}?" if other != item and other in self._row_of else ""

    def _unknown(self, item: ItemId, name: str = "items") -> UnknownName:
        hint = self._of_other_type(item) or "; add it first, or leave it out"
        return UnknownName(f"must name items of the catalog, got {quoted(item)}{hint}", name)

    def rows_of(self, items: list[ItemId], name: str = "items") -> list[int]:
        """The row that stands for each of the given items, hidden or not; unknown ones are refused."""
        try:
            found: list[int] = []
            for piece in pieces(items):
                # Of several, all in one call: half the time of asking for each.
                found += itemgetter(*piece)(self._row_of) if len(piece) > 1 else [self._row_of[piece[0]]]
            return found
        except KeyError as error:
            raise self._unknown(item_id(error.args[0], name, IDS), name) from None

    def values_with(self, items: Sequence[ItemId], features: Any) -> list[list[Any]]:
        """What a table says of each item, with what is given now in its place: by column name, what is not
        named stays; or a list of all values. Only for a catalog with an encoder."""
        encoder = self.encoder
        assert encoder is not None
        if isinstance(features, str | Mapping) or not hasattr(features, "__len__"):
            raise InvalidInput(f"must be a list with a row for each item, got {quoted(features)}", "features")
        if len(features) != len(items):
            raise InvalidInput(
                f"must have one row for each of the {len(items)} items, got {len(features)}", "features"
            )
        n_inputs = len(encoder.inputs)
        lines: list[Mapping[str, Any]] = []
        for item, row in zip(items, features, strict=True):
            own = dict(zip(encoder.inputs, self.values.get(item) or [None] * n_inputs, strict=True))
            if row is None:
                lines.append(own)
            elif isinstance(row, Mapping):
                encoder.check_names(row)
                lines.append({**own, **row})
            elif hasattr(row, "__len__") and not isinstance(row, str) and len(row) == n_inputs:
                lines.append(dict(zip(encoder.inputs, row, strict=True)))
            else:
                raise InvalidInput(
                    f"must be, for each item, an object by column name or a list of {n_inputs} values "
                    f"({listed(encoder.inputs)}), got {quoted(row)}",
                    "features",
                )
        columns = {name: [line.get(name) for line in lines] for name in encoder.inputs}
        return [list(values) for values in encoder.values_of(columns, len(items))]

    def features_as_given(self, rows: NDArray[np.int64]) -> list[Any]:
        """The features of each of these rows as people gave them: values by column name, or numbers, which
        are as they were but for rounding; None if there are none."""
        if self.encoder is not None:
            none = [None] * len(self.encoder.inputs)
            given = [self.values.get(self.items[row], none) for row in rows.tolist()]
            return [dict(zip(self.encoder.inputs, values, strict=True)) for values in given]
        if not self._has_features:
            return [None] * len(rows)
        table = self.table[rows]
        return list((table if self.scale is None else self.scale.undo(table)).tolist())

    @classmethod
    def restored(
        cls,
        items: Sequence[ItemId],
        features: NDArray[np.float64] | None,
        withdrawn: NDArray[np.uint8],
        *,
        cold_rows: Sequence[int] = (),
        groups: Sequence[Group | None] | None = None,
        unavailable: Iterable[ItemId] = (),
        scale: FeatureScale | None = None,
        encoder: Encoder | None = None,
        values: dict[ItemId, list[Any]] | None = None,
    ) -> "Catalog":
        """A catalog as it was saved, row by row."""
        catalog = cls.__new__(cls)
        catalog.scale, catalog.encoder, catalog.values = scale, encoder, values or {}
        # Arrays that are read-only, as those made of bytes are, would be another type to compile for.
        rows = None if features is None else np.require(features, np.float64, ("C", "W"))
        catalog._start(item_ids(items), rows, withdrawn.copy(), list(cold_rows), groups, unavailable)
        return catalog


class Subset:
    """Some items of a catalog that remember their rows. Made by `Catalog.subset`.

    >>> from firstclick import Catalog, Ranker
    >>> catalog = Catalog(["tea", "milk", "jam"])
    >>> drinks = catalog.subset(["tea", "milk"])
    >>> slate = Ranker(catalog, k=2, policy="random").recommend(candidates=drinks)
    >>> sorted(slate.items)
    ['milk', 'tea']

    A subset follows its catalog: a withdrawn item is skipped until it comes back.

    Args:
        catalog: The catalog of the items.
        items: Ids that the catalog has had; repeated ids count once.
    """

    def __init__(self, catalog: Catalog, items: Iterable[ItemId]) -> None:
        self._catalog = catalog
        self.items: tuple[ItemId, ...] = tuple(dict.fromkeys(item_ids(items)))  # each once
        self._found: tuple[object, NDArray[np.int64]] = None, np.empty(0, np.int64)
        self.rows_in(catalog)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[ItemId]:
        return iter(self.items)

    def __repr__(self) -> str:
        return f"Subset({len(self)} items)"

    def rows_in(self, catalog: Catalog, name: str = "items") -> NDArray[np.int64]:
        """The row that stands for each item, hidden or not; InvalidInput in another catalog."""
        if catalog is not self._catalog:
            raise InvalidInput(
                "is a subset of another catalog; make one with `subset` of the catalog that is used here "
                "(after `Ranker.load` or `merge` it is that of the new ranker), or give its ids, "
                "`subset.items`",
                name,
            )
        moves, rows = self._found
        if moves is not catalog._moves:
            moves, rows = catalog._moves, np.array(catalog.rows_of(list(self.items)), np.int64)
            self._found = moves, rows
        return rows
