"""How much faster a sweep of thousands of short cells goes on two dask workers than on one.

    python -m benchmarks.sweep [--runs 40] [--steps 10000] [--turns 1] [--workers 2]

A made-up feedback matrix of 2,000 users and 1,000 items; 25 policies (CascadeLinTS with ten sigmas,
CascadeLinUCB with ten c, CascadeUCB1 with five radii) x 16, 64 and 256 items x runs, each run with a split
and features of its own: 3,000 cells. They are played on one worker and on several, in turns, by a process
that makes the stages and is the scheduler too; workers have compiled all policies before. A cell must give
the same reward everywhere. Where others use the machine, the speed-up is less than it could be; two figures
tell whether that is so: in what share of the time workers had a cell to play, and how much of a processor
they got.
"""

import argparse
import os
import time
from dataclasses import dataclass

# One core for each worker: BLAS reads this when NumPy is imported, here and there.
os.environ.update(OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", OMP_NUM_THREADS="1")

import dask
import numpy as np
from distributed import Client, LocalCluster, get_task_stream
from distributed.protocol.pickle import dumps

from firstclick import make_policy
from firstclick.data import FeedbackScenario, synthetic_matrix
from firstclick.experiments.engines import engine_named, play_here
from firstclick.experiments.engines.dask_connection import SETTINGS
from firstclick.experiments.loop import Task, log_spaced

ITEMS, RANK, K, SEED = (16, 64, 256), 10, 4, 1

POLICIES = [
    make_policy(text)
    for text in (
        *(f"cascade-lin-ts:sigma={sigma:.3g}" for sigma in np.geomspace(0.05, 1, 10)),
        *(f"cascade-lin-ucb:c={c:.3g}" for c in np.geomspace(0.05, 2, 10)),
        *(f"cascade-ucb1:radius={radius:.3g}" for radius in np.geomspace(0.1, 1.5, 5)),
    )
]


@dataclass(frozen=True)
class Measured:
    """Seconds by the clock, of workers with a cell to play, of their processors and of ours; and bytes."""

    seconds: float
    playing: float
    processor: float
    here: float
    between: int


class Sweep:
    """The cells of the sweep, one after the other; counts its stages and their bytes as they are made."""

    def __init__(self, matrix, runs, steps):
        scenario = FeedbackScenario(matrix, rank=RANK)
        self.scenarios = [scenario.resized(n_items, RANK) for n_items in ITEMS]
        self.runs, self.steps = runs, steps
        self.cells = runs * len(ITEMS) * len(POLICIES)
        self.stages = self.bytes = 0
        self.making = 0.0

    def tasks(self):
        record = log_spaced(self.steps)
        for run in range(self.runs):
            for place, scenario in enumerate(self.scenarios):
                start = time.perf_counter()
                stage = scenario.stage(SEED, run)
                optimal = stage.world.optimal_slates(K)
                self.making += time.perf_counter() - start
                self.stages += 1
                self.bytes += len(dumps(stage))
                first = (run * len(ITEMS) + place) * len(POLICIES)
                for number, policy in enumerate(POLICIES, first):
                    yield Task(number, policy, stage, optimal, 0.0, run, record, SEED)


def silent(steps):
    pass


def use(dask_worker):
    """Processor time of a worker so far, and bytes that it got from other workers."""
    return time.process_time(), sum(entry["total"] for entry in dask_worker.transfer_incoming_log)


def warm_up(tasks):
    """On a worker: compile everything, or load it from the cache."""
    list(play_here(iter(tasks), silent))


def play(sweep, first, workers):
    """Play the sweep on new workers; what was measured, and the rewards of all cells."""
    with (
        dask.config.set(SETTINGS),
        LocalCluster(
            n_workers=workers, threads_per_worker=1, memory_limit=None, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        engine = engine_named(cluster.scheduler_address, workers)
        client.run(warm_up, first)
        list(engine(iter(first), silent))  # Hashes the sources on all sides.
        before, here = client.run(use), time.process_time()
        start = time.perf_counter()
        with get_task_stream(client) as bundles:
            played = list(engine(sweep.tasks(), silent))
        seconds = time.perf_counter() - start
        after, here = client.run(use), time.process_time() - here
    parts = [part for bundle in bundles.data for part in bundle["startstops"]]
    return Measured(
        seconds=seconds,
        playing=sum(part["stop"] - part["start"] for part in parts if part["action"] == "compute"),
        processor=sum(after[worker][0] - before[worker][0] for worker in after),
        here=here,
        between=sum(after[worker][1] - before[worker][1] for worker in after),
    ), {number: record.reward[-1] for number, record in played}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=40, help="75 cells each")
    parser.add_argument("--steps", type=int, default=10_000, help="of a cell")
    parser.add_argument(
        "--turns", type=int, default=1, help="how often each number of workers plays all cells"
    )
    parser.add_argument("--workers", type=int, default=2, help="to be compared with one")
    given = parser.parse_args()
    matrix = synthetic_matrix(SEED, n_users=2000, n_items=1000).matrix
    first = list(Sweep(matrix, 1, 10).tasks())
    cells = Sweep(matrix, given.runs, given.steps).cells
    print(f"{cells:,} cells of {given.steps:,} steps: {len(POLICIES)} policies x {len(ITEMS)} numbers of "
          f"items x {given.runs} runs; {os.cpu_count()} processors")  # fmt: skip
    print(f"\n{'workers':>7}{'seconds':>9}{'cells/s':>9}{'with a cell':>13}{'of a processor':>16}"
          f"{'ms/cell':>9}{'scheduler and stages':>22}")  # fmt: skip
    best, found = {}, []
    for _ in range(given.turns):
        for workers in (1, given.workers):
            sweep = Sweep(matrix, given.runs, given.steps)
            took, rewards = play(sweep, first, workers)
            found.append(rewards)
            best[workers] = min(best.get(workers, float("inf")), took.seconds)
            whole = workers * took.seconds
            print(f"{workers:7}{took.seconds:9.1f}{cells / took.seconds:9.0f}{took.playing / whole:13.0%}"
                  f"{took.processor / whole:16.0%}{1e3 * took.processor / cells:9.1f}"
                  f"{1e3 * took.here / cells:13.1f} ms/cell")  # fmt: skip
    assert all(rewards == found[0] and len(rewards) == cells for rewards in found), "cells differ"
    size, speed_up = sweep.bytes / 1e6, best[1] / best[given.workers]
    print(f"\nspeed-up on {given.workers} workers: {speed_up:.2f} (best of {given.turns}; asked of 2: at "
          "least 1.6); every cell gave the same")  # fmt: skip
    print(f"{sweep.stages} stages, made in {sweep.making:.1f} s: {size:.1f} MB sent to a worker, and "
          f"{took.between / 1e6:.1f} MB on to others; once per cell it would be "
          f"{size * len(POLICIES):,.0f} MB")  # fmt: skip


if __name__ == "__main__":
    main()
