"""Worlds in which features explain a part of what attracts, as they do in real data."""

import numpy as np

from firstclick.parameters import param
from firstclick.streams import stream
from firstclick.worlds.base import WorldSpec
from firstclick.worlds.bernoulli import BernoulliWorld
from firstclick.worlds.linear import positive_features


class Partly(WorldSpec):
    """Attraction is in part linear in the features, and in part an item's own.

    The linear part is drawn as in `linear`. The own part of an item is the linear part of another one: it
    is as large, and its features do not tell of it. With own = 0.5 features explain half of the variance.
    """

    name = "partly"
    n_items: int = param(100, "number of items", at_least=1, at_most=10**9)
    n_features: int = param(5, "number of features", at_least=1, at_most=10**6)
    best: float = param(0.5, "attraction of the most attractive item", above=0, at_most=1)
    own: float = param(0.5, "share of attraction that is an item's own", at_least=0, at_most=1)

    def build(self, seed: int) -> BernoulliWorld:
        draw = stream(seed, "world", self.name)
        features = positive_features(draw, self.n_items, self.n_features)
        linear = features @ np.abs(draw.standard_normal(self.n_features))
        attractions = (1 - self.own) * linear + self.own * draw.permutation(linear)
        # A hair below, so that rounding takes no attraction above `best`.
        attractions *= (1 - 2.0**-48) * self.best / attractions.max()
        return BernoulliWorld(attractions, self.clicks, features=features)
