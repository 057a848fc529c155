"""Build the tree of boxes that `kernels.index` searches.

Features are rotated so that their first coordinates hold most (an orthogonal change of coordinates
leaves x'theta as it is), features that are the same for all items are put aside, and norms are divided by
the longest. Items are sorted into shells, each twice as large as the one before and of smaller norms,
because popular items win most often; within a shell into the cells of a grid, whose lines are quantiles
of the widest coordinates. Neighbours in that order share leaves, neighbouring leaves a parent, and so on up.
"""

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.compiling import compiled
from firstclick.kernels.groups import no_groups
from firstclick.kernels.index import FAN, LEAF, LONGEST_SLATE, RAISED, SMALLEST
from firstclick.kernels.ranking import CatalogArrays, IndexArrays, WidthArrays

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Rows = NDArray[np.int64]

# Below this a scan takes no longer than a search.
FEWEST_ITEMS = 1000

SMALLEST_SHELL = 4 * LEAF
# Items of a shell from which the grid's lines are taken.
SAMPLE = 1024
TABLE = 256
REMEMBERED = 8

# Rows from which the axes are found, and rows that are rotated together: what they need stays in the cache.
AXES_SAMPLE = 20_000
BLOCK = 2048


def no_index(n_features: int) -> IndexArrays:
    """An index that covers nothing: every search is a scan."""
    return IndexArrays(
        covered=0,
        rotation=np.empty((n_features, 0)),
        constant=np.zeros(n_features),
        longest=0.0,
        order=np.empty(0, np.int64),
        leaves=np.empty((0, 0, LEAF), np.float32),
        edges=np.empty((0, 0, FAN), np.float32),
        reach=np.empty((0, FAN)),
        first=np.zeros(1, np.int64),
        recent=np.empty(0, np.int64),
        scans=np.zeros(1, np.int64),
    )


def scanning(catalog: CatalogArrays) -> CatalogArrays:
    """The same catalog without shortcuts: every search of it is a scan."""
    none = no_index(catalog.features.shape[1])
    return catalog._replace(tree=none, widths=no_widths(), groups=no_groups())


def no_widths() -> WidthArrays:
    """No widths: each is computed whenever it is needed."""
    return WidthArrays(
        values=np.empty(0, np.float32),
        tops=np.empty((0, FAN), np.float32),
        recent=np.empty(0, np.int64),
        turn=np.zeros(2, np.int64),
    )


def first_widths(catalog: CatalogArrays) -> WidthArrays:
    """The largest widths that items can have in any state, their norms: M is at least the identity."""
    norms = np.sqrt(np.einsum("ij,ij->i", catalog.features, catalog.features))
    with np.errstate(over="ignore"):  # What single precision does not know is infinite.
        sizes = (norms * RAISED + SMALLEST).astype(np.float32)
    index = catalog.tree
    values = np.concatenate(
        [np.where(index.order >= 0, sizes[index.order], np.float32(0)), sizes[index.covered :]]
    )
    tops = np.zeros(index.reach.shape, np.float32)
    below = values[: len(index.order)].reshape(-1, LEAF).max(axis=1, initial=0)
    for start, stop in pairwise(index.first):
        tops[start:stop].reshape(-1)[: len(below)] = below
        below = tops[start:stop].max(axis=1)
    return WidthArrays(values, tops, np.full(LONGEST_SLATE, -1, np.int64), np.zeros(2, np.int64))


def build_index(features: Floats) -> IndexArrays:
    """An index over all rows; none for few items, or where all are equal."""
    n_items, n_features = features.shape
    if n_items < FEWEST_ITEMS:
        return no_index(n_features)
    smallest, largest = _kernel(_extremes)(features)
    varies = largest > smallest
    ends: Floats = np.concatenate([smallest[varies], largest[varies]])
    size = float(np.abs(ends).max(initial=0.0))
    longest = size * math.sqrt(max(int(np.count_nonzero(varies)), 1))
    if not longest > 0.0:
        return no_index(n_features)
    rotation, rotated = _rotated(features, np.flatnonzero(varies), 1.0 / longest)
    norms = _kernel(_norms)(rotated)
    order = _arranged(rotated, norms)

    d, n_leaves = rotated.shape[1], len(order) // LEAF
    leaves = np.empty((n_leaves, d, LEAF), np.float32)
    high, low = np.empty((n_leaves, d), np.float32), np.empty((n_leaves, d), np.float32)
    reach = np.empty(n_leaves)
    _kernel(_fill_leaves)(rotated, norms, order, leaves, high, low, reach)

    sizes = [-(-n_leaves // FAN)]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // FAN))
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    edges = np.zeros((first[-1], 2 * d, FAN), np.float32)
    reaches = np.empty((first[-1], FAN))
    for start, stop in pairwise(first):
        high, low, reach = _kernel(_group)(high, low, reach, edges[start:stop], reaches[start:stop])

    turning = np.zeros((n_features, d))
    turning[varies] = rotation
    return IndexArrays(
        covered=n_items,
        rotation=turning,
        constant=np.where(varies, 0.0, features[0]),
        longest=longest,
        order=order,
        leaves=leaves,
        edges=edges,
        reach=reaches,
        first=first,
        recent=np.full(REMEMBERED, -1, np.int64),
        scans=np.zeros(1, np.int64),
    )


def _kernel(function: Any) -> Any:
    """Compiled, and kept between processes with what belongs to the index."""
    return compiled(function, IndexArrays)


def _rotated(features: Floats, columns: Rows, scale: float) -> tuple[Floats, Singles]:
    """The axes along which the features vary most, widest first, and the scaled features along them."""
    cast = _kernel(_scaled)
    every = -(-len(features) // AXES_SAMPLE)
    sample = cast(np.ascontiguousarray(features[::every]), columns, scale)
    # Eigenvectors of a symmetric matrix: orthogonal to the last digit, however roughly the matrix is known.
    rotation = np.linalg.eigh((sample.T @ sample).astype(np.float64))[1][:, ::-1]
    single = rotation.astype(np.float32)
    rotated = np.empty((len(features), len(columns)), np.float32)
    for start in range(0, len(features), BLOCK):
        np.matmul(
            cast(features[start : start + BLOCK], columns, scale), single, out=rotated[start : start + BLOCK]
        )
    return rotation, rotated


def _arranged(rotated: Singles, norms: Singles) -> Rows:
    """The rows, shell after shell and cell after cell; each shell is filled up to whole leaves by -1."""
    ends = [min(SMALLEST_SHELL, len(norms))]
    while ends[-1] < len(norms):
        ends.append(min(2 * ends[-1] + SMALLEST_SHELL, len(norms)))
    last = np.array(ends, np.int64) - 1
    shortest = -np.partition(-norms, last)[last]
    parts: list[Rows] = []
    above = np.float32(np.inf)
    for limit in shortest:
        # Rows in their own order, so that memory is read from front to back.
        shell = np.flatnonzero((norms >= limit) & (norms < above))
        if len(shell):
            parts += [_by_cell(rotated, shell), np.full(-len(shell) % LEAF, -1)]
        above = limit
    return np.concatenate(parts).astype(np.int64)


def _by_cell(rotated: Singles, rows: Rows) -> Rows:
    """The rows of a shell in the order of the cells of a grid, about one leaf a cell."""
    n_bits = math.ceil(math.log2(len(rows) / LEAF)) if len(rows) > LEAF else 0
    if n_bits == 0:
        return rows
    sample = np.sort(rotated[rows[:: -(-len(rows) // SAMPLE)]], axis=0)
    # Each halving goes to the coordinate whose cells are widest then; the order of the halvings is the
    # order of the bits, as in a k-d tree.
    width = (sample[-1] - sample[0]).astype(np.float64)
    halved = []
    for _ in range(n_bits):
        halved.append(int(np.argmax(width)))
        width[halved[-1]] /= 2
    coordinates = np.array(list(dict.fromkeys(halved)))
    # Where a value lies among the quantiles is looked up in a table of even steps: near enough, because
    # boxes are drawn around what ends up in a cell.
    low, high = sample[len(sample) // 64, coordinates], sample[-1 - len(sample) // 64, coordinates]
    size = (high - low).astype(np.float64) / (TABLE - 1)
    steps = 1.0 / np.maximum(size, 1e-30)
    bits = np.zeros((len(coordinates), TABLE), np.int64)
    for line, coordinate, start, step in zip(bits, coordinates, low, size, strict=True):
        when = [n_bits - 1 - place for place, other in enumerate(halved) if other == coordinate]
        lines = sample[np.arange(1, 2 ** len(when)) * len(sample) // 2 ** len(when), coordinate]
        between = np.searchsorted(lines, start + np.arange(TABLE) * step, side="right")
        for bit, place in enumerate(reversed(when)):
            line |= ((between >> bit) & 1) << place
    sort = _kernel(_sorted_by_cell)
    return np.asarray(sort(rotated, rows, coordinates, low, steps.astype(np.float32), bits, 2**n_bits))


def _extremes(features):  # type: ignore[no-untyped-def]
    smallest, largest = features[0].copy(), features[0].copy()
    for row in range(1, len(features)):
        x = features[row]
        for i in range(len(x)):
            smallest[i], largest[i] = min(smallest[i], x[i]), max(largest[i], x[i])
    return smallest, largest


def _scaled(features, columns, scale):  # type: ignore[no-untyped-def]
    scaled = np.empty((len(features), len(columns)), np.float32)
    for row in range(len(features)):
        x, line = features[row], scaled[row]
        for j in range(len(columns)):
            line[j] = x[columns[j]] * scale
    return scaled


def _norms(rotated):  # type: ignore[no-untyped-def]
    norms = np.empty(len(rotated), np.float32)
    for row in range(len(rotated)):
        x = rotated[row]
        total = 0.0
        for j in range(len(x)):
            total += x[j] * x[j]
        # A little too long, never too short.
        norms[row] = np.sqrt(total) * (1.0 + 2.0**-20)
    return norms


def _sorted_by_cell(rotated, rows, coordinates, low, steps, bits, n_cells):  # type: ignore[no-untyped-def]
    cells = np.empty(len(rows), np.int64)
    counts = np.zeros(n_cells + 1, np.int64)
    last = np.float32(bits.shape[1] - 1)
    for m in range(len(rows)):
        x = rotated[rows[m]]
        cell = 0
        for i in range(len(coordinates)):
            step = (x[coordinates[i]] - low[i]) * steps[i]
            cell |= bits[i, np.int64(min(max(step, np.float32(0.0)), last))]
        cells[m] = cell
        counts[cell + 1] += 1
    for cell in range(n_cells):
        counts[cell + 1] += counts[cell]
    arranged = np.empty(len(rows), np.int64)
    for m in range(len(rows)):
        arranged[counts[cells[m]]] = rows[m]
        counts[cells[m]] += 1
    return arranged


def _fill_leaves(rotated, norms, order, leaves, high, low, reach):  # type: ignore[no-untyped-def]
    d = rotated.shape[1]
    for leaf in range(len(leaves)):
        rows = order[leaf * LEAF : (leaf + 1) * LEAF]
        longest = -1.0
        for m in range(LEAF):
            if rows[m] >= 0:
                longest = max(longest, norms[rows[m]])
        reach[leaf] = longest
        block, top, bottom = leaves[leaf], high[leaf], low[leaf]
        for m in range(LEAF):
            # A place without an item repeats the leaf's first one, and is never looked up.
            x = rotated[rows[m] if rows[m] >= 0 else rows[0]]
            for j in range(d):
                block[j, m] = x[j]
        for j in range(d):
            line = block[j]
            largest, smallest = line[0], line[0]
            for m in range(1, LEAF):
                largest, smallest = max(largest, line[m]), min(smallest, line[m])
            top[j], bottom[j] = largest, smallest


def _group(high, low, reach, edges, reaches):  # type: ignore[no-untyped-def]
    """Put the children's edges side by side, group by group; return the boxes of the groups."""
    n, d = high.shape
    tops, bottoms = np.empty((len(edges), d), np.float32), np.empty((len(edges), d), np.float32)
    longests = np.empty(len(edges))
    for group in range(len(edges)):
        block, top, bottom = edges[group], tops[group], bottoms[group]
        for j in range(d):
            top[j], bottom[j] = -np.inf, np.inf
        longest = -1.0
        for m in range(FAN):
            child = group * FAN + m
            reaches[group, m] = -1.0
            if child < n and reach[child] >= 0.0:
                for j in range(d):
                    block[j, m], block[d + j, m] = high[child, j], low[child, j]
                    top[j], bottom[j] = max(top[j], high[child, j]), min(bottom[j], low[child, j])
                reaches[group, m] = reach[child]
                longest = max(longest, reach[child])
        longests[group] = longest
    return tops, bottoms, longests
