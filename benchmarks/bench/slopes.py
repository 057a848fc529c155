"""How cost grows: the exponent of a power law through measured points."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.bench.cells import SWEPT_ITEMS
from benchmarks.bench.results import POLICY, SCAN, Measured

# Below this many items the work that does not depend on them hides how the rest grows.
MANY_ITEMS = 256

# A line through two points always fits.
FEWEST_POINTS = 3


def slope(points: Mapping[int, float]) -> float | None:
    """The p of value = constant * size^p that fits best on a log-log scale; None for under three sizes."""
    if len(points) < FEWEST_POINTS:
        return None
    sizes, values = np.log(list(points.keys())), np.log(list(points.values()))
    sizes = sizes - sizes.mean()
    return float(sizes @ values / (sizes @ sizes))


@dataclass(frozen=True)
class Growth:
    """How the time of a policy's step, and of its scan, grows with one size while the others stay."""

    policy: str
    size: str  # 'L', 'd' or 'K'
    where: str  # what stays: 'd = 20, K = 4'
    sizes: tuple[int, ...]
    exponent: float
    scan_exponent: float


def growth(cells: Sequence[Measured], n_features: int, k: int) -> list[Growth]:
    """Slopes in L at these d and k, in d at the swept and the largest number of items, and in K.

    From three sizes or more, and from catalogs of 256 items or more.
    """
    found: list[Growth] = []
    largest = max((cell.n_items for cell in cells), default=0)
    for policy in dict.fromkeys(cell.policy for cell in cells):
        own = [cell for cell in cells if cell.policy == policy and cell.n_items >= MANY_ITEMS]
        along: list[tuple[str, str, Callable[[Measured], int], list[Measured]]] = [
            ("L", f"d = {n_features}, K = {k}", lambda cell: cell.n_items,
             [cell for cell in own if (cell.n_features, cell.k) == (n_features, k)])
        ]  # fmt: skip
        along += [
            ("d", f"L = {n_items:,}, K = {k}", lambda cell: cell.n_features,
             [cell for cell in own if (cell.n_items, cell.k) == (n_items, k)])
            for n_items in dict.fromkeys((SWEPT_ITEMS, largest))
        ]  # fmt: skip
        along += [
            ("K", f"L = {SWEPT_ITEMS:,}, d = {n_features}", lambda cell: cell.k,
             [cell for cell in own if (cell.n_items, cell.n_features) == (SWEPT_ITEMS, n_features)])
        ]  # fmt: skip
        for size, where, of, points in along:
            exponent, scan_exponent = (
                slope({of(cell): cell.timings[name].seconds for cell in points}) for name in (POLICY, SCAN)
            )
            if exponent is not None and scan_exponent is not None:
                sizes = tuple(sorted(of(cell) for cell in points))
                found.append(Growth(policy, size, where, sizes, exponent, scan_exponent))
    return found
