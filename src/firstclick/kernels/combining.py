"""How what is known of a user and the features of an item make one vector.

The vector is linear in the features: z = A x + b, where A and b follow from the user alone. So z'theta is
linear in x, for the tree, and z'M^-1 z is a quadratic form in x, of one small matrix for each request.
"""

from math import sqrt

import numpy as np

from firstclick.kernels.compiling import kernel
from firstclick.kernels.posterior import solve_transposed
from firstclick.kernels.ranking import TILE, features_at, rank, rows_of, with_features

CONCATENATION, PRODUCT, BILINEAR = range(3)


@kernel
def combine(x, user, how, rank, z):  # type: ignore[no-untyped-def]
    """Set `z` to the features `x` of an item together with those of the user."""
    d = len(x)
    if how == PRODUCT:
        for i in range(d):
            z[i] = user[i] * x[i]
        return
    start, width = 0, d
    if how == CONCATENATION or rank > 0:
        for i in range(d):
            z[i] = x[i]
        start, width = d, rank
    for a in range(len(user)):
        if how == CONCATENATION:
            z[start + a] = user[a]
        else:
            for i in range(width):
                z[start + a * width + i] = user[a] * x[i]


@kernel
def combined(catalog, request, rows, how, rank, size):  # type: ignore[no-untyped-def]
    """The request with one vector of this size as the features of each row that a kernel is given."""
    user = request.context
    if len(user) == 0:
        return request
    features = np.empty((len(rows), size))
    for j in range(len(rows)):
        combine(features_at(catalog, request, rows[j], j), user, how, rank, features[j])
    return with_features(request, features)


@kernel
def seen_by(theta, user, how, rank, d):  # type: ignore[no-untyped-def]
    """A'theta: the products of the d features of an item with it are those of z with theta, but for what is
    the same for all items."""
    seen = np.zeros(d)
    if how == PRODUCT:
        for i in range(d):
            seen[i] = theta[i] * user[i]
        return seen
    start, width = 0, d
    if how == CONCATENATION or rank > 0:
        for i in range(d):
            seen[i] = theta[i]
        start, width = d, rank
    if how == BILINEAR:
        for a in range(len(user)):
            for i in range(width):
                seen[i] += user[a] * theta[start + a * width + i]
    return seen


@kernel
def form_seen_by(factor, user, how, rank, d):  # type: ignore[no-untyped-def]
    """The matrix F with z'M^-1 z = y'F y, where y is x and a 1 after it; `factor` is the R of R'R = M."""
    size = len(factor)
    # Line i is R'^-1 times column i of A, the last line R'^-1 b.
    lines = np.empty((d + 1, size))
    x, nothing = np.zeros(d), np.empty(size)
    combine(x, user, how, rank, nothing)
    for i in range(d + 1):
        line = lines[i]
        if i < d:
            x[i] = 1.0
            combine(x, user, how, rank, line)
            x[i] = 0.0
            for m in range(size):
                line[m] -= nothing[m]
        else:
            for m in range(size):
                line[m] = nothing[m]
        solve_transposed(factor, line)
    form = np.empty((d + 1, d + 1))
    for i in range(d + 1):
        for j in range(i + 1):
            total = 0.0
            for m in range(size):
                total += lines[i, m] * lines[j, m]
            form[i, j] = form[j, i] = total
    return form


@kernel
def scan_by_form(theta, form, c, catalog, request, key, slate):  # type: ignore[no-untyped-def]
    """Fill `slate` with the items of largest x'theta + c sqrt(y'form y), where y is x and a 1 after it,
    looking at each; return how many were found."""
    d = len(theta)
    rows = rows_of(catalog, request)
    scores = np.empty(len(rows))
    columns, given = catalog.columns, request.features
    values, line, squares = np.empty((d, TILE)), np.empty(TILE), np.empty(TILE)
    for start in range(0, len(rows), TILE):
        tile = rows[start : start + TILE]
        size = len(tile)
        means = scores[start : start + TILE]
        for m in range(size):
            means[m] = 0.0
            squares[m] = form[d, d]
        for i in range(d):
            own, a, twice, once = values[i], theta[i], 2.0 * form[d, i], form[i, i]
            for m in range(size):
                own[m] = given[start + m, i] if len(given) > 0 else columns[i, tile[m]]
                means[m] += a * own[m]
                line[m] = twice + once * own[m]
            for j in range(i):
                weight, other = 2.0 * form[i, j], values[j]
                for m in range(size):
                    line[m] += weight * other[m]
            for m in range(size):
                squares[m] += own[m] * line[m]
        for m in range(size):
            # Rounding may take a width of nearly 0 below it.
            means[m] += c * sqrt(max(squares[m], 0.0))
    return rank(rows, scores, catalog, request, key, slate)
