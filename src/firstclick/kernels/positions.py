"""Counts by item and position, for policies that know how likely each position is examined."""

from math import log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.compiling import kernel


class PositionState(NamedTuple):
    """What was shown where, and clicked."""

    shown: NDArray[np.int64]  # items x positions
    hits: NDArray[np.int64]
    examination: NDArray[np.float64]  # by position: the chance of being examined
    time: NDArray[np.int64]


@kernel
def sums_of(state, row):  # type: ignore[no-untyped-def]
    """How often an item was shown, how often it was examined on the average of all users, and clicked."""
    shown, examined, hits = 0.0, 0.0, 0.0
    for position in range(len(state.examination)):
        shown += state.shown[row, position]
        examined += state.examination[position] * state.shown[row, position]
        hits += state.hits[row, position]
    return shown, examined, hits


@kernel
def spread(slate, n, examination):  # type: ignore[no-untyped-def]
    """Put the best of `n` ranked items where it is most likely examined, the next where it is next likely,
    and so on; return the position of the last that is looked at."""
    ranked = slate[:n].copy()
    # Positions of equal chance from the top down, as a stable sort has them.
    where = np.argsort(-examination[:n], kind="mergesort")
    for j in range(n):
        slate[where[j]] = ranked[j]
    last = n - 1
    while last > 0 and examination[where[last]] == 0.0:
        last -= 1
    return where[last] if n > 0 else 0


@kernel
def is_looked_at(slate, row, examination):  # type: ignore[no-untyped-def]
    """Whether the row stands at a position that some users examine."""
    found = False
    for position in range(len(slate)):
        found = found or (slate[position] == row and examination[position] > 0.0)
    return found


@kernel
def may_reach(shown, hits, examination, rate, budget):  # type: ignore[no-untyped-def]
    """Whether the largest q with sum of N_l KL(S_l / N_l, chance_l q) <= budget is at least this rate.

    The sum is convex in q: so it is if the sum at the rate is within the budget, or still falls there.
    """
    total, slope = 0.0, 0.0
    for position in range(len(examination)):
        n, chance = shown[position], examination[position]
        if n == 0 or chance == 0.0:
            continue
        p, q = hits[position] / n, chance * rate
        if q <= 0.0:
            if p > 0.0:
                return True
        elif q >= 1.0:
            if p < 1.0:
                return False
        else:
            if p > 0.0:
                total += n * p * log(p / q)
            if p < 1.0:
                total += n * (1.0 - p) * log((1.0 - p) / (1.0 - q))
            slope += n * chance * (q - p) / (q * (1.0 - q))
    return slope <= 0.0 or total <= budget


@kernel
def count_positions(state, slate, examined, clicks):  # type: ignore[no-untyped-def]
    """Add one slate to the counts."""
    for position in range(examined):
        state.shown[slate[position], position] += 1
        state.hits[slate[position], position] += clicks[position]
    state.time[0] += 1


@kernel
def estimate_attractions(state, rows, means, deviations):  # type: ignore[no-untyped-def]
    """Mean and standard deviation of Beta(1 + hits, 1 + misses), with the examinations to be expected."""
    for j in range(len(rows)):
        _, examined, hits = sums_of(state, rows[j])
        # More clicks than examinations to be expected are possible, an attraction above 1 is not.
        rate = (1.0 + hits) / (2.0 + max(examined, hits))
        means[j] = rate
        deviations[j] = sqrt(rate * (1.0 - rate) / (3.0 + max(examined, hits)))
