"""Worlds as kernels see them: which items attract the user of a step. `kernels.clicks` says what is clicked.

There are three kinds. In one, items attract independently, each with its own probability. In the second, an
item attracts by what its topics add to those of the items above it. In the third, a user is a row of a 0/1
matrix, kept by column: a bitmap of its users for an item that attracts many, a sorted list for the others,
so that memory stays proportional to the ones.

Attractions may differ between users, or change with time: then there is one row of them for each *view*.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.compiling import kernel, shared_kernel
from firstclick.kernels.hashing import uniform, user_by_share, user_of

INDEPENDENT, MATRIX, TOPICS = range(3)

# What decides which view a step has.
ALONE, BY_USER, BY_TIME = range(3)

# A bitmap costs n_users / 8 bytes and a list 4 bytes a user. With this share or more a bitmap is
# at most four times as large as the list it replaces, and answers in one look.
BITMAP_SHARE = 1 / 128

_ONE = np.uint64(1)


class WorldArrays(NamedTuple):
    """One type for all worlds, so that a policy is compiled once and not once for each world."""

    kind: int
    attraction: NDArray[np.float64]  # views x items; with topics what an item attracts by itself
    n_users: int
    bitmap_of: NDArray[np.int64]  # row of `bitmaps` of each item, or -1
    bitmaps: NDArray[np.uint64]
    list_start: NDArray[np.int64]
    list_users: NDArray[np.int32]
    view_by: int
    view_steps: int  # how long a view lasts, by time
    contexts: NDArray[np.float64]  # users x what is known of them
    topics: NDArray[np.float64]  # items x topics
    interest: NDArray[np.float64]  # by topic
    click_model: int
    chances: NDArray[np.float64]  # of the click model, by position; the last holds for all further
    satisfaction: NDArray[
        np.float64
    ]  # views x items: leaving after a click; empty where no user is satisfied
    upto: NDArray[np.float64]  # the shares of the users up to and with each one; empty: all are as likely
    hidden: NDArray[np.uint8]  # views x items: 1 for what cannot be shown; empty: everything can


@kernel
def has_bit(words, user):  # type: ignore[no-untyped-def]
    return (words[user >> 6] >> np.uint64(user & 63)) & _ONE != np.uint64(0)


@kernel
def user_in(world, key):  # type: ignore[no-untyped-def]
    """The user of the step with this key."""
    if len(world.upto) == 0:
        return user_of(key, world.n_users)
    return user_by_share(key, world.upto)


@kernel
def view_of(world, user, step):  # type: ignore[no-untyped-def]
    """The row of attractions that holds for this user in this step."""
    if world.view_by == BY_USER:
        return user
    if world.view_by == BY_TIME:
        return (step // world.view_steps) % len(world.attraction)
    return 0


@kernel
def attraction_at(world, view, slate, position, covered):  # type: ignore[no-untyped-def]
    """The probability that the item at this position attracts; not for a matrix.

    `covered` holds how far the items above cover each topic; it is brought up to date, so that positions are
    asked for in order, from 0.
    """
    item = slate[position]
    chance = world.attraction[view, item]
    if world.kind == TOPICS:
        interest, topics = world.interest, world.topics[item]
        for i in range(len(interest)):
            if position == 0:
                covered[i] = 0.0
            gain = (1.0 - covered[i]) * topics[i]
            chance += interest[i] * gain
            covered[i] += gain
    return chance


@shared_kernel
def attracts(world, key, user, view, slate, position, covered):  # type: ignore[no-untyped-def]
    """Whether the item at this position attracts the user of the step with this key."""
    item = slate[position]
    if world.kind != MATRIX:
        return uniform(key, np.uint64(item)) < attraction_at(world, view, slate, position, covered)
    row = world.bitmap_of[item]
    if row >= 0:
        return has_bit(world.bitmaps[row], user)
    low, high = world.list_start[item], world.list_start[item + 1]
    while low < high:
        middle = (low + high) >> 1
        if world.list_users[middle] < user:
            low = middle + 1
        else:
            high = middle
    return low < world.list_start[item + 1] and world.list_users[low] == user
