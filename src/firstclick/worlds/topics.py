"""Worlds in which an item attracts by what it adds to the items above it: variety pays."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.catalog.features import check_features
from firstclick.click_models import ClickModel, make_click_model
from firstclick.errors import InvalidInput
from firstclick.kernels.attraction import TOPICS, WorldArrays
from firstclick.parameters import param
from firstclick.streams import stream
from firstclick.validation.float_array import float_array
from firstclick.worlds.base import World, WorldSpec
from firstclick.worlds.bernoulli import NEARLY_ONE, world_arrays
from firstclick.worlds.linear import positive_features


class TopicsWorld(World):
    """An item attracts by the topics it adds to the items above it, and by its own relevance.

    >>> from firstclick import make_world
    >>> type(make_world("topics:n_items=8").build(1)).__name__
    'TopicsWorld'

    Items together cover 1 - prod(1 - topics) of each topic. An item's attraction is interest'(what it adds) +
    relevance (Hiranandani et al. 2019; with relevance Li, Feng and de Rijke 2020). The features are the
    topics, then `more_features`.

    Args:
        topics: Items x topics, how far each item covers each topic, from 0 to 1.
        interest: The users' interest in each topic, at least 0.
        relevance: The relevance of each item, at least 0; 0 by default.
        more_features: More features, one row per item.
        clicks: A click model, or its description such as `"pbm/1/0.7/0.5"`.
    """

    def __init__(
        self,
        topics: ArrayLike,
        interest: ArrayLike,
        relevance: ArrayLike | None = None,
        *,
        more_features: ArrayLike | None = None,
        clicks: ClickModel | str = "cascade",
    ) -> None:
        self.topics = check_features(topics)
        self.click_model = make_click_model(clicks)
        self.interest = float_array("interest", interest)
        self.n_items = len(self.topics)
        own = np.zeros(self.n_items) if relevance is None else float_array("relevance", relevance)
        self.relevance = own
        if ((self.topics < 0) | (self.topics > 1)).any():
            raise InvalidInput("must lie in [0, 1]: how far an item covers each of them", "topics")
        if self.interest.shape != (self.topics.shape[1],) or not (self.interest >= 0).all():
            raise InvalidInput(
                f"must have a number of at least 0 for each of {self.topics.shape[1]} topics", "interest"
            )
        if own.shape != (self.n_items,) or not (own >= 0).all():
            raise InvalidInput(
                f"must have a number of at least 0 for each of {self.n_items} items", "relevance"
            )
        most = float((self.topics @ self.interest + own).max())
        if most > 1:
            raise InvalidInput(f"an item shown first would attract with {most:g}; attractions are at most 1")
        given = [] if more_features is None else [check_features(more_features, self.n_items)]
        self.features = np.concatenate([self.topics, *given], axis=1)

    def arrays(self) -> WorldArrays:
        return world_arrays(
            self.relevance[None], self.click_model, kind=TOPICS, topics=self.topics, interest=self.interest
        )

    def gains(self, slate: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float64]:
        """What the item at each position adds to each topic.

        Args:
            slate: Item numbers, best first.

        Returns:
            An array, positions x topics.
        """
        shown = self.topics[np.asarray(slate, np.int64)]
        missing = np.cumprod(1 - shown, axis=0)
        above = np.concatenate([np.ones((1, shown.shape[1])), missing[:-1]]) if len(shown) else missing
        return np.asarray(above * shown)

    def expected_reward(self, slate: Sequence[int] | NDArray[np.int64], view: int = 0) -> float:
        attractions = self.gains(slate) @ self.interest + self.relevance[np.asarray(slate, np.int64)]
        return float(self.click_model.reward(attractions))

    def optimal_slate(self, k: int, view: int = 0) -> NDArray[np.int64]:
        """The greedy slate: at each position the item that attracts most below those above. Ties go to the
        lower number. Finding the best slate is NP-hard.

        Args:
            k: The length of a slate.
            view: Not used: the world has one view.
        """
        if (np.diff(self.click_model.worth(k)) > 0).any():
            raise InvalidInput(
                f"topics with clicks={self.click_model.label}: a position must not be worth more than one "
                "above it, because the best slate is found from the top down"
            )
        slate: list[int] = []
        missing = np.ones_like(self.interest)
        for _ in range(k):
            attraction = self.topics @ (missing * self.interest) + self.relevance
            attraction[slate] = -1.0
            slate.append(int(np.argmax(attraction)))
            missing = missing * (1 - self.topics[slate[-1]])
        return np.array(slate, np.int64)


class Topics(WorldSpec):
    """Items that cover one topic well and others a little. Users are interested in several topics.

    With `relevance`, items have that many more features. Part of an item's attraction is linear in them; the
    topics make up the rest.
    """

    name = "topics"
    n_items: int = param(100, "number of items", at_least=1, at_most=10**9)
    topics: int = param(8, "number of topics: the first features", at_least=1, at_most=10**4)
    relevance: int = param(0, "number of features besides topics", at_least=0, at_most=10**4)
    best: float = param(0.5, "attraction of the most attractive item, shown first", above=0, at_most=1)

    def build(self, seed: int) -> TopicsWorld:
        draw = stream(seed, "world", self.name)
        covered = 0.1 * draw.random((self.n_items, self.topics))
        main = draw.integers(0, self.topics, self.n_items)
        covered[np.arange(self.n_items), main] = draw.uniform(0.4, 0.9, self.n_items)
        interest = draw.uniform(0.5, 1.0, self.topics)
        more = positive_features(draw, self.n_items, self.relevance) if self.relevance else None
        own = np.zeros(self.n_items) if more is None else more @ np.abs(draw.standard_normal(self.relevance))
        scale = NEARLY_ONE * self.best / (covered @ interest + own).max()
        return TopicsWorld(covered, scale * interest, scale * own, more_features=more, clicks=self.clicks)
