"""Worlds whose tastes move: from one day to the next, or little by little."""

import numpy as np
from numpy.typing import NDArray

from firstclick.parameters import param
from firstclick.streams import stream
from firstclick.worlds.base import WorldSpec
from firstclick.worlds.linear import positive_features
from firstclick.worlds.views import ViewsWorld, scaled_to


class Moving(WorldSpec):
    """Attraction is x'theta, and there are several thetas, one after the other."""

    n_items: int = param(100, "number of items", at_least=1, at_most=10**9)
    n_features: int = param(5, "number of features", at_least=1, at_most=10**6)
    period: int = param(5000, "steps from one theta to the next", at_least=1)
    thetas: int = param(4, "how many there are", at_least=1, at_most=10**5)
    best: float = param(0.5, "attraction of the most attractive item", above=0, at_most=1)


class Switch(Moving):
    """Attraction is x'theta, and every `period` steps there is another theta; after `thetas` of them the
    first comes again."""

    name = "switch"

    def build(self, seed: int) -> ViewsWorld:
        draw = stream(seed, "world", self.name)
        features = positive_features(draw, self.n_items, self.n_features)
        thetas = _thetas(draw, self.thetas, self.n_features)
        return ViewsWorld(
            scaled_to(self.best, thetas @ features.T),
            period=self.period,
            features=features,
            clicks=self.clicks,
        )


class Drift(Moving):
    """Attraction is x'theta, and theta wanders on a straight line from one point to the next and at last back
    to the first, in small steps of period // 50 slates; a period that they do not divide is rounded up."""

    name = "drift"

    def build(self, seed: int) -> ViewsWorld:
        draw = stream(seed, "world", self.name)
        features = positive_features(draw, self.n_items, self.n_features)
        points = _thetas(draw, self.thetas, self.n_features)
        # As many views as keep each step small, whatever the period.
        small = max(self.period // 50, 1)
        share = (np.arange(0, self.period, small) / self.period)[:, None]
        wandering = [
            (1 - share) * points[i] + share * points[(i + 1) % self.thetas] for i in range(self.thetas)
        ]
        return ViewsWorld(
            scaled_to(self.best, np.concatenate(wandering) @ features.T),
            period=small,
            features=features,
            clicks=self.clicks,
        )


def _thetas(draw: np.random.Generator, n: int, n_features: int) -> NDArray[np.float64]:
    """Points far from one another: in each a few features matter."""
    thetas = draw.standard_gamma(0.2, (n, n_features)) + 1e-3
    return np.asarray(thetas / np.sqrt((thetas**2).sum(axis=1, keepdims=True)))
