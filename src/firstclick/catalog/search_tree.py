"""Build the tree of boxes that `kernels.search.tree` searches.

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
from numpy.typing import ArrayLike, NDArray

from firstclick.kernels.arrays import CatalogArrays, TreeArrays
from firstclick.kernels.compiling import compiled
from firstclick.kernels.ranking import FAN, LEAF
from firstclick.kernels.search.groups import new_groups
from firstclick.kernels.search.seen import nothing_seen
from firstclick.kernels.search.widths import no_widths
from firstclick.kernels.vectors import HALVES, halve

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Rows = NDArray[np.int32]

# Below this a scan takes no longer than a search.
FEWEST_ITEMS = 1000

# Features shorter than that cannot be divided by their length.
SHORTEST = 1e-290

SMALLEST_SHELL = 4 * LEAF
# Items of a shell from which the grid's lines are taken.
SAMPLE = 1024
TABLE = 256
REMEMBERED = 8

# Rows from which the axes are found, that are rotated together, and whose cells are found together: what they
# need stays in the cache.
AXES_SAMPLE = 5000
BLOCK = 2048
TILE = 64


def no_tree(n_features: int) -> TreeArrays:
    """A tree that covers nothing: every search is a scan."""
    return TreeArrays(
        covered=0,
        rotation=np.empty((n_features, 0)),
        constant=np.zeros(n_features),
        longest=0.0,
        order=np.empty(0, np.int32),
        leaves=np.empty((0, 0, LEAF), np.uint16),
        edges=np.empty((0, 0, FAN), np.uint16),
        reach=np.empty((0, FAN), np.float32),
        first=np.zeros(1, np.int64),
        recent=np.empty(0, np.int64),
        scans=np.zeros(1, np.int64),
    )


def with_own_hints(catalog: CatalogArrays) -> CatalogArrays:
    """The same catalog and tree with hints of its own: no other policy changes them meanwhile."""
    tree = catalog.tree
    tree = tree._replace(recent=np.full_like(tree.recent, -1), scans=np.zeros_like(tree.scans))
    return catalog._replace(tree=tree)


def build_tree(features: Floats) -> TreeArrays:
    """A tree over all rows; none for few items, for equal ones, or where half precision is not known."""
    n_items, n_features = features.shape
    if n_items < FEWEST_ITEMS or not HALVES:
        return no_tree(n_features)
    smallest, largest = _kernel(_extremes)(features)
    varies = largest > smallest
    ends: Floats = np.concatenate([smallest[varies], largest[varies]])
    size = float(np.abs(ends).max(initial=0.0))
    longest = size * math.sqrt(max(int(np.count_nonzero(varies)), 1))
    if not longest > SHORTEST:
        return no_tree(n_features)
    rotation, rotated, norms = _rotated(features, np.flatnonzero(varies), 1.0 / longest)
    order = _arranged(rotated, norms)

    d, n_leaves = rotated.shape[1], len(order) // LEAF
    leaves = np.empty((n_leaves, d, LEAF), np.uint16)
    high, low = np.empty((n_leaves, d), np.float32), np.empty((n_leaves, d), np.float32)
    reach = np.empty(n_leaves, np.float32)
    _kernel(_fill_leaves)(rotated, norms, order, leaves, high, low, reach)

    sizes = [-(-n_leaves // FAN)]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // FAN))
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    edges = np.empty((first[-1], 2 * d, FAN), np.uint16)
    reaches = np.empty((first[-1], FAN), np.float32)
    for start, stop in pairwise(first):
        high, low, reach = _kernel(_group)(high, low, reach, edges[start:stop], reaches[start:stop])

    turning = np.zeros((n_features, d))
    turning[varies] = rotation
    return TreeArrays(
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
    """Compiled, and kept between processes with what belongs to the tree."""
    return compiled(function, TreeArrays)


def _rotated(features: Floats, columns: NDArray[np.intp], scale: float) -> tuple[Floats, Singles, Singles]:
    """The axes along which the features vary most, widest first; scaled features along them; their norms."""
    cast = _kernel(_scaled)
    every = -(-len(features) // AXES_SAMPLE)
    sample = np.ascontiguousarray(features[::every])
    scaled = np.empty((max(len(sample), BLOCK), len(columns)), np.float32)
    cast(sample, columns, scale, scaled)
    # Eigenvectors of a symmetric matrix: orthogonal to the last digit, however roughly the matrix is known.
    products = scaled[: len(sample)].T @ scaled[: len(sample)]
    rotation = np.linalg.eigh(products.astype(np.float64))[1][:, ::-1]
    single = rotation.astype(np.float32)
    rotated = np.empty((len(features), len(columns)), np.float32)
    norms = np.empty(len(features), np.float32)
    for start in range(0, len(features), BLOCK):
        stop = min(start + BLOCK, len(features))
        block = scaled[: stop - start]
        cast(features[start:stop], columns, scale, block)
        np.einsum("ij,ij->i", block, block, out=norms[start:stop])
        np.matmul(block, single, out=rotated[start:stop])
    np.sqrt(norms, out=norms)
    norms *= np.float32(1.0 + 2.0**-16)  # A little too long, never too short.
    return rotation, rotated, norms


def _arranged(rotated: Singles, norms: Singles) -> Rows:
    """The rows, shell after shell and cell after cell; each shell is filled up to whole leaves by -1."""
    rows, ends = _kernel(_shells)(norms, SMALLEST_SHELL)
    parts: list[Rows] = []
    for start, end in pairwise(ends):
        parts += [_by_cell(rotated, rows[start:end]), np.full(-(end - start) % LEAF, -1, np.int32)]
    return np.concatenate(parts)


def _by_cell(rotated: Singles, rows: Rows) -> Rows:
    """The rows of a shell in the order of the cells of a grid, about one leaf a cell."""
    n_bits = math.ceil(math.log2(len(rows) / LEAF)) if len(rows) > LEAF else 0
    if n_bits == 0:
        return rows
    sample = rotated[rows[:: -(-len(rows) // SAMPLE)]]
    # Each halving goes to the coordinate whose cells are widest then; the order of the halvings is the
    # order of the bits, as in a k-d tree.
    width = np.ptp(sample, axis=0).astype(np.float64)
    halved = []
    for _ in range(n_bits):
        halved.append(int(np.argmax(width)))
        width[halved[-1]] /= 2
    coordinates = np.array(list(dict.fromkeys(halved)))
    sample = np.sort(sample[:, coordinates], axis=0)
    # Where a value lies among the quantiles is looked up in a table of even steps: near enough, because
    # boxes are drawn around what ends up in a cell.
    low, high = sample[len(sample) // 64], sample[-1 - len(sample) // 64]
    size = (high - low).astype(np.float64) / (TABLE - 1)
    steps = 1.0 / np.maximum(size, 1e-30)
    bits = np.zeros((len(coordinates), TABLE), np.int32)
    for line, coordinate, values, start, step in zip(bits, coordinates, sample.T, low, size, strict=True):
        when = [n_bits - 1 - place for place, other in enumerate(halved) if other == coordinate]
        lines = values[np.arange(1, 2 ** len(when)) * len(values) // 2 ** len(when)]
        between = np.searchsorted(lines, start + np.arange(TABLE) * step, side="right")
        for bit, place in enumerate(reversed(when)):
            line |= (((between >> bit) & 1) << place).astype(np.int32)
    sort = _kernel(_sorted_by_cell)
    return np.asarray(sort(rotated, rows, coordinates, low, steps.astype(np.float32), bits, 2**n_bits))


def _extremes(features):  # type: ignore[no-untyped-def]
    smallest, largest = features[0].copy(), features[0].copy()
    for row in range(1, len(features)):
        x = features[row]
        for i in range(len(x)):
            smallest[i], largest[i] = min(smallest[i], x[i]), max(largest[i], x[i])
    return smallest, largest


def _scaled(features, columns, scale, scaled):  # type: ignore[no-untyped-def]
    for row in range(len(features)):
        x, line = features[row], scaled[row]
        for j in range(len(columns)):
            line[j] = x[columns[j]] * scale


def _shells(norms, smallest):  # type: ignore[no-untyped-def]
    """The rows by falling norm, roughly, in their own order where norms are alike; and where shells end.

    Each shell is at least twice as large as the one before.
    """
    # The first bits of a positive number in single precision are its logarithm, 64 steps for a doubling.
    kinds = norms.view(np.uint32) >> 17
    counts = np.zeros(2**14 + 1, np.int64)
    for row in range(len(kinds)):
        counts[2**14 - kinds[row]] += 1
    ends = np.empty(66, np.int64)
    ends[0], n_ends, size, above = 0, 1, smallest, 0
    for kind in range(2**14 + 1):
        count = counts[kind]
        counts[kind] = above
        above += count
        if above - ends[n_ends - 1] >= size or (above == len(norms) and above > ends[n_ends - 1]):
            ends[n_ends] = above
            n_ends += 1
            size = max(2 * size, 2 * (above - ends[n_ends - 2]))
    rows = np.empty(len(norms), np.int32)
    for row in range(len(kinds)):
        kind = 2**14 - kinds[row]
        rows[counts[kind]] = row
        counts[kind] += 1
    return rows, ends[:n_ends]


def _sorted_by_cell(rotated, rows, coordinates, low, steps, bits, n_cells):  # type: ignore[no-untyped-def]
    cells = np.zeros(len(rows), np.int32)
    counts = np.zeros(n_cells + 1, np.int64)
    last = np.float32(bits.shape[1] - 1)
    # Some rows at a time, coordinate by coordinate: each of the three loops is quick by itself.
    values, places = np.empty(TILE, np.float32), np.empty(TILE, np.int32)
    for start in range(0, len(rows), TILE):
        some, own = rows[start : start + TILE], cells[start : start + TILE]
        for i in range(len(coordinates)):
            coordinate, first, step, line = coordinates[i], low[i], steps[i], bits[i]
            for m in range(len(some)):
                values[m] = rotated[some[m], coordinate]
            for m in range(len(some)):
                value = (values[m] - first) * step
                value = value if value > np.float32(0.0) else np.float32(0.0)
                places[m] = np.int32(value if value < last else last)
            for m in range(len(some)):
                own[m] |= line[places[m]]
        for cell in own:
            counts[cell + 1] += 1
    for cell in range(n_cells):
        counts[cell + 1] += counts[cell]
    arranged = np.empty(len(rows), np.int32)
    for m in range(len(rows)):
        cell = cells[m]
        arranged[counts[cell]] = rows[m]
        counts[cell] += 1
    return arranged


def _fill_leaves(rotated, norms, order, leaves, high, low, reach):  # type: ignore[no-untyped-def]
    d = rotated.shape[1]
    lines, column = np.empty((LEAF, d), np.float32), np.empty(LEAF, np.float32)
    for leaf in range(len(leaves)):
        rows = order[leaf * LEAF : (leaf + 1) * LEAF]
        block, top, bottom = leaves[leaf], high[leaf], low[leaf]
        longest = np.float32(-1.0)
        for m in range(LEAF):
            # A place without an item repeats the leaf's first one, and is never looked up.
            row = rows[m] if rows[m] >= 0 else rows[0]
            longest = max(longest, norms[row])
            x, line = rotated[row], lines[m]
            for j in range(d):
                line[j] = x[j]
        reach[leaf] = longest
        for j in range(d):
            top[j], bottom[j] = lines[0, j], lines[0, j]
        for m in range(1, LEAF):
            line = lines[m]
            for j in range(d):
                top[j] = line[j] if line[j] > top[j] else top[j]
                bottom[j] = line[j] if line[j] < bottom[j] else bottom[j]
        for j in range(d):
            for m in range(LEAF):
                column[m] = lines[m, j]
            halve(column, block[j])


def _group(high, low, reach, edges, reaches):  # type: ignore[no-untyped-def]
    """Put the children's edges and reaches side by side, group by group; return those of the groups.

    Edges are moved outward by more than they are rounded to half precision: no box gets smaller.
    """
    n, d = high.shape
    tops, bottoms = np.empty((len(edges), d), np.float32), np.empty((len(edges), d), np.float32)
    longest = np.empty(len(edges), np.float32)
    line = np.zeros(FAN, np.float32)
    share, least = np.float32(2.0**-10), np.float32(2.0**-24)
    for group in range(len(edges)):
        block, first, size = edges[group], group * FAN, min(FAN, n - group * FAN)
        for m in range(FAN):
            reaches[group, m] = reach[first + m] if m < size else np.float32(-1.0)
        longest[group] = reaches[group].max()
        for j in range(d):
            tops[group, j], bottoms[group, j] = high[first, j], low[first, j]
            for m in range(size):
                edge = high[first + m, j]
                tops[group, j] = max(tops[group, j], edge)
                line[m] = edge + abs(edge) * share + least
            halve(line, block[j])
            for m in range(size):
                edge = low[first + m, j]
                bottoms[group, j] = min(bottoms[group, j], edge)
                line[m] = edge - abs(edge) * share - least
            halve(line, block[d + j])
    return tops, bottoms, longest


def catalog_arrays(
    features: NDArray[np.float64] | None, n_items: int, labels: ArrayLike | None = None
) -> CatalogArrays:
    """The items for kernels. `labels`, all different, are what ties and Beta draws hash: row numbers by
    default."""
    rows = np.empty((n_items, 0)) if features is None else features
    names = np.arange(n_items, dtype=np.uint64) if labels is None else np.asarray(labels, np.uint64)
    columns, tree = np.ascontiguousarray(rows.T), build_tree(rows)
    return CatalogArrays(
        rows, columns, np.arange(n_items), names, tree, no_widths(), new_groups(0), nothing_seen()
    )
