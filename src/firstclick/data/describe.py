"""What data looks like in numbers: how much, how dense, what attracts most."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from firstclick.data.interactions import Interactions
from firstclick.data.matrix import feedback_matrix, most_attractive
from firstclick.worlds.matrix import MatrixWorld

SLATE = 4
MOST_ATTRACTIVE = 10
QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)


@dataclass(frozen=True)
class ItemShare:
    """An item and the share of users it attracts."""

    name: str
    attraction: float


@dataclass(frozen=True)
class GroupSize:
    """A group of items; its density is the share of its user-item pairs that attract."""

    name: str
    items: int
    density: float


@dataclass(frozen=True)
class Description:
    """All shares are of all users, also of those whom nothing attracts: `idle_users`, a share too.

    `best_slate` is the greedy one, `quantiles` are those of the items' attractions, `groups` come
    largest first.
    """

    users: int
    items: int
    interactions: int
    attracted_pairs: int
    density: float
    idle_users: float
    most_attractive: tuple[ItemShare, ...]
    best_slate: tuple[ItemShare, ...]
    best_click_probability: float
    popular_click_probability: float
    quantiles: Mapping[float, float]
    groups: tuple[GroupSize, ...]
    facts: Mapping[str, int]


def describe(interactions: Interactions) -> Description:
    """The data in numbers; the slate is of SLATE items, or of all if there are fewer."""
    world = MatrixWorld(feedback_matrix(interactions))
    pairs = world.matrix.nnz
    attraction = np.bincount(world.matrix.indices, minlength=world.n_items) / world.n_users
    k = min(SLATE, world.n_items)
    best = world.optimal_slate(k)
    popular = most_attractive(world.matrix, min(MOST_ATTRACTIVE, world.n_items))

    def shares(items: NDArray[np.int64]) -> tuple[ItemShare, ...]:
        return tuple(ItemShare(interactions.names[item], float(attraction[item])) for item in items)

    return Description(
        users=world.n_users,
        items=world.n_items,
        interactions=len(interactions.items),
        attracted_pairs=pairs,
        density=pairs / (world.n_users * world.n_items),
        idle_users=float(np.mean(np.diff(world.matrix.indptr) == 0)),
        most_attractive=shares(popular),
        best_slate=shares(best),
        best_click_probability=world.expected_reward(best),
        popular_click_probability=world.expected_reward(popular[:k]),
        quantiles={share: float(np.quantile(attraction, share)) for share in QUANTILES},
        groups=tuple(
            GroupSize(name, len(items), float(attraction[items].mean()))
            for name, items in interactions.groups().items()
        ),
        facts=dict(interactions.facts),
    )
