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


class BernoulliWorld(World):
    """Item e attracts a user with probability attractions[e], whatever else is shown, and whatever its
    features say."""

    def __init__(
        self,
        attractions: ArrayLike,
        clicks: ClickModel | str = "cascade",
        *,
        features: ArrayLike | None = None,
    ) -> None:
        self.attractions = float_array("attractions", attractions, largest=1)
        self.click_model = make_click_model(clicks)
        if self.attractions.ndim != 1 or len(self.attractions) == 0:
            raise InvalidInput("must be a list of at least one probability", "attractions")
        wrong = ~((self.attractions >= 0) & (self.attractions <= 1))
        if wrong.any():
            item = int(np.argmax(wrong))
            raise InvalidInput(
                f"must lie in [0, 1], got {self.attractions[item]:g} for item {item}", "attractions"
            )
        self.n_items = len(self.attractions)
        self._features = None if features is None else check_features(features, self.n_items)

    @property
    def features(self) -> NDArray[np.float64] | None:
        return self._features

    def arrays(self) -> WorldArrays:
        return world_arrays(self.attractions[None], self.click_model)

    def optimal_slate(self, k: int, view: int = 0) -> NDArray[np.int64]:
        return best_of(self.attractions, k, self.click_model)

    def expected_reward(self, slate: Sequence[int] | NDArray[np.int64], view: int = 0) -> float:
        return float(self.click_model.reward(self.attractions[np.asarray(slate, np.int64)]))


def best_of(attractions: NDArray[np.float64], k: int, clicks: ClickModel) -> NDArray[np.int64]:
    """The k most attractive items, the best where the click model gives most for it: optimal because items
    attract independently."""
    best = np.argsort(-attractions, kind="stable")[:k]
    slate = np.empty_like(best)
    slate[np.argsort(-clicks.worth(len(best)), kind="stable")] = best
    return slate


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
    )
    return plain._replace(**others)


class Bernoulli(WorldSpec):
    """Items with given attractions."""

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
