"""Slates and clicks over time, folded from the log like everything else a model knows."""

from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

# Widths of the buckets in seconds, and how many are kept: a quarter of an hour by the second, two days by
# the minute, and three years by the hour.
TIERS = ((1, 900), (60, 2880), (3600, 26_280))
FIRST_SLATES = 200
DAY = 86_400


class Span(Struct):
    """Slates and clicks in `width` seconds from `start` on."""

    start: float
    width: float
    slates: int
    clicks: int


class ClickStats:
    """Counts of slates and clicks; `tiers[i]` has for each bucket number its slates and clicks."""

    def __init__(self) -> None:
        self.tiers: list[dict[int, list[int]]] = [{} for _ in TIERS]
        self.since: float | None = None
        self.slates = 0
        self.clicks = 0
        # Its first slates, and its first day: what later learning is measured against.
        self.first_clicks = 0
        self.day_slates = 0
        self.day_clicks = 0
        self.positions: list[int] = []
        self.skipped = 0  # feedback that could not be learned, because the model never had such a slate

    def add(self, received: NDArray[np.float64], clicks: NDArray[np.int64]) -> None:
        """Feedback that came at these times, in the order of the log; a click of -1 is none."""
        if not len(clicks):
            return
        clicked = clicks >= 0
        if self.since is None:
            self.since = float(received[0])
        early = max(0, FIRST_SLATES - self.slates)
        self.first_clicks += int(clicked[:early].sum())
        first_day = received < self.since + DAY
        self.day_slates += int(first_day.sum())
        self.day_clicks += int((clicked & first_day).sum())
        self.slates += len(clicks)
        self.clicks += int(clicked.sum())
        by_position = np.bincount(clicks[clicked]) if clicked.any() else np.empty(0, np.int64)
        self.positions += [0] * (len(by_position) - len(self.positions))
        for position, count in enumerate(by_position.tolist()):
            self.positions[position] += count
        for (width, kept), tier in zip(TIERS, self.tiers, strict=True):
            numbers = (received // width).astype(np.int64)
            if numbers.min() == numbers.max():  # as it is in a commit, mostly
                counted = [(int(numbers[0]), len(clicks), int(clicked.sum()))]
            else:
                places, inverse = np.unique(numbers, return_inverse=True)
                hits = np.bincount(inverse, weights=clicked).astype(np.int64)
                counted = list(
                    zip(places.tolist(), np.bincount(inverse).tolist(), hits.tolist(), strict=True)
                )
            for number, n, c in counted:
                bucket = tier.setdefault(number, [0, 0])
                bucket[0] += n
                bucket[1] += c
            if len(tier) > 2 * kept:
                for number in sorted(tier)[:-kept]:
                    del tier[number]

    def correct(self, counted: float, click: int) -> None:
        """A slate that was counted without a click at this time has one, at this position."""
        self.clicks += 1
        # Later than the first ones it is not known which slate it was.
        self.first_clicks += self.slates <= FIRST_SLATES
        self.day_clicks += self.since is not None and counted < self.since + DAY
        self.positions += [0] * (click + 1 - len(self.positions))
        self.positions[click] += 1
        for (width, _), tier in zip(TIERS, self.tiers, strict=True):
            if (bucket := tier.get(int(counted // width))) is not None:
                bucket[1] += 1

    def recent_rate(self, n: int) -> float | None:
        """The share of slates with a click in the last minutes that have so many slates; None if there are
        fewer in two days."""
        slates = clicks = 0
        # They come nearly in order, and nothing depends on it.
        for more, hits in reversed(self.tiers[1].values()):
            slates, clicks = slates + more, clicks + hits
            if slates >= n:
                return clicks / slates
        return None

    def buckets(self, now: float, most: int) -> list[Span]:
        """The finest tier in which the time since the first feedback has at most so many buckets, then joined
        by twos, threes, ... until it has; empty buckets included, and the one that is running."""
        if self.since is None:
            return []
        fine = [i for i, (width, kept) in enumerate(TIERS) if now - self.since < width * (kept - 1)]
        chosen = fine[0] if fine else len(TIERS) - 1
        (width, kept), tier = TIERS[chosen], self.tiers[chosen]
        last = int(now // width)
        first = max(int(self.since // width), last - kept + 1)
        joined = max(1, -(-(last - first + 1) // most))
        # Buckets keep their borders as time goes on, or the whole curve would tremble.
        begin = first // joined
        sums = [[0, 0] for _ in range(last // joined - begin + 1)]
        for number, (slates, clicks) in tier.items():
            if first <= number <= last:
                at = sums[number // joined - begin]
                at[0] += slates
                at[1] += clicks
        seconds = float(width * joined)
        return [Span((begin + i) * seconds, seconds, *pair) for i, pair in enumerate(sums)]

    def as_json(self) -> dict[str, Any]:
        """For snapshots and digests: it depends on the events and their order, not on how many came together.

        A bucket that is not among the newest now never will be again: it does not matter when it is dropped.
        """
        told = dict(vars(self))
        told["tiers"] = [
            [[number, *tier[number]] for number in sorted(tier)[-kept:]]
            for (_, kept), tier in zip(TIERS, self.tiers, strict=True)
        ]
        return told

    @classmethod
    def from_json(cls, page: dict[str, Any]) -> "ClickStats":
        """The history of a snapshot."""
        history = cls()
        for name in vars(history):
            setattr(history, name, page[name])
        history.tiers = [
            {number: [slates, clicks] for number, slates, clicks in tier} for tier in page["tiers"]
        ]
        return history
