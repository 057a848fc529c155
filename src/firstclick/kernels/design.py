"""Which items to try, and how often, so that a linear model is known equally well everywhere.

A G-optimal design is a distribution over vectors that makes the largest x' V^-1 x of them smallest,
V = sum of weight * x x'. By the theorem of Kiefer and Wolfowitz that is their rank.
"""

import numpy as np

from firstclick.kernels.compiling import shared_kernel
from firstclick.kernels.posterior import add_to_factor, solve, solve_transposed, squared_width
from firstclick.kernels.ranking import product

# A direction shorter than this, against the longest vector, is rounding.
_ROUNDING = 1e-9
# Near enough: the largest x' V^-1 x is at most so many times the rank.
_NEAR = 1.1
_MOST_ITERATIONS = 1000


@shared_kernel
def spanning(x):  # type: ignore[no-untyped-def]
    """Items that span all others, and the coordinates of all in an orthonormal basis of that span.

    Each time the item is taken that is furthest from the span of those before it.
    """
    n, d = x.shape
    rest = x.copy()
    coordinates = np.zeros((n, min(n, d)))
    taken = np.empty(min(n, d), np.int64)
    longest = 0.0
    for rank in range(len(taken)):
        furthest, square = 0, -1.0
        for j in range(n):
            norm = product(rest[j], rest[j])
            if norm > square:
                furthest, square = j, norm
        length = np.sqrt(square)
        longest = max(longest, length)
        if length <= _ROUNDING * longest:
            return taken[:rank], coordinates[:, :rank].copy()
        taken[rank] = furthest
        direction = rest[furthest] / length
        for j in range(n):
            along = product(rest[j], direction)
            coordinates[j, rank] = along
            for i in range(d):
                rest[j, i] -= along * direction[i]
    return taken, coordinates


@shared_kernel
def factor_of(z, weights):  # type: ignore[no-untyped-def]
    """The upper triangular R with R'R = sum of weight * z z', for weights whose items span all."""
    n, rank = z.shape
    factor = np.zeros((rank, rank))
    line = np.empty(rank)
    for j in range(n):
        if weights[j] > 0.0:
            for i in range(rank):
                line[i] = np.sqrt(weights[j]) * z[j, i]
            add_to_factor(factor, line)
    return factor


@shared_kernel
def g_optimal(taken, z):  # type: ignore[no-untyped-def]
    """A design for these coordinates, begun from the items `taken`, and its largest z' V^-1 z.

    Frank and Wolfe's steps with the best length of each: the item that is known worst gets more weight.
    """
    n, rank = z.shape
    weights = np.zeros(n)
    for j in taken:
        weights[j] = 1.0 / rank
    widths, u = np.empty(n), np.empty(rank)
    _widths(z, weights, widths)
    for _ in range(_MOST_ITERATIONS):
        worst = np.argmax(widths)
        width = widths[worst]
        if width <= _NEAR * rank:
            break
        step = (width / rank - 1.0) / (width - 1.0)
        factor = factor_of(z, weights)
        for i in range(rank):
            u[i] = z[worst, i]
        solve_transposed(factor, u)
        solve(factor, u)
        ratio = step / (1.0 - step)
        shrink = ratio / (1.0 + ratio * width)
        for j in range(n):
            along = product(z[j], u)
            widths[j] = (widths[j] - shrink * along * along) / (1.0 - step)
            weights[j] *= 1.0 - step
        weights[worst] += step
    _widths(z, weights, widths)
    return weights, widths.max()


@shared_kernel
def _widths(z, weights, widths):  # type: ignore[no-untyped-def]
    """Set widths[j] to z' V^-1 z."""
    factor, solved = factor_of(z, weights), np.empty(z.shape[1])
    for j in range(len(z)):
        widths[j] = squared_width(z[j], factor, solved)


@shared_kernel
def least_squares(z, shown, hits):  # type: ignore[no-untyped-def]
    """What least squares hold for the click rate of each item, of those whose clicks were counted."""
    factor = factor_of(z, shown)
    theta = np.zeros(z.shape[1])
    for j in range(len(z)):
        for i in range(len(theta)):
            theta[i] += hits[j] * z[j, i]
    solve_transposed(factor, theta)
    solve(factor, theta)
    rates = np.empty(len(z))
    for j in range(len(z)):
        rates[j] = product(z[j], theta)
    return rates
