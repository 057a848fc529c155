"""What a trial counts: pages and clicks of each bucket, by period, and of the last stretch of pages.

"A click" is a page with at least one click. Everything is whole numbers, so that the order of the pages
does not matter and a snapshot gives the same bits. Beside the buckets stand running sums by arm, from which
`sequence.py` computes an interval after every page without looking at 10,000 buckets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.trials.assignment import MOST_ARMS, N_BUCKETS, owners, quotas
from firstclick.validation.quoting import quoted
from firstclick.validation.whole_number import whole_number

MOST_PERIODS = 100
DEFAULT_STRETCH = 10_000

# Rows of the sums: over the buckets of an arm, with p pages and c clicks in a bucket.
PAGES, CLICKS, PP, CP, CC = range(5)

Counts = NDArray[np.uint32]
# Lists, not arrays: a page changes five single numbers, and Python's own are three times as fast at that.
Sums = list[list[int]]


def sums_of(owner: NDArray[np.uint8], pages: Counts, clicks: Counts, n_arms: int) -> Sums:
    """The sums from scratch: of p, c, p p, c p and c c over the buckets of each arm."""
    p, c = pages.astype(np.int64), clicks.astype(np.int64)
    rows = (p, c, p * p, c * p, c * c)
    return [[int(row[owner == arm].sum()) for arm in range(n_arms)] for row in rows]


def _count(pages: Counts, clicks: Counts, sums: Sums, arm: int, bucket: int, clicked: bool) -> None:
    p = int(pages[bucket])
    c = int(clicks[bucket])
    pages[bucket] = p + 1
    sums[PAGES][arm] += 1
    sums[PP][arm] += 2 * p + 1
    if clicked:
        clicks[bucket] = c + 1
        sums[CLICKS][arm] += 1
        sums[CP][arm] += c + p + 1
        sums[CC][arm] += 2 * c + 1
    else:
        sums[CP][arm] += c


def _count_single(sums: Sums, arm: int, clicked: bool) -> None:
    """A page without a unit is a unit of its own: p = 1, and c c = c p = c."""
    y = int(clicked)
    sums[PAGES][arm] += 1
    sums[PP][arm] += 1
    sums[CLICKS][arm] += y
    sums[CP][arm] += y
    sums[CC][arm] += y


def no_sums(n_arms: int) -> Sums:
    """The sums of no pages."""
    return [[0] * n_arms for _ in range(5)]


def _no_counts() -> Counts:
    return np.zeros(N_BUCKETS, dtype=np.uint32)


@dataclass
class Period:
    """A part of the trial with the same shares. `sums` are of pages with a unit, `single` of the others."""

    shares: tuple[float, ...]
    owner: NDArray[np.uint8]
    pages: Counts = field(default_factory=_no_counts)
    clicks: Counts = field(default_factory=_no_counts)
    single: Sums = field(default_factory=list)
    sums: Sums = field(init=False)

    def __post_init__(self) -> None:
        self.sums = sums_of(self.owner, self.pages, self.clicks, len(self.shares))
        self.single = self.single or no_sums(len(self.shares))


@dataclass
class Stretch:
    """The last N pages, one complete stretch after the other. `done` counts the complete ones, `last` has the
    sums of the last of them, `sums` those of the one under way. A change of shares starts a stretch anew."""

    size: int
    done: int
    last: Sums
    sums: Sums
    pages: Counts | None
    clicks: Counts | None

    def add(self, arm: int, bucket: int | None, clicked: bool) -> None:
        if self.pages is None or self.clicks is None or bucket is None:
            _count_single(self.sums, arm, clicked)
        else:
            _count(self.pages, self.clicks, self.sums, arm, bucket, clicked)
        if sum(self.sums[PAGES]) >= self.size:
            self.done += 1
            self.last = self.sums
            self.restart()

    def restart(self) -> None:
        self.sums = no_sums(len(self.sums[PAGES]))
        if self.pages is not None and self.clicks is not None:
            self.pages, self.clicks = _no_counts(), _no_counts()


class Tally:
    """The counts of one trial.

    >>> tally = Tally([0.9, 0.1])
    >>> tally.add(arm=0, bucket=17, clicked=True)
    >>> tally.add(arm=1, bucket=None, clicked=False)
    >>> tally.change_shares([0.5, 0.5])
    >>> tally.pages, tally.clicks
    ([1, 1], [1, 0])
    """

    def __init__(self, shares: Sequence[float], stretch: int = DEFAULT_STRETCH) -> None:
        if not 2 <= len(shares) <= MOST_ARMS:
            raise InvalidInput(f"must be 2 to {MOST_ARMS}, got {len(shares)}", "shares")
        stretch = whole_number("stretch", stretch, at_least=1)
        self.n_arms = len(shares)
        self.periods = [Period(tuple(map(float, shares)), owners(shares))]
        none = [no_sums(self.n_arms) for _ in range(4)]
        self.units = Stretch(stretch, 0, none[0], none[1], _no_counts(), _no_counts())
        self.singles = Stretch(stretch, 0, none[2], none[3], None, None)
        self.corrected = [0] * self.n_arms

    @property
    def owner(self) -> NDArray[np.uint8]:
        """The arm of each bucket now."""
        return self.periods[-1].owner

    @property
    def shares(self) -> tuple[float, ...]:
        """The shares now."""
        return self.periods[-1].shares

    @property
    def period(self) -> int:
        """The number of the present period; a page belongs to the period it was shown in."""
        return len(self.periods) - 1

    @property
    def pages(self) -> list[int]:
        """All pages of each arm, with a unit and without."""
        return self._total(PAGES)

    @property
    def clicks(self) -> list[int]:
        """All pages with a click of each arm, with a unit and without."""
        return self._total(CLICKS)

    def add(self, arm: int, bucket: int | None, clicked: bool, period: int | None = None) -> None:
        """Count a page. `period` is the one it was shown in, by default the present one."""
        at = self._at(period)
        one = self.periods[at]
        if bucket is None:
            if not 0 <= arm < self.n_arms:
                raise InvalidInput(f"must be 0 to {self.n_arms - 1}, got {quoted(arm)}", "arm")
            _count_single(one.single, arm, clicked)
        else:
            if not 0 <= bucket < N_BUCKETS:
                raise InvalidInput(f"must be 0 to {N_BUCKETS - 1}, got {quoted(bucket)}", "bucket")
            if arm != one.owner[bucket]:
                raise InvalidInput(
                    f"must be {one.owner[bucket]}, the owner of bucket {bucket}, got {quoted(arm)}",
                    "arm",
                )
            _count(one.pages, one.clicks, one.sums, arm, bucket, clicked)
        # A page of earlier shares that arrives late is of no use beside pages of the present ones.
        if at == self.period:
            (self.singles if bucket is None else self.units).add(arm, bucket, clicked)

    def correct(self, arm: int) -> None:
        """A page that was counted without a click got one later. It is shown apart and changes no interval:
        a page enters the sequence once."""
        self.corrected[arm] += 1

    def change_shares(self, shares: Sequence[float]) -> None:
        """Start a new period. As few buckets as possible change their arm."""
        if len(shares) != self.n_arms:
            raise InvalidInput(f"must be one for each of {self.n_arms} arms, got {len(shares)}", "shares")
        if len(self.periods) >= MOST_PERIODS:
            raise InvalidInput(
                f"must change at most {MOST_PERIODS - 1} times in one trial; start a new trial",
                "shares",
            )
        if quotas(shares) == quotas(self.shares):
            return
        self.periods.append(Period(tuple(map(float, shares)), owners(shares, self.owner)))
        self.units.restart()
        self.singles.restart()

    def _total(self, row: int) -> list[int]:
        return [
            sum(one.sums[row][arm] + one.single[row][arm] for one in self.periods)
            for arm in range(self.n_arms)
        ]

    def _at(self, period: int | None) -> int:
        if period is None:
            return self.period
        if not 0 <= period <= self.period:
            raise InvalidInput(f"must be 0 to {self.period}, got {quoted(period)}", "period")
        return period

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """All of its state. `Tally.restored` makes the same tally of it, bit for bit."""
        assert self.units.pages is not None
        assert self.units.clicks is not None
        return {
            "shares": np.array([one.shares for one in self.periods]),
            "owner": np.array([one.owner for one in self.periods]),
            "pages": np.array([one.pages for one in self.periods]),
            "clicks": np.array([one.clicks for one in self.periods]),
            "single": np.array([one.single for one in self.periods]),
            "corrected": np.array(self.corrected),
            "stretch": np.array([self.units.size, self.units.done, self.singles.done]),
            "stretch_last": np.array([self.units.last, self.singles.last]),
            "stretch_sums": np.array([self.units.sums, self.singles.sums]),
            "stretch_pages": self.units.pages.copy(),
            "stretch_clicks": self.units.clicks.copy(),
        }

    @classmethod
    def restored(cls, arrays: dict[str, NDArray[np.generic]]) -> "Tally":
        """A tally from its arrays."""
        shares = arrays["shares"].astype(np.float64)
        size, done, done_singles = arrays["stretch"].astype(np.int64).tolist()
        tally = cls(shares[0].tolist(), size)
        tally.periods = [
            Period(
                tuple(shares[at].tolist()),
                arrays["owner"][at].astype(np.uint8),
                arrays["pages"][at].astype(np.uint32),
                arrays["clicks"][at].astype(np.uint32),
                arrays["single"][at].astype(np.int64).tolist(),
            )
            for at in range(len(shares))
        ]
        tally.corrected = arrays["corrected"].astype(np.int64).tolist()
        last = arrays["stretch_last"].astype(np.int64).tolist()
        sums = arrays["stretch_sums"].astype(np.int64).tolist()
        pages, clicks = arrays["stretch_pages"].astype(np.uint32), arrays["stretch_clicks"].astype(np.uint32)
        tally.units = Stretch(size, done, last[0], sums[0], pages, clicks)
        tally.singles = Stretch(size, done_singles, last[1], sums[1], None, None)
        return tally
