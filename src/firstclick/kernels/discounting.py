"""A Gaussian posterior that forgets: a little with every slate, or all of it when users have changed.

    M <- g M + (1 - g) I,   B <- g B         before each slate

so that what was learned n slates ago counts g^n, and the prior, put back as it fades, stays whole.
"""

from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.compiling import kernel, shared_kernel
from firstclick.kernels.posterior import add_to_factor, factorise, mean
from firstclick.kernels.ranking import features_at
from firstclick.kernels.weighting import probability_of

# Clicks that may be missing at an item before any are counted as missing: more than what is held for the
# items of a slate exceeds the truth, which were chosen because much is held for them.
TOLERATED = 0.1


class ForgettingState(NamedTuple):
    """That of a linear policy, and how many clicks it has been missing lately."""

    precision: NDArray[np.float64]
    moment: NDArray[np.float64]
    factor: NDArray[np.float64]
    observations: NDArray[np.int64]
    missing: NDArray[np.float64]
    time: NDArray[np.int64]


@shared_kernel
def forget(state, catalog, request, slate, examined, clicks, sigma, scale, share, detector):  # type: ignore[no-untyped-def]
    """Keep `share` of what is known, or nothing if this slate brings the missing clicks above `detector`
    (0: they are not counted); return by what factor the width of an item may have grown."""
    if detector > 0.0:
        missing = _missing_with(state, catalog, request, slate, examined, clicks, sigma, scale)
        state.missing[0] = missing
        if missing > detector:
            state.missing[0] = 0.0
            _forget_all(state)
            return inf
    if share == 1.0:
        return 1.0
    discount(state.precision, state.moment, state.factor, share)
    return 1.0 / sqrt(share)


@kernel
def _missing_with(state, catalog, request, slate, examined, clicks, sigma, scale):  # type: ignore[no-untyped-def]
    """The missing clicks with those of this slate: a sum that starts again whenever it falls to 0 (CUSUM)."""
    theta = mean(state.moment, state.factor, sigma)
    missing = state.missing[0]
    for position in range(examined):
        expected = probability_of(features_at(catalog, request, slate[position], position), theta, scale)
        missing = max(missing + expected - clicks[position] - TOLERATED, 0.0)
    return missing


@kernel
def _forget_all(state):  # type: ignore[no-untyped-def]
    state.moment[:] = 0.0
    state.precision[:] = 0.0
    state.factor[:] = 0.0
    for i in range(len(state.moment)):
        state.precision[i, i] = 1.0
        state.factor[i, i] = 1.0


@shared_kernel
def discount(precision, moment, factor, share):  # type: ignore[no-untyped-def]
    """Keep `share` of what was learned, and all of the prior."""
    d = len(moment)
    for i in range(d):
        row = precision[i]
        for j in range(d):
            row[j] *= share
        row[i] += 1.0 - share
        moment[i] *= share
    if not factorise(precision, factor):
        # The digits of M do not suffice; those of its factor do.
        for i in range(d):
            row = factor[i]
            for j in range(i, d):
                row[j] *= sqrt(share)
        for i in range(d):
            v = np.zeros(d)
            v[i] = sqrt(1.0 - share)
            add_to_factor(factor, v)
