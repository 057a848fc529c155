"""The K best items of a catalog under some score, ties broken at random by a hash.

Every score of an item is one sum in one order, feature 0 first, however it is computed: a shortcut
that follows the same rule ranks exactly as the scan does.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.compiling import kernel
from firstclick.kernels.hashing import mix
from firstclick.kernels.posterior import mean

# Items scored together: their scores and one row of the columns stay in the nearest cache.
TILE = 256


class CatalogArrays(NamedTuple):
    """The items as kernels see them. `columns` is `features` transposed, for scans by column."""

    features: NDArray[np.float64]
    columns: NDArray[np.float64]
    labels: NDArray[np.uint64]


class Request(NamedTuple):
    """Which rows may be shown: `candidates` (none given: all), and not where `hidden` is 1."""

    candidates: NDArray[np.int64]
    hidden: NDArray[np.uint8]


@kernel
def n_asked(catalog, request):  # type: ignore[no-untyped-def]
    """How many rows to look at; `asked` gives each."""
    return len(request.candidates) if len(request.candidates) > 0 else len(catalog.labels)


@kernel
def asked(request, j):  # type: ignore[no-untyped-def]
    """The j-th row to look at, or -1 when it is hidden."""
    item = request.candidates[j] if len(request.candidates) > 0 else np.int64(j)
    if len(request.hidden) > 0 and request.hidden[item]:
        return np.int64(-1)
    return item


@kernel
def _precedes(score, item, other_score, other, catalog, key):  # type: ignore[no-untyped-def]
    if score != other_score:
        return score > other_score
    return mix(key, catalog.labels[item]) > mix(key, catalog.labels[other])


@kernel
def place(slate, scores, n, item, score, catalog, key):  # type: ignore[no-untyped-def]
    """Put the item where it belongs among the best `n` so far; return how many there are now."""
    k = len(slate)
    if n == k:
        if score < scores[k - 1] or not _precedes(score, item, scores[k - 1], slate[k - 1], catalog, key):
            return n
        n -= 1
    position = n
    while position > 0 and _precedes(score, item, scores[position - 1], slate[position - 1], catalog, key):
        slate[position] = slate[position - 1]
        scores[position] = scores[position - 1]
        position -= 1
    slate[position] = item
    scores[position] = score
    return n + 1


@kernel
def _accumulate(scores, size, columns, theta, start):  # type: ignore[no-untyped-def]
    """Set scores[i] to the inner product of theta and item start + i for i < size, feature 0 first."""
    d = len(theta)
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
def rank_by_product(theta, catalog, request, key, slate):  # type: ignore[no-untyped-def]
    """Fill `slate` with the items of largest x'theta; return how many were found."""
    best = np.empty(len(slate))
    n = 0
    if len(request.candidates) > 0:
        for j in range(len(request.candidates)):
            item = asked(request, j)
            if item >= 0:
                x = catalog.features[item]
                score = 0.0
                for i in range(len(theta)):
                    score += theta[i] * x[i]
                n = place(slate, best, n, item, score, catalog, key)
        return n
    n_items = len(catalog.labels)
    scores = np.empty(min(TILE, n_items))
    least = -np.inf  # what an item needs to enter the slate
    for start in range(0, n_items, TILE):
        size = min(TILE, n_items - start)
        _accumulate(scores, size, catalog.columns, theta, start)
        for i in range(size):
            if scores[i] >= least:
                item = asked(request, start + i)
                if item >= 0:
                    n = place(slate, best, n, item, scores[i], catalog, key)
                    if n == len(slate):
                        least = best[n - 1]
    return n


@kernel
def rank_by_bound(moment, factor, sigma, c, catalog, request, key, slate):  # type: ignore[no-untyped-def]
    """Fill `slate` with the items of largest x'mean + c sqrt(x'M^-1 x); return how many were found."""
    theta = mean(moment, factor, sigma)
    d = len(theta)
    best = np.empty(len(slate))
    rows = np.empty(TILE, np.int64)
    # z = R'^-1 x solved for a tile of items at once, one line of `solved` a feature: |z|^2 = x'M^-1 x.
    solved = np.empty((d, TILE))
    scores = np.empty(TILE)
    squares = np.empty(TILE)
    n = 0
    total = n_asked(catalog, request)
    j = 0
    while j < total:
        size = 0
        while size < TILE and j < total:
            item = asked(request, j)
            if item >= 0:
                rows[size] = item
                size += 1
            j += 1
        for m in range(size):
            scores[m] = 0.0
            squares[m] = 0.0
        for i in range(d):
            line = solved[i]
            column = catalog.columns[i]
            a = theta[i]
            for m in range(size):
                line[m] = column[rows[m]]
                scores[m] += a * line[m]
            for h in range(i):
                weight = factor[h, i]
                other = solved[h]
                for m in range(size):
                    line[m] -= weight * other[m]
            pivot = factor[i, i]
            for m in range(size):
                line[m] /= pivot
                squares[m] += line[m] * line[m]
        for m in range(size):
            n = place(slate, best, n, rows[m], scores[m] + c * sqrt(squares[m]), catalog, key)
    return n
