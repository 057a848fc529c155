"""A model's items as its log says: which rows there are, which are shown, and how they are called."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.catalog import Catalog
from firstclick.catalog.feature_scale import FeatureScale
from firstclick.catalog.groups import Group
from firstclick.catalog.ids import ItemId
from firstclick.serve.log.events import Created, Event, ItemsPut, ItemsWithdrawn, Kind, RolledBack, unpacked


class CatalogCopy(NamedTuple):
    """What may be taken back later: which rows were hidden, and how items were called."""

    hidden: NDArray[np.uint8]
    names: dict[ItemId, str]
    groups: dict[ItemId, Group | None]


class CatalogState:
    """A catalog with a name and a group for each item, changed by events alone."""

    def __init__(self, created: Created) -> None:
        items, scale = created.items, created.feature_scale
        self.catalog = Catalog(
            items.ids,
            items.table(),
            groups=items.groups,
            scale=FeatureScale.from_json(scale) if scale else None,
        )
        self.names = dict(zip(items.ids, items.names, strict=True))

    @classmethod
    def after(cls, seq: int, changes: Sequence[Event]) -> Self:
        """The items after event `seq`, from all events that are not feedback; the creation is the first."""
        state = cls(unpacked(changes[0], Created))
        past = [event for event in changes[1:] if event.seq <= seq]
        wanted = {unpacked(event, RolledBack).to for event in past if event.kind == Kind.ROLLED_BACK}
        waiting = deque(sorted(wanted))
        stood: dict[int, CatalogCopy] = {}
        for event in past:
            while waiting and waiting[0] < event.seq:
                stood[waiting.popleft()] = state.copy()
            state.apply(event, stood.__getitem__)
        return state

    def group(self, item: ItemId) -> str:
        """The group of the item; empty for no group."""
        return str(self.catalog.group_of.get(item) or "")

    def copy(self) -> CatalogCopy:
        """What a later rollback may go back to."""
        return CatalogCopy(self.catalog.hidden.copy(), dict(self.names), dict(self.catalog.group_of))

    def apply(self, event: Event, copy_at: Callable[[int], CatalogCopy]) -> None:
        """One event that is neither feedback nor the creation; `copy_at` knows how things stood once."""
        if event.kind == Kind.ITEMS_PUT:
            self._put(unpacked(event, ItemsPut))
        elif event.kind == Kind.ITEMS_WITHDRAWN:
            ids = unpacked(event, ItemsWithdrawn).ids
            # Two processes may withdraw one item: the second finds it gone already.
            self.catalog.withdraw(dict.fromkeys(item for item in ids if self.is_shown(item)))
        else:
            earlier = copy_at(unpacked(event, RolledBack).to)
            self.catalog.show_as(earlier.hidden)
            self.names |= earlier.names
            self.catalog.regroup([*earlier.groups], earlier.groups.values())

    def is_shown(self, item: ItemId) -> bool:
        """Whether the item is there and not withdrawn."""
        row = self.catalog.row_of(item)
        return row is not None and self.catalog.is_shown(row)

    def _put(self, items: ItemsPut) -> None:
        table = items.table()
        catalog = self.catalog
        features = catalog.features
        rows = [catalog.row_of(item) for item in items.ids]
        # Equal features: the same item, with all that was learned about it.
        same = np.array([row is not None for row in rows])
        if table is not None and features is not None:
            known = np.flatnonzero(same)
            held = np.array([rows[i] for i in known.tolist()], np.int64)
            same[known] = (features[held] == table[known]).all(axis=1)
        new = np.flatnonzero(~same)
        again = [items.ids[i] for i in np.flatnonzero(same).tolist()]
        ids = [items.ids[i] for i in new.tolist()]
        if again:
            catalog.show_again(again)
        if ids:
            catalog.withdraw([item for item in ids if self.is_shown(item)])
            catalog.add(ids, None if table is None else table[new])
        self.names.update(zip(items.ids, items.names, strict=True))
        catalog.regroup(items.ids, items.groups)
