"""How a user goes through a slate: what is clicked, what was examined, and what a slate is worth.

`firstclick.click_models` has the same in words, and slowly.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.attraction import MATRIX, attraction_at, attracts, has_bit
from firstclick.kernels.compiling import kernel, shared_kernel
from firstclick.kernels.hashing import mix, uniform

CASCADE, DEPENDENT, POSITION, SCROLL, LEAVING, COUNTED, DYNAMIC = range(7)

# What the page does not know.
UNTOLD = -1

_ONE = np.uint64(1)
_S1, _S2, _S4, _S56 = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)
_M1, _M2, _M4 = (np.uint64(m) for m in (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F))
_SUM = np.uint64(0x0101010101010101)
# Whether a user goes on is no part of whether an item attracts: another key.
_GOING_ON = np.uint64(5 << 56)
# Nor is whether a click satisfies.
_SATISFIED = np.uint64(13 << 56)


class Memo(NamedTuple):
    """The expected reward of slates met before; an entry is overwritten on collision."""

    slates: NDArray[np.int64]
    reward: NDArray[np.float64]


def new_memo(k: int, entries: int = 4096) -> Memo:
    return Memo(np.full((entries, k), -1, np.int64), np.empty(entries))


@kernel
def _popcount(word):  # type: ignore[no-untyped-def]
    word = word - ((word >> _S1) & _M1)
    word = (word & _M2) + ((word >> _S2) & _M2)
    word = (word + (word >> _S4)) & _M4
    return np.int64((word * _SUM) >> _S56)


@kernel
def examined_positions(click_model, clicks, n, told):  # type: ignore[no-untyped-def]
    """How many of the first `n` positions were examined: as the page tells, or as the click model has it;
    UNTOLD if a policy makes up its own mind of what comes after the last click."""
    if told != UNTOLD:
        return told
    if click_model == CASCADE:
        for position in range(n):
            if clicks[position]:
                return position + 1
    elif click_model in (DEPENDENT, COUNTED, DYNAMIC):
        for position in range(n - 1, -1, -1):
            if clicks[position]:
                return position + 1
    elif click_model == LEAVING:
        for position in range(n):
            if clicks[position]:
                return UNTOLD
    return n


@kernel
def chance_at(chances, position):  # type: ignore[no-untyped-def]
    """The chance of a click model at this position; the last one holds for all further."""
    return chances[min(position, len(chances) - 1)]


@shared_kernel
def answer(world, key, user, view, slate, n, clicks):  # type: ignore[no-untyped-def]
    """Mark in `clicks` what the user of this key clicks; return what that is worth, and how far the user
    examined where the page is told, else UNTOLD."""
    model, chances = world.click_model, world.chances
    covered = np.empty(len(world.interest))
    going_on, satisfied = mix(key, _GOING_ON), mix(key, _SATISFIED)
    for position in range(n):
        clicks[position] = 0
    reward = 0.0
    for position in range(n):
        clicked = attracts(world, key, user, view, slate, position, covered)
        if model == CASCADE:
            if clicked:
                clicks[position] = 1
                return 1.0, UNTOLD
            continue
        by_chance = uniform(going_on, np.uint64(position)) < chance_at(chances, position)
        if model == POSITION:
            clicked = clicked and by_chance
        if clicked:
            clicks[position] = 1
        if model == DEPENDENT:
            if clicked and by_chance:
                return 1.0, UNTOLD
        elif clicked:
            reward += 1.0
        if model == SCROLL and not by_chance:
            return reward, position + 1
        if model == COUNTED and clicked and by_chance:
            return reward, UNTOLD
        if model == DYNAMIC:
            if not by_chance:
                return reward, UNTOLD
            if (
                clicked
                and uniform(satisfied, np.uint64(position)) < world.satisfaction[view, slate[position]]
            ):
                return reward, UNTOLD
    return reward, n if model == SCROLL else UNTOLD


@kernel
def _worth(world, user, view, slate, n, covered):  # type: ignore[no-untyped-def]
    """The expected reward of the slate in a view, or of one user of a matrix."""
    model, chances = world.click_model, world.chances
    missed, total, reached = 1.0, 0.0, 1.0
    for position in range(n):
        if world.kind == MATRIX:
            chance = 1.0 if attracts(world, _ONE, user, view, slate, position, covered) else 0.0
        else:
            chance = attraction_at(world, view, slate, position, covered)
        if model == CASCADE:
            missed *= 1.0 - chance
        elif model == DEPENDENT:
            missed *= 1.0 - chance_at(chances, position) * chance
        elif model == POSITION:
            total += chance_at(chances, position) * chance
        else:
            total += reached * chance
            if model == COUNTED:
                reached *= 1.0 - chance_at(chances, position) * chance
            else:
                reached *= chance_at(chances, position)
            if model == DYNAMIC:
                reached *= 1.0 - world.satisfaction[view, slate[position]] * chance
    return 1.0 - missed if model in (CASCADE, DEPENDENT) else total


@kernel
def _share_of_users(world, slate, n, bits):  # type: ignore[no-untyped-def]
    """The share of users attracted by at least one item; `bits` is scratch."""
    for i in range(len(bits)):
        bits[i] = np.uint64(0)
    for position in range(n):
        row = world.bitmap_of[slate[position]]
        if row >= 0:
            words = world.bitmaps[row]
            for i in range(len(bits)):
                bits[i] |= words[i]
    hits = 0
    for i in range(len(bits)):
        hits += _popcount(bits[i])
    for position in range(n):
        item = slate[position]
        if world.bitmap_of[item] < 0:
            for i in range(world.list_start[item], world.list_start[item + 1]):
                user = np.int64(world.list_users[i])
                if not has_bit(bits, user):
                    bits[user >> 6] |= _ONE << np.uint64(user & 63)
                    hits += 1
    return hits / world.n_users


@shared_kernel
def expected_reward(world, view, slate, n, memo, bits):  # type: ignore[no-untyped-def]
    """The exact expected reward of the slate in this view; for a cascade the probability of a click."""
    covered = np.empty(len(world.interest))
    if world.kind != MATRIX:
        return _worth(world, 0, view, slate, n, covered)
    hashed = np.uint64(n)
    for position in range(n):
        hashed = mix(hashed, np.uint64(slate[position]))
    entry = np.int64(hashed % np.uint64(len(memo.reward)))
    remembered = memo.slates[entry]
    known = True
    for position in range(len(remembered)):
        item = slate[position] if position < n else -1
        if remembered[position] != item:
            known = False
            remembered[position] = item
    # An untouched entry is all -1, as is an empty slate, whose reward is 0 by its own rule.
    if n == 0:
        return 0.0
    if not known:
        if world.click_model == CASCADE:
            memo.reward[entry] = _share_of_users(world, slate, n, bits)
        else:
            total = 0.0
            for user in range(world.n_users):
                total += _worth(world, user, view, slate, n, covered)
            memo.reward[entry] = total / world.n_users
    return memo.reward[entry]


@shared_kernel
def click_chance(world, view, slate, n, memo, bits):  # type: ignore[no-untyped-def]
    """The probability that the slate gets at least one click in this view, whatever it is worth."""
    if world.click_model == CASCADE:
        return expected_reward(world, view, slate, n, memo, bits)
    covered = np.empty(len(world.interest))
    if world.kind != MATRIX:
        return 1.0 - _chance_of_none(world, 0, view, slate, n, covered)
    total = 0.0
    for user in range(world.n_users):
        total += 1.0 - _chance_of_none(world, user, view, slate, n, covered)
    return total / world.n_users


@kernel
def _chance_of_none(world, user, view, slate, n, covered):  # type: ignore[no-untyped-def]
    model, chances = world.click_model, world.chances
    left, none = 0.0, 1.0  # no click, and the user left; no click so far
    for position in range(n):
        if world.kind == MATRIX:
            chance = 1.0 if attracts(world, _ONE, user, view, slate, position, covered) else 0.0
        else:
            chance = attraction_at(world, view, slate, position, covered)
        if model == POSITION:
            chance *= chance_at(chances, position)
        none *= 1.0 - chance
        if model in (SCROLL, DYNAMIC):
            left += none * (1.0 - chance_at(chances, position))
            none *= chance_at(chances, position)
    return left + none
