"""Worlds in which attraction is a logistic function of the features: bounded, and not linear."""

import numpy as np
from numpy.typing import NDArray

from firstclick.click_models import ClickModel
from firstclick.parameters import param
from firstclick.streams import stream
from firstclick.worlds.bernoulli import BernoulliWorld
from firstclick.worlds.linear import FeatureSpec


class LogisticWorld(BernoulliWorld):
    """Item e attracts with probability 1 / (1 + exp(-x_e'theta)).

    >>> import numpy as np
    >>> LogisticWorld(np.array([[0.0], [1.0]]), np.array([0.0])).expected_reward([0])
    0.5

    Args:
        features: One row per item.
        theta: One number per feature.
        clicks: A click model, or its description such as `"pbm/1/0.7/0.5"`.
    """

    def __init__(
        self, features: NDArray[np.float64], theta: NDArray[np.float64], clicks: ClickModel | str = "cascade"
    ) -> None:
        super().__init__(1 / (1 + np.exp(-(features @ theta))), clicks, features=features)
        self.theta = theta


class Logistic(FeatureSpec):
    """Attraction is a logistic function of x'theta. The first feature is a constant 1.

    Most items hardly attract. Theta has length `spread`, and the constant is chosen so that the most
    attractive item attracts with probability `best`.
    """

    name = "logistic"
    n_features: int = param(6, "number of features, the constant included", at_least=2, at_most=10**6)
    best: float = param(0.5, "attraction of the most attractive item", above=0, below=1)
    spread: float = param(4.0, "how far apart items are, before the logistic function", above=0, at_most=100)

    def build(self, seed: int) -> LogisticWorld:
        draw = stream(seed, "world", self.name)
        directions = draw.standard_normal((self.n_items, self.n_features - 1))
        features = np.concatenate(
            [np.ones((self.n_items, 1)), directions / np.sqrt((directions**2).sum(axis=1, keepdims=True))],
            axis=1,
        )
        theta = np.concatenate([[0.0], draw.standard_normal(self.n_features - 1)])
        theta *= self.spread / np.sqrt((theta**2).sum())
        theta[0] = np.log(self.best / (1 - self.best)) - (features @ theta).max()
        return LogisticWorld(features, theta, self.clicks)
