"""Groups of items, and caps on how many of each may be in a slate."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.declaration import did_you_mean
from firstclick.errors import InvalidInput
from firstclick.whole_number import whole_number

Group = str | int


def numbered(groups: Iterable[object], names: dict[Group, int]) -> NDArray[np.int32]:
    """The number of each group, 0 for none (None or ""); a new one gets the next number in `names`."""
    if isinstance(groups, str):
        raise InvalidInput(f"groups must be a list with a name for each item, got the text {groups!r}")
    numbers = []
    for group in groups:
        if group is None or (isinstance(group, str) and not group):
            numbers.append(0)
        elif isinstance(group, str | int | np.integer) and not isinstance(group, bool):
            # NumPy's own texts and numbers become plain ones.
            name = str(group) if isinstance(group, str) else int(group)
            numbers.append(names.setdefault(name, len(names) + 1))
        else:
            raise InvalidInput(
                f"a group must be a text or a whole number, or None for no group, got {group!r}"
            )
    return np.array(numbers, np.int32)


def caps_by_group(
    names: Mapping[Group, int], at_most: int | Mapping[Any, int], n_rows: int
) -> NDArray[np.int64]:
    """The cap of each group by its number; number 0 is no group, and not capped."""
    if not names:
        raise InvalidInput("at_most needs groups, and no item has one; give Catalog(items, groups=...)")
    caps = np.full(len(names) + 1, n_rows, np.int64)
    if not isinstance(at_most, Mapping):
        caps[1:] = min(n_rows, whole_number("at_most", at_most, at_least=0))
        return caps
    for name, cap in at_most.items():
        if isinstance(name, bool) or name not in names:
            hint = did_you_mean(str(name), [group for group in names if isinstance(group, str)])
            raise InvalidInput(f"at_most: no item is of group {name!r}{hint}")
        caps[names[name]] = min(n_rows, whole_number(f"at_most of group {name!r}", cap, at_least=0))
    return caps
