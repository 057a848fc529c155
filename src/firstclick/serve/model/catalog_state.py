"""A model's items as its log says: which rows there are, which are shown, and how they are called."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.catalog import Catalog, Subset
from firstclick.catalog.encoder import Encoder, Oddities
from firstclick.catalog.feature_scale import FeatureScale
from firstclick.catalog.groups import Group
from firstclick.catalog.ids import ItemId
from firstclick.in_pieces import sorted_pieces
from firstclick.serve.log.events import (
    Availability,
    Created,
    Event,
    ItemsChanged,
    ItemsWithdrawn,
    Kind,
    ListPut,
    ListRemoved,
    RolledBack,
    unpacked,
)
from firstclick.serve.log.snapshot import read_snapshot

# Gives items other features, and tells the policy so.
ChangeFeatures = Callable[[Sequence[ItemId], NDArray[np.float64]], None]


class CatalogCopy(NamedTuple):
    """What may be taken back later: all but which items are available, and lists."""

    withdrawn: NDArray[np.uint8]
    features: NDArray[np.float64] | None
    names: dict[ItemId, str]
    groups: dict[ItemId, Group | None]
    values: dict[ItemId, list[Any]]
    file_marks: dict[ItemId, str]


class CatalogState:
    """A catalog with a name and a group for each item, changed by events alone."""

    def __init__(self, created: Created) -> None:
        items, scale = created.items, created.feature_scale
        self.catalog = Catalog(
            items.ids,
            items.table(),
            groups=items.groups,
            scale=FeatureScale.from_json(scale) if scale else None,
            encoder=Encoder.from_json(created.encoder) if created.encoder else None,
            values=dict(zip(items.ids, created.values, strict=True)) if created.encoder else None,
        )
        self.names = dict(zip(items.ids, items.names, strict=True))
        self.oddities = self._odd()
        self.file_marks = dict(zip(items.ids, created.file_marks, strict=False))
        self.lists: dict[str, Subset] = {}
        self._n_first = len(items.ids)
        # Items that are not as they were at first: a snapshot has these alone.
        self._touched: set[ItemId] = set()
        self.catalog.set_available(created.unavailable, False)

    @classmethod
    def after(cls, created: Created, changes: Callable[[], Iterable[Event]], base: bytes = b"") -> Self:
        """The items after these events, which are read twice: those of a log that are not feedback.

        The log begins with the creation, or later, with a snapshot as its base.
        """
        state = cls(created)
        # As they are at first is as they can be gone back to, however late the log begins.
        stood: dict[int, CatalogCopy] = {1: state.copy()}
        if base:
            page, arrays = read_snapshot(base)
            state = cls.restored(created, page["catalog"], arrays)
        wanted = {unpacked(event, RolledBack).to for event in changes() if event.kind == Kind.ROLLED_BACK}
        waiting = deque(sorted(wanted - {1}))
        for event in changes():
            while waiting and waiting[0] < event.seq:
                stood[waiting.popleft()] = state.copy()
            state.apply(event, state.catalog.change, stood.__getitem__)
        return state

    def group(self, item: ItemId) -> str:
        """The group of the item; empty for no group."""
        return str(self.catalog.group_of.get(item) or "")

    def copy(self) -> CatalogCopy:
        """What a later rollback may go back to."""
        catalog = self.catalog
        return CatalogCopy(
            catalog.withdrawn.copy(),
            None if catalog.features is None else catalog.table.copy(),
            dict(self.names),
            dict(catalog.group_of),
            dict(catalog.values),
            dict(self.file_marks),
        )

    def apply(self, event: Event, change: ChangeFeatures, copy_at: Callable[[int], CatalogCopy]) -> None:
        """One event that is neither feedback nor the creation; `copy_at` knows how things stood once."""
        match event.kind:
            case Kind.ITEMS_CHANGED:
                self._change(unpacked(event, ItemsChanged), change)
            case Kind.ITEMS_WITHDRAWN:
                ids = unpacked(event, ItemsWithdrawn).ids
                # Two processes may withdraw one item: the second finds it gone already.
                self.catalog.withdraw([item for item in ids if self.catalog.has(item)])
            case Kind.AVAILABILITY:
                body = unpacked(event, Availability)
                self.catalog.set_available(body.off, False)
                self.catalog.set_available(body.on, True)
            case Kind.LIST_PUT:
                given = unpacked(event, ListPut)
                self.lists[given.name] = self.catalog.subset(given.items)
            case Kind.LIST_REMOVED:
                self.lists.pop(unpacked(event, ListRemoved).name, None)
            case Kind.ROLLED_BACK:
                earlier = copy_at(unpacked(event, RolledBack).to)
                self.catalog.show_as(earlier.withdrawn, earlier.features)
                self.names |= earlier.names
                self.catalog.values |= earlier.values
                self.file_marks |= earlier.file_marks
                self.catalog.regroup([*earlier.groups], earlier.groups.values())

    def is_shown(self, item: ItemId) -> bool:
        """Whether the item can be shown: it is not withdrawn, and available."""
        row = self.catalog.row_of(item)
        return row is not None and self.catalog.is_shown(row)

    def _change(self, items: ItemsChanged, change: ChangeFeatures) -> None:
        catalog, table = self.catalog, items.table()
        new = [place for place, item in enumerate(items.ids) if catalog.row_of(item) is None]
        known = [place for place, item in enumerate(items.ids) if catalog.row_of(item) is not None]
        catalog.show_again([items.ids[place] for place in known])
        if new:
            rows = None if table is None else table[new]
            catalog.add([items.ids[place] for place in new], rows, encoded=True)
        if table is not None:
            self._change_features(items, table, [place for place in known if items.sent[place]], change)
        if catalog.encoder is not None:
            self._change_values(items)
        for place, item in enumerate(items.ids):
            name, group = items.names[place], items.groups[place]
            if name is not None or item not in self.names:
                self.names[item] = name or ""
            if group is not None:
                catalog.regroup([item], [group])
        for available in (False, True):
            catalog.set_available(
                [item for item, told in zip(items.ids, items.available, strict=True) if told is available],
                available,
            )
        self._touched.update(items.ids)
        self.file_marks.update(zip(items.ids, items.file_marks, strict=False))
        self.oddities += self._odd(items.n_new, items.unknown, items.unreadable)

    def _odd(self, *counts: Any) -> Oddities:
        encoder = self.catalog.encoder
        return Oddities((), (), 0, (), ()) if encoder is None else encoder.oddities(*counts)

    def _change_features(
        self, items: ItemsChanged, table: NDArray[np.float64], places: list[int], change: ChangeFeatures
    ) -> None:
        """Take the features that were sent of items that are there."""
        catalog = self.catalog
        before = catalog.table[catalog.rows_of([items.ids[place] for place in places])]
        after = before.copy()
        for line, place in enumerate(places):
            columns = slice(None) if items.sent[place] is True else self._columns(items.sent[place])
            after[line, columns] = table[place, columns]
        differ = np.flatnonzero((before != after).any(axis=1)).tolist()
        if differ:
            change([items.ids[places[line]] for line in differ], after[differ])

    def _columns(self, inputs: Any) -> list[int]:
        """The features that follow from these inputs."""
        encoder = self.catalog.encoder
        assert encoder is not None
        return [column for one in inputs for column in encoder.blocks[one]]

    def _change_values(self, items: ItemsChanged) -> None:
        values, encoder = self.catalog.values, self.catalog.encoder
        assert encoder is not None
        for item, sent, given in zip(items.ids, items.sent, items.values, strict=True):
            if sent is True:
                values[item] = given
                continue
            merged = list(values.get(item) or [None] * len(encoder.inputs))
            for place, value in zip(sent or (), given, strict=True):
                merged[place] = value
            values[item] = merged

    def snapshot(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What is not as it was at first, as a page and arrays: as much as was changed, however large the
        catalog is."""
        catalog, n_first = self.catalog, self._n_first
        items, marks = sorted_pieces(self._touched, key=str), self.file_marks
        rows = [row for row, item in enumerate(catalog.items[:n_first]) if item in self._touched]
        changed = np.array([*rows, *range(n_first, len(catalog.items))], np.int64)
        page = {
            "added": catalog.items[n_first:],
            "touched": [
                [item, self.names[item], self.group(item), catalog.values.get(item), marks.get(item)]
                for item in items
            ],
            "unavailable": sorted_pieces(catalog.unavailable, key=str),
            "lists": {name: subset.items for name, subset in self.lists.items()},
            "odd": [self.oddities.n_rows, self.oddities.unknown, self.oddities.unreadable],
        }
        return page, {
            "catalog.changed": changed,
            "catalog.features": catalog.table[changed],
            "catalog.withdrawn": catalog.withdrawn.copy(),
        }

    @classmethod
    def restored(cls, created: Created, page: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The items of a snapshot; LookupError, TypeError or ValueError if it does not fit."""
        state = cls(created)
        catalog, added = state.catalog, page["added"]
        changed, withdrawn = arrays["catalog.changed"], arrays["catalog.withdrawn"]
        if len(withdrawn) != state._n_first + len(added):
            raise ValueError("withdrawn")
        table = np.concatenate([catalog.table, np.empty((len(added), catalog.table.shape[1]))])
        table[changed] = arrays["catalog.features"]
        for item, name, group, values, mark in page["touched"]:
            state.names[item] = name
            if mark is not None:
                state.file_marks[item] = mark
            catalog.group_of[item] = group or None
            if values is not None:
                catalog.values[item] = values
        items = [*catalog.items, *added]
        state.catalog = Catalog.restored(
            items,
            None if catalog.features is None else table,
            withdrawn,
            groups=[catalog.group_of[item] for item in items],
            unavailable=page["unavailable"],
            scale=catalog.scale,
            encoder=catalog.encoder,
            values=catalog.values,
        )
        state.lists = {name: state.catalog.subset(items) for name, items in page["lists"].items()}
        state._touched = {item for item, *_ in page["touched"]}
        state.oddities = state._odd(*page["odd"])
        return state
