"""Made-up logs for tests: arrays as a RankedLog, and a cascade page whose truth is known."""

from itertools import permutations

import numpy as np

from firstclick.files.progress import silent
from firstclick.logs.ranked_log import NOT_TOLD, RankedLog, SlateBatch
from firstclick.streams import stream

ATTRACTION = np.array([0.45, 0.3, 0.15, 0.1, 0.05])
NAMES = ["tea", "coffee", "cocoa", "milk", "water"]


class ArraysLog(RankedLog):
    """Slates in memory, in batches of uneven size."""

    def __init__(self, items, clicks, propensities, names=NAMES, reported=None, candidates=None):
        self.name, self.items, self.k = "made up", names, items.shape[1]
        self._arrays = items.astype(np.int32), clicks.astype(np.uint8), propensities
        self._reported = np.ones(len(items), bool) if reported is None else reported
        self._candidates = candidates

    def batches(self, progress=silent):
        items, clicks, propensities = self._arrays
        start, size = 0, 700
        while start < len(items):
            rows = slice(start, start + size)
            n = len(items[rows])
            allowed, starts = None, None
            if self._candidates is not None:
                lists = self._candidates[start : start + n]
                allowed = np.concatenate([np.array(one, np.int32) for one in lists])
                starts = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
            yield SlateBatch(
                items[rows], clicks[rows], np.full(n, NOT_TOLD, np.int32), self._reported[rows],
                np.arange(start, start + n), None if propensities is None else propensities[rows],
                candidates=allowed, candidate_starts=starts,
            )  # fmt: skip
            start, size = start + n, size + 311


def cascade_clicks(items, random):
    """The first item that attracts is clicked."""
    attracted = random.random(items.shape) < ATTRACTION[items]
    return (attracted & (np.cumsum(attracted, axis=1) == 1)).astype(np.uint8)


def cascade_value(slate):
    """The clicks per page of a slate, exactly."""
    return float(1 - np.prod(1 - ATTRACTION[list(slate)]))


def hand_ordered_log(n=12_000, explore=0.3, order=(2, 3, 0), seed=1):
    """A list that somebody ordered badly, and a share of uniform slates beside it."""
    random = stream(seed, "a hand-ordered log")
    slates = np.array(list(permutations(range(len(NAMES)), len(order))))
    explored = random.random(n) < explore
    items = np.where(explored[:, None], slates[random.integers(len(slates), size=n)], np.array(order))
    return ArraysLog(items, cascade_clicks(items, random), mixed_propensities(items, order, explore))


def mixed_propensities(items, order, explore):
    """The probabilities of prefixes under the list and its uniform share."""
    left = len(NAMES) - np.arange(items.shape[1])
    same = np.cumprod(items == np.array(order), axis=1)
    return np.asarray(explore / np.cumprod(left) + (1 - explore) * same)


def shown_value(explore, order):
    """The clicks per page of that logger, exactly."""
    uniform = np.mean([cascade_value(slate) for slate in permutations(range(len(NAMES)), len(order))])
    return float(explore * uniform + (1 - explore) * cascade_value(order))
