"""Lists of a log as rows of arrays: items become codes, positions become marks, and odd rows are told."""

import numpy as np

from firstclick.kernels.compiling import kernel

# What may be wrong with a slate, a bit each. The first four make it unusable.
EMPTY = 1
NULL_ITEM = 2
TWICE = 4
OUTSIDE = 8
# Its probabilities are not used, the slate is.
N_CHANCES = 16
NO_CHANCE = 32
RISING = 64
BAD_EXAMINED = 128

# A prefix may be a little likelier than the one it begins with: numbers are rounded when they are written.
_ROUNDING = 1e-9


@kernel
def fill_table(hashes, keys, codes):  # type: ignore[no-untyped-def]
    """Put hashes, all different, into an empty table (codes -1) whose size is a power of 2."""
    mask = np.uint64(len(keys) - 1)
    for code in range(len(hashes)):
        slot = hashes[code] & mask
        while codes[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        keys[slot] = hashes[code]
        codes[slot] = code


@kernel
def look_up(hashes, keys, codes, found):  # type: ignore[no-untyped-def]
    """The codes of hashes, -1 for one that is not in the table."""
    mask = np.uint64(len(keys) - 1)
    for place in range(len(hashes)):
        slot = hashes[place] & mask
        while codes[slot] >= 0 and keys[slot] != hashes[place]:
            slot = (slot + np.uint64(1)) & mask
        found[place] = codes[slot]


@kernel
def lay_out_slates(starts, codes, stamps, stamp, items, problems):  # type: ignore[no-untyped-def]
    """Rows of `items` (filled with NO_ITEM) from lists of codes. `stamps` has a place an item: it holds the
    number of the last slate with it, and slates are numbered from `stamp` on."""
    for row in range(len(starts) - 1):
        length = starts[row + 1] - starts[row]
        if length == 0:
            problems[row] |= EMPTY
        for place in range(length):
            code = codes[starts[row] + place]
            if code < 0:
                problems[row] |= NULL_ITEM
                continue
            if stamps[code] == stamp + row:
                problems[row] |= TWICE
            stamps[code] = stamp + row
            items[row, place] = code


@kernel
def mark_clicks(starts, positions, lengths, clicks, problems):  # type: ignore[no-untyped-def]
    """Rows of `clicks` (filled with 0) from lists of positions."""
    for row in range(len(starts) - 1):
        for place in range(starts[row], starts[row + 1]):
            position = positions[place]
            if 0 <= position < lengths[row]:
                clicks[row, position] = 1
            else:
                problems[row] |= OUTSIDE


@kernel
def lay_out_chances(starts, given, lengths, prefixes, chances, problems):  # type: ignore[no-untyped-def]
    """Rows of `chances` (filled with NaN) from lists of probabilities, one an item. A row with one that
    is none, or of prefixes that rise, stays NaN. After the end of a shorter slate the last one stays."""
    for row in range(len(starts) - 1):
        n = starts[row + 1] - starts[row]
        if n == 0:
            continue
        if n != lengths[row]:
            problems[row] |= N_CHANCES
            continue
        sound = True
        for place in range(n):
            chance = given[starts[row] + place]
            if np.isnan(chance):
                continue
            if not 0.0 < chance <= 1.0:
                problems[row] |= NO_CHANCE
                sound = False
            if prefixes and place > 0 and chance > given[starts[row] + place - 1] * (1 + _ROUNDING):
                problems[row] |= RISING
                sound = False
        if sound:
            for place in range(chances.shape[1]):
                chances[row, place] = given[starts[row] + min(place, n - 1)]
