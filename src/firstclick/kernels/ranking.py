"""The K best items of a catalog under some score, ties broken at random by a hash.

Every score of an item is one sum in one order, feature 0 first, however it is computed: a shortcut
that follows the same rule ranks exactly as the scan does.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.compiling import kernel, shared_kernel
from firstclick.kernels.hashing import mix
from firstclick.kernels.vectors import LANES

# Items scored together: their scores and one row of the columns stay in the nearest cache.
TILE = 256

# The tree of an index: items in a leaf, and children of a node.
LEAF = FAN = LANES


class IndexArrays(NamedTuple):
    """Items in a tree of boxes, for `kernels.index`; `firstclick.index` makes it and explains the words.

    The index covers the first `covered` rows; 0 for no index. Nothing in it is learned, and nothing that is
    recommended depends on it.
    """

    covered: int
    rotation: NDArray[np.float64]  # features x coordinates
    constant: NDArray[np.float64]  # the value of each feature that is the same for all items, else 0
    longest: float  # norm that all coordinates are divided by
    order: NDArray[np.int32]  # the row at each place of each leaf, -1 for none
    leaves: NDArray[np.uint16]  # leaves x coordinates x places, bits of half precision
    edges: NDArray[np.uint16]  # groups x upper, then lower edges of each coordinate x children, likewise
    reach: NDArray[np.float32]  # groups x children: the longest norm in the child's box, -1 for no child
    first: NDArray[np.int64]  # the first group of each level, leaves' parents first, and the end
    recent: NDArray[np.int64]  # rows that were recommended lately: a hint
    scans: NDArray[np.int64]  # how many more times to scan, because a search found little to leave out


class WidthArrays(NamedTuple):
    """The width sqrt(x'M^-1 x) of each item when it was last computed, for `kernels.index`; empty for none.

    Widths only shrink while a learner learns, but for rounding: these belong to one state and its future.
    `kernels.widths` makes them.
    """

    values: NDArray[np.float32]  # by place in the index, then by row for rows that it does not cover
    tops: NDArray[np.float32]  # groups x children of the index: the largest value below
    recent: NDArray[np.int64]  # the last slate, then -1: a hint
    turn: NDArray[
        np.int64
    ]  # searches so far, leaves that the last one visited, observations in the state then


class GroupArrays(NamedTuple):
    """Which items have equal counts, as of the last recommendation, for `kernels.groups`; empty for none.

    They follow one state: from when it was last looked at, every row that is learned from is noted.
    """

    group_of: NDArray[np.int32]  # by row
    place_of: NDArray[np.int32]  # by row: its place among the members
    members: NDArray[np.int32]  # rows, group after group, with room to grow
    marks: NDArray[np.uint64]  # the strides of the members' labels: half of their hash
    start: NDArray[np.int64]  # by group, as all that follows: its first place among the members
    size: NDArray[np.int64]
    room: NDArray[np.int64]
    examined: NDArray[np.int64]
    hits: NDArray[np.int64]
    base: NDArray[np.float64]  # index <= base + slope * budget; inf for a group that is not known yet
    slope: NDArray[np.float64]
    free: NDArray[np.int64]  # groups without items, a stack
    table: NDArray[np.int64]  # groups by the hash of their counts, -1 for none
    noted: NDArray[np.int64]  # rows learned from since
    clock: NDArray[np.int64]


class CatalogArrays(NamedTuple):
    """The items as kernels see them. `columns` is `features` transposed, for scans by column; there may be
    room for more at its end, so that the number of items is `len(rows)`.

    What follows the labels are shortcuts, which change nothing that is recommended.
    """

    features: NDArray[np.float64]
    columns: NDArray[np.float64]
    rows: NDArray[np.int64]  # 0, 1, 2, ...
    labels: NDArray[np.uint64]  # what is hashed for an item
    tree: IndexArrays
    widths: WidthArrays
    groups: GroupArrays


class Request(NamedTuple):
    """What is asked for: which rows may be shown, and what is known of the moment.

    Rows are those in `candidates` (none given: all), and not where `hidden` is 1; of each group at most its
    cap. A kernel that learns gets the context and the features again; in live use, where feedback comes
    later, not which rows were allowed.
    """

    candidates: NDArray[np.int64]
    hidden: NDArray[np.uint8]
    context: NDArray[np.float64]  # what is known of the user; empty for nothing
    # In place of the catalog's, one row for each candidate; to a kernel that learns or estimates, one for
    # each row it is given. None given: those of the catalog.
    features: NDArray[np.float64]
    groups: NDArray[np.int32]  # the group of each row of the catalog; empty where nothing is capped
    caps: NDArray[np.int64]  # by group


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
    return Request(
        request.candidates, request.hidden, request.context, features, request.groups, request.caps
    )


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
def product(features, row, theta):  # type: ignore[no-untyped-def]
    """The product of a row, in the order of a scan: feature 0 first."""
    x = features[row]
    product = 0.0
    for i in range(len(theta)):
        product += theta[i] * x[i]
    return product


@shared_kernel
def scan_by_product(theta, catalog, request, key, slate):  # type: ignore[no-untyped-def]
    """Fill `slate` with the items of largest x'theta, looking at each; return how many were found."""
    rows = rows_of(catalog, request)
    scores = np.empty(len(rows))
    if len(request.candidates) > 0:
        for j in range(len(rows)):
            x = features_at(catalog, request, rows[j], j)
            score = 0.0
            for i in range(len(theta)):
                score += theta[i] * x[i]
            scores[j] = score
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


@shared_kernel
def scan_by_bound(theta, factor, c, catalog, request, key, slate):  # type: ignore[no-untyped-def]
    """Fill `slate` with the items of largest x'theta + c sqrt(x'M^-1 x), looking at each; return how many
    were found. `factor` is the R of R'R = M."""
    d = len(theta)
    rows = rows_of(catalog, request)
    scores = np.empty(len(rows))
    columns, given = catalog.columns, len(request.features) > 0
    # z = R'^-1 x solved for a tile of items at once, one line of `solved` a feature: |z|^2 = x'M^-1 x.
    solved = np.empty((d, TILE))
    squares = np.empty(TILE)
    for start in range(0, len(rows), TILE):
        tile = rows[start : start + TILE]
        size = len(tile)
        means = scores[start : start + TILE]
        for m in range(size):
            means[m] = 0.0
            squares[m] = 0.0
        for i in range(d):
            line, a = solved[i], theta[i]
            if given:
                for m in range(size):
                    line[m] = request.features[start + m, i]
                    means[m] += a * line[m]
            else:
                column = columns[i]
                for m in range(size):
                    line[m] = column[tile[m]]
                    means[m] += a * line[m]
            for h in range(i):
                weight, other = factor[h, i], solved[h]
                for m in range(size):
                    line[m] -= weight * other[m]
            pivot = factor[i, i]
            for m in range(size):
                line[m] /= pivot
                squares[m] += line[m] * line[m]
        for m in range(size):
            means[m] += c * sqrt(squares[m])
    return rank(rows, scores, catalog, request, key, slate)
