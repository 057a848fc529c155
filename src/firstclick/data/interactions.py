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
    """Who met what, and whether it attracted them: one entry per row of a log.

    >>> from pathlib import Path
    >>> from firstclick.data import read_interactions
    >>> _ = Path("likes.csv").write_text("user,item\\nann,tea\\nann,milk\\nbob,tea\\n")
    >>> likes = read_interactions("likes.csv", user_column="user", item_column="item")
    >>> likes.user_ids, likes.item_ids, likes.items.tolist()
    (('ann', 'bob'), ('milk', 'tea'), [1, 0, 1])

    Attributes:
        users: The user code of each row: a position in `user_ids`.
        items: The item code of each row: a position in `item_ids`.
        attracted: Whether the item attracted the user. A pair may have several rows.
        user_ids: Users, each once.
        item_ids: Items, each once.
        item_names: Names of the items, for people; empty: their ids.
        item_groups: The groups of each item; empty if unknown.
        item_ranks: The rank of each item by the source's own order, 0 for the most frequent; empty if
            unknown.
        facts: Numbers that the source counted before it left anything out.
        skipped: Rows of the file that could not be used, by reason.
        columns: The column names of the file; empty without a header.
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
        """The name of each item, or its id where there are no names."""
        return self.item_names or self.item_ids

    def groups(self) -> dict[str, NDArray[np.int64]]:
        """The item codes of each group by name, largest group first."""
        members: dict[str, list[int]] = {}
        for item, groups in enumerate(self.item_groups):
            for group in groups:
                members.setdefault(group, []).append(item)
        ordered = sorted(members.items(), key=lambda entry: (-len(entry[1]), entry[0]))
        return {group: np.array(items, np.int64) for group, items in ordered}
