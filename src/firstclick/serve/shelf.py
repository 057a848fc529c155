"""A model's items as its log says: which rows there are, which are shown, and how they are called."""

from collections.abc import Callable

import numpy as np

from firstclick.catalog import Catalog, ItemId
from firstclick.serve.events import Created, Event, ItemsPut, ItemsWithdrawn, Kind, RolledBack, unpacked


class Shelf:
    """A catalog with a name and a group for each item, changed by events alone."""

    def __init__(self, created: Created) -> None:
        items = created.items
        self.catalog = Catalog(items.ids, items.table())
        self.names = dict(zip(items.ids, items.names, strict=True))
        self.groups = dict(zip(items.ids, items.groups, strict=True))

    def apply(self, event: Event, shelf_at: Callable[[int], "Shelf"]) -> None:
        """One event that is neither feedback nor the creation; `shelf_at` knows how things stood earlier."""
        if event.kind == Kind.ITEMS_PUT:
            self._put(unpacked(event, ItemsPut))
        elif event.kind == Kind.ITEMS_WITHDRAWN:
            ids = unpacked(event, ItemsWithdrawn).ids
            # Two processes may withdraw one item: the second finds it gone already.
            self.catalog.withdraw(dict.fromkeys(item for item in ids if self.is_shown(item)))
        else:
            earlier = shelf_at(unpacked(event, RolledBack).to)
            self.catalog.show_as(earlier.catalog)
            self.names |= earlier.names
            self.groups |= earlier.groups

    def is_shown(self, item: ItemId) -> bool:
        """Whether the item is there and not withdrawn."""
        row = self.catalog.row_of(item)
        return row is not None and self.catalog.is_shown(row)

    def _put(self, items: ItemsPut) -> None:
        table = items.table()
        catalog = self.catalog
        features = catalog.features
        again: list[ItemId] = []
        new: list[int] = []
        for i, item in enumerate(items.ids):
            row = catalog.row_of(item)
            # Equal features: the same item, with all that was learned about it.
            same = row is not None and (
                table is None or features is None or np.array_equal(features[row], table[i])
            )
            if same:
                again.append(item)
            else:
                new.append(i)
        ids = [items.ids[i] for i in new]
        if again:
            catalog.show_again(again)
        if ids:
            catalog.withdraw([item for item in ids if self.is_shown(item)])
            catalog.add(ids, None if table is None else table[new])
        self.names.update(zip(items.ids, items.names, strict=True))
        self.groups.update(zip(items.ids, items.groups, strict=True))
