"""Worlds whose tastes move: from one day to the next, or little by little."""

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from firstclick.parameters import param
from firstclick.worlds.linear import FeatureSpec
from firstclick.worlds.views import ViewsWorld, scaled_to


class Moving(FeatureSpec):
    """Attraction is x'theta, and there are several thetas, one after the other."""

    period: int = param(5000, "steps from one theta to the next", at_least=1)
    thetas: int = param(4, "how many there are", at_least=1, at_most=10**5)
    best: float = param(0.5, "attraction of the most attractive item", above=0, at_most=1)

    def build(self, seed: int) -> ViewsWorld:
        draw, features = self._drawn(seed)
        # Points far from one another: in each a few features matter.
        points = draw.standard_gamma(0.2, (self.thetas, self.n_features)) + 1e-3
        thetas, period = self._path(points / np.sqrt((points**2).sum(axis=1, keepdims=True)))
        attractions = scaled_to(self.best, thetas @ features.T)
        return ViewsWorld(attractions, period=period, features=features, clicks=self.clicks)

    @abstractmethod
    def _path(self, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
        """The thetas one after the other, and how many steps each lasts."""


class Switch(Moving):
    """Attraction is x'theta, and theta changes every `period` steps. After `thetas` of them the first comes
    again.
    """

    name = "switch"

    def _path(self, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
        return points, self.period


class Drift(Moving):
    """Attraction is x'theta, and theta moves in a straight line from one point to the next, and finally back
    to the first, in steps of period // 50 slates. A period that this does not divide is rounded up.
    """

    name = "drift"

    def _path(self, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
        # As many views as keep each step small, whatever the period.
        small = max(self.period // 50, 1)
        share = (np.arange(0, self.period, small) / self.period)[:, None]
        ends = np.roll(points, -1, axis=0)
        lines = [(1 - share) * start + share * end for start, end in zip(points, ends, strict=True)]
        return np.concatenate(lines), small
