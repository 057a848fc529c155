"""The K items of largest x'theta, or of largest x'theta + c width, without looking at all of them.

Items lie in leaves, leaves in a tree, and every node has a box that holds its items' coordinates. The
largest x'theta that a box allows bounds its items from above, so a node below the K-th best score is
left alone. Boxes and leaves are half precision, and each bound is raised by more than rounding can
take from it; what decides is the same sum in double precision as in a scan, with the same rule for ties.
Widths are those of `kernels.search.widths`.
"""

from math import inf, sqrt

import numpy as np

from firstclick.kernels.compiling import kernel, shared_kernel
from firstclick.kernels.posterior import REFRESH, SAFE_PIVOT, mean
from firstclick.kernels.ranking import (
    FAN,
    LEAF,
    TILE,
    accumulate,
    insert,
    place,
    product,
    scan_by_bound,
    scan_by_product,
)
from firstclick.kernels.search.widths import (
    OBSERVATIONS,
    RAISED,
    SEARCHES,
    SMALLEST,
    VISITED,
    least_of_last,
    lower_tops,
    renew_widths,
    scan_with_old_widths,
    width_of,
)
from firstclick.kernels.vectors import sum_lines

# A slate this long, or of this share of the items, is found by a scan: there is little to leave out.
LONGEST_SLATE = 64
LARGEST_SHARE = 0.1

# A search that visits more than this share of the leaves has cost as much as a scan, or more; the next ones,
# of thetas much like this, would too. So many scans later it is tried again.
MOST_VISITED = 0.4
SCANS = 64

# Single precision knows numbers up to 3e38; products of larger ones are left to the scan.
LARGEST = 1e30
HALF_ROUNDING = 2.0**-11
ROUNDING = 2.0**-24
FINE_ROUNDING = 2.0**-51
SMALLEST_HALF = 2.0**-24

# Every so many searches one leaf gets new widths.
RENEWAL = 8


@shared_kernel
def rank_by_product(theta, catalog, request, key, slate):  # type: ignore[no-untyped-def]
    """Fill `slate` with the items of largest x'theta; return how many were found."""
    tree = catalog.tree
    length = _searchable_length(theta, tree, request, slate)
    if length < 0.0:
        return scan_by_product(theta, catalog, request, key, slate)
    if tree.scans[0] > 0:
        tree.scans[0] -= 1
        return scan_by_product(theta, catalog, request, key, slate)
    least = _least_of_recent(tree.recent, theta, catalog.features, request.hidden, len(slate))
    n = _search(theta, None, 0.0, 0.0, least, length, None, catalog, request, key, slate)
    _remember(tree.recent, slate, n)
    return n


@shared_kernel
def rank_above(theta, least, examined, catalog, request, key, slate):  # type: ignore[no-untyped-def]
    """Fill `slate` with the items of largest x'theta, if that is `least` at least, among those that were
    never examined; return how many were found."""
    tree = catalog.tree
    length = _searchable_length(theta, tree, request, slate)
    if length >= 0.0 and tree.scans[0] == 0:
        return _search(theta, None, 0.0, 0.0, least, length, examined, catalog, request, key, slate)
    if length >= 0.0:
        tree.scans[0] -= 1
    hidden, labels, n_rows = request.hidden, catalog.labels, len(catalog.rows)
    k, n = len(slate), 0
    best, scores = np.empty(k), np.empty(TILE)
    for start in range(0, n_rows, TILE):
        stop = min(start + TILE, n_rows)
        accumulate(scores[: stop - start], catalog.columns, theta, start)
        for row in range(start, stop):
            if examined[row] > 0.0 or (len(hidden) > 0 and hidden[row]):
                continue
            if scores[row - start] >= least:
                n = place(slate, best, n, row, scores[row - start], labels, key)
                if n == k:
                    least = max(least, best[n - 1])
    return n


@shared_kernel
def rank_by_bound(state, sigma, c, catalog, request, key, slate):  # type: ignore[no-untyped-def]
    """Fill `slate` with the items of largest x'mean + c sqrt(x'M^-1 x); return how many were found."""
    theta, factor = mean(state.moment, state.factor, sigma), state.factor
    # Rounding may lift a width that should shrink: in the sums of M, which are never made anew, and in the
    # updates of its factor, until that is. By at most this share, as no eigenvalue of M is below 1 or above
    # its trace.
    trace, d = 0.0, len(theta)
    for i in range(d):
        trace += state.precision[i, i]
    observations = state.observations[0]
    drift = trace * (2 * REFRESH * d + observations) * FINE_ROUNDING
    widths = catalog.widths
    if (
        len(widths.values) == 0
        or len(request.candidates) > 0
        or observations < widths.turn[OBSERVATIONS]  # These are the widths of another state.
        or not (drift < 1.0 and trace * SAFE_PIVOT < 0.1)  # Beyond that the factor is not always made anew.
    ):
        return scan_by_bound(theta, factor, c, catalog, request, key, slate)
    widths.turn[OBSERVATIONS] = observations
    raised = c * (1.0 + drift) * RAISED
    least = least_of_last(widths.recent, theta, factor, c, catalog.features, request.hidden, len(slate))
    length = _searchable_length(theta, catalog.tree, request, slate)
    if catalog.tree.covered == 0:
        n = scan_with_old_widths(theta, factor, c, raised, least, catalog, request, key, slate)
    elif length >= 0.0:
        n = _search(theta, factor, c, raised, least, length, None, catalog, request, key, slate)
    else:
        return scan_by_bound(theta, factor, c, catalog, request, key, slate)
    recent = widths.recent
    for position in range(len(recent)):
        recent[position] = slate[position] if position < n else -1
    return n


@kernel
def _searchable_length(theta, tree, request, slate):  # type: ignore[no-untyped-def]
    """The norm of theta, or -1 where there is no tree to search for this request and such numbers."""
    fixed, squares = 0.0, 0.0
    for i in range(len(theta)):
        squares += theta[i] * theta[i]
        fixed += abs(theta[i] * tree.constant[i])
    length = sqrt(squares)
    if (
        tree.covered > 0
        and len(request.candidates) == 0
        and len(slate) <= LONGEST_SLATE
        and len(slate) <= LARGEST_SHARE * tree.covered
        and length * tree.longest < LARGEST
        and fixed < inf
    ):
        return length
    return -1.0


@kernel
def _search(theta, factor, c, raised, least, length, examined, catalog, request, key, slate):  # type: ignore[no-untyped-def]
    """Fill `slate` from the tree with what has a score of at least `least`; `examined`, if given, leaves
    items out.

    Without a factor there are no widths, and none of what is done for them is compiled.
    """
    tree, features, labels, hidden = catalog.tree, catalog.features, catalog.labels, request.hidden
    order, leaves, edges, reach, first = tree.order, tree.leaves, tree.edges, tree.reach, tree.first
    values, tops = catalog.widths.values, catalog.widths.tops
    turned, upper, plain, constant = _turned(theta, length, tree)
    d = len(turned)
    # What rounding may take from a bound, for each unit of norm in a box: rotation and sums of d products in
    # single precision, whose sizes may add up to sqrt(d) times the norm, and casts. Leaves are rounded to
    # half precision besides; the edges of boxes are rounded outward.
    unit = length * tree.longest
    slack = (2 * d * sqrt(d) + 4 * d + 32) * ROUNDING * unit
    coarse = slack + HALF_ROUNDING * unit

    k, n = len(slate), 0
    best, z = np.empty(k), np.empty(len(theta))
    # Rows that came after the tree was made.
    for row in range(tree.covered, len(features)):
        if examined is not None and examined[row] > 0.0:
            continue
        if len(hidden) == 0 or not hidden[row]:
            score = product(features[row], theta)
            if factor is not None:
                at = len(order) + row - tree.covered
                if score + raised * values[at] < least:
                    continue
                width = width_of(features, row, factor, z)
                values[at] = width * RAISED + SMALLEST
                score += c * width
            if score >= least:
                n = place(slate, best, n, row, score, labels, key)
                if n == k:
                    least = max(least, best[n - 1])

    levels = len(first) - 1
    # What waits: nodes, their heights, and the most that they allow.
    nodes, limits = np.empty((FAN * levels + 1, 2), np.int64), np.empty(FAN * levels + 1)
    nodes[0, 0], nodes[0, 1], limits[0] = 0, levels - 1, inf
    waiting, visited = 1, 0
    # Which of the visited leaves gets new widths for all its items: one after the other, now and then. Else
    # an item far from the slate would keep its first width, and its leaf be visited for it again and again.
    renewed = -1
    if factor is not None:
        turn = catalog.widths.turn
        turn[SEARCHES] += 1
        if turn[SEARCHES] % RENEWAL == 0:
            renewed = 1 + turn[SEARCHES] // RENEWAL % max(turn[VISITED], 1)
    bounds, scores = np.empty(FAN, np.float32), np.empty(LEAF, np.float32)
    while waiting > 0:
        waiting -= 1
        if limits[waiting] < least:
            continue
        node, height = nodes[waiting, 0], nodes[waiting, 1]
        group = first[height] + node
        sum_lines(edges[group], upper, turned, bounds)
        below = reach[group]
        if height > 0:
            # Longer items come first, and are taken first.
            for child in range(FAN - 1, -1, -1):
                limit = constant + bounds[child] + slack * below[child]
                if factor is not None:
                    limit += raised * tops[group, child]
                # Whatever is no number is looked at.
                if not limit < least and below[child] >= 0.0:
                    nodes[waiting, 0], nodes[waiting, 1] = node * FAN + child, height - 1
                    limits[waiting] = limit
                    waiting += 1
            continue
        for child in range(FAN):
            widest = 0.0
            if factor is not None:
                widest = raised * tops[group, child]
            if constant + bounds[child] + slack * below[child] + widest < least or below[child] < 0.0:
                continue
            visited += 1
            leaf = node * FAN + child
            sum_lines(leaves[leaf], plain, turned, scores)
            room = constant + coarse * below[child]
            need = np.float32(least - room - widest)
            start = leaf * LEAF
            if factor is not None and visited == renewed:
                renew_widths(order, start, features, factor, values, z)
                lower_tops(leaf, values, tops, first)
            if _largest(scores) < need:
                continue
            computed = False
            for m in range(LEAF):
                if scores[m] < need:
                    continue
                if factor is not None and scores[m] + room + raised * values[start + m] < least:
                    continue
                row = order[start + m]
                if row < 0 or (len(hidden) > 0 and hidden[row]):
                    continue
                if examined is not None and examined[row] > 0.0:
                    continue
                score = product(features[row], theta)
                if factor is not None:
                    width = width_of(features, row, factor, z)
                    values[start + m] = width * RAISED + SMALLEST
                    computed = True
                    score += c * width
                if score >= least:
                    n = place(slate, best, n, row, score, labels, key)
                    if n == k:
                        least = max(least, best[n - 1])
                        need = np.float32(least - room - widest)
            if computed:
                lower_tops(leaf, values, tops, first)
    if factor is not None:
        catalog.widths.turn[VISITED] = visited
    elif visited > MOST_VISITED * len(leaves):
        tree.scans[0] = SCANS
    return n


@kernel
def _turned(theta, length, tree):  # type: ignore[no-untyped-def]
    """theta in the coordinates of the tree, which edge of a box each takes, their plain order, and the most
    that a score gets besides: from constant features, from rounding in double precision, and from numbers
    too small for half precision."""
    rotation, fixed = tree.rotation, tree.constant
    d = rotation.shape[1]
    exact = np.zeros(d)
    constant, size = 0.0, length * tree.longest
    for i in range(len(theta)):
        line, a = rotation[i], theta[i]
        for j in range(d):
            exact[j] += a * line[j]
        constant += a * fixed[i]
        size += abs(a * fixed[i])
    constant += (len(theta) + 4) * FINE_ROUNDING * size
    constant += d * (SMALLEST_HALF * length * tree.longest + SMALLEST)
    turned = np.empty(d, np.float32)
    upper, plain = np.empty(d, np.int64), np.empty(d, np.int64)
    for j in range(d):
        turned[j] = exact[j] * tree.longest
        upper[j] = j if exact[j] > 0 else d + j
        plain[j] = j
    return turned, upper, plain, constant


@kernel
def _largest(scores):  # type: ignore[no-untyped-def]
    largest = scores[0]
    for m in range(1, LEAF):
        # Not max(), which asks for NaN as well: this becomes vector instructions.
        largest = scores[m] if scores[m] > largest else largest
    return largest


@kernel
def _least_of_recent(recent, theta, features, hidden, k):  # type: ignore[no-untyped-def]
    """The k-th best product of the rows that won lately: no row below it can be in the slate."""
    best = np.full(k, -inf)
    for row in recent:
        if row >= 0 and (len(hidden) == 0 or not hidden[row]):
            insert(best, product(features[row], theta))
    return best[k - 1]


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
