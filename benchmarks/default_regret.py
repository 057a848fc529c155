"""The regret of the default policy beside the policies one would take instead, in stock worlds and on
MovieLens.

    python -m benchmarks.default_regret [--movielens FOLDER] [--steps 100000] [--runs 20] [--seed 1] [--only
    WORLD]

Every run has a world of its own, or a split of the users of its own, and the same users for all policies. A
ratio is mean regret over mean regret, with a 90 % interval by resampling runs, which are paired. In brackets:
the 90th percentile of the runs, and the worst. `no features` plays without them; `shuffled` gives each item
the features of another.
"""

import argparse
from multiprocessing import Pool
from pathlib import Path

import numpy as np

from firstclick import make_policy
from firstclick.data import FeedbackScenario, feedback_matrix
from firstclick.data.sources import make_source
from firstclick.experiments.loop import Task
from firstclick.registry import DEFAULT_POLICY
from firstclick.streams import stream
from firstclick.studies.guide.stock import STOCK as STOCK_WORLDS
from firstclick.worlds.base import Stage

# World: the policies to beat. cascade-ts draws for each item, and takes hours where there are many.
STOCK = {
    "few-items": ["cascade-ts"],
    "rare-clicks": ["vac2-ucb", "cascade-ts"],
    "linear": ["vac2-ucb"],
    "logistic": ["vac2-ucb"],
    "partly-explained": ["cascade-ts", "vac2-ucb"],
    "partly-explained, shuffled": ["cascade-ts"],
    "shop": ["vac2-ucb", "cascade-lin-ts"],
    "long-tail": ["vac2-ucb", "cascade-lin-ts"],
}
FILMS = {
    16: ["cascade-lin-ts", "vac2-ucb"],
    256: ["cascade-lin-ts", "vac2-ucb"],
    1000: ["cascade-lin-ts", "vac2-ucb"],
    3706: ["cascade-lin-ts", "vac2-ucb"],
}
WITHOUT = {16: ["cascade-ts"], 256: ["cascade-ts"]}
# Cuts on which nothing was chosen.
GENRES = ("Comedy", "Drama", "Thriller")
MARKS = (20_000, 100_000)


def stage_of(name, place, seed, run):
    """The stage of a run, and k."""
    stage = place.stage(seed, run)
    features = stage.features
    if "no features" in name:
        features = None
    if "shuffled" in name:
        features = stream(seed, "shuffled", run).permutation(features)
    return Stage(stage.world, features, stage.item_names)


def played(task):
    """Regret of each policy at each mark, and its clicks a step, in one run."""
    name, place, k, policies, steps, seed, run = task
    stage = stage_of(name, place, seed, run)
    optimal, best = stage.world.optimal_slates(k), stage.world.optimal_reward(k)
    marks = np.array([mark for mark in MARKS if mark < steps] + [steps])
    records = [
        Task(0, make_policy(policy), stage, optimal, best, run, marks, seed).play(lambda done: None)[1]
        for policy in policies
    ]
    return np.array([record.expected_regret for record in records]), [
        record.reward[-1] / steps for record in records
    ]


def interval(mine, other, draw):
    """The ratio of mean regrets, and its 90 % interval."""
    picks = draw.integers(len(mine), size=(4000, len(mine)))
    low, high = np.quantile(mine[picks].mean(axis=1) / other[picks].mean(axis=1), (0.05, 0.95))
    return f"{mine.mean() / other.mean():.2f} [{low:.2f}, {high:.2f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--movielens", type=Path, help="folder of MovieLens 1M")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", help="part of the name of a world; again for more")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    worlds = {world.name: world for world in STOCK_WORLDS}
    places = [(name, worlds[name.partition(",")[0]], others) for name, others in STOCK.items()]
    if given.movielens:
        interactions = make_source("movielens").load(given.movielens)
        matrix = feedback_matrix(interactions)
        for mark, sizes in (("", FILMS), (", no features", WITHOUT)):
            for n, others in sizes.items():
                places.append((f"MovieLens {n}{mark}", FeedbackScenario(matrix, rank=20, n_items=n), others))
        for genre in GENRES:
            films = FeedbackScenario(matrix[:, interactions.groups()[genre]], rank=20, n_items=256)
            places.append((f"MovieLens, {genre}", films, FILMS[256]))
    print(f"{given.steps:,} steps, {given.runs} runs, seed {given.seed}\n")
    for name, place, others in places:
        if given.only and not any(part in name for part in given.only):
            continue
        k = getattr(place, "k", 4)
        policies = [DEFAULT_POLICY, *others]
        tasks = [(name, place, k, policies, given.steps, given.seed, run) for run in range(given.runs)]
        with Pool(given.jobs) as pool:
            results = pool.map(played, tasks, chunksize=1)
        regret, clicks = np.array([one[0] for one in results]), np.array([one[1] for one in results])
        marks = [mark for mark in MARKS if mark < given.steps] + [given.steps]
        for at, mark in enumerate(marks):
            for number, policy in enumerate(policies):
                mine, its = regret[:, 0, at], regret[:, number, at]
                spread = f"({np.quantile(its, 0.9):,.0f}, {its.max():,.0f})"
                ratio = interval(mine, its, stream(given.seed, "interval")) if number else ""
                ctr = f"{clicks[:, number].mean():.4f} clicks a page" if at == len(marks) - 1 else ""
                print(
                    f"{name:28}{mark:>8,}  {policy:16}{its.mean():>8,.0f} {spread:18}{ratio:22}{ctr}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
