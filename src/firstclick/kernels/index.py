"""The K items of largest x'theta, without looking at all of them: exactly those a scan finds.

Items lie in leaves, leaves in a tree, and every node has a box that holds its items' coordinates. The
largest x'theta that a box allows bounds its items from above, so a node below the K-th best score is
left alone. Boxes and leaves are single precision, and each bound is raised by more than rounding can
take from it; what decides is the same sum in double precision as in a scan, with the same rule for ties.
"""

from math import inf, sqrt

import numpy as np

from firstclick.kernels.compiling import kernel
from firstclick.kernels.ranking import place, scan_by_product

LEAF = 32  # items
FAN = 16  # children of a node

# A slate this long, or of this share of the items, is found by a scan: there is little to leave out.
LONGEST_SLATE = 64
LARGEST_SHARE = 0.1

# A search that visits more than this share of the leaves has cost as much as a scan, or more; the next ones,
# of thetas much like this, would too. So many scans later it is tried again.
MOST_VISITED = 0.4
SCANS = 64

# Single precision knows numbers up to 3e38; products of larger ones are left to the scan.
LARGEST = 1e30
ROUNDING = 2.0**-24
FINE_ROUNDING = 2.0**-51
SMALLEST = 2.0**-100


@kernel
def rank_by_product(theta, catalog, request, key, slate):  # type: ignore[no-untyped-def]
    """Fill `slate` with the items of largest x'theta; return how many were found."""
    index = catalog.tree
    length = fixed = 0.0
    for i in range(len(theta)):
        length += theta[i] * theta[i]
        fixed += abs(theta[i] * index.constant[i])
    length = sqrt(length)
    if (
        index.covered == 0
        or len(request.candidates) > 0
        or len(slate) > LONGEST_SLATE
        or len(slate) > LARGEST_SHARE * index.covered
        or not length * index.longest < LARGEST
        or not fixed < inf
    ):
        return scan_by_product(theta, catalog, request, key, slate)
    if index.scans[0] > 0:
        index.scans[0] -= 1
        return scan_by_product(theta, catalog, request, key, slate)
    return _search(theta, length, index, catalog.features, catalog.labels, request.hidden, key, slate)


@kernel
def _search(theta, length, index, features, labels, hidden, key, slate):  # type: ignore[no-untyped-def]
    order, leaves, edges, reach, first = index.order, index.leaves, index.edges, index.reach, index.first
    turned, upper, plain, constant = _turned(theta, length, index)
    # What rounding may take from a bound, for each unit of norm in a box: the casts to single precision, and
    # a sum of d products; twice as much as the worst case, and what is too small for single precision.
    slack = (4 * len(turned) + 32) * ROUNDING * length * index.longest

    k = len(slate)
    best = np.empty(k)
    least = _score_of_recent(index.recent, features, theta, hidden, k)
    n = 0
    # Rows that came after the index was made.
    for row in range(index.covered, len(features)):
        if len(hidden) == 0 or not hidden[row]:
            score = _product(features, row, theta)
            if score >= least:
                n = place(slate, best, n, row, score, labels, key)
                if n == k:
                    least = max(least, best[n - 1])

    levels = len(first) - 1
    nodes = np.empty(FAN * levels + 1, np.int64)
    heights = np.empty(FAN * levels + 1, np.int64)
    limits = np.empty(FAN * levels + 1)
    bounds, scores = np.empty(FAN, np.float32), np.empty(LEAF, np.float32)
    nodes[0], heights[0], limits[0] = 0, levels - 1, inf
    waiting = 1
    visited = 0
    while waiting > 0:
        waiting -= 1
        if limits[waiting] < least:
            continue
        node, height = nodes[waiting], heights[waiting]
        if height >= 0:
            group = first[height] + node
            _accumulate(edges[group], upper, turned, bounds)
            below = reach[group]
            bottom = waiting
            for child in range(FAN):
                limit = constant + bounds[child] + slack * (below[child] + SMALLEST)
                if below[child] >= 0.0 and limit >= least:
                    # In order, so that the child that allows most is taken first.
                    at = waiting
                    while at > bottom and limits[at - 1] > limit:
                        nodes[at], heights[at], limits[at] = nodes[at - 1], heights[at - 1], limits[at - 1]
                        at -= 1
                    nodes[at], heights[at], limits[at] = node * FAN + child, height - 1, limit
                    waiting += 1
        else:
            visited += 1
            _accumulate(leaves[node], plain, turned, scores)
            room = constant + slack * (reach[first[0] + node // FAN, node % FAN] + SMALLEST)
            rows = order[node * LEAF : (node + 1) * LEAF]
            for m in range(LEAF):
                if scores[m] + room >= least:
                    row = rows[m]
                    if row >= 0 and (len(hidden) == 0 or not hidden[row]):
                        score = _product(features, row, theta)
                        if score >= least:
                            n = place(slate, best, n, row, score, labels, key)
                            if n == k:
                                least = max(least, best[n - 1])
    if visited > MOST_VISITED * len(leaves):
        index.scans[0] = SCANS
    _remember(index.recent, slate, n)
    return n


@kernel
def _turned(theta, length, index):  # type: ignore[no-untyped-def]
    """theta in the coordinates of the index, which edge of a box each takes, their plain order, and the
    most that the constant features, and the rounding of sums in double precision, add to a score."""
    rotation, fixed = index.rotation, index.constant
    d = rotation.shape[1]
    exact = np.zeros(d)
    constant, size = 0.0, length * index.longest
    for i in range(len(theta)):
        line, a = rotation[i], theta[i]
        for j in range(d):
            exact[j] += a * line[j]
        constant += a * fixed[i]
        size += abs(a * fixed[i])
    constant += (len(theta) + 4) * FINE_ROUNDING * size
    turned = np.empty(d, np.float32)
    upper, plain = np.empty(d, np.int64), np.empty(d, np.int64)
    for j in range(d):
        turned[j] = exact[j] * index.longest
        upper[j] = j if turned[j] > 0 else d + j
        plain[j] = j
    return turned, upper, plain, constant


@kernel
def _accumulate(block, lines, weights, sums):  # type: ignore[no-untyped-def]
    """Set sums[m] to the sum over j of weights[j] times block[lines[j], m]."""
    for m in range(len(sums)):
        sums[m] = np.float32(0.0)
    d = len(weights)
    j = 0
    # Four a pass save loads and stores; the slices let the loop become vector instructions.
    while j + 4 <= d:
        a, b, c, e = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
        xa, xb, xc, xe = block[lines[j]], block[lines[j + 1]], block[lines[j + 2]], block[lines[j + 3]]
        for m in range(len(sums)):
            sums[m] = (((sums[m] + a * xa[m]) + b * xb[m]) + c * xc[m]) + e * xe[m]
        j += 4
    while j < d:
        a, xa = weights[j], block[lines[j]]
        for m in range(len(sums)):
            sums[m] += a * xa[m]
        j += 1


@kernel
def _product(features, row, theta):  # type: ignore[no-untyped-def]
    """The score of a row, in the order of a scan: feature 0 first."""
    x = features[row]
    score = 0.0
    for i in range(len(theta)):
        score += theta[i] * x[i]
    return score


@kernel
def _score_of_recent(recent, features, theta, hidden, k):  # type: ignore[no-untyped-def]
    """The k-th best score of the rows that won lately: no row below it can be in the slate."""
    best = np.empty(k)
    n = 0
    for row in recent:
        if row >= 0 and (len(hidden) == 0 or not hidden[row]):
            score = _product(features, row, theta)
            if n == k and not score > best[k - 1]:
                continue
            at = min(n, k - 1)
            while at > 0 and best[at - 1] < score:
                best[at] = best[at - 1]
                at -= 1
            best[at] = score
            n = min(n + 1, k)
    return best[k - 1] if n == k else -inf


@kernel
def _remember(recent, slate, n):  # type: ignore[no-untyped-def]
    """Put the rows of the slate that are not remembered yet first, and forget the oldest."""
    for position in range(n):
        known = False
        for row in recent:
            known = known or row == slate[position]
        if not known:
            for at in range(len(recent) - 1, 0, -1):
                recent[at] = recent[at - 1]
            recent[0] = slate[position]
