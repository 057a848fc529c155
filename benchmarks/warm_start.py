"""A log as a head start: the default policy cold and warm-started, paired.

    python -m benchmarks.warm_start [--movielens FOLDER] [--steps 20000] [--runs 20] [--seed 1] [--only LOG]

Stock world `shop`: 1,500 items, slates of six. An editor has picked 60 items by a noisy guess of how well they
do, so that a page of six of them gets a click on 15 % of 200,000 logged views. Figures are true click
probabilities. `ratio` is clicks over all steps, warm over cold: the mean of both over runs, with a 90 %
interval by resampling runs, which are paired.
"""

import argparse
from multiprocessing import Pool
from pathlib import Path

import numpy as np

from firstclick import make_policy
from firstclick.data import FeedbackScenario, feedback_matrix
from firstclick.data.sources import make_source
from firstclick.experiments.loop import EXPECTED_REGRET, Tally, Task, play
from firstclick.kernels.compiling import compiled
from firstclick.registry import DEFAULT_POLICY
from firstclick.streams import stream, stream_key
from firstclick.studies.guide.stock import stock_worlds
from firstclick.worlds.base import Stage

VIEWS, PICKED, RATE = 200_000, 60, 0.15
FIRST, LAST = 500, 2_000

# Log: what it is of.
LOGS = {
    "hand-made list": "six of 60 items, the best of which make a list that gets a click on 15 %",
    "hand-picked": "six of 60 hand-picked items on each page, in the editor's order",
    "one list": "the same six hand-picked items on every page",
    "random picks": "60 items picked at random",
    "shuffled": "60 hand-picked items, each with the clicks of another of them",
    "half the clicks": "hand-picked, where every second click is not in the log",
    "whole catalog": "six of all 1,500 items on each page, at random",
    "thin": "hand-picked, 200 views alone",
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
    return looks.astype(float), clicks.astype(float), float(attracted.any(axis=1).mean())


def shop_log(name, world, k, draw):
    attractions = world.attractions
    items = picks(attractions, k, draw)
    if name in ("hand-made list", "random picks"):
        items = draw.permutation(len(attractions))[:PICKED]
    if name == "hand-made list":
        items = items[np.argsort(-np.log(attractions[items]) + 0.3 * draw.standard_normal(PICKED))]
    if name == "whole catalog":
        items = np.arange(len(attractions))
    held = attractions.copy()
    if name == "shuffled":
        held[items] = attractions[draw.permutation(items)]
    views = 200 if name == "thin" else VIEWS
    shown = pages(items[: k if name == "one list" else None], views, k, draw, 1.5 if name == "hand-made list" else 0.0)
    attracted = draw.random(shown.shape) < held[shown]
    if name == "half the clicks":
        attracted &= draw.random(shown.shape) < 0.5
    return counted(shown, attracted, len(attractions))


def film_log(matrix, k, draw):
    """The most popular films, shown to users of the other half."""
    popular = np.argsort(-np.asarray(matrix.sum(axis=0)).ravel())[:PICKED]
    shown = pages(popular, VIEWS, k, draw, 0.0)
    users = draw.integers(matrix.shape[0], size=VIEWS)
    dense = matrix[:, popular].toarray() > 0
    place = np.full(matrix.shape[1], -1)
    place[popular] = np.arange(PICKED)
    return counted(shown, dense[users[:, None], place[shown]], matrix.shape[1])


def begun(policy, stage, k, log, seed, run, weight):
    steps = np.array([1])
    optimal = stage.world.optimal_slates(k)
    task = Task(0, policy, stage, optimal, stage.world.optimal_reward(k), run, steps, seed)
    _, player, ground = task._begin()
    if log is not None:
        looks, clicks, _ = log
        state = policy.with_log(player.state, player.catalog, looks, clicks)
        player = player._replace(state=state)
    return player, ground


def played(task):
    """Clicks a page in the first pages, in all, and in the last ones; cold first, then warm."""
    name, place, k, steps, seed, run, weight = task
    stage = place.stage(seed, run)
    draw = stream(seed, "log", run)
    if name.startswith("MovieLens"):
        train = place._halves[seed, run][0]
        log = film_log(train[:, place._items(seed, run)], k, draw)
    else:
        log = shop_log(name, stage.world, k, draw)
    policy, best = make_policy(DEFAULT_POLICY), stage.world.optimal_reward(k)
    results = []
    for given in (None, log):
        player, ground = begun(policy, stage, k, given, seed, run, weight)
        tally = Tally(np.zeros(3), np.zeros(stage.world.n_items, np.int64), steps)
        marks, regret = [0, FIRST, steps - LAST, steps], [0.0]
        for first, last in zip(marks, marks[1:], strict=False):
            compiled(play, type(policy))(player, ground, tally, first, last)
            regret.append(tally.totals[EXPECTED_REGRET])
        results.append([
            best - regret[1] / FIRST, best - regret[3] / steps, best - (regret[3] - regret[2]) / LAST,
        ])  # fmt: skip
    return log[2], best, results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--movielens", type=Path, help="folder of MovieLens 1M")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", help="part of the name of a log; again for more")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    shop = next(world for world in stock_worlds() if world.name == "shop")
    places = [(name, shop, shop.k) for name in LOGS]
    if given.movielens:
        matrix = feedback_matrix(make_source("movielens").load(given.movielens))
        for n in (256, 3706):
            places.append((f"MovieLens {n}", FeedbackScenario(matrix, rank=20, n_items=n), 4))
    print(f"{given.steps:,} steps, {given.runs} runs, seed {given.seed}; clicks a page, cold and warm\n")
    print(f"{'log':18}{'its rate':>9}{'best':>7}{'first 500':>15}{'all':>15}{'last 2,000':>15}  ratio, worst run")
    for name, place, k in places:
        if given.only and not any(part in name for part in given.only):
            continue
        tasks = [(name, place, k, given.steps, given.seed, run, None) for run in range(given.runs)]
        with Pool(given.jobs) as pool:
            results = pool.map(played, tasks, chunksize=1)
        rate, best = np.mean([one[0] for one in results]), np.mean([one[1] for one in results])
        clicks = np.array([one[2] for one in results])
        cells = "".join(f"{clicks[:, 0, at].mean():>8.3f}{clicks[:, 1, at].mean():>7.3f}" for at in range(3))
        cold, warm = clicks[:, 0, 1], clicks[:, 1, 1]
        chosen = stream(given.seed, "interval").integers(given.runs, size=(4000, given.runs))
        low, high = np.quantile(warm[chosen].mean(axis=1) / cold[chosen].mean(axis=1), (0.05, 0.95))
        ratio = f"{warm.mean() / cold.mean():.3f} [{low:.3f}, {high:.3f}], {(warm / cold).min():.2f}"
        print(f"{name:18}{rate:>9.3f}{best:>7.3f}{cells}  {ratio}", flush=True)


if __name__ == "__main__":
    main()
