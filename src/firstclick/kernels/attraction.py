"""Worlds as kernels see them: who clicks what, and how likely a slate is to be clicked.

There are two kinds. In one, items attract independently, each with its own probability. In the
other, a user is a row of a 0/1 matrix, kept by column: a bitmap of its users for an item that
attracts many, a sorted list for the others, so that memory stays proportional to the ones.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.compiling import kernel
from firstclick.kernels.hashing import mix, uniform, user_of

INDEPENDENT, MATRIX = 0, 1

# A bitmap costs n_users / 8 bytes and a list 4 bytes a user. With this share or more a bitmap is
# at most four times as large as the list it replaces, and answers in one look.
BITMAP_SHARE = 1 / 128

_ONE = np.uint64(1)
_S1, _S2, _S4, _S56 = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)
_M1, _M2, _M4 = (np.uint64(m) for m in (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F))
_SUM = np.uint64(0x0101010101010101)


class WorldArrays(NamedTuple):
    """One type for all worlds, so that a policy is compiled once and not once for each world."""

    kind: int
    attraction: NDArray[np.float64]
    n_users: int
    bitmap_of: NDArray[np.int64]  # row of `bitmaps` of each item, or -1
    bitmaps: NDArray[np.uint64]
    list_start: NDArray[np.int64]
    list_users: NDArray[np.int32]


class Memo(NamedTuple):
    """The probability of a click for slates met before; an entry is overwritten on collision."""

    slates: NDArray[np.int64]
    probability: NDArray[np.float64]


def new_memo(k: int, entries: int = 4096) -> Memo:
    return Memo(np.full((entries, k), -1, np.int64), np.empty(entries))


@kernel
def _popcount(word):  # type: ignore[no-untyped-def]
    word = word - ((word >> _S1) & _M1)
    word = (word & _M2) + ((word >> _S2) & _M2)
    word = (word + (word >> _S4)) & _M4
    return np.int64((word * _SUM) >> _S56)


@kernel
def _has_bit(words, user):  # type: ignore[no-untyped-def]
    return (words[user >> 6] >> np.uint64(user & 63)) & _ONE != np.uint64(0)


@kernel
def attracts(world, key, user, item):  # type: ignore[no-untyped-def]
    """Whether the item attracts the user of the step with this key."""
    if world.kind == INDEPENDENT:
        return uniform(key, np.uint64(item)) < world.attraction[item]
    row = world.bitmap_of[item]
    if row >= 0:
        return _has_bit(world.bitmaps[row], user)
    low, high = world.list_start[item], world.list_start[item + 1]
    while low < high:
        middle = (low + high) >> 1
        if world.list_users[middle] < user:
            low = middle + 1
        else:
            high = middle
    return low < world.list_start[item + 1] and world.list_users[low] == user


@kernel
def first_attractive(world, key, slate, n):  # type: ignore[no-untyped-def]
    """The first position of `slate` that attracts the user of this key, or -1."""
    user = user_of(key, world.n_users)
    for position in range(n):
        if attracts(world, key, user, slate[position]):
            return position
    return -1


@kernel
def _share_of_users(world, slate, n, covered):  # type: ignore[no-untyped-def]
    """The share of users attracted by at least one item; `covered` is scratch for their bits."""
    for i in range(len(covered)):
        covered[i] = np.uint64(0)
    for position in range(n):
        row = world.bitmap_of[slate[position]]
        if row >= 0:
            words = world.bitmaps[row]
            for i in range(len(covered)):
                covered[i] |= words[i]
    hits = 0
    for i in range(len(covered)):
        hits += _popcount(covered[i])
    for position in range(n):
        item = slate[position]
        if world.bitmap_of[item] < 0:
            for i in range(world.list_start[item], world.list_start[item + 1]):
                user = np.int64(world.list_users[i])
                if not _has_bit(covered, user):
                    covered[user >> 6] |= _ONE << np.uint64(user & 63)
                    hits += 1
    return hits / world.n_users


@kernel
def click_probability(world, slate, n, memo, covered):  # type: ignore[no-untyped-def]
    """The exact probability that a user of this world clicks the slate."""
    if world.kind == INDEPENDENT:
        missed = 1.0
        for position in range(n):
            missed *= 1.0 - world.attraction[slate[position]]
        return 1.0 - missed
    hashed = np.uint64(n)
    for position in range(n):
        hashed = mix(hashed, np.uint64(slate[position]))
    entry = np.int64(hashed % np.uint64(len(memo.probability)))
    remembered = memo.slates[entry]
    known = True
    for position in range(len(remembered)):
        item = slate[position] if position < n else -1
        if remembered[position] != item:
            known = False
            remembered[position] = item
    # An untouched entry is all -1, as is an empty slate, whose probability is 0 by its own rule.
    if n == 0:
        return 0.0
    if not known:
        memo.probability[entry] = _share_of_users(world, slate, n, covered)
    return memo.probability[entry]
