"""Groups of items, and caps on how many of each may be in a slate."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.ids import IDS, item_id
from firstclick.errors import InvalidInput
from firstclick.parameters import did_you_mean
from firstclick.validation.lists import as_list
from firstclick.validation.quoting import quoted
from firstclick.validation.whole_number import whole_number

Group = str | int


def checked_groups(groups: Iterable[object], n_items: int) -> list[Group | None]:
    """The group of each item; None and "" are no group."""
    given = as_list("groups", groups, "names, one for each item")
    rule = f"{IDS}, or None for no group"
    if len(given) != n_items:
        raise InvalidInput(
            f"must have a name for each of the {n_items} items, or None, got {len(given)}", "groups"
        )
    return [
        None if group is None or (isinstance(group, str) and not group) else item_id(group, "groups", rule)
        for group in given
    ]


def caps_by_group(
    names: Mapping[Group, int], at_most: int | Mapping[Any, int], n_rows: int
) -> NDArray[np.int64]:
    """The cap of each group by its number; number 0 is no group, and not capped."""
    if not names:
        raise InvalidInput("needs items with a group, and no item has one; give items a group", "at_most")
    caps = np.full(len(names) + 1, n_rows, np.int64)
    if not isinstance(at_most, Mapping):
        caps[1:] = min(n_rows, whole_number("at_most", at_most, at_least=0))
        return caps
    for name, cap in at_most.items():
        if isinstance(name, bool) or name not in names:
            written = name if isinstance(name, str) else quoted(name)
            hint = did_you_mean(written, [group for group in names if isinstance(group, str)])
            raise InvalidInput(f"must name groups of items, got {quoted(name)}{hint}", "at_most")
        caps[names[name]] = min(n_rows, whole_number("at_most", cap, at_least=0))
    return caps
