"""What kernels are given: the items, what a search keeps about them, and a request."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class TreeArrays(NamedTuple):
    """Items in a tree of boxes, for `kernels.search.tree`.

    `firstclick.catalog.search_tree` makes it and explains the words.

    The tree covers the first `covered` rows; 0 for no tree. Nothing in it is learned, and nothing that is
    recommended depends on it.
    """

    covered: int
    rotation: NDArray[np.float64]  # features x coordinates
    constant: NDArray[np.float64]  # the value of each feature that is the same for all items, else 0
    longest: float  # norm that all coordinates are divided by
    order: NDArray[np.int32]  # the row at each place of each leaf, -1 for none
    leaves: NDArray[np.uint16]  # leaves x coordinates x places, bits of half precision
    edges: NDArray[np.uint16]  # groups x upper, then lower edges of each coordinate x children, likewise
    reach: NDArray[np.float32]  # groups x children: the longest norm in the child's box, -1 for no child
    first: NDArray[np.int64]  # the first group of each level, leaves' parents first, and the end
    recent: NDArray[np.int64]  # rows that were recommended lately: a hint
    scans: NDArray[np.int64]  # how many more times to scan, because a search found little to leave out


class WidthArrays(NamedTuple):
    """The width sqrt(x'M^-1 x) of each item when it was last computed, for `kernels.search`; empty for none.

    Widths only shrink while a policy learns, but for rounding: these belong to one state and its future.
    `kernels.search.widths` makes them.
    """

    values: NDArray[np.float32]  # by place in the tree, then by row for rows that it does not cover
    tops: NDArray[np.float32]  # groups x children of the tree: the largest value below
    recent: NDArray[np.int64]  # the last slate, then -1: a hint
    turn: NDArray[np.int64]  # searches so far, leaves visited by the last one, observations in the state then


class GroupArrays(NamedTuple):
    """Which items have equal counts, as of the last recommendation; empty for none: `kernels.search.groups`.

    They follow one state: from when it was last looked at, every row that is learned from is noted.
    """

    group_of: NDArray[np.int32]  # by row
    place_of: NDArray[np.int32]  # by row: its place among the members
    members: NDArray[np.int32]  # rows, group after group, with room to grow
    marks: NDArray[np.uint64]  # the strides of the members' labels: half of their hash
    start: NDArray[np.int64]  # by group, as all that follows: its first place among the members
    size: NDArray[np.int64]
    room: NDArray[np.int64]
    examined: NDArray[np.float64]
    hits: NDArray[np.float64]
    base: NDArray[np.float64]  # index <= base + slope * budget; inf for a group that is not known yet
    slope: NDArray[np.float64]
    free: NDArray[np.int64]  # groups without items, a stack
    table: NDArray[np.int64]  # groups by the hash of their counts, -1 for none
    noted: NDArray[np.int64]  # rows learned from since
    clock: NDArray[np.int64]


class SeenArrays(NamedTuple):
    """The items that were examined, side by side, for `kernels.search.seen`; empty for none.

    They follow one state: whatever is learned from is brought up to date.
    """

    place_of: NDArray[np.int32]  # by row: its place below, -1 for a row that was never examined
    rows: NDArray[np.int64]  # by place, as all that follows
    columns: NDArray[np.float64]  # features x places
    keep: NDArray[np.float64]  # how much of what features say counts for the item: 1 before it is examined
    rate: NDArray[np.float64]  # what its own clicks add
    spread: NDArray[np.float64]  # the standard deviation of its own part
    clock: NDArray[np.int64]  # how many places are taken, and the refit that they follow


class CatalogArrays(NamedTuple):
    """The items as kernels see them. `columns` is `features` transposed, for scans by column; there may be
    room for more at its end, so that the number of items is `len(rows)`.

    What follows the labels are shortcuts, which change nothing that is recommended.
    """

    features: NDArray[np.float64]
    columns: NDArray[np.float64]
    rows: NDArray[np.int64]  # 0, 1, 2, ...
    labels: NDArray[np.uint64]  # what is hashed for an item
    tree: TreeArrays
    widths: WidthArrays
    groups: GroupArrays
    seen: SeenArrays


class Request(NamedTuple):
    """What is asked for: which rows may be shown, and what is known of the moment.

    Rows are those in `candidates` (none given: all), and not where `hidden` is 1; of each group at most its
    cap. A kernel that learns gets the context and the features again; in live use, where feedback comes
    later, not which rows were allowed.
    """

    candidates: NDArray[np.int64]
    hidden: NDArray[np.uint8]
    context: NDArray[np.float64]  # what is known of the user; empty for nothing
    # In place of the catalog's, one row for each candidate; to a kernel that learns or estimates, one for
    # each row it is given. None given: those of the catalog.
    features: NDArray[np.float64]
    groups: NDArray[np.int32]  # the group of each row of the catalog; empty where nothing is capped
    caps: NDArray[np.int64]  # by group


NO_LIMITS = Request(
    candidates=np.empty(0, np.int64),
    hidden=np.empty(0, np.uint8),
    context=np.empty(0),
    features=np.empty((0, 0)),
    groups=np.empty(0, np.int32),
    caps=np.empty(0, np.int64),
)
