"""A slate as a question about ranks: do these rows come first, in this order, of all that may be shown?"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.arrays import Request
from firstclick.online.explore import places_among
from firstclick.online.request import SlateRequest, with_pinned

Rows = NDArray[np.int64]


class Places(NamedTuple):
    """The rows that a request allows, and those of them that fill the free places of a slate.

    A group is full with the row that takes the last place of its cap: rows of the group must come after that
    row, and need not come after those below it.
    """

    rows: Rows  # all that may be shown in a free place
    chosen: Rows  # where in `rows` the row of each free place is, from the top
    full_at: Rows  # by row: the free place that fills its group; len(chosen) if none does
    # For each prefix of the slate how many free places it has; -1 where the request does not allow it.
    free: Rows

    def by_prefix(self, chances: NDArray[np.float64]) -> NDArray[np.float64]:
        """One number for each prefix of the slate, from one for each number of free places, 0 included."""
        return np.where(self.free >= 0, chances[self.free], 0.0)


def places_of(request: SlateRequest, n_rows: int, rows: Rows) -> Places:
    """The places of a slate of these rows in a catalog of `n_rows`, as far as the request allows them."""
    kernel, pinned = request.kernel, request.rows.pinned
    allowed = allowed_rows(request, n_rows)
    left = kernel.caps.copy()
    groups = kernel.groups[allowed] if len(kernel.groups) else np.zeros(0, np.int64)
    found = len(allowed)
    if len(groups):
        found = int(np.minimum(np.bincount(groups, minlength=len(left)), left.clip(0)).sum())
    # Where a free row goes there is -1.
    wanted = with_pinned(np.full(min(request.free, found), -1), pinned)
    place_in = {row: place for place, row in enumerate(allowed.tolist())}
    chosen: list[int] = []
    free = np.full(len(rows), -1)
    full: dict[int, int] = {}
    for position, row in enumerate(rows.tolist()):
        if position == len(wanted) or (wanted[position] >= 0 and wanted[position] != row):
            break
        if wanted[position] < 0:
            place = place_in.pop(row, None)
            if place is None:
                break
            if len(groups):
                group = int(groups[place])
                if left[group] == 0:
                    break
                left[group] -= 1
                if left[group] == 0:
                    full[group] = len(chosen)
            chosen.append(place)
        free[position] = len(chosen)
    full_at = np.full(len(allowed), len(chosen))
    for group, place in full.items():
        full_at[groups == group] = place
    return Places(allowed, np.array(chosen, np.int64), full_at, free)


def allowed_rows(request: SlateRequest, n_rows: int) -> Rows:
    """The rows that may be shown in a free place."""
    kernel: Request = request.kernel
    if request.rows.candidates is None:
        allowed = np.arange(n_rows)
    else:
        allowed = np.unique(request.rows.candidates)
    if len(kernel.hidden):
        allowed = allowed[kernel.hidden[allowed] == 0]
    if len(kernel.groups):
        allowed = allowed[kernel.caps[kernel.groups[allowed]] > 0]
    return allowed


def uniform_chances(request: SlateRequest, n_rows: int, rows: Rows) -> NDArray[np.float64]:
    """The probability of each prefix of these rows where all that the request allows are equally likely."""
    places = places_of(request, n_rows, rows)
    among = np.array(places_among(request.kernel, n_rows, rows, request.rows.pinned), np.float64)
    return np.where(places.free >= 0, np.cumprod(1.0 / np.maximum(among, 1.0)), 0.0)
