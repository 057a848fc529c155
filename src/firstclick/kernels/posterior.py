"""The Gaussian posterior of linear policies, held as a precision matrix and its Cholesky factor.

    M = I + sigma^-2 sum x x',   B = sum x w,   mean = sigma^-2 M^-1 B         (Zong et al. 2016)

`factor` is the upper triangular R with R'R = M: its rows are contiguous, and it gives mean, sample
and width by triangular solves. No inverse is kept, because Sherman-Morrison loses its digits.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.compiling import kernel, shared_kernel
from firstclick.kernels.ranking import features_at, product, solve_line

# Rounding of the rank-one updates is wiped out after this many observations: a count, never a
# clock or a restart, so that a resumed run equals an uninterrupted one bit for bit.
REFRESH = 1000
SAFE_PIVOT = 1e-10

# Items whose estimates are computed together: three times as quick as one by one.
TILE = 64


class LinearState(NamedTuple):
    """What a linear policy knows. A ranked policy has one of each per position, stacked."""

    precision: NDArray[np.float64]
    moment: NDArray[np.float64]
    factor: NDArray[np.float64]
    observations: NDArray[np.int64]
    time: NDArray[np.int64]


@kernel
def linear(state):  # type: ignore[no-untyped-def]
    """The posterior within a larger state: the same arrays, so that no kernel is compiled anew for it."""
    return LinearState(state.precision, state.moment, state.factor, state.observations, state.time)


@kernel
def factorise(precision, factor):  # type: ignore[no-untyped-def]
    """Set `factor` to the upper triangular R with R'R = precision, unless its digits do not suffice; return
    whether they did.

    A pivot far below its diagonal is mostly rounding (features of very unequal size make such):
    then the factor, which the rank-one updates keep with twice as many digits, stays as it is.
    """
    d = len(precision)
    fresh = np.zeros((d, d))
    for i in range(d):
        row, given = fresh[i], precision[i]
        for m in range(i, d):
            row[m] = given[m]
        for j in range(i):
            above = fresh[j]
            weight = above[i]
            for m in range(i, d):
                row[m] -= weight * above[m]
        if not row[i] > SAFE_PIVOT * given[i]:
            return False
        pivot = sqrt(row[i])
        for m in range(i, d):
            row[m] /= pivot
    for i in range(d):
        row, kept = fresh[i], factor[i]
        for m in range(d):
            kept[m] = row[m]
    return True


@shared_kernel
def observe(state, x, attracted, sigma, scale, weight):  # type: ignore[no-untyped-def]
    """Learn that an item with features `scale * x` was examined, and whether it attracted: `weight` times."""
    moment, d = state.moment, len(x)
    v, root = np.empty(d), sqrt(weight)
    for i in range(d):
        v[i] = root * (scale * x[i] / sigma)
    if attracted:
        for i in range(d):
            moment[i] += weight * (scale * x[i])
    add_square(state.precision, state.factor, state.observations, v)


@kernel
def add_square(precision, factor, observations, v):  # type: ignore[no-untyped-def]
    """Add vv' to M, by one more observation; `v` is used up."""
    for i in range(len(v)):
        row, vi = precision[i], v[i]
        for j in range(len(v)):
            row[j] += vi * v[j]
    add_to_factor(factor, v)
    observations[0] += 1
    if observations[0] % REFRESH == 0:
        factorise(precision, factor)


@shared_kernel
def observe_slate(state, catalog, request, slate, examined, clicks, sigma, scale):  # type: ignore[no-untyped-def]
    """Learn from the examined positions of one slate (Algorithm 3)."""
    for position in range(examined):
        x = features_at(catalog, request, slate[position], position)
        observe(state, x, clicks[position], sigma, scale, 1.0)
    state.time[0] += 1


@kernel
def add_to_factor(factor, v):  # type: ignore[no-untyped-def]
    """Make `factor` that of R'R + vv' by Givens rotations (LINPACK dchud); `v` is used up."""
    d = len(v)
    for j in range(d):
        if v[j] == 0.0:
            continue
        row = factor[j]
        old = row[j]
        new = sqrt(old * old + v[j] * v[j])
        c = old / new
        s = v[j] / new
        row[j] = new
        for i in range(j + 1, d):
            r = row[i]
            row[i] = c * r + s * v[i]
            v[i] = c * v[i] - s * r


@kernel
def solve_transposed(factor, y):  # type: ignore[no-untyped-def]
    """Replace `y` by the solution of R'z = y."""
    d = len(y)
    for j in range(d):
        row = factor[j]
        yj = y[j] / row[j]
        y[j] = yj
        for i in range(j + 1, d):
            y[i] -= row[i] * yj


@kernel
def solve(factor, y):  # type: ignore[no-untyped-def]
    """Replace `y` by the solution of Rz = y."""
    d = len(y)
    for i in range(d - 1, -1, -1):
        row = factor[i]
        total = y[i]
        for j in range(i + 1, d):
            total -= row[j] * y[j]
        y[i] = total / row[i]


@kernel
def squared_width(x, factor, z):  # type: ignore[no-untyped-def]
    """x'M^-1 x, with the operations of a scan in the same order; `z` becomes R'^-1 x."""
    for i in range(len(z)):
        z[i] = x[i]
    solve_transposed(factor, z)
    squares = 0.0
    for i in range(len(z)):
        squares += z[i] * z[i]
    return squares


@kernel
def probability_of(x, theta, scale):  # type: ignore[no-untyped-def]
    """The product of `scale * x` and theta, moved into [0, 1] if it lies outside."""
    return min(max(scale * product(x, theta), 0.0), 1.0)


@kernel
def _scaled(moment, sigma):  # type: ignore[no-untyped-def]
    """sigma^-2 B, in a new array."""
    theta = np.empty(len(moment))
    for i in range(len(moment)):
        theta[i] = moment[i] / (sigma * sigma)
    return theta


@shared_kernel
def mean(moment, factor, sigma):  # type: ignore[no-untyped-def]
    """The posterior mean of theta."""
    theta = _scaled(moment, sigma)
    solve_transposed(factor, theta)
    solve(factor, theta)
    return theta


@shared_kernel
def sample(moment, factor, sigma, noise):  # type: ignore[no-untyped-def]
    """One theta from N(mean, M^-1), made of the standard normal numbers `noise`."""
    theta = _scaled(moment, sigma)
    solve_transposed(factor, theta)
    for i in range(len(theta)):
        theta[i] += noise[i]
    solve(factor, theta)
    return theta


@shared_kernel
def estimate_products(state, catalog, request, rows, sigma, scale, means, deviations):  # type: ignore[no-untyped-def]
    """The mean and the standard deviation of x'theta for each of the rows, whose x is `scale` times their
    features; for a ranked policy that of its first position."""
    d = state.moment.shape[-1]
    factor = state.factor.reshape((-1, d, d))[0]
    theta = mean(state.moment.reshape((-1, d))[0], factor, sigma)
    solved = np.empty((d, min(TILE, len(rows))))
    for start in range(0, len(rows), TILE):
        products, squares = means[start : start + TILE], deviations[start : start + TILE]
        size = len(products)
        for m in range(size):
            x = features_at(catalog, request, rows[start + m], start + m)
            for i in range(d):
                solved[i, m] = x[i]
            products[m] = 0.0
            squares[m] = 0.0
        for i in range(d):
            solve_line(i, solved, theta, factor, products, squares)
        for m in range(size):
            products[m] *= scale
            squares[m] = scale * sqrt(squares[m])
