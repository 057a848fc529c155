"""A made-up feedback matrix with the habits of real ones, for demos and tests without a download."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from firstclick.streams import stream
from firstclick.validation.whole_number import whole_number

# Tuned together, for the sizes the function has as defaults, to these aims: density 2 to 5 %, most
# attractive item near 0.5, median below 0.02, and four well-mixed items that cover several percent more
# users than the four most popular ones, which mostly speak to the same people.
MOST_ATTRACTIVE = 0.5
HEAD = 0.03  # share of a group's items before its popularity falls as a power
FALL = 1.2  # that power
MAINSTREAM_SHARE = 0.4  # of the items; the mainstream is the largest group and has the most popular items
NICHES = (0.8, 0.6)  # attraction of the best item of the best and of the last niche, relative to the top
ACTIVITY = 0.2  # share of the variance of a user's interest that is the same for all items
TASTE = 0.25  # share that is the same for all items of a group

_BLOCK = 1 << 21


@dataclass(frozen=True, eq=False)
class SyntheticFeedback:
    """A made-up feedback matrix, with the taste group and name of each item.

    Attributes:
        matrix: Users x items, 0 or 1.
        item_groups: The number of each item's taste group.
        item_names: A name for each item.
    """

    matrix: sparse.csr_matrix
    item_groups: NDArray[np.int64]
    item_names: tuple[str, ...]


def synthetic_matrix(
    seed: int, n_users: int = 4000, n_items: int = 2000, n_groups: int = 8
) -> SyntheticFeedback:
    """Make up a feedback matrix that looks like real ones: long tail, active and idle users, taste groups.

    >>> made = synthetic_matrix(seed=1, n_users=50, n_items=20, n_groups=4)
    >>> made.matrix.shape, len(made.item_names)
    ((50, 20), 20)

    An item attracts a user if activity + taste for its group + chance exceeds the item's own threshold.
    Columns are shuffled. With fewer than a few hundred items, the most popular items are already the best
    slate.

    Args:
        seed: Decides everything.
        n_users: The number of users.
        n_items: The number of items.
        n_groups: The number of taste groups, at most 26.
    """
    n_users = whole_number("n_users", n_users, at_least=1)
    n_groups = whole_number("n_groups", n_groups, at_least=1, at_most=26, because=" (they are named A to Z)")
    n_items = whole_number("n_items", n_items, at_least=n_groups)

    rng = stream(seed, "synthetic", "items")
    letters = rng.permutation(n_groups)
    order = rng.permutation(n_items)
    sizes = _group_sizes(n_items, n_groups)
    groups = np.repeat(np.arange(n_groups), sizes)[order]
    attraction = _attraction(sizes, rng)[order]

    matrix = _attracted(seed, n_users, attraction, groups, n_groups)
    groups = letters[groups].astype(np.int64)
    width = max(4, len(str(n_items - 1)))
    names = tuple(f"item {item:0{width}} (group {chr(65 + group)})" for item, group in enumerate(groups))
    return SyntheticFeedback(matrix, groups, names)


def _group_sizes(n_items: int, n_groups: int) -> NDArray[np.int64]:
    mainstream = MAINSTREAM_SHARE if n_groups > 1 else 1.0
    niche = (1 - mainstream) / max(n_groups - 1, 1)
    ends = np.cumsum([mainstream] + [niche] * (n_groups - 1)) * (n_items - n_groups)
    sizes: NDArray[np.int64] = 1 + np.diff(np.rint(ends).astype(np.int64), prepend=0)
    return sizes


def _attraction(sizes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    best = MOST_ATTRACTIVE * np.array([1.0, *np.linspace(*NICHES, len(sizes) - 1)])
    parts = []
    for size, top in zip(sizes, best, strict=True):
        # A little disorder; never upwards, so that the top stays where it is meant to be.
        luck = np.exp(-0.1 * rng.exponential(size=size))
        luck[0] = 1.0
        parts.append(top * luck * (1 + np.arange(size) / size / HEAD) ** -FALL)
    return np.concatenate(parts)


def _attracted(
    seed: int, n_users: int, attraction: NDArray[np.float64], groups: NDArray[np.int64], n_groups: int
) -> sparse.csr_matrix:
    n_items = len(attraction)
    users = stream(seed, "synthetic", "users")
    activity = math.sqrt(ACTIVITY) * users.standard_normal((n_users, 1), dtype=np.float32)
    taste = users.standard_normal((n_users, n_groups), dtype=np.float32)
    if n_groups > 1:
        # A taste for one group is a distaste for the others: what a user likes in all is activity.
        taste = (taste - taste.mean(axis=1, keepdims=True)) * math.sqrt(n_groups / (n_groups - 1))
    interest = activity + math.sqrt(TASTE) * taste
    normal = NormalDist()
    bar = np.array([-normal.inv_cdf(share) for share in attraction.tolist()], dtype=np.float32)

    chance = stream(seed, "synthetic", "chance")
    step = max(1, _BLOCK // n_items)
    blocks = []
    for start in range(0, n_users, step):
        block = interest[start : start + step]
        noise = chance.standard_normal((len(block), n_items), dtype=np.float32)
        noise *= math.sqrt(1 - ACTIVITY - TASTE)
        noise += block[:, groups]
        blocks.append(sparse.csr_matrix(noise > bar, dtype=np.uint8))
    return sparse.vstack(blocks, format="csr")
