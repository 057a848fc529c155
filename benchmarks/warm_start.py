"""A log as a head start: the default policy cold and warm-started, paired.

    python -m benchmarks.warm_start [--movielens FOLDER] [--steps 20000] [--runs 20] [--seed 1] [--only LOG]

Stock world `shop`: 1,500 items, slates of six, and a log of 200,000 views in which 60 items were shown. Good
items are those that an editor picks by a noisy guess, so that a page of six gets a click on 15 % of views. On
MovieLens the log is of the 60 most popular films, shown to the half of the users that the features are of.
Figures are true click probabilities. `ratio` is clicks over all steps, warm over cold: of means over runs,
with a 90 % interval by resampling runs, which are paired.
"""

import argparse
from itertools import pairwise
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

import numpy as np

from firstclick import make_policy
from firstclick.data import FeedbackScenario, feedback_matrix
from firstclick.data.sources import make_source
from firstclick.experiments.loop import EXPECTED_REGRET, Tally, Task, play
from firstclick.kernels.compiling import compiled
from firstclick.registry import DEFAULT_POLICY
from firstclick.streams import stream
from firstclick.studies.guide.stock import STOCK


class Log(NamedTuple):
    """How often each item was looked at and clicked, and the share of pages with a click."""

    looks: np.ndarray
    clicks: np.ndarray
    rate: float


VIEWS, PICKED, RATE = 200_000, 60, 0.15
FIRST, LAST = 500, 2_000

# Log: what it is of.
LOGS = {
    "hand-made list": "60 items no better than others; the better ones are shown more often",
    "hand-picked": "60 good items, equally often",
    "one list": "the same six good items on every page",
    "shuffled": "60 good items, each with the clicks of another of them: the log is wrong",
    "half the clicks": "60 good items; every second click is not in the log",
    "whole catalog": "all items, equally often, 20,000 views",
    "thin": "60 good items, 200 views alone",
}


def picks(attractions, k, draw):
    """The items that an editor picks, best first in his opinion: his guesses are as noisy as makes a page of
    k of them as good as it is said to be."""
    noise, low, high = draw.standard_normal(len(attractions)), 0.0, 20.0
    for _ in range(40):
        middle = (low + high) / 2
        guessed = np.log(attractions) + middle * noise
        order = np.argsort(-guessed)[:PICKED]
        rate = 1 - np.mean(1 - attractions[order]) ** k
        low, high = (middle, high) if rate > RATE else (low, middle)
    return order


def pages(items, views, k, draw, steep):
    """Pages of k of the items, in their order; the r-th of them is drawn in proportion to r^-steep."""
    n = len(items)
    shown = np.empty((views, k), np.int64)
    for start in range(0, views, 10_000):
        stop = min(start + 10_000, views)
        chances = draw.gumbel(size=(stop - start, n)) - steep * np.log(np.arange(1, n + 1))
        shown[start:stop] = np.sort(np.argpartition(-chances, k - 1, axis=1)[:, :k], axis=1)
    return items[shown]


def counted(shown, attracted, n_items):
    """Looks and clicks of each item: what stands below the first click was not looked at."""
    before = np.cumsum(attracted, axis=1) - attracted
    seen = before == 0
    looks = np.bincount(shown[seen], minlength=n_items)
    clicks = np.bincount(shown[seen & attracted], minlength=n_items)
    return Log(looks.astype(float), clicks.astype(float), float(attracted.any(axis=1).mean()))


def shop_log(name, world, k, draw):
    attractions = world.attractions
    items = picks(attractions, k, draw)
    if name == "hand-made list":
        items = draw.permutation(len(attractions))[:PICKED]
        items = items[np.argsort(-np.log(attractions[items]) + 0.3 * draw.standard_normal(PICKED))]
    if name == "whole catalog":
        items = np.arange(len(attractions))
    held = attractions.copy()
    if name == "shuffled":
        held[items] = attractions[draw.permutation(items)]
    if name == "one list":
        items = items[:k]
    views = {"thin": 200, "whole catalog": 20_000}.get(name, VIEWS)
    shown = pages(items, views, k, draw, 2.0 if name == "hand-made list" else 0.0)
    attracted = draw.random(shown.shape) < held[shown]
    if name == "half the clicks":
        attracted &= draw.random(shown.shape) < 0.5
    return counted(shown, attracted, len(attractions))


def film_log(matrix, k, draw):
    """The most popular films, shown to users of the other half."""
    popular = np.argsort(-np.asarray(matrix.sum(axis=0), float).ravel(), kind="stable")[:PICKED]
    shown = pages(popular, VIEWS, k, draw, 0.0)
    users = draw.integers(matrix.shape[0], size=VIEWS)
    dense = matrix[:, popular].toarray() > 0
    place = np.full(matrix.shape[1], -1)
    place[popular] = np.arange(PICKED)
    return counted(shown, dense[users[:, None], place[shown]], matrix.shape[1])


def begun(policy, stage, k, seed, run, log):
    """Who plays and where; with a log, if there is one."""
    optimal, best = stage.world.optimal_slates(k), stage.world.optimal_reward(k)
    _, player, ground = Task(0, policy, stage, optimal, best, run, np.array([1]), seed)._begin()
    if log is not None:
        n_items, n_features = stage.features.shape
        past = policy.with_counts(policy.initial_state(n_items, n_features, k), log.looks, log.clicks, VIEWS)
        state = policy.with_log(player.state, past, nothing_known=True)
        player = player._replace(state=policy.refitted(state, player.catalog))
    return player, ground


def played(task):
    """Of one run: the best that can be; the rate of each log; and clicks a page in the first pages, in all,
    and in the last ones, cold first, then with each log."""
    place, k, names, steps, seed, run = task
    stage = place.stage(seed, run)
    if isinstance(place, FeedbackScenario):
        train = place._halves[seed, run][0]
        logs = [film_log(train[:, place._items(seed, run)], k, stream(seed, "log", run))]
    else:
        logs = [shop_log(name, stage.world, k, stream(seed, "log", run)) for name in names]
    policy, best = make_policy(DEFAULT_POLICY), stage.world.optimal_reward(k)
    clicks = []
    for log in (None, *logs):
        player, ground = begun(policy, stage, k, seed, run, log)
        tally = Tally(np.zeros(3), np.zeros(stage.world.n_items, np.int64), steps)
        marks, regret = [0, FIRST, steps - LAST, steps], [0.0]
        for first, last in pairwise(marks):
            compiled(play, type(policy))(player, ground, tally, first, last)
            regret.append(tally.totals[EXPECTED_REGRET])
        lost = regret[1] / FIRST, regret[3] / steps, (regret[3] - regret[2]) / LAST
        clicks.append(best - np.array(lost))
    return best, [log.rate for log in logs], clicks


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--movielens", type=Path, help="folder of MovieLens 1M")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", help="part of the name of a log; again for more")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    shop = next(world for world in STOCK if world.name == "shop")
    places = [(shop, shop.k, list(LOGS))]
    if given.movielens:
        matrix = feedback_matrix(make_source("movielens").load(given.movielens))
        films = ((FeedbackScenario(matrix, rank=20, n_items=n), 4, [f"MovieLens {n}"]) for n in (256, 3706))
        places.extend(films)
    print(f"{given.steps:,} steps, {given.runs} runs, seed {given.seed}; clicks a page, cold and warm\n")
    heads = "".join(f"{head:>15}" for head in ("first 500", "all", "last 2,000"))
    print(f"{'log':18}{'its rate':>9}{'best':>7}{heads}  ratio, worst run")
    for place, k, names in places:
        wanted = [name for name in names if not given.only or any(part in name for part in given.only)]
        if not wanted:
            continue
        tasks = [(place, k, wanted, given.steps, given.seed, run) for run in range(given.runs)]
        with Pool(given.jobs) as pool:
            results = pool.map(played, tasks, chunksize=1)
        best, clicks = np.mean([one[0] for one in results]), np.array([one[2] for one in results])
        for number, name in enumerate(wanted, start=1):
            rate = np.mean([one[1][number - 1] for one in results])
            cells = "".join(
                f"{clicks[:, 0, at].mean():>8.3f}{clicks[:, number, at].mean():>7.3f}" for at in range(3)
            )
            cold, warm = clicks[:, 0, 1], clicks[:, number, 1]
            chosen = stream(given.seed, "interval").integers(given.runs, size=(4000, given.runs))
            low, high = np.quantile(warm[chosen].mean(axis=1) / cold[chosen].mean(axis=1), (0.05, 0.95))
            ratio = f"{warm.mean() / cold.mean():.3f} [{low:.3f}, {high:.3f}], {(warm / cold).min():.2f}"
            print(f"{name:18}{rate:>9.3f}{best:>7.3f}{cells}  {ratio}", flush=True)


if __name__ == "__main__":
    main()
