"""What a ranked log holds: clicks by position, how often the order varied, and what can be asked of it."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.files.progress import Progress, silent
from firstclick.files.table import Skipped
from firstclick.logs.ranked_log import NOT_TOLD, RankedLog, SlateBatch
from firstclick.logs.what_can_be_said import what_can_be_said

# Hashes of slates that are kept before they are counted.
_AT_ONCE = 1 << 21
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@dataclass(frozen=True)
class PositionCounts:
    """One position, from 1 at the top: slates with a known outcome that have it, and clicks there."""

    position: int
    shown: int
    clicks: int

    @property
    def click_through(self) -> float:
        """Clicks per time shown."""
        return self.clicks / self.shown if self.shown else float("nan")


@dataclass(frozen=True)
class LogDescription:
    """What `describe_log` found. Counts of clicks are those of slates with a known outcome."""

    log: str
    slates: int
    reported: int  # of them: the outcome is known
    timed_out: int  # nobody reported them in time
    never_reported: int  # recommended, and not in the log at all
    items: int  # in slates or among candidates
    items_shown: int
    k: int  # the length of the longest slate
    shortest: int
    segments: int
    clicks: int
    clicked_slates: int
    several_clicks: int  # slates with more than one click
    clicks_below_first: int
    examined_told: int  # slates of which the page tells how far the user looked
    positions: tuple[PositionCounts, ...]
    distinct_slates: int
    most_frequent: int  # times that the most frequent slate was shown
    items_at_several_positions: int
    prefixes_known: int  # slates whose probability is known for every prefix
    slate_known: int  # slates whose probability is known as a whole
    places_known: int  # slates whose items have a known probability at their positions
    least_propensity: float | None
    always_one: bool  # every known probability is 1: the logger was deterministic
    first_time: float | None  # seconds since the epoch
    last_time: float | None
    has_fold: bool  # a model's own log: the probabilities can be computed
    skipped: tuple[Skipped, ...]
    doubtful: tuple[Skipped, ...]
    notes: tuple[str, ...]

    def said(self) -> tuple[tuple[str, str], ...]:
        """What can be evaluated and what cannot, each as ("can" or "cannot", a sentence)."""
        return what_can_be_said(self)

    def as_json(self) -> dict[str, Any]:
        """All fields, and `can` and `cannot`: the sentences."""
        told = asdict(self)
        told["positions"] = [
            asdict(one) | {"click_through": one.click_through if one.shown else None}
            for one in self.positions
        ]
        for word in ("skipped", "doubtful"):
            told[word] = [
                {"reason": one.reason, "rows": one.rows, "first": list(one.first), "unit": one.unit}
                for one in getattr(self, word)
            ]
        told["notes"] = list(self.notes)
        for kind in ("can", "cannot"):
            told[kind] = [sentence for one, sentence in self.said() if one == kind]
        return told


def describe_log(log: RankedLog, progress: Progress = silent) -> LogDescription:
    """Walk through a log once, and tell what is in it.

    >>> from pathlib import Path
    >>> from firstclick.logs.open_log import open_ranked_log
    >>> _ = Path("clicks.csv").write_text("items,click\\ntea|milk,0\\nmilk|tea,\\nmilk|jam,1\\n")
    >>> found = describe_log(open_ranked_log("clicks.csv"))
    >>> found.slates, found.clicked_slates, found.distinct_slates
    (3, 2, 3)
    >>> [one.click_through for one in found.positions]
    [0.3333333333333333, 0.3333333333333333]
    """
    counts = _Counts(log)
    for batch in log.batches(progress):
        counts.add(batch)
    return counts.description(log)


class _Counts:
    """What is counted on the way through a log."""

    def __init__(self, log: RankedLog) -> None:
        k, n_items = log.k, len(log.items)
        self._k = k
        self.slates = self.reported = self.clicked = self.several = self.examined = 0
        self.prefixes = self.whole = self.places = 0
        self.shortest = k
        self.least = np.inf
        self.first, self.last = np.inf, -np.inf
        self.shown, self.clicks = np.zeros(k, np.int64), np.zeros(k, np.int64)
        self.highest, self.lowest = np.full(n_items, k), np.full(n_items, -1)
        self.variety = _Variety()

    def add(self, batch: SlateBatch) -> None:
        there = batch.items >= 0
        self.slates += batch.n
        if batch.n:
            self.shortest = min(self.shortest, int(there.sum(axis=1).min()))
        known = batch.reported
        self.reported += int(known.sum())
        clicks = batch.clicks[known]
        self.shown += there[known].sum(axis=0)
        self.clicks += clicks.sum(axis=0, dtype=np.int64)
        of_slate = clicks.sum(axis=1)
        self.clicked += int((of_slate > 0).sum())
        self.several += int((of_slate > 1).sum())
        self.examined += int((batch.examined[known] != NOT_TOLD).sum())
        for place in range(self._k):
            codes = batch.items[there[:, place], place]
            self.highest[codes] = np.minimum(self.highest[codes], place)
            self.lowest[codes] = np.maximum(self.lowest[codes], place)
        self.variety.add(batch.items)
        self._add_chances(batch, there)
        if batch.times is not None and not np.isnan(batch.times).all():
            self.first = min(self.first, float(np.nanmin(batch.times)))
            self.last = max(self.last, float(np.nanmax(batch.times)))

    def _add_chances(self, batch: SlateBatch, there: NDArray[np.bool_]) -> None:
        if batch.propensities is not None:
            known = ~np.isnan(batch.propensities)
            self.prefixes += int((known | ~there).all(axis=1).sum())
            self.whole += int(known[:, -1].sum())
        if batch.logged_places is not None:
            self.places += int((~np.isnan(batch.logged_places) | ~there).all(axis=1).sum())
        for chances in (batch.propensities, batch.logged_places):
            if chances is not None and (known := ~np.isnan(chances) & there).any():
                self.least = min(self.least, float(chances[known].min()))

    def description(self, log: RankedLog) -> LogDescription:
        distinct, most = self.variety.counted()
        return LogDescription(
            log=log.name,
            slates=self.slates,
            reported=self.reported,
            timed_out=log.timed_out,
            never_reported=log.unreported,
            items=len(log.items),
            items_shown=int((self.lowest >= 0).sum()),
            k=log.k,
            shortest=self.shortest,
            segments=len(log.segments),
            clicks=int(self.clicks.sum()),
            clicked_slates=self.clicked,
            several_clicks=self.several,
            clicks_below_first=int(self.clicks.sum()) - self.clicked,
            examined_told=self.examined,
            positions=tuple(
                PositionCounts(place + 1, int(self.shown[place]), int(self.clicks[place]))
                for place in range(log.k)
            ),
            distinct_slates=distinct,
            most_frequent=most,
            items_at_several_positions=int((self.highest < self.lowest).sum()),
            prefixes_known=self.prefixes,
            slate_known=self.whole,
            places_known=self.places,
            least_propensity=self.least if np.isfinite(self.least) else None,
            always_one=bool(self.least == 1),
            first_time=self.first if np.isfinite(self.first) else None,
            last_time=self.last if np.isfinite(self.last) else None,
            has_fold=log.has_fold,
            skipped=log.skipped,
            doubtful=log.doubtful,
            notes=log.notes,
        )


class _Variety:
    """How many slates differ, and how often the most frequent one was shown: by hashes of 64 bits, of which
    two of ten million slates are the same with a chance of 1 in 300,000."""

    def __init__(self) -> None:
        self._hashes, self._counts = np.empty(0, np.uint64), np.empty(0, np.int64)
        self._waiting: list[NDArray[np.uint64]] = []
        self._n_waiting = 0

    def add(self, items: NDArray[np.int32]) -> None:
        hashes = np.zeros(len(items), np.uint64)
        for place in range(items.shape[1]):
            hashes = (hashes ^ items[:, place].astype(np.uint64)) * _FACTOR
            hashes ^= hashes >> _SHIFT
        self._waiting.append(hashes)
        self._n_waiting += len(hashes)
        if self._n_waiting >= _AT_ONCE:
            self._count()

    def _count(self) -> None:
        new = np.concatenate([self._hashes, *self._waiting])
        weights = np.concatenate([self._counts, np.ones(self._n_waiting, np.int64)])
        order = np.argsort(new, kind="stable")
        new = new[order]
        self._waiting, self._n_waiting = [], 0
        if len(new):
            starts = np.flatnonzero(np.concatenate([[True], new[1:] != new[:-1]]))
            self._hashes, self._counts = new[starts], np.add.reduceat(weights[order], starts)

    def counted(self) -> tuple[int, int]:
        """How many slates differ, and the count of the most frequent one."""
        self._count()
        return len(self._hashes), int(self._counts.max(initial=0))
