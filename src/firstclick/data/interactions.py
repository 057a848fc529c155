"""Who met what, and was attracted: the form every source of logs is brought into."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.files.table import Skipped


@dataclass(frozen=True, eq=False)
class Interactions:
    """One entry per row of a log: user code, item code, and whether the item attracted the user.

    `users`, `items` and `attracted` have one length; a code is the position of its id in `user_ids`
    or `item_ids`. An id may have no attracted entry at all, or many for the same pair. `item_names` is
    what people call the items (their ids if empty), `item_groups` the groups each is in (empty if
    unknown), `item_ranks` the rank of each by what the source ranked items by before it kept a part (0 is
    the most met; empty if unknown), `facts` what it counted before that, by name, `skipped` the rows of its
    file that could not be used, and `columns` what the file calls its columns (empty if it does not).

    >>> from pathlib import Path
    >>> from firstclick.data import read_interactions
    >>> _ = Path("likes.csv").write_text("user,item\\nann,tea\\nann,milk\\nbob,tea\\n")
    >>> likes = read_interactions("likes.csv", user_column="user", item_column="item")
    >>> likes.user_ids, likes.item_ids, likes.items.tolist()
    (('ann', 'bob'), ('milk', 'tea'), [1, 0, 1])
    """

    users: NDArray[np.integer[Any]]
    items: NDArray[np.integer[Any]]
    attracted: NDArray[np.bool_]
    user_ids: tuple[str, ...]
    item_ids: tuple[str, ...]
    item_names: tuple[str, ...] = ()
    item_groups: tuple[tuple[str, ...], ...] = ()
    item_ranks: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    facts: Mapping[str, int] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shapes = [column.shape for column in (self.users, self.items, self.attracted)]
        if len(shapes[0]) != 1 or shapes.count(shapes[0]) != 3:
            raise InvalidInput(
                "interactions: users, items and attracted must have one length, "
                f"got shapes {shapes[0]}, {shapes[1]} and {shapes[2]}"
            )
        if self.attracted.dtype != np.bool_:
            raise InvalidInput(f"interactions: attracted must be bool, got {self.attracted.dtype}")
        for kind, codes, ids in (("user", self.users, self.user_ids), ("item", self.items, self.item_ids)):
            if codes.dtype.kind not in "iu":
                raise InvalidInput(f"interactions: {kind} codes must be integers, got {codes.dtype}")
            if codes.size and not 0 <= codes.min() <= codes.max() < len(ids):
                raise InvalidInput(
                    f"interactions: {kind} codes must be from 0 to {len(ids) - 1} ({len(ids)} ids), "
                    f"got {codes.min()} to {codes.max()}"
                )
            if len(set(ids)) != len(ids):
                raise InvalidInput(f"interactions: {kind} ids must be distinct")
        for name, given in (("item_names", self.item_names), ("item_groups", self.item_groups)):
            if given and len(given) != len(self.item_ids):
                raise InvalidInput(
                    f"interactions: {name} must be one per item ({len(self.item_ids)}), got {len(given)}"
                )
        ranks = self.item_ranks
        if ranks.size and (
            ranks.dtype.kind not in "iu" or sorted(ranks.tolist()) != list(range(len(self.item_ids)))
        ):
            raise InvalidInput(
                f"interactions: item_ranks must be the integers 0 to {len(self.item_ids) - 1}, each once, "
                f"got {ranks}"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """What to call each item: its name, or its id where there are no names."""
        return self.item_names or self.item_ids

    def groups(self) -> dict[str, NDArray[np.int64]]:
        """The items of each group, by its name, largest group first."""
        members: dict[str, list[int]] = {}
        for item, groups in enumerate(self.item_groups):
            for group in groups:
                members.setdefault(group, []).append(item)
        ordered = sorted(members.items(), key=lambda entry: (-len(entry[1]), entry[0]))
        return {group: np.array(items, np.int64) for group, items in ordered}
