"""What every reader of a ranked log gives: slates and their clicks as arrays, a batch at a time."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.ids import ItemId
from firstclick.files.progress import Progress, silent
from firstclick.files.table import Skipped

# An item where a slate has ended.
NO_ITEM = -1
# A page that does not tell how far the user looked.
NOT_TOLD = -1


class SlateBatch(NamedTuple):
    """Some slates of a log, one a row; K is the length of the log's longest slate.

    `items`, `segments` and `candidates` hold places in the lists of the log. None: the log does not have it.
    """

    items: NDArray[np.int32]  # n x K, best first; NO_ITEM after the end of a shorter slate
    clicks: NDArray[np.uint8]  # n x K, 1 where clicked
    examined: NDArray[np.int32]  # n, how many positions from the top the page says were seen; NOT_TOLD
    reported: NDArray[np.bool_]  # n, whether the outcome is known: no report is not the same as no click
    numbers: NDArray[np.int64]  # n, the row (from 0) or event of each slate, for messages and joins
    # n x K, the probability of the first 1, 2, ... items in the policy that chose the slate; NaN: not known.
    propensities: NDArray[np.float64] | None = None
    segments: NDArray[np.int32] | None = None  # n
    times: NDArray[np.float64] | None = None  # n, seconds since the epoch
    # The candidates of slate i are candidates[candidate_starts[i]:candidate_starts[i + 1]]; none there,
    # or None: all items.
    candidates: NDArray[np.int32] | None = None
    candidate_starts: NDArray[np.int64] | None = None  # n + 1
    # n x K, the probability of each item at its position, whatever stands above it; NaN: not known.
    logged_places: NDArray[np.float64] | None = None
    # n, of a model's own log: the event after which the slate was drawn, before that of its feedback, and
    # long before if that came late; NOT_TOLD.
    drawn_from: NDArray[np.int64] | None = None

    @property
    def n(self) -> int:
        """The number of slates."""
        return len(self.items)

    def candidates_of(self, slate: int) -> NDArray[np.int32] | None:
        """The items that a slate was chosen from; None: all items."""
        if self.candidates is None or self.candidate_starts is None:
            return None
        start, end = self.candidate_starts[slate : slate + 2].tolist()
        return self.candidates[start:end] if end > start else None

    def candidates_named(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """All candidates, and the slate of each. Slates that name none allow all items."""
        if self.candidates is None or self.candidate_starts is None:
            return np.empty(0, np.int64), np.empty(0, np.int32)
        starts = self.candidate_starts
        return np.repeat(np.arange(self.n), np.diff(starts)), self.candidates[starts[0] : starts[-1]]

    def allowed_counts(self, n_items: int) -> NDArray[np.int64]:
        """How many items each slate was chosen from, in a log of so many."""
        if self.candidate_starts is None:
            return np.full(self.n, n_items, np.int64)
        named = np.diff(self.candidate_starts)
        return np.where(named > 0, named, n_items)


class RankedLog(ABC):
    """A log that can be read again and again, in the same order, without holding it in memory."""

    name: str  # for messages: "clicks.csv"
    items: Sequence[ItemId]  # every item in a slate or among candidates
    segments: Sequence[str] = ()
    k: int  # the length of the longest slate
    # Both are complete after the first walk through all batches.
    skipped: tuple[Skipped, ...] = ()  # rows that are no slates, and why; `batches` leaves them out
    doubtful: tuple[Skipped, ...] = ()  # slates that are kept, but without what was wrong: a probability of 2
    notes: tuple[str, ...] = ()  # how the log was understood: "positions count from 1"
    timed_out: int = 0  # slates that are taken as no click, or as not reported, because a time had passed
    has_fold: bool = False  # a model's own log: folding it gives the probabilities that are not known
    unreported: int = 0  # slates that were shown and are not in the log, as far as it tells

    @abstractmethod
    def batches(self, progress: Progress = silent) -> Iterator[SlateBatch]:
        """The slates in the order of the log."""
