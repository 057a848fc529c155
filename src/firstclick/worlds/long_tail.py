"""Large catalogs as real ones look: a few popular items, a long tail, and features that fade."""

import numpy as np
from numpy.typing import NDArray

from firstclick.click_models import ClickModel
from firstclick.parameters import param
from firstclick.streams import stream
from firstclick.worlds.base import WorldSpec
from firstclick.worlds.bernoulli import NEARLY_ONE, BernoulliWorld


class LongTailWorld(BernoulliWorld):
    """Item e attracts with probability x_e'theta, or never if that is negative.

    >>> import numpy as np
    >>> LongTailWorld(np.array([[-1.0], [0.25]]), np.array([1.0])).expected_reward([0, 1])
    0.25

    Args:
        features: One row per item. The array is not copied.
        theta: One number per feature.
        clicks: A click model, or its description such as `"pbm/1/0.7/0.5"`.
    """

    features: NDArray[np.float64]

    def __init__(
        self, features: NDArray[np.float64], theta: NDArray[np.float64], clicks: ClickModel | str = "cascade"
    ) -> None:
        super().__init__(np.maximum(features @ theta, 0.0), clicks)
        self.theta = theta
        self.features = features  # Not copied: those of a million items are half a gigabyte.


class LongTail(WorldSpec):
    """A large catalog with a long tail, as real ones have.

    Directions are random. Each feature is `fading` times as large as the one before it, and the first is not
    negative. The r-th most popular item has features of norm r^-tail. Items are in random order. Attraction
    is x'theta, or 0 if that is negative.
    """

    name = "long-tail"
    n_items: int = param(10_000, "number of items", at_least=1, at_most=10**9)
    n_features: int = param(32, "number of features", at_least=1, at_most=10**6)
    best: float = param(0.5, "attraction of the most attractive item", above=0, at_most=1)
    fading: float = param(0.8, "size of a feature over that of the one before it", above=0, at_most=1)
    tail: float = param(0.45, "how fast norms fall with rank", at_least=0, at_most=10)

    def build(self, seed: int) -> LongTailWorld:
        draw = stream(seed, "world", self.name)
        features = draw.standard_normal((self.n_items, self.n_features))
        # In place, because a million items are half a gigabyte.
        features *= self.fading ** np.arange(self.n_features)
        np.abs(features[:, 0], out=features[:, 0])
        norms = np.sqrt(np.einsum("ij,ij->i", features, features))
        ranks = 1.0 + draw.permutation(self.n_items)
        features *= (ranks**-self.tail / norms)[:, None]
        theta = draw.standard_normal(self.n_features)
        largest = float((features @ theta).max())
        if largest <= 0:  # few items, all of them on the far side
            theta, largest = -theta, float((features @ -theta).max())
        theta = theta * (NEARLY_ONE * self.best / largest)
        return LongTailWorld(features, theta, self.clicks)
