"""Logs in memory: slates of a simulated click model, one at a time, in plain Python and NumPy."""

import numpy as np

from firstclick.files.progress import silent
from firstclick.logs.ranked_log import RankedLog, SlateBatch


class MadeUpLog(RankedLog):
    """Arrays as a log, in batches of `size`."""

    name = "made-up"

    def __init__(
        self, items, clicks, *, n_items=None, segments=None, n_segments=1, examined=None, reported=None,
        size=1000,
    ):  # fmt: skip
        self._items = np.asarray(items, np.int32)
        self._clicks = np.asarray(clicks, np.uint8)
        n = len(self._items)
        self._examined = np.full(n, -1, np.int32) if examined is None else np.asarray(examined, np.int32)
        self._reported = np.ones(n, np.bool_) if reported is None else np.asarray(reported, np.bool_)
        self._segments = None if segments is None else np.asarray(segments, np.int32)
        self.items = tuple(f"item {place}" for place in range(n_items or int(self._items.max()) + 1))
        self.segments = () if segments is None else tuple(f"segment {place}" for place in range(n_segments))
        self.k = self._items.shape[1]
        self._size = size

    def batches(self, progress=silent):
        for start in range(0, len(self._items), self._size):
            part = slice(start, start + self._size)
            yield SlateBatch(
                items=self._items[part], clicks=self._clicks[part], examined=self._examined[part],
                reported=self._reported[part],
                numbers=np.arange(len(self._items), dtype=np.int64)[part],
                segments=None if self._segments is None else self._segments[part],
            )  # fmt: skip


def shuffled_slates(generator, n, n_items, k):
    """n slates of k different items, in any order."""
    return np.argsort(generator.random((n, n_items)), axis=1)[:, :k].astype(np.int32)


def chain_clicks(generator, attraction, leaving, gamma):
    """Clicks of users who go down: chances of each position (n x k), and gamma. Also how far they looked."""
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
