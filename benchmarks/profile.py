"""Where the time of a step of CascadeLinTS goes, with few items and with a million.

    python -m benchmarks.profile [--items 256,1000000] [--features 20] [--steps 20000] [--rounds 5]

A run is played in the world `long-tail` and its thetas, slates and clicks are kept; then each part of a step
plays all of them again by itself. They take turns, the best round of each counts, in time of the processor.
Parts that run alone find their data in the cache, so their sum is less than the whole; what is left over
is called the rest.
"""

import argparse
import os
import time

# One core: BLAS reads this when NumPy is imported.
os.environ.update(OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", OMP_NUM_THREADS="1")

import numpy as np

from benchmarks.bench.contenders import POLICY_KEY, WORLD_KEY, LoopPlayer
from benchmarks.first_attractive import first_attractive
from benchmarks.scanning import scanning
from firstclick import make_policy, make_world
from firstclick.catalog.search_tree import catalog_arrays
from firstclick.kernels.arrays import NO_LIMITS
from firstclick.kernels.clicks import expected_reward, new_memo
from firstclick.kernels.compiling import kernel
from firstclick.kernels.hashing import fill_normal, mix
from firstclick.kernels.posterior import observe_slate, sample
from firstclick.kernels.ranking import FAN, LEAF
from firstclick.kernels.search.tree import rank_by_product

K, SIGMA = 4, 1.0


@kernel
def draw_noise(noise, steps):
    for step in range(steps):
        fill_normal(mix(POLICY_KEY, np.uint64(step)), noise)


@kernel
def draw_thetas(state, noise, steps):
    total = 0.0
    for _ in range(steps):
        total += sample(state.moment, state.factor, SIGMA, noise)[0]
    return total


@kernel
def rank(thetas, catalog, slate):
    for step in range(len(thetas)):
        rank_by_product(thetas[step], catalog, NO_LIMITS, mix(POLICY_KEY, np.uint64(step)), slate)


@kernel
def answer(world, slates, optimal, memo, covered):
    total = 0.0
    for step in range(len(slates)):
        key = mix(WORLD_KEY, np.uint64(step))
        total += first_attractive(world, key, slates[step], K) + first_attractive(world, key, optimal, K)
        total += expected_reward(world, 0, slates[step], K, memo, covered)
    return total


@kernel
def learn_all(state, catalog, slates, clicked):
    clicks = np.empty(K, np.uint8)
    for step in range(len(slates)):
        click = clicked[step]
        for position in range(K):
            clicks[position] = position == click
        observe_slate(
            state, catalog, NO_LIMITS, slates[step], K if click < 0 else click + 1, clicks, SIGMA, 1.0
        )


@kernel
def keep_thetas(state, catalog, slates, clicked, thetas, noise):
    """The thetas of the run that showed these slates and was answered so."""
    clicks = np.empty(K, np.uint8)
    for step in range(len(slates)):
        fill_normal(mix(POLICY_KEY, np.uint64(step)), noise)
        thetas[step] = sample(state.moment, state.factor, SIGMA, noise)
        for position in range(K):
            clicks[position] = position == clicked[step]
        examined = K if clicked[step] < 0 else clicked[step] + 1
        observe_slate(state, catalog, NO_LIMITS, slates[step], examined, clicks, SIGMA, 1.0)


def looked_at(catalog, thetas):
    """How many leaves a search visits, for the mean of some thetas: those whose box allows the K-th score."""
    tree = catalog.tree
    if tree.covered == 0:
        return None
    d = tree.rotation.shape[1]
    n_groups = tree.first[1]
    boxes = tree.edges[:n_groups].view(np.float16).astype(np.float64)
    there = tree.reach[:n_groups] >= 0
    visited = []
    for theta in thetas[:: max(1, len(thetas) // 50)]:
        turned = (theta @ tree.rotation) * tree.longest
        edges = np.where(turned[:, None] > 0, boxes[:, :d], boxes[:, d:])
        scores = catalog.features @ theta
        least = np.partition(scores, -K)[-K] - theta @ tree.constant
        visited.append(np.count_nonzero((np.einsum("d,gdm->gm", turned, edges) >= least) & there))
    return np.mean(visited), int(np.count_nonzero(there))


def measured(parts, steps, rounds):
    best = dict.fromkeys(parts, np.inf)
    for part in parts.values():  # compiles
        part()
    for _ in range(rounds):
        for name, part in parts.items():
            start = time.thread_time()
            part()
            best[name] = min(best[name], (time.thread_time() - start) / steps)
    return best


def profile(n_items, d, steps, rounds):
    policy = make_policy("cascade-lin-ts")
    world = make_world(f"long-tail:n_items={n_items},n_features={d}").build(1)
    player = LoopPlayer(policy, world, catalog_arrays(world.features, n_items), K)
    slates, clicked = player.record(steps)
    thetas, noise, slate = np.empty((steps, d)), np.empty(d), np.empty(K, np.int64)
    keep_thetas(policy.initial_state(n_items, d, K), player.catalog, slates, clicked, thetas, noise)
    state, catalog, arrays = player.state, player.catalog, world.arrays()
    optimal, memo, covered = world.optimal_slate(K), new_memo(K), np.empty(1, np.uint64)
    few = thetas[: max(2, min(steps, int(2e8 / world.features.size)))]

    def whole():
        player.begin()
        player.play(0, steps)

    parts = {
        "normal numbers": lambda: draw_noise(noise, steps),
        "theta from its posterior": lambda: draw_thetas(state, noise, steps),
        "ranking": lambda: rank(thetas, catalog, slate),
        "clicks and expected regret": lambda: answer(arrays, slates, optimal, memo, covered),
        "learning": lambda: learn_all(policy.initial_state(n_items, d, K), catalog, slates, clicked),
        "whole step": whole,
    }
    best = measured(parts, steps, rounds)
    scan = measured({"scan": lambda: rank(few, scanning(catalog), slate)}, len(few), rounds)["scan"]
    whole_step = best.pop("whole step")
    best["the rest"] = whole_step - sum(best.values())
    print(f"\n{n_items:,} items, {d} features, k = {K}, {steps:,} steps\n")
    print("| part | us | share |\n|---|---:|---:|")
    for name, value in best.items():
        print(f"| {name} | {value * 1e6:.2f} | {value / whole_step:.0%} |")
    print(f"| **whole step** | {whole_step * 1e6:.2f} | 100% |")
    print(f"| ranking by a scan instead | {scan * 1e6:,.1f} | {scan / whole_step:,.0%} |")
    if (leaves := looked_at(catalog, thetas)) is not None:
        print(
            f"\nA search visits {leaves[0]:.0f} of {leaves[1]:,} leaves of {LEAF} items; "
            f"a node has {FAN} children."
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", default="256,1000000")
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    for n_items in map(int, given.items.split(",")):
        profile(n_items, given.features, given.steps, given.rounds)


if __name__ == "__main__":
    main()
