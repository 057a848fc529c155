"""Worlds in which attraction is linear in an item's features: all of it, as the paper assumes, or a part."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.catalog.features import check_features, longest_norm
from firstclick.click_models import ClickModel
from firstclick.errors import InvalidInput
from firstclick.parameters import param
from firstclick.streams import stream
from firstclick.validation.float_array import float_array
from firstclick.worlds.base import WorldSpec
from firstclick.worlds.bernoulli import NEARLY_ONE, BernoulliWorld

# Rows scaled to norm 1 may exceed it by rounding.
_ROUNDING = 1e-12


class LinearWorld(BernoulliWorld):
    """Item e attracts with probability x_e'theta.

    >>> round(LinearWorld([[0.6, 0.0], [0.0, 0.5]], theta=[0.5, 0.4]).expected_reward([0, 1]), 3)
    0.44

    Args:
        features: One row per item, of norm at most 1 as in Theorem 1.
        theta: One number per feature. All x_e'theta must lie in [0, 1].
        clicks: A click model, or its description such as `"pbm/1/0.7/0.5"`.
    """

    def __init__(self, features: ArrayLike, theta: ArrayLike, clicks: ClickModel | str = "cascade") -> None:
        rows = check_features(features)
        self.theta = float_array("theta", theta)
        if self.theta.shape != (rows.shape[1],):
            raise InvalidInput(
                f"must have one number for each of {rows.shape[1]} features, got {self.theta.shape}", "theta"
            )
        longest = longest_norm(rows)
        if longest > 1 + _ROUNDING:
            raise InvalidInput(
                f"a linear world needs features of norm at most 1, got {longest:g}; "
                "divide all features by the largest norm"
            )
        super().__init__(rows @ self.theta, clicks, features=rows)


def positive_features(draw: np.random.Generator, n_items: int, n_features: int) -> NDArray[np.float64]:
    """Random features of norms from 0.2 to 1, no coordinate negative."""
    features = np.abs(draw.standard_normal((n_items, n_features)))
    features /= np.sqrt((features**2).sum(axis=1, keepdims=True))
    features *= draw.uniform(0.2, 1.0, (n_items, 1))
    return features


class FeatureSpec(WorldSpec):
    """A world of items with random features."""

    n_items: int = param(100, "number of items", at_least=1, at_most=10**9)
    n_features: int = param(5, "number of features", at_least=1, at_most=10**6)

    def _drawn(self, seed: int) -> tuple[np.random.Generator, NDArray[np.float64]]:
        """The stream of the world, and positive features drawn from it."""
        draw = stream(seed, "world", self.name)
        return draw, positive_features(draw, self.n_items, self.n_features)


class Linear(FeatureSpec):
    """A random linear world: attraction is x'theta.

    Features and theta have no negative coordinate, and features have norm at most 1. Every attraction lies
    between 0 and `best` without clipping.
    """

    name = "linear"
    best: float = param(0.5, "attraction of the most attractive item", above=0, at_most=1)

    def build(self, seed: int) -> LinearWorld:
        draw, features = self._drawn(seed)
        theta = np.abs(draw.standard_normal(self.n_features))
        theta *= NEARLY_ONE * self.best / (features @ theta).max()
        return LinearWorld(features, theta, self.clicks)


class Partly(FeatureSpec):
    """Attraction is partly linear in the features, and partly the item's own.

    The linear part is drawn as in `linear`. The own part of an item is the linear part of another item:
    equally large, and unrelated to its features. With own = 0.5 features explain half of the variance.
    """

    name = "partly"
    best: float = param(0.5, "attraction of the most attractive item", above=0, at_most=1)
    own: float = param(0.5, "share of attraction that is an item's own", at_least=0, at_most=1)

    def build(self, seed: int) -> BernoulliWorld:
        draw, features = self._drawn(seed)
        linear = features @ np.abs(draw.standard_normal(self.n_features))
        attractions = (1 - self.own) * linear + self.own * draw.permutation(linear)
        attractions *= NEARLY_ONE * self.best / attractions.max()
        return BernoulliWorld(attractions, self.clicks, features=features)
