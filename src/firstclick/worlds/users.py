"""Worlds whose users differ, and in which something is known of each: types, and vectors."""

import numpy as np

from firstclick.parameters import param
from firstclick.worlds.linear import FeatureSpec
from firstclick.worlds.views import ViewsWorld, scaled_to


class Types(FeatureSpec):
    """Users of some types, each with a taste of its own: attraction is x'theta of the type.

    The context is the type, as 1 in one of `types` places and 0 elsewhere, or as its number, from 0.
    """

    name = "types"
    types: int = param(4, "number of types, equally frequent", at_least=1, at_most=10**5)
    best: float = param(0.5, "attraction of the most attractive item", above=0, at_most=1)
    told: str = param("places", "the type as a 1 in its place, or as its number", words=("places", "number"))

    def build(self, seed: int) -> ViewsWorld:
        draw, features = self._drawn(seed)
        # A few features matter to each type, and hardly ever those of another.
        thetas = draw.standard_gamma(0.2, (self.types, self.n_features)) + 1e-3
        return ViewsWorld(
            scaled_to(self.best, thetas @ features.T),
            contexts=np.eye(self.types) if self.told == "places" else np.arange(self.types)[:, None],
            features=features,
            clicks=self.clicks,
        )


class Vectors(FeatureSpec):
    """Users with vectors: attraction is u'B x, for a matrix B that nobody knows. The context is u."""

    name = "vectors"
    n_context: int = param(3, "length of a user's vector", at_least=1, at_most=10**4)
    users: int = param(200, "number of users, equally frequent", at_least=1, at_most=10**6)
    best: float = param(
        0.5, "attraction of the most attractive item, to whom it attracts most", above=0, at_most=1
    )

    def build(self, seed: int) -> ViewsWorld:
        draw, features = self._drawn(seed)
        users = draw.standard_gamma(0.3, (self.users, self.n_context)) + 1e-3
        users /= np.sqrt((users**2).sum(axis=1, keepdims=True))
        taste = draw.standard_gamma(0.2, (self.n_context, self.n_features)) + 1e-3
        return ViewsWorld(
            scaled_to(self.best, users @ taste @ features.T),
            contexts=users,
            features=features,
            clicks=self.clicks,
        )
