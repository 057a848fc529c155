"""The K items of largest index, where items with equal counts share one: a step looks at groups of items.

A group is the items that were examined and attracted equally often. Its index rises with a budget, the same
for all groups, and lies under a straight line in it, which was found when the index was last computed. So a
group whose line stays below the K-th best index is left alone, and the items of the others are told apart
by the same hash as in a scan.
"""

from math import inf

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.arrays import GroupArrays
from firstclick.kernels.compiling import kernel, shared_kernel
from firstclick.kernels.hashing import mix, scramble, stride
from firstclick.kernels.ranking import insert, place, rank, rows_of

# Rows that may be learned from between two recommendations; after more the groups are made anew.
MOST_NOTED = 1024

# Places for members, for each item. New groups need at most 3.5: half as many again as they have, and 2.
ROOM = 4

# Members whose hashes are computed together.
CHUNK = 32

# Places of `clock`.
TIME, LEARNED, NOTED, N_GROUPS, N_FREE, END = range(6)


def new_groups(n_items: int) -> GroupArrays:
    """Groups that are made at the first recommendation; for no items none, and every one scans."""
    return GroupArrays(
        group_of=np.empty(n_items, np.int32),
        place_of=np.empty(n_items, np.int32),
        members=np.empty(ROOM * n_items, np.int32),
        marks=np.empty(ROOM * n_items, np.uint64),
        start=np.zeros(n_items, np.int64),
        size=np.zeros(n_items, np.int64),
        room=np.zeros(n_items, np.int64),
        examined=np.zeros(n_items),
        hits=np.zeros(n_items),
        base=np.empty(n_items),
        slope=np.empty(n_items),
        free=np.empty(n_items, np.int64),
        table=np.empty(2 ** (2 * n_items).bit_length(), np.int64),
        noted=np.empty(MOST_NOTED, np.int64),
        clock=np.array([-1, 0, 0, 0, 0, 0]),
    )


@kernel
def note(groups, slate, examined):  # type: ignore[no-untyped-def]
    """Remember that the first `examined` rows of a slate were counted."""
    clock, noted = groups.clock, groups.noted
    if len(groups.group_of) == 0:
        return
    clock[LEARNED] += 1
    for position in range(examined):
        if clock[NOTED] < len(noted):
            noted[clock[NOTED]] = slate[position]
        clock[NOTED] += 1


def note_unlearned(groups: GroupArrays, rows: NDArray[np.int64]) -> None:
    """Remember that a slate was taken back, with what was counted of these rows."""
    clock, noted = groups.clock, groups.noted
    if len(groups.group_of) > 0:
        clock[LEARNED] -= 1
        room = noted[clock[NOTED] : clock[NOTED] + len(rows)]
        room[:] = rows[: len(room)]
        clock[NOTED] += len(rows)


def ranker_by(index):  # type: ignore[no-untyped-def]
    """The kernel that ranks by `index(hits, examined, budget)`, with one more examination if so `pretended`.

    `index` gives the index of a group, and base and slope of a line that it stays under for every budget.
    """

    @kernel
    def rank_by_index(state, pretended, budget, catalog, request, key, slate):  # type: ignore[no-untyped-def]
        """Fill `slate` with the items of largest index; return how many were found."""
        if len(catalog.groups.group_of) > 0 and len(request.candidates) == 0:
            return _rank_groups(state, pretended, budget, catalog, request, key, slate)
        rows = rows_of(catalog, request)
        scores = np.empty(len(rows))
        for j in range(len(rows)):
            scores[j] = index(state.hits[rows[j]], state.examined[rows[j]] + pretended, budget)[0]
        return rank(rows, scores, catalog, request, key, slate)

    @kernel
    def _rank_groups(state, pretended, budget, catalog, request, key, slate):  # type: ignore[no-untyped-def]
        groups, labels, hidden = catalog.groups, catalog.labels, request.hidden
        follow(groups, state.time[0], state.examined, state.hits, labels)
        base, slope = groups.base, groups.slope
        n_groups, k = groups.clock[N_GROUPS], len(slate)

        # The K groups that may reach highest have at least K items; their true indexes say what is needed.
        limits, top = np.empty(n_groups), np.full(k, -1, np.int64)
        reach = np.full(k, -inf)
        for group in range(n_groups):
            limits[group] = base[group] + slope[group] * budget
        for group in range(n_groups):
            if limits[group] > reach[k - 1]:
                at = k - 1
                while at > 0 and reach[at - 1] < limits[group]:
                    reach[at], top[at] = reach[at - 1], top[at - 1]
                    at -= 1
                reach[at], top[at] = limits[group], group
        scores = np.full(k, -inf)  # of the K best items so far
        looked_at = np.zeros(n_groups, np.bool_)
        for i in range(k):
            if top[i] >= 0:
                looked_at[top[i]] = True
                _look_at(groups, top[i], pretended, budget, hidden, limits, scores)
        for group in range(n_groups):
            if not looked_at[group] and limits[group] >= scores[k - 1] and groups.size[group] > 0:
                looked_at[group] = True
                _look_at(groups, group, pretended, budget, hidden, limits, scores)

        n = 0
        best = np.empty(k)
        for group in range(n_groups):
            if looked_at[group] and limits[group] >= scores[k - 1]:
                start = groups.start[group]
                stop = start + groups.size[group]
                members, marks = groups.members[start:stop], groups.marks[start:stop]
                n = _place_members(members, marks, limits[group], labels, hidden, key, slate, best, n)
        return n

    @kernel
    def _look_at(groups, group, pretended, budget, hidden, limits, scores):  # type: ignore[no-untyped-def]
        """Put the index of a group in place of its limit, and among the best scores for each of its items."""
        score, base, slope = index(groups.hits[group], groups.examined[group] + pretended, budget)
        groups.base[group], groups.slope[group], limits[group] = base, slope, score
        k = len(scores)
        n = min(groups.size[group], k)
        if len(hidden) > 0:
            n = 0
            start = groups.start[group]
            for row in groups.members[start : start + groups.size[group]]:
                if not hidden[row]:
                    n += 1
                    if n == k:
                        break
        for _ in range(n):
            insert(scores, score)

    return rank_by_index


@kernel
def _place_members(members, marks, score, labels, hidden, key, slate, best, n):  # type: ignore[no-untyped-def]
    """Put items of one score where they belong among the best `n` so far; return how many there are now."""
    # Of a large group only the K that are luckiest matter.
    luck, lucky = np.zeros(len(slate), np.uint64), np.empty(len(slate), np.int64)
    for i in range(luckiest(members, marks, hidden, key, luck, lucky)):
        n = place(slate, best, n, lucky[i], score, labels, key)
    return n


@shared_kernel
def luckiest(members, marks, hidden, key, luck, lucky):  # type: ignore[no-untyped-def]
    """Fill `lucky` with the members of largest hash that are not hidden, and `luck`, zeros before, with their
    hashes; return how many were found."""
    k, found = len(lucky), 0
    for first in range(0, len(marks), CHUNK):
        last = min(first + CHUNK, len(marks))
        to_beat = luck[k - 1]
        # All of a chunk without a branch, so that the hashes are computed side by side.
        above = 0
        for i in range(first, last):
            above += scramble(key + marks[i]) > to_beat
        if above == 0 and found == k:
            continue
        for i in range(first, last):
            own = scramble(key + marks[i])
            if (found == k and own <= luck[k - 1]) or (len(hidden) > 0 and hidden[members[i]]):
                continue
            at = min(found, k - 1)
            while at > 0 and luck[at - 1] < own:
                luck[at], lucky[at] = luck[at - 1], lucky[at - 1]
                at -= 1
            luck[at], lucky[at] = own, members[i]
            found = min(found + 1, k)
    return found


@shared_kernel
def follow(groups, time, examined, hits, labels):  # type: ignore[no-untyped-def]
    """Bring the groups to what was counted by this time."""
    clock, noted = groups.clock, groups.noted
    fits = clock[TIME] >= 0 and clock[TIME] + clock[LEARNED] == time and clock[NOTED] <= len(noted)
    if fits:
        for i in range(clock[NOTED]):
            fits = fits and _move(groups, noted[i], examined[noted[i]], hits[noted[i]], labels)
    if not fits:
        _make(groups, examined, hits, labels)
    clock[TIME], clock[LEARNED], clock[NOTED] = time, 0, 0


@kernel
def _make(groups, examined, hits, labels):  # type: ignore[no-untyped-def]
    """Make the groups from nothing."""
    clock, size, start, room = groups.clock, groups.size, groups.start, groups.room
    clock[N_GROUPS] = clock[N_FREE] = 0
    groups.table[:] = -1
    size[:] = 0
    n_items = len(groups.group_of)
    for row in range(n_items):
        group = _group(groups, examined[row], hits[row])
        groups.group_of[row] = group
        size[group] += 1
    end = 0
    for group in range(clock[N_GROUPS]):
        start[group] = end
        room[group] = size[group] + size[group] // 2 + 2
        end += room[group]
        size[group] = 0
    clock[END] = end
    for row in range(n_items):
        _append(groups, groups.group_of[row], row, labels)


@kernel
def _move(groups, row, examined, hits, labels):  # type: ignore[no-untyped-def]
    """Put a row into the group of its counts; False if there is no room, and the groups must be made anew."""
    old = groups.group_of[row]
    if groups.examined[old] == examined and groups.hits[old] == hits:
        return True
    clock, size, start = groups.clock, groups.size, groups.start
    # The last member takes the place of the one that leaves.
    last = groups.members[start[old] + size[old] - 1]
    at = groups.place_of[row]
    groups.members[at], groups.marks[at], groups.place_of[last] = last, stride(labels[last]), at
    size[old] -= 1
    if size[old] == 0:
        _forget(groups, old)
    new = _group(groups, examined, hits)
    groups.group_of[row] = new
    if size[new] == groups.room[new]:
        more = 2 * size[new] + 4
        if clock[END] + more > len(groups.members):
            return False
        for i in range(size[new]):
            member = groups.members[start[new] + i]
            at = clock[END] + i
            groups.members[at], groups.marks[at], groups.place_of[member] = member, stride(labels[member]), at
        start[new], groups.room[new] = clock[END], more
        clock[END] += more
    _append(groups, new, row, labels)
    return True


@kernel
def _append(groups, group, row, labels):  # type: ignore[no-untyped-def]
    at = groups.start[group] + groups.size[group]
    groups.members[at], groups.marks[at], groups.place_of[row] = row, stride(labels[row]), at
    groups.group_of[row] = group
    groups.size[group] += 1


@kernel
def _group(groups, examined, hits):  # type: ignore[no-untyped-def]
    """The group of these counts; a new one, without members, if there is none."""
    clock, table = groups.clock, groups.table
    mask = len(table) - 1
    at = _home(examined, hits, mask)
    while table[at] >= 0:
        group = table[at]
        if groups.examined[group] == examined and groups.hits[group] == hits:
            return group
        at = (at + 1) & mask
    if clock[N_FREE] > 0:
        clock[N_FREE] -= 1
        group = groups.free[clock[N_FREE]]
    else:
        group = clock[N_GROUPS]
        clock[N_GROUPS] += 1
        groups.start[group] = groups.room[group] = 0
    table[at] = group
    groups.examined[group], groups.hits[group] = examined, hits
    groups.base[group], groups.slope[group] = inf, 0.0
    return group


@kernel
def _forget(groups, group):  # type: ignore[no-untyped-def]
    """Take a group without members out of the table; its number and its room are free for another."""
    clock, table = groups.clock, groups.table
    mask = len(table) - 1
    at = _home(groups.examined[group], groups.hits[group], mask)
    while table[at] != group:
        at = (at + 1) & mask
    # Whoever was put further on because this place was taken moves up.
    hole = at
    while True:
        at = (at + 1) & mask
        if table[at] < 0:
            break
        home = _home(groups.examined[table[at]], groups.hits[table[at]], mask)
        if ((at - home) & mask) >= ((at - hole) & mask):
            table[hole] = table[at]
            hole = at
    table[hole] = -1
    groups.base[group], groups.slope[group] = -inf, 0.0
    groups.free[clock[N_FREE]] = group
    clock[N_FREE] += 1


@kernel
def _home(examined, hits, mask):  # type: ignore[no-untyped-def]
    # Counts of a weighed log are not whole.
    return np.int64(mix(np.uint64(256.0 * examined), np.uint64(256.0 * hits)) & np.uint64(mask))
