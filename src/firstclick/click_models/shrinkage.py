"""How far the rate of a cell with few looks is drawn to its segment's mean: empirical Bayes.

A cell's rate gets a Beta prior with the mean of its segment, worth `strength` looks. The strength comes from
the log: by the method of moments (Kleinman 1973, with his weights) it is what makes cells differ as much as
they do beyond chance. A segment's mean is drawn to that of the log in the same way, with a strength of its
own: segments may differ where their items do not.

A bootstrap refit must not estimate the strength anew: resampling adds chance a second time, the method of
moments takes it for a difference between cells, and nothing is drawn to the mean any more. `RedrawnPriors`
starts from the strength of the whole log.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from firstclick.streams import stream

# Looks that a prior is worth: at least one, and at most these, where cells differ no more than by chance.
LEAST_STRENGTH, MOST_STRENGTH = 1.0, 100_000.0
# Weights depend on the strength, and the strength on weights: so many times in turn.
WEIGHINGS = 5
# A drawn mean keeps so far from 0 and 1: the logarithm of a rate is finite.
_INSIDE = 1e-9


class RatePrior(NamedTuple):
    """The mean of each segment, and how many looks it is worth."""

    means: NDArray[np.float64]
    strength: float
    segment_strength: float = 1.0  # looks that the mean of the log is worth to a segment
    cell_means: NDArray[np.float64] | None = None  # of a refit: one for each cell, in place of its segment's

    def rates(
        self, hits: NDArray[np.float64], looks: NDArray[np.float64], segments: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The posterior mean of each cell."""
        return (hits + self.strength * self._means_of(segments)) / (looks + self.strength)

    def log_density(self, rates: NDArray[np.float64], segments: NDArray[np.int64]) -> float:
        """What EM adds to the log-likelihood, so that `rates` is its exact M-step."""
        means = self._means_of(segments)
        return float(self.strength * (means * np.log(rates) + (1.0 - means) * np.log1p(-rates)).sum())

    def _means_of(self, segments: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.means[segments] if self.cell_means is None else self.cell_means


class Priors(Protocol):
    """Where a fit takes the prior of its rates from; `name` tells which rates."""

    def __call__(
        self, name: str, hits: NDArray[np.float64], looks: NDArray[np.float64], segments: NDArray[np.int64],
        n_segments: int, /,
    ) -> RatePrior: ...  # fmt: skip


def own_priors(
    name: str, hits: NDArray[np.float64], looks: NDArray[np.float64], segments: NDArray[np.int64],
    n_segments: int,
) -> RatePrior:  # fmt: skip
    """The prior that the counts of the fit itself give."""
    return rate_prior(hits, looks, segments, n_segments)


class RedrawnPriors:
    """The priors of a bootstrap refit: from the strengths of the whole log, with a mean for each cell.

    The means of segments come from the resample. The strength is what the method of moments finds in counts
    that are drawn from the prior of the whole log: it is not known exactly either. The mean of a cell is
    drawn from the prior around that of its segment. The resample moves the share of a rate that the log
    decides, the draw moves the share that the prior decides: together the rate varies as its posterior does
    (the posterior bootstrap, Fong, Lyddon and Holmes 2019). A cell with few looks may be better than the mean
    in one refit and worse in another.
    """

    def __init__(self, whole: dict[str, RatePrior], seed: int, resample: int) -> None:
        self.whole, self.seed, self.resample = whole, seed, resample

    def __call__(
        self, name: str, hits: NDArray[np.float64], looks: NDArray[np.float64], segments: NDArray[np.int64],
        n_segments: int, /,
    ) -> RatePrior:  # fmt: skip
        """The prior of these rates; the same draws each time."""
        known, segment_strength = self.whole[name].strength, self.whole[name].segment_strength
        means = _segment_means(hits, looks, segments, n_segments, segment_strength)
        draw, around = stream(self.seed, "prior", name, self.resample), means[segments]
        whole_looks = np.rint(looks)
        could_be = draw.binomial(
            whole_looks.astype(np.int64), draw.beta(known * around, known * (1.0 - around))
        )
        strength = _strength(could_be.astype(np.float64), whole_looks, segments, n_segments)
        cell_means = draw.beta(strength * around, strength * (1.0 - around))
        return RatePrior(means, strength, segment_strength, np.clip(cell_means, _INSIDE, 1.0 - _INSIDE))


def rate_prior(
    hits: NDArray[np.float64], looks: NDArray[np.float64], segments: NDArray[np.int64], n_segments: int
) -> RatePrior:
    """The prior of the rates of cells in these segments."""
    segment_hits, segment_looks = _by_segment(hits, looks, segments, n_segments)
    segment_strength = _strength(segment_hits, segment_looks, np.zeros(n_segments, np.int64), 1)
    means = _segment_means(hits, looks, segments, n_segments, segment_strength)
    return RatePrior(means, _strength(hits, looks, segments, n_segments), segment_strength)


def _segment_means(
    hits: NDArray[np.float64], looks: NDArray[np.float64], segments: NDArray[np.int64], n_segments: int,
    segment_strength: float,
) -> NDArray[np.float64]:  # fmt: skip
    """The mean of each segment, drawn to that of the log."""
    # Half a hit and half a miss: no rate is 0 or 1, whatever was seen.
    mean = (hits.sum() + 0.5) / (looks.sum() + 1.0)
    segment_hits, segment_looks = _by_segment(hits, looks, segments, n_segments)
    means: NDArray[np.float64] = (segment_hits + segment_strength * mean) / (segment_looks + segment_strength)
    return means


def _by_segment(
    hits: NDArray[np.float64], looks: NDArray[np.float64], segments: NDArray[np.int64], n_segments: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return (
        np.bincount(segments, hits, n_segments).astype(np.float64),
        np.bincount(segments, looks, n_segments).astype(np.float64),
    )


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
