"""Widths sqrt(x'M^-1 x) that are computed when they are needed, and kept.

The width of an item shrinks as M grows, so the width it had when it was last computed is still a bound. It
is computed again for the few items that reach the slate with the old one.
"""

from itertools import pairwise
from math import inf, sqrt

import numpy as np

from firstclick.kernels.arrays import CatalogArrays, WidthArrays
from firstclick.kernels.compiling import kernel
from firstclick.kernels.posterior import squared_width
from firstclick.kernels.ranking import FAN, LEAF, TILE, accumulate, place, product

# A width is kept in single precision, raised by more than its rounding and by more than is too small for it.
RAISED = 1.0 + 2.0**-20
SMALLEST = 2.0**-100

# Below so many items all widths are computed as quickly as old ones are looked at.
KEPT_FROM = 32

# Places of `turn`.
SEARCHES, VISITED, OBSERVATIONS = range(3)

RECENT = 64  # rows of the last slate that are remembered


def no_widths() -> WidthArrays:
    """No widths: each is computed whenever it is needed."""
    return WidthArrays(
        values=np.empty(0, np.float32),
        tops=np.empty((0, FAN), np.float32),
        recent=np.empty(0, np.int64),
        turn=np.zeros(3, np.int64),
    )


def with_widths(catalog: CatalogArrays) -> CatalogArrays:
    """The catalog with widths that are kept, if it has so many items that it pays."""
    return catalog._replace(widths=first_widths(catalog)) if len(catalog.rows) >= KEPT_FROM else catalog


def first_widths(catalog: CatalogArrays) -> WidthArrays:
    """The largest widths that items can have in any state, their norms: M is at least the identity."""
    norms = np.sqrt(np.einsum("ij,ij->i", catalog.features, catalog.features))
    with np.errstate(over="ignore"):  # What single precision does not know is infinite.
        sizes = (norms * RAISED + SMALLEST).astype(np.float32)
    tree = catalog.tree
    values = np.concatenate(
        [np.where(tree.order >= 0, sizes[tree.order], np.float32(0)), sizes[tree.covered :]]
    )
    tops = np.zeros((len(tree.edges), FAN), np.float32)
    below = values[: len(tree.order)].reshape(-1, LEAF).max(axis=1, initial=0)
    for start, stop in pairwise(tree.first):
        tops[start:stop].reshape(-1)[: len(below)] = below
        below = tops[start:stop].max(axis=1)
    return WidthArrays(values, tops, np.full(RECENT, -1, np.int64), np.zeros(3, np.int64))


@kernel
def width_of(features, row, factor, z):  # type: ignore[no-untyped-def]
    """The width of a row; `z` is scratch."""
    return sqrt(squared_width(features[row], factor, z))


@kernel
def renew_widths(order, start, features, factor, values, z):  # type: ignore[no-untyped-def]
    """Compute the widths of all items of the leaf at place `start`."""
    for at in range(start, start + LEAF):
        if order[at] >= 0:
            values[at] = width_of(features, order[at], factor, z) * RAISED + SMALLEST


@kernel
def lower_tops(leaf, values, tops, first):  # type: ignore[no-untyped-def]
    """Bring what is known above a leaf to the widths that its items have now."""
    top = np.float32(0.0)
    for m in range(LEAF):
        top = max(top, values[leaf * LEAF + m])
    node = leaf
    for level in range(len(first) - 1):
        group, child = first[level] + node // FAN, node % FAN
        if tops[group, child] == top:
            return
        tops[group, child] = top
        for m in range(FAN):
            top = max(top, tops[group, m])
        node //= FAN


@kernel
def scan_with_old_widths(theta, factor, c, raised, least, catalog, request, key, slate):  # type: ignore[no-untyped-def]
    """Fill `slate` by a scan of products; widths are computed where the old ones reach the slate."""
    features, labels, hidden, values = catalog.features, catalog.labels, request.hidden, catalog.widths.values
    columns = catalog.columns
    k, n = len(slate), 0
    best, z, products = np.empty(k), np.empty(len(theta)), np.empty(len(values))
    for start in range(0, len(values), TILE):
        accumulate(products[start : start + TILE], columns, theta, start)
    for row in range(len(values)):
        if products[row] + raised * values[row] >= least and (len(hidden) == 0 or not hidden[row]):
            width = width_of(features, row, factor, z)
            values[row] = width * RAISED + SMALLEST
            score = products[row] + c * width
            if score >= least:
                n = place(slate, best, n, row, score, labels, key)
                if n == k:
                    least = max(least, best[n - 1])
    return n


@kernel
def least_of_last(recent, theta, factor, c, features, hidden, k):  # type: ignore[no-untyped-def]
    """The least bound of the last slate: no row below it can be in this one. -inf if it was not so long."""
    least, n = inf, 0
    z = np.empty(len(theta))
    for row in recent:
        if row >= 0 and n < k and (len(hidden) == 0 or not hidden[row]):
            least = min(least, product(features[row], theta) + c * width_of(features, row, factor, z))
            n += 1
    return least if n == k else -inf


@kernel
def raise_widths(widths, growth):  # type: ignore[no-untyped-def]
    """Make old widths bounds again after they may have grown by this factor. None kept: nothing to do."""
    values, tops = widths.values, widths.tops
    factor = np.float32(growth * RAISED)
    for at in range(len(values)):
        values[at] = values[at] * factor if values[at] > 0 else values[at]
    for group in range(len(tops)):
        for child in range(tops.shape[1]):
            top = tops[group, child]
            tops[group, child] = top * factor if top > 0 else top
