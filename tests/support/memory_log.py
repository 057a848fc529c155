"""One log in memory, a page whose truth is known, and clicks of simulated users."""

from itertools import permutations

import numpy as np

from firstclick.files.progress import silent
from firstclick.logs.ranked_log import RankedLog, SlateBatch
from firstclick.streams import stream


class InMemoryLog(RankedLog):
    """Arrays as a log, in batches of `size` slates; `candidates` are a list for each slate."""

    name = "synthetic"

    def __init__(
        self, items, clicks, propensities=None, *, names=None, segments=None, examined=None, reported=None,
        candidates=None, size=1000,
    ):  # fmt: skip
        n = len(items)
        self.whole = SlateBatch(
            items=np.asarray(items, np.int32), clicks=np.asarray(clicks, np.uint8),
            examined=np.asarray([-1] * n if examined is None else examined, np.int32),  # -1: not known
            reported=np.asarray([True] * n if reported is None else reported, np.bool_),
            numbers=np.arange(n, dtype=np.int64), propensities=propensities,
            segments=None if segments is None else np.asarray(segments, np.int32),
            candidates=None if candidates is None else np.concatenate(candidates).astype(np.int32),
            candidate_starts=None if candidates is None else np.cumsum([0, *map(len, candidates)]),
        )  # fmt: skip
        names = range(self.whole.items.max() + 1) if names is None else names
        self.items, self.k, self.size = list(names), self.whole.items.shape[1], size
        if segments is not None:
            self.segments = [f"segment {number}" for number in range(self.whole.segments.max() + 1)]

    def batches(self, progress=silent):
        arrays = {name: array for name, array in self.whole._asdict().items() if array is not None}
        for start in range(0, self.whole.n, self.size):
            end = start + self.size
            part = {name: array[start:end] for name, array in arrays.items() if name != "candidates"}
            if "candidates" in arrays:
                part["candidate_starts"] = arrays["candidate_starts"][start : end + 1]
            yield self.whole._replace(**part)


# A page of three of five drinks whose users click the first that attracts them

DRINKS = ["tea", "coffee", "cocoa", "milk", "water"]
ATTRACTION = np.array([0.45, 0.3, 0.15, 0.1, 0.05])


def drinks_log(items, clicks, propensities=None, **more):
    return InMemoryLog(items, clicks, propensities, names=DRINKS, **more)


def cascade_clicks(items, random):
    """The first attractive item is clicked."""
    attracted = random.random(items.shape) < ATTRACTION[items]
    return (attracted & (np.cumsum(attracted, axis=1) == 1)).astype(np.uint8)


def cascade_value(slate):
    """The exact clicks per impression of a slate."""
    return float(1 - np.prod(1 - ATTRACTION[list(slate)]))


def hand_ordered_log(n=12_000, explore=0.3, order=(2, 3, 0), seed=1):
    """A poor list and a share of uniform slates."""
    random = stream(seed, "a hand-ordered log")
    slates = np.array(list(permutations(range(len(DRINKS)), len(order))))
    explored = random.random(n) < explore
    items = np.where(explored[:, None], slates[random.integers(len(slates), size=n)], np.array(order))
    return drinks_log(items, cascade_clicks(items, random), mixed_propensities(items, order, explore))


def mixed_propensities(items, order, explore):
    """The probabilities of prefixes under the list and its uniform share."""
    left = len(DRINKS) - np.arange(items.shape[1])
    same = np.cumprod(items == np.array(order), axis=1)
    return np.asarray(explore / np.cumprod(left) + (1 - explore) * same)


def shown_value(explore, order):
    """The exact clicks per impression of that logging policy."""
    uniform = np.mean([cascade_value(slate) for slate in permutations(range(len(DRINKS)), len(order))])
    return float(explore * uniform + (1 - explore) * cascade_value(order))


# Clicks of simulated users


def shuffled_slates(generator, n, n_items, k):
    """n slates of k different items, in any order."""
    return np.argsort(generator.random((n, n_items)), axis=1)[:, :k].astype(np.int32)


def chain_clicks(generator, attraction, leaving, gamma):
    """Clicks of users who go down, and how far: chances of each position (n x k), and gamma."""
    n, k = attraction.shape
    clicks, looking, examined = np.zeros((n, k), np.uint8), np.ones(n, bool), np.zeros(n, np.int32)
    for position in range(k):
        examined += looking
        clicks[:, position] = looking & (generator.random(n) < attraction[:, position])
        satisfied = (clicks[:, position] == 1) & (generator.random(n) < leaving[:, position])
        looking &= ~satisfied & (generator.random(n) < gamma)
    return clicks, examined


def position_clicks(generator, attraction, examination):
    """Clicks of users who examine positions by chance."""
    chances = attraction * examination
    return (generator.random(chances.shape) < chances).astype(np.uint8)


GOING_ON = np.array([0.8, 0.7, 0.6, 0.6, 0.5, 0.4])
EXAMINATION = np.array([1.0, 0.8, 0.65, 0.5, 0.4, 0.3])


def simulated_log(model, n, seed=11):
    """n sessions of a click model on 6 positions; attraction and satisfaction of its 12 items."""
    generator = np.random.default_rng(seed)
    slates = shuffled_slates(generator, n, 12, 6)
    attraction, leaving = np.linspace(0.08, 0.5, 12), np.linspace(0.75, 0.25, 12)
    if model == "pbm":
        clicks = position_clicks(generator, attraction[slates], EXAMINATION)
    else:
        leaves = {"cm": np.ones(slates.shape), "dcm": np.broadcast_to(1 - GOING_ON, slates.shape)}
        gamma = 0.85 if model == "dbn" else 1.0
        clicks, _ = chain_clicks(generator, attraction[slates], leaves.get(model, leaving[slates]), gamma)
    return InMemoryLog(slates, clicks), attraction, leaving
