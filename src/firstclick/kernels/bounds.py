"""What counts tell of a click rate: its Beta posterior, and the Bernoulli KL upper confidence bound."""

from math import exp, inf, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.compiling import kernel


class CountState(NamedTuple):
    """What a policy without features knows: how often each item was examined, and attracted."""

    examined: NDArray[np.int64]
    hits: NDArray[np.int64]
    time: NDArray[np.int64]


@kernel
def count(state, slate, examined, clicks):  # type: ignore[no-untyped-def]
    """Add the examined positions of one slate to the counts."""
    for position in range(examined):
        item = slate[position]
        state.examined[item] += 1
        state.hits[item] += clicks[position]
    state.time[0] += 1


@kernel
def estimate_rates(state, rows, a, b, means, deviations):  # type: ignore[no-untyped-def]
    """The mean and the standard deviation of Beta(a + hits, b + misses), for each of the rows."""
    examined, hits = state.examined, state.hits
    for j in range(len(rows)):
        row = rows[j]
        total = a + b + examined[row]
        rate = (a + hits[row]) / total
        means[j] = rate
        deviations[j] = sqrt(rate * ((b + (examined[row] - hits[row])) / total) / (total + 1.0))


@kernel
def kl_budget(t):  # type: ignore[no-untyped-def]
    """log t + 3 log log t, and 0 where that is negative or does not exist."""
    if t <= 1:
        return 0.0
    return max(log(t) + 3.0 * log(log(t)), 0.0)


@kernel
def kl_ceiling(rate, width):  # type: ignore[no-untyped-def]
    """A cheap number that `kl_bound(rate, width)` never exceeds, rounding included."""
    if width == inf:
        return inf
    if rate >= 1.0:
        return 1.0
    # KL(p, q) >= 2 (q - p)^2, and KL(p, q) >= p log p + (1 - p) log((1 - p) / (1 - q)).
    pinsker = rate + sqrt(0.5 * width)
    entropy = rate * log(rate) if rate > 0.0 else 0.0
    tail = 1.0 - (1.0 - rate) * exp(-(width - entropy) / (1.0 - rate))
    return min(min(pinsker, tail) + 1e-12, 1.0)


@kernel
def kl_bound(rate, width):  # type: ignore[no-untyped-def]
    """The largest q in [rate, 1] with KL(rate, q) <= width, to within rounding.

    An infinite width means that nothing is known yet: then inf, above every item that was seen.
    """
    if width == inf:
        return inf
    if rate >= 1.0:
        return 1.0
    if rate <= 0.0:
        return 1.0 - exp(-width)
    if width <= 0.0:
        return rate
    # KL(rate, q) is convex and rises in q: Newton from above comes down to the root and never
    # passes it, so the first step that does not go down has arrived.
    q = kl_ceiling(rate, width)
    if q >= 1.0:
        q = 1.0 - 1.1e-16
    for _ in range(100):
        excess = rate * log(rate / q) + (1.0 - rate) * log((1.0 - rate) / (1.0 - q)) - width
        smaller = q - excess * q * (1.0 - q) / (q - rate)
        if not smaller < q:
            break
        q = max(smaller, rate)
        if q - rate <= 1e-15:
            break
    return q
