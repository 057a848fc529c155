"""How fast a step is: ratios, measured side by side in one run, on one core.

    python benchmarks/speed.py [--items 256] [--features 20] [--k 4] [--json FILE]

Blocks of the contenders take turns and the best block of each counts, so that a noisy neighbour
slows all of them or none. The floor is what CascadeLinTS cannot do without: a draw of theta and the
updates of its posterior, for the very items that were examined, without looking at the catalog.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# One core: BLAS reads this when NumPy is imported.
os.environ.update(OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", OMP_NUM_THREADS="1")

import numpy as np

from firstclick import make_policy, make_world, policy_classes
from firstclick.experiment.plain_numpy import CascadeLinTS
from firstclick.kernels.attraction import new_memo
from firstclick.kernels.compiling import compiled, kernel
from firstclick.kernels.hashing import fill_normal, mix
from firstclick.kernels.posterior import observe, sample
from firstclick.protocol import EVERYTHING, catalog_arrays
from firstclick.simulate.loop import play

WARM_UP, BLOCKS = 2000, 7


class Loop:
    """The compiled loop of the simulator with one policy."""

    def __init__(self, policy, world, k, steps):
        self.policy, self.steps, self.done = make_policy(policy), steps, 0
        features = world.features
        self.catalog = catalog_arrays(features, world.n_items)
        self.state = self.policy.initial_state(world.n_items, features.shape[1], k)
        self.arguments = (
            self.policy.numbers(k, features), self.state, self.catalog, EVERYTHING, world.arrays(),
            new_memo(k), world.optimal_slate(k), np.uint64(1), np.uint64(2),
        )  # fmt: skip
        self.noise = np.empty(self.policy.noise_size(k, features.shape[1]))
        self.slate = np.empty(k, np.int64)
        self.totals, self.shown = np.zeros(3), np.zeros(world.n_items, np.int64)
        self.loop = compiled(play, type(self.policy))
        self.play(WARM_UP)

    def play(self, steps):
        last = self.done + steps
        self.loop(*self.arguments, self.done, last, 2**62, self.noise, self.slate, self.totals, self.shown)
        self.done = last

    def block(self):
        self.play(self.steps)


@kernel
def sample_and_update(state, features, sigma, items, clicks, first, last, noise, checksum):
    for step in range(first, last):
        fill_normal(mix(np.uint64(1), np.uint64(step)), noise)
        theta = sample(state.moment, state.factor, sigma, noise)
        checksum[0] += theta[0]
        for position in range(items.shape[1]):
            item = items[step % len(items), position]
            if item < 0:
                break
            observe(
                state.precision, state.moment, state.factor, state.observations,
                features[item], clicks[step % len(items), position], sigma, 1.0,
            )  # fmt: skip


class Floor:
    """Sampling and updating alone, with the items and clicks that the real learner met."""

    def __init__(self, loop, world, k, steps):
        self.loop, self.steps, self.done = loop, steps, 0
        self.state = loop.policy.initial_state(world.n_items, world.features.shape[1], k)
        self.items, self.clicks = self.record(world, k)
        self.noise, self.checksum = np.empty_like(loop.noise), np.zeros(1)
        self.block()

    @staticmethod
    def record(world, k, steps=WARM_UP):
        """What one learner examined, step by step, in the same world."""
        from firstclick.testing import Driver

        driver = Driver("cascade-lin-ts", world.features, k=k)
        draw = np.random.default_rng(0)
        items, clicks = np.full((steps, k), -1), np.zeros((steps, k), np.uint8)
        for step in range(steps):
            slate = driver.recommend(step)
            hits = np.flatnonzero(draw.random(k) < world.attractions[slate])
            click = int(hits[0]) if len(hits) else None
            examined = k if click is None else click + 1
            items[step, :examined] = slate[:examined]
            if click is not None:
                clicks[step, click] = 1
            driver.learn(slate, click)
        return items, clicks

    def block(self):
        last = self.done + self.steps
        sample_and_update(
            self.state, self.loop.catalog.features, 1.0, self.items, self.clicks,
            self.done, last, self.noise, self.checksum,
        )  # fmt: skip
        self.done = last


class PlainNumPy:
    """Algorithms 1 and 3 as the paper writes them, in NumPy, in the same world."""

    def __init__(self, world, k, steps):
        self.learner = CascadeLinTS(world.features, k, make_policy("cascade-lin-ts"))
        self.attractions, self.k, self.steps = world.attractions, k, steps
        self.draw = np.random.default_rng(0)
        for _ in range(3):
            self.block()

    def block(self):
        for _ in range(self.steps):
            slate = self.learner.recommend(self.draw)
            hits = np.flatnonzero(self.draw.random(self.k) < self.attractions[slate])
            self.learner.learn(slate, int(hits[0]) if len(hits) else self.k)


def best_seconds_per_step(contenders):
    """For each contender the time of a step in its best block; they take turns."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(BLOCKS):
        for name, contender in contenders.items():
            start = time.perf_counter()
            contender.block()
            best[name] = min(best[name], (time.perf_counter() - start) / contender.steps)
    return best


def start_up():
    """Seconds of `import firstclick`, and of a whole second process that plays from the kernel cache."""
    environment = os.environ | {"FIRSTCLICK_CACHE_DIR": tempfile.mkdtemp()}

    def seconds(code):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)
        return time.perf_counter() - start

    nothing = min(seconds("pass") for _ in range(3))
    play_once = (
        "import firstclick as f; f.simulate(['cascade-lin-ts'], f.make_world('linear').build(0), "
        "k=4, steps=1000)"
    )
    return {
        "import firstclick": min(seconds("import firstclick") for _ in range(3)) - nothing,
        "first process, compiling": seconds(play_once),
        "second process, from the cache": min(seconds(play_once) for _ in range(3)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=256)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--k", type=int, default=4)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    given = parser.parse_args()
    world = make_world(f"linear:n_items={given.items},n_features={given.features}").build(1)
    print(
        f"{given.items} items, {given.features} features, k = {given.k}; one core, best of {BLOCKS} blocks\n"
    )

    loops = {name: Loop(name, world, given.k, steps=4000) for name in policy_classes()}
    lin_ts = "cascade-lin-ts"
    contenders = {
        "floor": Floor(loops[lin_ts], world, given.k, steps=4000),
        "plain NumPy": PlainNumPy(world, given.k, steps=60),
        **loops,
    }
    seconds = best_seconds_per_step(contenders)
    floor, numpy_ = seconds["floor"], seconds["plain NumPy"]
    print(f"{'':24}{'us/step':>9}{'x floor':>9}{'NumPy is slower by':>21}")
    for name, value in sorted(seconds.items(), key=lambda entry: entry[1]):
        print(f"{name:24}{value * 1e6:9.2f}{value / floor:9.2f}{numpy_ / value:21.1f}")
    print(f"\n{lin_ts}: {seconds[lin_ts] / floor:.2f} times its floor (asked: at most 2), "
          f"{numpy_ / seconds[lin_ts]:.0f} times faster than plain NumPy (asked: at least 40)\n")  # fmt: skip
    starts = start_up()
    for name, value in starts.items():
        print(f"{name:32}{value:6.2f} s")
    if given.json:
        given.json.write_text(json.dumps({"seconds_per_step": seconds, "start_up": starts}, indent=2))


if __name__ == "__main__":
    main()
