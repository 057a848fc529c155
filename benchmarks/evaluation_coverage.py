"""How often 95 % intervals hold the truth, where the log is that of a policy that learns.

    python -m benchmarks.evaluation_coverage [--logs 500] [--slates 2000] [--explore 0.2] [--seed 1]

A `cascade-ts` ranker with 5 items and 2 places, and a share of explored slates, learns from a cascade. The
probability of all 20 slates is computed before each of them is drawn: Thompson sampling by quadrature,
mixed with the uniform draw. Three targets are evaluated on every log: the best list, uniformly random, the
worst list.

`naive` is the mean of the RIPS terms and 1.96 standard errors. `rips` has weights that stabilise the variance
(Hadad et al. 2021), which need to know how likely the target's lists were; `chosen` is the estimate that
`evaluate` believes, of logs that it does not refuse; `bernstein` is RIPS where those chances are not known.
"""

import argparse
import itertools
import sys
from typing import NamedTuple

import numpy as np
from scipy.special import betainc

from firstclick import Catalog, Ranker
from firstclick.evaluation.estimators.evaluate import evaluate
from firstclick.evaluation.estimators.weighted_slates import WeightedSlates
from firstclick.streams import stream

ATTRACTIONS = np.array([0.6, 0.5, 0.4, 0.3, 0.2])
K = 2
LISTS = np.array(list(itertools.permutations(range(len(ATTRACTIONS)), K)))
CELLS = 192
EDGES = np.linspace(0.0, 1.0, CELLS + 1)


class Thompson:
    """The probability of every list of two items, when items are ranked by draws from Beta posteriors."""

    def __init__(self, n_items):
        self.masses = np.full((n_items, CELLS), 1.0 / CELLS)
        self.below = np.tile((EDGES[1:] + EDGES[:-1]) / 2, (n_items, 1))

    def changed(self, item, hits, misses):
        at = betainc(1.0 + hits, 1.0 + misses, EDGES)
        self.masses[item], self.below[item] = np.diff(at), (at[1:] + at[:-1]) / 2

    def chances(self):
        """One number a list of LISTS."""
        first, second = LISTS.T
        below = np.maximum(self.below, 1e-30)
        inner = self.masses[second] * (below.prod(axis=0) / (below[first] * below[second]))
        reached = np.cumsum(inner, axis=1) - inner / 2
        found = np.einsum("lc,lc->l", self.masses[first], reached)
        return found / found.sum()


class Log(NamedTuple):
    """A log, and the probability of every list before each slate was drawn."""

    slates: np.ndarray  # n x K
    clicks: np.ndarray
    chances: np.ndarray  # n x lists


def made(n_slates, explore, seed):
    """The log of a ranker that learns."""
    n_items = len(ATTRACTIONS)
    ranker = Ranker(Catalog(range(n_items)), k=K, policy="cascade-ts", seed=seed, explore=explore)
    draw = stream(seed, "clicks")
    counts, thompson = np.zeros((2, n_items)), Thompson(n_items)
    slates, clicks = np.empty((n_slates, K), np.int32), np.zeros((n_slates, K))
    chances = np.empty((n_slates, len(LISTS)))
    for t in range(n_slates):
        chances[t] = (1 - explore) * thompson.chances() + explore / len(LISTS)
        slate = ranker.recommend()
        slates[t] = slate.items
        attracted = draw.random(K) < ATTRACTIONS[slates[t]]
        click = int(np.argmax(attracted)) if attracted.any() else None
        ranker.learn(slate, click=click)
        for position in range(K if click is None else click + 1):
            item = slates[t, position]
            counts[int(position != click), item] += 1
            thompson.changed(item, *counts[:, item])
        if click is not None:
            clicks[t, click] = 1.0
    return Log(slates, clicks, chances)


def value(chances):
    """The clicks a page of a policy that shows each list with these chances."""
    first, second = ATTRACTIONS[LISTS.T]
    return chances @ (first + (1 - first) * second)


def first_place(chances):
    """The probability of each list's first item, one row a slate."""
    firsts = (LISTS[:, :1] == LISTS[:, 0]).astype(np.float64)
    return chances @ firsts


def weighted(log, target):
    """The log as estimators want it. `target` has one number a list."""
    shown = (LISTS[None] == log.slates[:, None]).all(axis=2).argmax(axis=1)
    rows = np.arange(len(shown))
    firsts, firsts_target = first_place(log.chances), first_place(target)
    logged = np.stack([firsts[rows, shown], log.chances[rows, shown]], axis=1)
    judged = np.stack([firsts_target[shown], target[shown]], axis=1)
    n_second = len(ATTRACTIONS) - 1
    spread = np.stack(
        [(firsts_target**2 / firsts).sum(axis=1) / n_second, (target**2 / log.chances).sum(axis=1)], axis=1
    )
    return WeightedSlates(log.clicks, logged, judged, spread=spread, items=log.slates)


def targets():
    """Their names, and the chances of lists."""
    by_value = np.argsort(value(np.eye(len(LISTS))))
    return {
        "best list": np.eye(len(LISTS))[by_value[-1]],
        "uniformly random": np.full(len(LISTS), 1 / len(LISTS)),
        "worst list": np.eye(len(LISTS))[by_value[0]],
    }


class Tally:
    """Intervals counted: whether they hold, and how wide they are."""

    def __init__(self):
        self.held, self.widths = [], []

    def add(self, low, high, truth):
        self.held.append(low <= truth <= high)
        self.widths.append(high - low)

    def __str__(self):
        return (
            f"{np.mean(self.held):>10.1%}{np.mean(self.widths):>9.3f}" if self.held else f"{'-':>10}{'-':>9}"
        )


def naive(terms):
    """The mean, and 1.96 standard errors to each side."""
    reach = 1.96 * terms.std() / np.sqrt(len(terms))
    return terms.mean() - reach, terms.mean() + reach


METHODS = ("naive", "rips", "chosen", "bernstein")


def tally(n_logs, n_slates, explore, seed, logs=made):
    """By target, method and what is estimated (the value or its difference from what was shown)."""
    counted = {
        (target, method, what): Tally()
        for target in targets() for method in METHODS for what in ("value", "difference")
    }  # fmt: skip
    refused = dict.fromkeys(targets(), 0)
    for number in range(n_logs):
        if number % 20 == 0:
            print(f"log {number} of {n_logs}", file=sys.stderr)
        log = logs(n_slates, explore, seed * 100_000 + number)
        shown, was_worth = log.clicks.sum(axis=1), value(log.chances).mean()
        for name, target in targets().items():
            truth = value(target)
            slates = weighted(log, target)
            terms = (slates.target / slates.logged * slates.clicks).sum(axis=1)
            counted[name, "naive", "value"].add(*naive(terms), truth)
            counted[name, "naive", "difference"].add(*naive(terms - shown), truth - was_worth)
            found = evaluate(slates, learning=True, click_model="cm")
            wide = evaluate(slates._replace(spread=None), learning=True, click_model="cm")
            refused[name] += found.answer is None
            by_name = {one.name: one for one in found.estimates}
            for method, one in (
                ("rips", by_name["rips"]),
                ("chosen", found.answer),
                ("bernstein", next(one for one in wide.estimates if one.name == "rips")),
            ):
                if one is not None:
                    counted[name, method, "value"].add(one.low, one.high, truth)
                    counted[name, method, "difference"].add(
                        one.difference_low, one.difference_high, truth - was_worth
                    )
    return counted, refused


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=int, default=500)
    parser.add_argument("--slates", type=int, default=2000)
    parser.add_argument("--explore", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    counted, refused = tally(given.logs, given.slates, given.explore, given.seed)
    print(
        f"{given.logs} logs of {given.slates:,} slates, cascade-ts with explore={given.explore:g}, "
        f"seed {given.seed}: 95 % intervals that hold the truth, and their mean width\n"
    )
    print(f"{'':42}" + "".join(f"{method:>19}" for method in METHODS) + f"{'cannot say':>12}")
    for name in targets():
        for what in ("value", "difference"):
            cells = "".join(str(counted[name, method, what]) for method in METHODS)
            print(f"{name + ', ' + what:<42}{cells}{refused[name] / given.logs:>12.1%}")


if __name__ == "__main__":
    main()
