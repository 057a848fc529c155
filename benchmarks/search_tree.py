"""What the search tree and the other exact shortcuts give: ratios, measured side by side on one core.

    python -m benchmarks.search_tree [--movielens FOLDER] [--items 100000,1000000] [--rounds 3]

Whole steps of the simulator, from the first one on: a policy with its shortcuts, the same policy on a dense
scan, and its floor, which draws and learns alone. They take turns; the best round of each counts, in time of
the processor. Every slate must be the same; `pytest -m long tests/policies/test_shortcuts.py` compares
100,000 of them for each policy. With --movielens, all rated movies with 20 features; else large catalogs of
the world `long-tail` with 32 features, items of equal norm, and numbers of items for policies without
features.
"""

import argparse
import os
import time
from pathlib import Path
from types import SimpleNamespace

# One core: BLAS reads this when NumPy is imported.
os.environ.update(OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", OMP_NUM_THREADS="1")

import numpy as np

from benchmarks.bench.contenders import Floor, LoopPlayer
from firstclick import make_policy, make_world
from firstclick.catalog.search_tree import build_tree, catalog_arrays, scanning
from firstclick.data import FeedbackScenario, feedback_matrix
from firstclick.data.sources import make_source
from firstclick.kernels.arrays import NO_LIMITS
from firstclick.kernels.ranking import scan_by_product
from firstclick.worlds import LinearWorld

K, STEPS = 4, 20_000
SCAN_SECONDS = 2.0  # that a scan may take in a round


def films(folder):
    """All rated movies, in the form that contenders take."""
    stage = FeedbackScenario(feedback_matrix(make_source("movielens").load(folder)), rank=20).stage(1, 0)
    world = stage.world
    return SimpleNamespace(
        features=stage.features,
        n_items=world.n_items,
        arrays=world.arrays,
        optimal_slates=world.optimal_slates,
        n_context=0,
    )


def sphere(n_items, d):
    """Features of equal norm in all directions, the worst case of any bound."""
    draw = np.random.default_rng(0)
    features = draw.normal(size=(n_items, d))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    # Attractions are not linear here, which the time does not depend on.
    world = LinearWorld(np.abs(features) / np.sqrt(d), np.full(d, 0.1))
    return SimpleNamespace(
        features=features,
        n_items=n_items,
        arrays=world.arrays,
        optimal_slates=world.optimal_slates,
        n_context=0,
    )


def seconds(contender, steps):
    contender.begin()
    start = time.thread_time()
    contender.play(0, steps)
    return (time.thread_time() - start) / steps


def step(policy, world, rounds, steps=STEPS, catalog=None):
    """Seconds of a step with shortcuts, on a scan and of the floor; slates must be the same."""
    catalog = catalog or catalog_arrays(world.features, world.n_items)
    player, scan = (LoopPlayer(make_policy(policy), world, catalog, K, scan=scan) for scan in (False, True))
    for one in (player, scan):  # compiles
        seconds(one, 2)
    scanned = max(2, min(steps, int(SCAN_SECONDS / seconds(scan, 2))))
    player.played = steps
    floor = Floor(player)
    seconds(floor, 2)
    best = {"policy": np.inf, "scan": np.inf, "floor": np.inf}
    for _ in range(rounds):
        best["policy"] = min(best["policy"], seconds(player, steps))
        best["scan"] = min(best["scan"], seconds(scan, scanned))
        best["floor"] = min(best["floor"], seconds(floor, steps))
    compared = min(scanned, 2000)
    assert np.array_equal(player.record(compared)[0], scan.record(compared)[0]), f"{policy}: other slates"
    return SimpleNamespace(**best)


def told(name, times, extra=""):
    print(
        f"{name:44}{times.policy * 1e6:9,.2f}{times.scan * 1e6:12,.1f}{times.scan / times.policy:10,.1f}"
        f"{times.policy / times.floor:8.2f}{extra}",
        flush=True,
    )


def building(features, rounds):
    """Seconds to build a tree and to scan once, and its size as a share of the features'."""
    catalog = scanning(catalog_arrays(features, len(features)))
    theta, slate = np.random.default_rng(0).normal(size=features.shape[1]), np.empty(K, np.int64)
    best = {"build": np.inf, "scan": np.inf}
    for _ in range(rounds + 1):
        start = time.thread_time()
        tree = build_tree(features)
        best["build"] = min(best["build"], time.thread_time() - start)
        for _ in range(5):
            start = time.thread_time()
            scan_by_product(theta, catalog, NO_LIMITS, np.uint64(1), slate)
            best["scan"] = min(best["scan"], time.thread_time() - start)
    size = sum(part.nbytes for part in tree if isinstance(part, np.ndarray))
    return best["build"], best["scan"], size / features.nbytes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--movielens", type=Path, help="folder of MovieLens 1M")
    parser.add_argument("--items", default="100000,1000000", help="sizes of large catalogs")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    rounds = given.rounds
    print(f"k = {K}, one core, best of {rounds} rounds; microseconds of a whole step\n")
    print(f"{'':44}{'step':>9}{'on a scan':>12}{'faster':>10}{'floors':>8}")
    if given.movielens:
        world = films(given.movielens)
        lin_ts = step("cascade-lin-ts", world, rounds, steps=100_000)
        told("MovieLens, 3,706 items, cascade-lin-ts", lin_ts)
        told("MovieLens, ranked-lin-ts", step("ranked-lin-ts", world, rounds))
        lin_ucb = step("cascade-lin-ucb", world, rounds)
        times = f"   {lin_ucb.policy / lin_ts.policy:.2f} times cascade-lin-ts"
        told("MovieLens, cascade-lin-ucb", lin_ucb, times)
        mixed = step("cascade-mixed", world, rounds, steps=100_000)
        times = f"   {mixed.policy / lin_ts.policy:.2f} times cascade-lin-ts"
        told("MovieLens, cascade-mixed, refits included", mixed, times)
    for n_items in map(int, given.items.split(",")):
        world = make_world(f"long-tail:n_items={n_items},n_features=32").build(1)
        build, scan, share = building(world.features, rounds)
        print(
            f"long-tail, {n_items:,} x 32, building the tree: {build * 1e3:,.0f} ms, "
            f"as long as {build / scan:,.1f} scans; memory {share:.2f} times the features",
            flush=True,
        )
        for policy in ("cascade-lin-ts", "cascade-lin-ucb", "cascade-mixed"):
            told(f"long-tail, {n_items:,} x 32, {policy}", step(policy, world, rounds))
    for n_items, d in ((3000, 20), (100_000, 64)):
        times = step("cascade-lin-ts", sphere(n_items, d), rounds, steps=2000)
        told(f"equal norms, {n_items:,} x {d}, cascade-lin-ts", times)
    for policy in ("cascade-ucb1", "cascade-kl-ucb", "cascade-mixed"):
        small = None
        for n_items in (256, 10_000):
            world = make_world(f"long-tail:n_items={n_items}").build(1)
            times = step(policy, world, rounds)
            ratio = f"   {times.policy / small:.2f} times 256 items" if small else ""
            told(f"long-tail, {n_items:,}, {policy}", times, ratio)
            small = times.policy


if __name__ == "__main__":
    main()
