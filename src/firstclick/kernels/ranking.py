"""The K best items of a catalog under some score, ties broken at random by a hash.

Every score of an item is one sum in one order, feature 0 first, however it is computed: a shortcut
that follows the same rule ranks exactly as the scan does.
"""

from math import sqrt

import numpy as np

from firstclick.kernels.arrays import Request
from firstclick.kernels.compiling import kernel, shared_kernel
from firstclick.kernels.hashing import mix
from firstclick.kernels.vectors import LANES

# Items scored together: their scores and one row of the columns stay in the nearest cache.
TILE = 256

# Items in a leaf of the search tree, and children of a node.
LEAF = FAN = LANES


@kernel
def features_at(catalog, request, row, place):  # type: ignore[no-untyped-def]
    """The features of the row that is at this place among those a kernel is given."""
    return request.features[place] if len(request.features) > 0 else catalog.features[row]


@kernel
def as_shown(request, rows):  # type: ignore[no-untyped-def]
    """The request with one row of features for each of `rows`, which are among its candidates."""
    given = request.features
    if len(given) == 0:
        return request
    features = np.empty((len(rows), given.shape[1]))
    for j in range(len(rows)):
        for place in range(len(request.candidates)):
            if request.candidates[place] == rows[j]:
                for i in range(given.shape[1]):
                    features[j, i] = given[place, i]
                break
    return with_features(request, features)


@kernel
def with_features(request, features):  # type: ignore[no-untyped-def]
    """The request with other features."""
    asked = request
    return Request(asked.candidates, asked.hidden, asked.context, features, asked.groups, asked.caps)


@kernel
def with_hidden(request, hidden):  # type: ignore[no-untyped-def]
    """The request with other rows hidden."""
    asked = request
    return Request(asked.candidates, hidden, asked.context, asked.features, asked.groups, asked.caps)


@kernel
def rows_of(catalog, request):  # type: ignore[no-untyped-def]
    """The rows to score. Hidden ones are among them; `rank` leaves them out."""
    return request.candidates if len(request.candidates) > 0 else catalog.rows


@shared_kernel
def rank(rows, scores, catalog, request, key, slate):  # type: ignore[no-untyped-def]
    """Fill `slate` with the rows of largest score that are not hidden; return how many were found."""
    # Arrays are taken out of their tuples once: Numba counts references at every access.
    hidden, labels = request.hidden, catalog.labels
    best = np.empty(len(slate))
    least = -np.inf  # what a row needs to enter the slate
    n = 0
    for j in range(len(rows)):
        if scores[j] >= least:
            row = rows[j]
            if len(hidden) == 0 or not hidden[row]:
                n = place(slate, best, n, row, scores[j], labels, key)
                if n == len(slate):
                    least = best[n - 1]
    return n


@kernel
def place(slate, best, n, row, score, labels, key):  # type: ignore[no-untyped-def]
    """Put the row where it belongs among the best `n` so far; return how many there are now."""
    if n == len(slate):
        if not _precedes(score, row, best[n - 1], slate[n - 1], labels, key):
            return n
        n -= 1
    position = n
    while position > 0 and _precedes(score, row, best[position - 1], slate[position - 1], labels, key):
        slate[position] = slate[position - 1]
        best[position] = best[position - 1]
        position -= 1
    slate[position] = row
    best[position] = score
    return n + 1


@kernel
def _precedes(score, row, other_score, other, labels, key):  # type: ignore[no-untyped-def]
    if score != other_score:
        return score > other_score
    return mix(key, labels[row]) > mix(key, labels[other])


@kernel
def product(x, theta):  # type: ignore[no-untyped-def]
    """x'theta, in the order of a scan: feature 0 first."""
    total = 0.0
    for i in range(len(theta)):
        total += theta[i] * x[i]
    return total


@kernel
def products(rows, catalog, request, theta, scores):  # type: ignore[no-untyped-def]
    """Set scores[j] to x'theta of the j-th of these candidates, feature 0 first."""
    # By index, without a view of each row: Numba counts references to those too, which takes ten times as
    # long as the sums.
    features, given = catalog.features, request.features
    own = len(given) > 0
    if own:
        features = given
    for j in range(len(rows)):
        row = j if own else rows[j]
        total = 0.0
        for i in range(len(theta)):
            total += theta[i] * features[row, i]
        scores[j] = total


@shared_kernel
def scan_by_product(theta, catalog, request, key, slate):  # type: ignore[no-untyped-def]
    """Fill `slate` with the items of largest x'theta, looking at each; return how many were found."""
    rows = rows_of(catalog, request)
    scores = np.empty(len(rows))
    if len(request.candidates) > 0:
        products(rows, catalog, request, theta, scores)
    else:
        columns = catalog.columns
        for start in range(0, len(rows), TILE):
            accumulate(scores[start : start + TILE], columns, theta, start)
    return rank(rows, scores, catalog, request, key, slate)


@kernel
def accumulate(scores, columns, theta, start):  # type: ignore[no-untyped-def]
    """Set scores[i] to the inner product of theta and item start + i, feature 0 first."""
    d = len(theta)
    size = len(scores)
    stop = start + size
    for i in range(size):
        scores[i] = 0.0
    j = 0
    # Four features a pass save loads and stores; each score is still one sum in feature order.
    while j + 4 <= d:
        a, b, c, e = theta[j], theta[j + 1], theta[j + 2], theta[j + 3]
        xa, xb = columns[j, start:stop], columns[j + 1, start:stop]
        xc, xe = columns[j + 2, start:stop], columns[j + 3, start:stop]
        for i in range(size):
            scores[i] = (((scores[i] + a * xa[i]) + b * xb[i]) + c * xc[i]) + e * xe[i]
        j += 4
    while j < d:
        a = theta[j]
        xa = columns[j, start:stop]
        for i in range(size):
            scores[i] += a * xa[i]
        j += 1


@kernel
def solve_line(i, solved, theta, factor, means, squares):  # type: ignore[no-untyped-def]
    """Feature i of some items x at once, line i of `solved`, goes into their x'theta and becomes coordinate i
    of z = R'^-1 x, whose square goes into |z|^2 = x'M^-1 x. The lines before it are solved already."""
    line, a, pivot, size = solved[i], theta[i], factor[i, i], len(means)
    for m in range(size):
        means[m] += a * line[m]
    for h in range(i):
        weight, other = factor[h, i], solved[h]
        for m in range(size):
            line[m] -= weight * other[m]
    for m in range(size):
        line[m] /= pivot
        squares[m] += line[m] * line[m]


@kernel
def insert(best, score):  # type: ignore[no-untyped-def]
    """Put the score among the best, which fall, in place of the last of them if it is larger."""
    at = len(best) - 1
    if not score > best[at]:
        return
    while at > 0 and best[at - 1] < score:
        best[at] = best[at - 1]
        at -= 1
    best[at] = score


@shared_kernel
def scan_by_bound(theta, factor, c, catalog, request, key, slate):  # type: ignore[no-untyped-def]
    """Fill `slate` with the items of largest x'theta + c sqrt(x'M^-1 x), looking at each; return how many
    were found. `factor` is the R of R'R = M."""
    d = len(theta)
    rows = rows_of(catalog, request)
    scores = np.empty(len(rows))
    columns, given = catalog.columns, len(request.features) > 0
    solved, squares = np.empty((d, TILE)), np.empty(TILE)
    for start in range(0, len(rows), TILE):
        tile = rows[start : start + TILE]
        size = len(tile)
        means = scores[start : start + TILE]
        for m in range(size):
            means[m] = 0.0
            squares[m] = 0.0
        for i in range(d):
            line = solved[i]
            if given:
                for m in range(size):
                    line[m] = request.features[start + m, i]
            else:
                column = columns[i]
                for m in range(size):
                    line[m] = column[tile[m]]
            solve_line(i, solved, theta, factor, means, squares)
        for m in range(size):
            means[m] += c * sqrt(squares[m])
    return rank(rows, scores, catalog, request, key, slate)
