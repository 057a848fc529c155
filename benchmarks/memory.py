"""How much memory a large matrix world takes: 200,000 users x 10,000 items with 10 million ones.

    python -m benchmarks.memory [--users 200000] [--items 10000] [--ones 10000000] [--jobs 1]

Plays two policies on the whole matrix and prints the peak memory of this process and of its largest
worker. A dense matrix of the same size would take 2 GB at one byte an entry.
"""

import argparse
import resource

import numpy as np
from scipy import sparse

from firstclick import simulate
from firstclick.worlds import MatrixWorld


def made_up(users: int, items: int, ones: int) -> sparse.csr_matrix:
    """A 0/1 matrix with at least this many ones, items in a long tail."""
    rng = np.random.default_rng(0)
    popularity = (np.arange(items) + 10.0) ** -0.9
    popularity /= popularity.sum()
    columns = rng.choice(items, size=int(1.1 * ones), p=popularity).astype(np.int32)
    rows = rng.integers(0, users, size=len(columns)).astype(np.int32)
    matrix = sparse.coo_matrix((np.ones(len(rows), np.uint8), (rows, columns)), (users, items)).tocsr()
    matrix.data[:] = 1  # a pair drawn twice counts once
    return matrix


def gigabytes(who: int) -> float:
    """Peak resident memory; Linux counts kilobytes."""
    return resource.getrusage(who).ru_maxrss * 1024 / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("users", 200_000), ("items", 10_000), ("ones", 10_000_000), ("jobs", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    matrix = made_up(given.users, given.items, given.ones)
    print(f"{given.users:,} users x {given.items:,} items, {matrix.nnz:,} ones; {given.jobs} process(es)")
    world = MatrixWorld(matrix)
    results = simulate(["cascade-ucb1", "random"], world, k=4, steps=20_000, runs=2, jobs=given.jobs)
    for result in results.results:
        print(f"{result.policy:14}{result.seconds_per_step * 1e6:8.0f} us/step")
    print(f"peak memory: {gigabytes(resource.RUSAGE_SELF):.2f} GB here, "
          f"{gigabytes(resource.RUSAGE_CHILDREN):.2f} GB in the largest worker")  # fmt: skip


if __name__ == "__main__":
    main()
