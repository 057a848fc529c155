"""A head start with the position bias corrected, beside the raw log: the same log, pages and users.

    python -m benchmarks.fitted_head_start [--slates 20000] [--explored 0.1] [--steps 5000] [--runs 20]

The page: 30 items, slates of six, users who look at positions with chances from 1 down to 0.15 and click what
attracts. The log: an editor has a list of all items by a noisy guess, and a page shows six of its first 15 in
the order of the list, so that an item has its usual place; a share of pages (--explored) shows six of the 15
in random order. The raw head start counts what a cascade takes for seen; the corrected one, the looks and
clicks that a fitted position-based model stands for. Figures are true clicks a page. Differences are paired
by run, with 95 % intervals by Student's t.
"""

import argparse
import sys
from itertools import pairwise

import numpy as np
from scipy.stats import t as student

from firstclick import make_policy
from firstclick.click_models import Sessions, fit_sessions
from firstclick.experiments.loop import EXPECTED_REGRET, Tally, Task, play
from firstclick.kernels.compiling import compiled
from firstclick.online.item_counts import counts_of
from firstclick.streams import stream
from firstclick.worlds import BernoulliWorld
from firstclick.worlds.base import Stage

ITEMS, LISTED, K = 30, 15, 6
EXAMINED = np.array([1.0, 0.6, 0.4, 0.3, 0.2, 0.15])
POLICIES = ("cascade-mixed", "cascade-ts")
STARTS = ("cold", "raw", "corrected")


def page(draw):
    """The attractions of the items, and the editor's list."""
    attraction = np.clip(draw.lognormal(-2.6, 0.7, ITEMS), 0.0, 0.6)
    guessed = np.log(attraction) + draw.normal(0.0, 0.9, ITEMS)
    return attraction, np.argsort(-guessed)[:LISTED]


def logged(attraction, listed, slates, explored, draw):
    """The slates and clicks of the log."""
    places = np.argsort(draw.random((slates, LISTED)), axis=1)[:, :K]
    in_order = draw.random(slates) >= explored
    places[in_order] = np.sort(places[in_order], axis=1)
    shown = listed[places]
    return shown, draw.random(shown.shape) < attraction[shown] * EXAMINED


def raw_counts(shown, clicks):
    """Looks and clicks if users look down to the first click, and then leave."""
    first = np.where(clicks.any(axis=1), clicks.argmax(axis=1), K - 1)
    seen = np.arange(K) <= first[:, None]
    looks = np.bincount(shown[seen], minlength=ITEMS)
    return looks.astype(float), np.bincount(shown[seen & clicks], minlength=ITEMS).astype(float)


def corrected_counts(shown, clicks):
    """Looks and clicks that a fitted position-based model stands for."""
    places = np.unique(shown)
    sessions = Sessions(
        name="log", items=tuple(range(ITEMS)), segments=("",), k=K,
        cells=np.searchsorted(places, shown).astype(np.int32), clicks=clicks.astype(np.uint8),
        examined=np.full(len(shown), -1, np.int32), slate_segments=np.zeros(len(shown), np.int32),
        numbers=np.arange(len(shown)), places=places, unreported=0,
    )  # fmt: skip
    looks, hits = np.zeros(ITEMS), np.zeros(ITEMS)
    for item, counted in counts_of(fit_sessions(sessions, "pbm")).items():
        looks[item], hits[item] = counted
    return looks, hits


def played(policy, world, counts, slates, marks, seed, run):
    """True clicks a page in each stretch between two marks."""
    stage = Stage(world, None, world.names())
    optimal, best = world.optimal_slates(K), world.optimal_reward(K)
    _, player, ground = Task(0, policy, stage, optimal, best, run, np.array([1]), seed)._begin()
    if counts is not None:
        past = policy.with_counts(policy.initial_state(ITEMS, 0, K), *counts, slates)
        state = policy.with_log(player.state, past, nothing_known=True)
        player = player._replace(state=policy.refitted(state, player.catalog))
    tally, clicks = Tally(np.zeros(3), np.zeros(ITEMS, np.int64), marks[-1]), []
    for first, last in pairwise(marks):
        before = tally.totals[EXPECTED_REGRET]
        compiled(play, type(policy))(player, ground, tally, first, last)
        clicks.append(best - (tally.totals[EXPECTED_REGRET] - before) / (last - first))
    return clicks


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slates", type=int, default=20_000)
    parser.add_argument("--explored", type=float, default=0.1)
    parser.add_argument("--steps", type=int, default=5_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    marks = [0, given.steps // 10, given.steps]
    found = {name: [] for name in POLICIES}
    best, today = [], []
    for run in range(given.runs):
        print(f"run {run + 1} of {given.runs}", end="\r", file=sys.stderr)
        draw = stream(given.seed, "page", run)
        attraction, listed = page(draw)
        log = logged(attraction, listed, given.slates, given.explored, draw)
        world = BernoulliWorld(attraction, "pbm/" + "/".join(map(str, EXAMINED)))
        best.append(world.optimal_reward(K))
        today.append((attraction[log[0]] * EXAMINED).sum(axis=1).mean())
        starts = None, raw_counts(*log), corrected_counts(*log)
        for name in POLICIES:
            one = make_policy(name)
            found[name].append(
                [played(one, world, start, given.slates, marks, given.seed, run) for start in starts]
            )
    print(
        f"{given.slates:,} slates, {given.explored:.0%} explored; {given.runs} runs, seed {given.seed}; "
        f"clicks a page: best {np.mean(best):.3f}, the log {np.mean(today):.3f}\n"
    )
    print(f"{'policy':15}{'pages':>15}" + "".join(f"{start:>11}" for start in STARTS) + "   corrected - raw")
    for name in POLICIES:
        clicks = np.array(found[name])  # runs x starts x stretches
        for stretch, (first, last) in enumerate(pairwise(marks)):
            means = "".join(f"{mean:>11.3f}" for mean in clicks[:, :, stretch].mean(axis=0))
            gain = clicks[:, 2, stretch] - clicks[:, 1, stretch]
            half = student.ppf(0.975, given.runs - 1) * gain.std(ddof=1) / np.sqrt(given.runs)
            interval = f"({gain.mean() - half:+.4f} to {gain.mean() + half:+.4f})"
            more = f"more in {np.count_nonzero(gain > 0)} of {given.runs} runs"
            print(f"{name:15}{f'{first:,} to {last:,}':>15}{means}   {gain.mean():+.4f} {interval}, {more}")


if __name__ == "__main__":
    main()
