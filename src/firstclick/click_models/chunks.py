"""Sessions in a fixed number of chunks on several threads: the sums do not depend on how many threads.

Kernels release Python's lock. Each chunk has sums of its own, which are added in the order of the chunks.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

# The same for any number of threads: a sum of floats depends on where it is cut.
CHUNKS = 8


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def summed(
    n: int, sizes: tuple[int, ...], work: Callable[[int, int, tuple[NDArray[np.float64], ...]], float],
    threads: int | None = None,
) -> tuple[float, tuple[NDArray[np.float64], ...]]:  # fmt: skip
    """Call `work(start, stop, sums)` on each chunk of n sessions; its result and its sums, added up.

    `sums` are arrays of zeros of these sizes, for each chunk its own.
    """
    edges = [n * chunk // CHUNKS for chunk in range(CHUNKS + 1)]

    def one(chunk: int) -> tuple[float, tuple[NDArray[np.float64], ...]]:
        sums = tuple(np.zeros(size) for size in sizes)
        return work(edges[chunk], edges[chunk + 1], sums), sums

    with ThreadPoolExecutor(min(threads or processors(), CHUNKS)) as pool:
        parts = list(pool.map(one, range(CHUNKS)))
    total, added = parts[0]
    for more, sums in parts[1:]:
        total += more
        for mine, other in zip(added, sums, strict=True):
            mine += other
    return total, added
