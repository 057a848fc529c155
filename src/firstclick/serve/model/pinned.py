"""Items that the caller puts at a place of the slate himself."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.ids import ItemId
from firstclick.serve.model.catalog_state import Shelf
from firstclick.validation.quoting import quoted
from firstclick.validation.whole_number import whole_number
from firstclick.wire.errors import Malformed


def pinned_rows(shelf: Shelf, pinned: Mapping[int, ItemId], n: int) -> dict[int, int]:
    """The row at each pinned position of a slate of n, or Malformed."""
    if not isinstance(pinned, Mapping):
        raise Malformed(
            f"pinned must say the item for each position, as in {{0: 'tea'}}, got {quoted(pinned)}"
        )
    for position in pinned:
        whole_number("a position", position, at_least=0, at_most=n - 1, owner="pinned")
    held: dict[int, int] = {}
    for position, item in sorted(pinned.items()):
        row = shelf.catalog.row_of(item)
        if row is None or not shelf.catalog.is_shown(row):
            raise Malformed(f"pinned: item {quoted(item)} is not in the catalog, or withdrawn")
        if row in held.values():
            raise Malformed(f"pinned: item {item!r} has two positions; give it one")
        held[position] = row
    return held


def with_pinned(free: NDArray[np.int64], held: Mapping[int, int]) -> NDArray[np.int64]:
    """Free rows in the places that no pinned row has; where they run out, pinned ones move up."""
    rows: list[int] = []
    waiting = iter(free.tolist())
    for position in range(len(free) + len(held)):
        if position in held:
            rows.append(held[position])
        elif (row := next(waiting, None)) is not None:
            rows.append(row)
    rows += [row for position, row in sorted(held.items()) if position >= len(free) + len(held)]
    return np.array(rows, np.int64)
