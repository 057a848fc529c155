"""Caps per group, for any policy: of each group of items at most so many in a slate."""

import numpy as np

from firstclick.kernels.compiling import kernel, recommend
from firstclick.kernels.ranking import with_hidden


@kernel
def recommend_within_caps(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
    """As `recommend`, with no more items of a group than its cap: the best that is left takes the place.

    A policy fills its slate from the top. So what comes before the first item too many stays, and the rest
    is asked for again without the groups that are full: at most once for each of them. A policy that puts
    its best item elsewhere than on top keeps to the caps too, though not always with the best of a group.
    """
    groups, caps = request.groups, request.caps
    # Loops, because what Numba makes of an assignment to a slice takes seconds to compile; and one call,
    # because a policy takes as long at each.
    hidden = np.zeros(len(groups), np.uint8)
    for row in range(min(len(request.hidden), len(groups))):
        hidden[row] = request.hidden[row]
    full = np.zeros(len(caps), np.uint8)
    left = np.empty(len(caps), np.int64)
    asked = request
    while True:
        n = recommend(numbers, state, catalog, asked, key, noise, slate)
        if len(groups) == 0:
            return n
        for group in range(len(caps)):
            left[group] = caps[group]
        fitting = 0
        while fitting < n and left[groups[slate[fitting]]] > 0:
            left[groups[slate[fitting]]] -= 1
            fitting += 1
        if fitting == n:
            return n
        crowded = groups[slate[fitting]]
        if full[crowded]:
            # A policy that shows what it was told to hide, or changes what comes first.
            return fitting
        full[crowded] = 1
        for row in range(len(groups)):
            if groups[row] == crowded:
                hidden[row] = 1
        for position in range(fitting):
            hidden[slate[position]] = 0
        asked = with_hidden(request, hidden)
