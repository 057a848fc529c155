"""How much faster the index finds a slate than a scan does: ratios, measured side by side on one core.

    python benchmarks/index.py [--items 100000] [--features 32] [--k 4] [--steps 20000] [--movielens FOLDER]

The catalog looks as large ones do: directions random with a spectrum that falls by 0.8 per dimension and a
positive first coordinate, norms like rank^-0.45, items shuffled; a linear world with best attraction 0.5.
With --movielens, all rated movies with features of rank d instead. CascadeLinTS plays the steps with the
index; then the thetas it drew are ranked again, by the scan for as many of them as take a second, by the
index for all. Every slate must be the same.
"""

import argparse
import os
import time
from pathlib import Path

# One core: BLAS reads this when NumPy is imported.
os.environ.update(OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", OMP_NUM_THREADS="1")

import numpy as np

from firstclick import make_policy
from firstclick.data import FeedbackScenario, feedback_matrix
from firstclick.data.sources import make_source
from firstclick.index import build_index, no_index
from firstclick.kernels.compiling import kernel
from firstclick.kernels.hashing import fill_normal, mix, uniform
from firstclick.kernels.index import rank_by_product
from firstclick.kernels.posterior import observe_slate, sample
from firstclick.protocol import EVERYTHING, catalog_arrays

KEY = np.uint64(7)


@kernel
def play(state, catalog, attraction, k, thetas):
    """CascadeLinTS in a linear world; every theta is kept."""
    noise, slate, clicks = np.empty(thetas.shape[1]), np.empty(k, np.int64), np.empty(k, np.uint8)
    for step in range(len(thetas)):
        key = mix(KEY, np.uint64(step))
        fill_normal(key, noise)
        theta = sample(state.moment, state.factor, 1.0, noise)
        thetas[step] = theta
        rank_by_product(theta, catalog, EVERYTHING, key, slate)
        examined = k
        for position in range(k):
            clicks[position] = (
                uniform(mix(key, KEY), np.uint64(slate[position])) < attraction[slate[position]]
            )
            if clicks[position]:
                examined = position + 1
                break
        observe_slate(state, catalog, slate, examined, clicks, 1.0, 1.0)


@kernel
def rank_all(thetas, catalog, slates):
    for step in range(len(thetas)):
        rank_by_product(thetas[step], catalog, EVERYTHING, mix(KEY, np.uint64(step)), slates[step])


def large_catalog(n_items, d):
    draw = np.random.default_rng(0)
    features = draw.normal(size=(n_items, d)) * 0.8 ** np.arange(d)
    features[:, 0] = np.abs(features[:, 0])
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    features *= (np.arange(1, n_items + 1) ** -0.45)[:, None]
    features = np.ascontiguousarray(features[draw.permutation(n_items)])
    score = features @ draw.normal(size=d)
    return features, np.clip(0.5 * score / score.max(), 0.0, 1.0)


def movies(folder, rank):
    stage = FeedbackScenario(feedback_matrix(make_source("movielens").load(folder)), rank=rank).stage(1, 0)
    return stage.features, np.asarray(stage.world.matrix.mean(axis=0)).ravel()


def seconds(function, *arguments):
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=None, help="32, or 20 with --movielens")
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--movielens", type=Path)
    given = parser.parse_args()
    if given.movielens:
        features, attraction = movies(given.movielens, given.features or 20)
    else:
        features, attraction = large_catalog(given.items, given.features or 32)
    n_items, d = features.shape
    build_index(features)  # compiles
    building = min(seconds(build_index, features) for _ in range(3))
    indexed = catalog_arrays(features, n_items)
    scanned = catalog_arrays(features, n_items, index=no_index(d))

    thetas = np.empty((given.steps, d))
    play(
        make_policy("cascade-lin-ts").initial_state(n_items, d, given.k), indexed, attraction, given.k, thetas
    )
    some = thetas[:: max(1, given.steps // max(10, int(1e8 / features.size)))]
    some = np.ascontiguousarray(some)
    found = {name: np.empty((len(some), given.k), np.int64) for name in ("scan", "index")}
    best = dict.fromkeys(found, float("inf"))
    everything = np.empty((given.steps, given.k), np.int64)
    for _ in range(4):  # the first compiles
        best["scan"] = min(best["scan"], seconds(rank_all, some, scanned, found["scan"]) / len(some))
        best["index"] = min(best["index"], seconds(rank_all, thetas, indexed, everything) / given.steps)
    # The keys that break ties are those of the places in the array: once more, for the same thetas.
    rank_all(some, indexed, found["index"])
    assert np.array_equal(found["scan"], found["index"]), "the index found other slates than the scan"
    size = sum(part.nbytes for part in indexed.tree if isinstance(part, np.ndarray))
    print(
        f"{n_items:,} items, {d} features, k = {given.k}, {given.steps:,} steps; one core, best of 3 rounds"
    )
    times = best["scan"] / best["index"]
    print(
        f"a scan takes {best['scan'] * 1e6:,.1f} us, the index {best['index'] * 1e6:,.1f}: {times:,.1f} "
        f"times faster; {len(some):,} slates compared, all equal"
    )
    print(
        f"building takes {building * 1e3:,.0f} ms, as long as {building / best['scan']:,.0f} scans; "
        f"memory {size / features.nbytes:.2f} times the features"
    )


if __name__ == "__main__":
    main()
