"""Worlds in which items attract independently, each with its own probability."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.catalog.features import check_features
from firstclick.click_models import ClickModel, make_click_model
from firstclick.errors import InvalidInput
from firstclick.kernels.attraction import ALONE, INDEPENDENT, WorldArrays
from firstclick.parameters import param
from firstclick.validation.float_array import float_array
from firstclick.worlds.base import World, WorldSpec

# A hair below 1, so that rounding takes no attraction above the `best` that a world is scaled to.
NEARLY_ONE = 1 - 2.0**-48


class IndependentWorld(World):
    """Items attract independently, item e with probability attractions[view, e], or attractions[e] in the
    only view."""

    def __init__(
        self, attractions: ArrayLike, clicks: ClickModel | str, features: ArrayLike | None, *, by_view: bool
    ) -> None:
        self.attractions = float_array("attractions", attractions, largest=1)
        self.click_model = make_click_model(clicks)
        if self.attractions.ndim != 1 + by_view or 0 in self.attractions.shape:
            table, row = "table, views x items, with at least one of each", "list of at least one probability"
            raise InvalidInput(f"must be a {table if by_view else row}", "attractions")
        wrong = ~((self.attractions >= 0) & (self.attractions <= 1))
        if wrong.any():
            *view, item = (int(place) for place in np.argwhere(wrong)[0])
            where = f"item {item} in view {view[0]}" if by_view else f"item {item}"
            raise InvalidInput(
                f"must lie in [0, 1], got {self.attractions[wrong][0]:g} for {where}", "attractions"
            )
        self.n_views, self.n_items = np.atleast_2d(self.attractions).shape
        self.features = None if features is None else check_features(features, self.n_items)

    def optimal_slate(self, k: int, view: int = 0) -> NDArray[np.int64]:
        """The k most attractive items, the best where the click model gives most for it: optimal because
        items attract independently."""
        best = np.argsort(-np.atleast_2d(self.attractions)[view], kind="stable")[:k]
        slate = np.empty_like(best)
        slate[np.argsort(-self.click_model.worth(len(best)), kind="stable")] = best
        return slate

    def expected_reward(self, slate: Sequence[int] | NDArray[np.int64], view: int = 0) -> float:
        shown = np.atleast_2d(self.attractions)[view, np.asarray(slate, np.int64)]
        return float(self.click_model.reward(shown))


class BernoulliWorld(IndependentWorld):
    """Each item attracts with a fixed probability, independently of the others.

    >>> round(BernoulliWorld([0.5, 0.2, 0.1]).expected_reward([0, 1]), 3)
    0.6

    Args:
        attractions: The probability of each item, from 0 to 1.
        clicks: A click model, or its description such as `"pbm/1/0.7/0.5"`.
        features: One row per item, for policies. Clicks do not depend on them.
    """

    def __init__(
        self,
        attractions: ArrayLike,
        clicks: ClickModel | str = "cascade",
        *,
        features: ArrayLike | None = None,
    ) -> None:
        super().__init__(attractions, clicks, features, by_view=False)

    def arrays(self) -> WorldArrays:
        return world_arrays(self.attractions[None], self.click_model)


def world_arrays(attraction: NDArray[np.float64], clicks: ClickModel, **others: Any) -> WorldArrays:
    """A world of independent items with these attractions, views x items, or what `others` make of it."""
    plain = WorldArrays(
        kind=INDEPENDENT,
        attraction=attraction,
        n_users=1,
        bitmap_of=np.empty(0, np.int64),
        bitmaps=np.empty((0, 0), np.uint64),
        list_start=np.empty(0, np.int64),
        list_users=np.empty(0, np.int32),
        view_by=ALONE,
        view_steps=1,
        contexts=np.empty((1, 0)),
        topics=np.empty((0, 0)),
        interest=np.empty(0),
        click_model=clicks.kind,
        chances=np.array(clicks.chances),
        satisfaction=np.empty((0, 0)),
        upto=np.empty(0),
        hidden=np.empty((0, 0), np.uint8),
    )
    return plain._replace(**others)


class Bernoulli(WorldSpec):
    """Items with fixed attractions."""

    name = "bernoulli"
    attractions: tuple[float, ...] = param(
        (0.5, 0.4, 0.3, 0.2, 0.1), "attractions separated by /", at_least=0, at_most=1
    )

    def build(self, seed: int) -> BernoulliWorld:
        return BernoulliWorld(self.attractions, self.clicks)


class BLB(WorldSpec):
    """B_LB(L, K, p, gap) of Kveton et al. 2015: k items attract with p, all others with p - gap."""

    name = "blb"
    n_items: int = param(16, "number of items", at_least=1, at_most=10**9)
    k: int = param(2, "number of attractive items", at_least=1)
    p: float = param(0.2, "attraction of the attractive items", at_least=0, at_most=1)
    gap: float = param(0.15, "how much less the other items attract", at_least=0, at_most=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k > self.n_items:
            raise InvalidInput(
                f"{self.name}: k must be at most n_items, got k={self.k}, n_items={self.n_items}"
            )
        if self.gap > self.p:
            raise InvalidInput(f"{self.name}: gap must be at most p, got gap={self.gap:g}, p={self.p:g}")

    def build(self, seed: int) -> BernoulliWorld:
        attractions = np.full(self.n_items, self.p - self.gap)
        attractions[: self.k] = self.p
        return BernoulliWorld(attractions, self.clicks)
