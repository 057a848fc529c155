"""How far the rate of a cell with few looks is drawn to its segment's mean: empirical Bayes.

A cell's rate gets a Beta prior with the mean of its segment, worth `strength` looks. The strength comes from
the log: by the method of moments (Kleinman 1973, with his weights) it is what makes cells differ as much as
they do beyond chance. A segment's mean is drawn to that of the log in the same way, with a strength of its
own: segments may differ where their items do not.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Looks that a prior is worth: at least one, and at most these, where cells differ no more than by chance.
LEAST_STRENGTH, MOST_STRENGTH = 1.0, 100_000.0
# Weights depend on the strength, and the strength on weights: so many times in turn.
WEIGHINGS = 5


class RatePrior(NamedTuple):
    """The mean of each segment, and how many looks it is worth."""

    means: NDArray[np.float64]
    strength: float

    def rates(
        self, hits: NDArray[np.float64], looks: NDArray[np.float64], segments: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The posterior mean of each cell."""
        return (hits + self.strength * self.means[segments]) / (looks + self.strength)

    def log_density(self, rates: NDArray[np.float64], segments: NDArray[np.int64]) -> float:
        """What EM adds to the log-likelihood, so that `rates` is its exact M-step."""
        means = self.means[segments]
        return float(self.strength * (means * np.log(rates) + (1.0 - means) * np.log1p(-rates)).sum())


def rate_prior(
    hits: NDArray[np.float64], looks: NDArray[np.float64], segments: NDArray[np.int64], n_segments: int
) -> RatePrior:
    """The prior of the rates of cells in these segments."""
    strength = _strength(hits, looks, segments, n_segments)
    # Half a hit and half a miss: no rate is 0 or 1, whatever was seen.
    mean = (hits.sum() + 0.5) / (looks.sum() + 1.0)
    segment_hits = np.bincount(segments, hits, n_segments).astype(np.float64)
    segment_looks = np.bincount(segments, looks, n_segments).astype(np.float64)
    weight = _strength(segment_hits, segment_looks, np.zeros(n_segments, np.int64), 1)
    return RatePrior((segment_hits + weight * mean) / (segment_looks + weight), strength)


def _strength(
    hits: NDArray[np.float64], looks: NDArray[np.float64], segments: NDArray[np.int64], n_segments: int
) -> float:
    seen = looks > 0
    hits, looks, segments = hits[seen], looks[seen], segments[seen]
    rates, correlation = hits / looks, 1.0
    for _ in range(WEIGHINGS):
        # Looks at one cell are alike: the more, the less each one tells. With plain looks as weights the few
        # items of a fixed list would decide alone how much all items differ.
        weights = looks / (1.0 + np.maximum(looks - 1.0, 0.0) * correlation)
        totals = np.bincount(segments, weights, n_segments)
        mean = (np.bincount(segments, weights * rates, n_segments) / np.maximum(totals, 1e-300))[segments]
        noise = mean * (1.0 - mean)
        free = weights * (1.0 - weights / totals[segments])
        by_chance = (noise * free / looks).sum()
        room = (noise * free).sum() - by_chance
        if room <= 0:
            return LEAST_STRENGTH
        spread = (weights * (rates - mean) ** 2).sum() - by_chance
        correlation = min(max(float(spread / room), 1.0 / (MOST_STRENGTH + 1.0)), 1.0)
    return max(LEAST_STRENGTH, 1.0 / correlation - 1.0)
