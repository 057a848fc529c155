"""Intervals for the value of the target, and for its difference from what was shown.

Let X_t be the term of slate t and V the value. Given all that came before, X_t has mean V: the user is new,
and the propensities are those of that moment. For Cascade-DR this needs a click model that does not depend on
slate t. Cross-fitting leaves slate t out. If the logger learns, that is not exactly enough: the fit has seen
later slates, and what these show depends on the outcome of slate t.

If the logger does not change, terms are independent, and the **normal** interval is right. If the logger
learns, the spread of X_t depends on what it has learned, and the mean of the terms need not be normal: a
logger that gives up on the target's slates makes terms that are 0 almost always and huge otherwise.

**Stabilised** (Hadad et al. 2021, constant allocation): the weighted mean of terms with weights
h_t = 1 / sqrt(v_t), where v_t is the size of X_t^2 as it was known *before* slate t was drawn. So each slate
brings the same variance, the central limit theorem for martingales holds, and late slates of a logger that
gave up count for little.

**Bernstein** (empirical Bernstein for martingales: Fan et al. 2015, Waudby-Smith and Ramdas 2024): if
X_t >= 0, then for 0 <= l < 1 and c_t known before slate t, 0 <= c_t <= s, the product of
exp(l (X_t - V) / s - psi(l) (X_t - c_t)^2 / s^2), psi(l) = -log(1 - l) - l, is a supermartingale, even if
means change with t. Its mixture over several l exceeds 1/a with probability a at most. It needs no central
limit theorem and no bound from above. The upper end comes from the same for weight times (1 - click), whose
mean is K - V. It holds always, and is two to many times as wide.

In the normal and the stabilised interval the reach is that of Student's t with as many degrees of freedom as
there are large terms, less one: (sum of e^2)^2 / sum of e^4 of the errors e. With a fixed list only slates
that match it have large terms, and there may be few.

The difference is V less the mean of what was shown: with Y_t the clicks on slate t, the errors X_t - V and
Y_t - E[Y_t] have the same slate and mostly the same user behind them, so they cancel in part (a control
variate, Jeunen and Ustimenko 2024).
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from firstclick.evaluation.estimators.weighted_slates import Table

# Twelve sizes of steps, each twice the last: between two of them little is lost.
STEPS = 0.5 ** np.arange(1, 13)


class Bounds(NamedTuple):
    """An estimate between two bounds."""

    value: float
    low: float
    high: float


class Intervals(NamedTuple):
    """Those of a value and of its difference from what was shown."""

    value: Bounds
    difference: Bounds


def normal(terms: Table, shown: Table, confidence: float) -> Intervals:
    """Mean and standard error. `shown` are the clicks on each slate.

    >>> normal(np.array([0.0, 2.0, 0.0, 2.0]), np.array([0.0, 1.0, 1.0, 1.0]), 0.95).difference.value
    0.25
    """
    return stabilised(terms, shown, np.ones_like(terms), confidence)


def stabilised(terms: Table, shown: Table, weights: Table, confidence: float) -> Intervals:
    """The weighted mean of terms, with weights known before each slate was drawn."""
    shares = weights / weights.sum()
    value = float(shares @ terms)
    observed = float(shown.mean())
    errors = shares * (terms - value)
    of_difference = errors - (shown - observed) / len(terms)
    return Intervals(
        _around(value, _reach(errors, confidence)),
        _around(value - observed, _reach(of_difference, confidence)),
    )


def _reach(errors: Table, confidence: float) -> float:
    """How far the interval of a sum of errors reaches to each side."""
    squares = errors**2
    total = float(squares.sum())
    if total == 0:
        return 0.0
    # A few large terms make the standard error itself uncertain: as many as there are of equal size.
    large = total**2 / float(squares @ squares)
    return float(stdtrit(max(large - 1, 1.0), 0.5 + confidence / 2)) * math.sqrt(total)


def stabilising_weights(spread: Table) -> Table:
    """h_t, from the mean squared weight of each prefix as known before the slate was drawn.

    v_t is their mean, where each position counts half as much as the one above it. Any rule that is fixed in
    advance gives valid intervals; this one fits pages where clicks fall by half from place to place.
    """
    shares = 0.5 ** np.arange(spread.shape[1])
    return np.asarray(1.0 / np.sqrt(spread @ (shares / shares.sum())))


def bernstein(terms: Table, mirrored: Table, shown: Table, k: int, confidence: float) -> Intervals:
    """Bounds that hold for every n, whatever the logger learned. `mirrored` are the terms of weight times
    (1 - click); a slate has at most `k` clicks."""
    alpha = (1.0 - confidence) / 2
    value, observed = float(terms.mean()), float(shown.mean())
    return Intervals(
        Bounds(
            value,
            max(lower_mean(terms, 0.0, k, alpha), 0.0),
            min(k - lower_mean(mirrored, 0.0, k, alpha), float(k)),
        ),
        Bounds(
            value - observed,
            max(lower_mean(terms - shown, -k, k, alpha), -float(k)),
            min(-lower_mean(mirrored - (k - shown), -k, k, alpha), float(k)),
        ),
    )


def lower_mean(terms: Table, least: float, scale: float, alpha: float) -> float:
    """A number that the mean of the conditional means of `terms` (each at least `least`) is below with
    probability `alpha` at most. `scale` is how far guesses of the next term may lie above `least`."""
    n = len(terms)
    past = np.concatenate([[0.0], np.cumsum(terms)[:-1]])
    guesses = np.clip(past / np.maximum(np.arange(n), 1), least, least + scale)
    squares = float(((terms - guesses) ** 2).sum()) / scale**2
    rates = -np.log1p(-STEPS) - STEPS
    # The smallest mean m with mixture(m) <= 1 / alpha; the exponent falls with m.
    total = float(terms.sum())
    target = -math.log(alpha)

    def exponent(mean: float) -> float:
        each = STEPS * ((total - n * mean) / scale) - rates * squares
        largest = each.max()
        return float(largest + np.log(np.exp(each - largest).mean()))

    low, high = total / n - scale * (target + 1.0), total / n
    while exponent(low) < target:
        low -= 2 * (high - low)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if exponent(middle) > target else (low, middle)
    return low


def _around(value: float, reach: float) -> Bounds:
    return Bounds(value, value - reach, value + reach)
