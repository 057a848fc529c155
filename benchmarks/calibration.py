"""How often the 90 % intervals of the default policy hold what is true.

    python -m benchmarks.calibration [--movielens FOLDER] [--steps 20000] [--runs 10] [--seed 1]

An interval is the estimate and 1.645 standard deviations to either side, after the last step. What it should
hold is the rate of clicks when the item is looked at, given no click above it. In a world where users do not
differ that is the item's attraction. In MovieLens it depends on what stood above: for an item that was looked
at, the mean over its looks; for one that never was, the rate in the last place of the slate shown most often.
"""

import argparse
from collections import Counter
from pathlib import Path

import numpy as np

from firstclick import Catalog, Ranker
from firstclick.data import FeedbackScenario, feedback_matrix
from firstclick.data.sources import make_source
from firstclick.registry import DEFAULT_POLICY
from firstclick.streams import stream
from firstclick.studies.guide.stock import STOCK, chosen

WORLDS = ("rare-clicks", "linear", "logistic", "partly-explained")
WITHIN = 1.645
K = 4


class Independent:
    """A world in which an item attracts all users alike."""

    def __init__(self, stage, draw):
        self.attractions, self.features, self._draw = stage.world.attractions, stage.features, draw
        self.n_items = stage.world.n_items

    def click(self, slate):
        """The first position that attracts, or None; and the rate of a click at each position that is looked
        at."""
        attracted = self._draw.random(len(slate)) < self.attractions[slate]
        return (int(np.argmax(attracted)) if attracted.any() else None), self.attractions[slate]

    def last_place(self, slate):
        return self.attractions


class Films:
    """Users of a feedback matrix, drawn at random."""

    def __init__(self, stage, draw):
        self.matrix = stage.world.matrix.toarray().astype(bool)
        self.features, self._draw, self.n_items = stage.features, draw, stage.world.n_items

    def click(self, slate):
        likes = self.matrix[self._draw.integers(len(self.matrix)), slate]
        left, rates = np.ones(len(self.matrix), bool), []
        for item in slate:
            rates.append(self.matrix[left, item].mean() if left.any() else 0.0)
            left &= ~self.matrix[:, item]
        return (int(np.argmax(likes)) if likes.any() else None), np.array(rates)

    def last_place(self, slate):
        left = ~self.matrix[:, slate[:-1]].any(axis=1)
        return self.matrix[left].mean(axis=0)


def covered(world, steps, seed):
    """Of items that were looked at, and of items that never were: how many, and how many intervals hold."""
    ranker = Ranker(Catalog(range(world.n_items), world.features), k=K, policy=DEFAULT_POLICY, seed=seed)
    looks, rates, slates = np.zeros(world.n_items), np.zeros(world.n_items), Counter()
    for _ in range(steps):
        slate = ranker.recommend()
        click, chances = world.click(list(slate.items))
        ranker.learn(slate, click=click)
        seen = list(slate.items)[: K if click is None else click + 1]
        looks[seen] += 1
        rates[seen] += chances[: len(seen)]
        slates[slate.items] += 1
    truth = np.where(
        looks > 0, rates / np.maximum(looks, 1), world.last_place(list(slates.most_common(1)[0][0]))
    )
    means, deviations = ranker.estimates(range(world.n_items))
    holds = np.abs(means - truth) <= WITHIN * deviations
    often = looks >= 100
    return [
        (int(group.sum()), int(holds[group].sum())) for group in (often, (looks > 0) & ~often, looks == 0)
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--movielens", type=Path, help="folder of MovieLens 1M")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    places = [(world.name, world, Independent) for world in chosen(WORLDS, STOCK)]
    if given.movielens:
        matrix = feedback_matrix(make_source("movielens").load(given.movielens))
        places += [
            (f"MovieLens, {n} items", FeedbackScenario(matrix, rank=20, n_items=n), Films) for n in (16, 256)
        ]
    print(
        f"{DEFAULT_POLICY}, {given.steps:,} steps, {given.runs} runs, seed {given.seed}: "
        "90 % intervals that hold\n"
    )
    print(f"{'':24}{'100 looks or more':>20}{'1 to 99 looks':>20}{'never looked at':>20}")
    for name, place, kind in places:
        total = np.zeros((3, 2), int)
        for run in range(given.runs):
            world = kind(place.stage(given.seed, run), stream(given.seed, "calibration", run))
            total += covered(world, given.steps, run)
        told = (f"{held / n:.0%} of {n:,}" if n else "-" for n, held in total)
        print(f"{name:24}" + "".join(f"{one:>20}" for one in told), flush=True)


if __name__ == "__main__":
    main()
