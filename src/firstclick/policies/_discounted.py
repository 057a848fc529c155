"""What linear policies that forget share: they forget a little with every slate, or all when users changed.

    M <- g M + (1 - g) I,   B <- g B         before each slate

so that what was learned n slates ago counts g^n, and the prior, put back as it fades, stays whole.
"""

from math import inf, sqrt
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.compiling import kernel
from firstclick.kernels.posterior import add_to_factor, factorise, linear, mean, observe_slate, probability_of
from firstclick.kernels.ranking import features_at
from firstclick.kernels.search.widths import raise_widths
from firstclick.parameters import param
from firstclick.policies._linear import LinearPolicy

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


@kernel
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


class DiscountedPolicy(LinearPolicy):
    """A linear policy for which an old click counts less than a new one."""

    family = "changes"
    made_for: ClassVar[tuple[str, ...]] = ("switch", "drift")
    # What was learned later counts more: two logs have no common order of time, and one has no other.
    mergeable: ClassVar[bool] = False
    order_free: ClassVar[bool] = False

    discount: float = param(
        0.999, "what is kept of the past with each slate; 1 forgets nothing", above=0, at_most=1
    )
    detector: float | None = param(
        None, "missing clicks at which it drops all it knows, 20 for example", kind=float, above=0
    )

    def initial_state(self, n_items: int, n_features: int, k: int) -> ForgettingState:  # type: ignore[override]
        return ForgettingState(**self._prior((), n_features)._asdict(), missing=np.zeros(1))

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        sigma, scale = numbers.sigma, getattr(numbers, "scale", 1.0)  # Only a CascadeLinUCB has a scale.
        detector, share = numbers.detector, numbers.discount
        if detector > 0.0:
            state.missing[0] = _missing_with(state, catalog, request, slate, examined, clicks, sigma, scale)
        if detector > 0.0 and state.missing[0] > detector:
            state.missing[0] = 0.0
            _forget_all(state)
            raise_widths(catalog.widths, inf)
        elif share < 1.0:
            discount(state.precision, state.moment, state.factor, share)
            raise_widths(catalog.widths, 1.0 / sqrt(share))
        observe_slate(linear(state), catalog, request, slate, examined, clicks, sigma, scale)
