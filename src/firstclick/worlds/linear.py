"""Worlds in which the paper's assumption is true: attraction is linear in an item's features."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.catalog.features import check_features, longest_norm
from firstclick.click_models import ClickModel
from firstclick.errors import InvalidInput
from firstclick.parameters import param
from firstclick.streams import stream
from firstclick.validation.float_array import float_array
from firstclick.worlds.base import WorldSpec
from firstclick.worlds.bernoulli import BernoulliWorld

# Rows scaled to norm 1 may exceed it by rounding.
_ROUNDING = 1e-12


class LinearWorld(BernoulliWorld):
    """Item e attracts with probability x_e'theta; norms of features are at most 1, as in Theorem 1."""

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


class Linear(WorldSpec):
    """A random linear world.

    Features and theta have no negative coordinate and features have norm at most 1, so every
    attraction lies between 0 and `best` without clipping.
    """

    name = "linear"
    n_items: int = param(100, "number of items", at_least=1, at_most=10**9)
    n_features: int = param(5, "number of features", at_least=1, at_most=10**6)
    best: float = param(0.5, "attraction of the most attractive item", above=0, at_most=1)

    def build(self, seed: int) -> LinearWorld:
        draw = stream(seed, "world", self.name)
        features = positive_features(draw, self.n_items, self.n_features)
        theta = np.abs(draw.standard_normal(self.n_features))
        # A hair below, so that rounding takes no attraction above `best`.
        theta *= (1 - 2.0**-48) * self.best / (features @ theta).max()
        return LinearWorld(features, theta, self.clicks)
