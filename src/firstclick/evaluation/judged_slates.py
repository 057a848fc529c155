"""The slates of a log that can be judged, with what logger and target say of them, a batch at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.evaluation.click_fits import CrossFit
from firstclick.evaluation.estimators.support import prefixes_seen
from firstclick.evaluation.estimators.weighted_slates import WeightedSlates
from firstclick.evaluation.logged_places import logged_places, slates_with_gaps
from firstclick.evaluation.logger_check import LoggerCheck
from firstclick.evaluation.spread import Spread
from firstclick.evaluation.targets import DeterministicTarget, Table, Target
from firstclick.files.progress import Progress, silent
from firstclick.kernels.slate_reading import N_CHANCES, NO_CHANCE, RISING
from firstclick.logs.odd_rows import DOUBTFUL
from firstclick.logs.ranked_log import NO_ITEM, RankedLog, SlateBatch
from firstclick.streams import stream

# Numbers of a target that are kept between the passes over a log: 400 MB. Beyond that they are made anew.
MOST_KEPT = 50_000_000
# Requests of which it is asked whether the target's slate was ever shown.
MOST_ASKED = 10_000


@dataclass
class LogFacts:
    """What one pass over the log tells before any policy is judged."""

    by_position: Table  # clicks on all slates with an outcome
    logger: LoggerCheck
    slates: int = 0  # that can be judged
    unreported: int = 0  # in the log without an outcome, or shown and never in the log
    without_propensity: int = 0
    impossible: int = 0  # a probability that is none: 0, above 1, or rising from prefix to prefix
    first_impossible: str = ""
    whole_slates_only: int = 0  # with the probability of the whole slate alone
    places: int = 0  # with the probability of some item at its position
    by_places: bool = False  # the log has no others: estimators by position alone can judge
    clicks: int = 0
    squares: int = 0  # of the clicks of each slate
    clicked_slates: int = 0
    candidates: int = 0  # items that slates were chosen from, over all slates

    @property
    def reported(self) -> int:
        """Slates whose outcome is known."""
        return self.slates + self.without_propensity + self.impossible


def log_facts(log: RankedLog, progress: Progress = silent, *, by_places: bool = False) -> LogFacts:
    """Read the log once, and again if it has probabilities of places alone (`by_places`)."""
    n_items = len(log.items)
    facts = LogFacts(by_position=np.zeros(log.k), logger=LoggerCheck(log.k))
    facts.by_places = by_places
    for batch in log.batches(progress):
        kept, logged = usable(batch, facts, by_places=by_places)
        facts.slates += kept.n
        facts.by_position += batch.clicks[batch.reported].sum(axis=0)
        shown = kept.items != NO_ITEM
        of_slates = np.where(shown, kept.clicks, 0).sum(axis=1, dtype=np.int64)
        facts.clicks += int(of_slates.sum())
        facts.squares += int((of_slates**2).sum())
        facts.clicked_slates += int((of_slates > 0).sum())
        facts.candidates += int(kept.allowed_counts(n_items).sum())
        facts.logger.add(kept, logged, _prefixes_untold(kept) & (not by_places))
    if facts.places and not by_places and facts.without_propensity == facts.reported:
        return log_facts(log, progress, by_places=True)
    facts.unreported += log.unreported
    # A reader of files has taken probabilities that are none for missing ones, and says so.
    for odd in log.doubtful:
        if odd.reason in (DOUBTFUL[NO_CHANCE], DOUBTFUL[RISING], DOUBTFUL[N_CHANCES]):
            rows = min(odd.rows, facts.without_propensity)
            facts.impossible += rows
            facts.without_propensity -= rows
            facts.first_impossible = facts.first_impossible or str(odd)
    return facts


def usable(
    batch: SlateBatch, facts: LogFacts | None = None, *, by_places: bool = False
) -> tuple[SlateBatch, Table]:
    """The slates of a batch whose outcome and propensities are known, and the probabilities of their
    prefixes under the logger (`by_places`: of some item at its position, and those of places). The others
    are counted in `facts`."""
    reported = batch.reported & (batch.items[:, 0] != NO_ITEM)
    logged = _whole(batch)
    told = ~np.isnan(logged).any(axis=1)
    possible = told & _possible(logged)
    places = logged_places(batch)
    if places is not None:
        some = (~np.isnan(places) & (batch.items != NO_ITEM)).any(axis=1)
        if by_places:
            logged, told = places, some
            with np.errstate(invalid="ignore"):
                possible = told & ~((places <= 0) | (places > 1 + 1e-6)).any(axis=1)
        if facts is not None:
            facts.places += int((reported & some).sum())
    if facts is not None:
        facts.unreported += int((~batch.reported).sum())
        facts.without_propensity += int((reported & ~told).sum())
        wrong = reported & told & ~possible
        facts.impossible += int(wrong.sum())
        if wrong.any() and not facts.first_impossible:
            at = int(np.argmax(wrong))
            chances = ", ".join(f"{chance:.4g}" for chance in logged[at])
            facts.first_impossible = f"slate {batch.numbers[at]} has {chances}"
        if batch.propensities is not None and not by_places:
            whole_only = np.isnan(batch.propensities[:, 0]) & told
            facts.whole_slates_only += int((whole_only & reported).sum())
    rows = np.flatnonzero(reported & possible)
    return some_slates(batch, rows), logged[rows]


def _whole(batch: SlateBatch) -> Table:
    """The probabilities of prefixes, without gaps: after the end of a slate they stay as they were, and where
    that of the whole slate is told alone, it stands for all: then RIPS becomes slate IPS."""
    n, k = batch.items.shape
    if batch.propensities is None:
        # Of a page with one place, the place is the slate.
        alone_there = k == 1 and batch.logged_places is not None
        return np.array(batch.logged_places, np.float64) if alone_there else np.full((n, k), np.nan)
    logged = batch.propensities.astype(np.float64, copy=True)
    last = np.maximum((batch.items != NO_ITEM).sum(axis=1) - 1, 0)
    of_slate = logged[np.arange(n), last]
    logged = np.where(batch.items == NO_ITEM, of_slate[:, None], logged)
    alone = np.isnan(logged).any(axis=1) & ~np.isnan(of_slate)
    logged[alone] = of_slate[alone, None]
    return logged


def _possible(logged: Table) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        inside = ((logged > 0) & (logged <= 1 + 1e-6)).all(axis=1)
        falling = (logged[:, 1:] <= logged[:, :-1] * (1 + 1e-6)).all(axis=1)
    return np.asarray(inside & falling)


def some_slates(batch: SlateBatch, rows: NDArray[np.int64]) -> SlateBatch:
    """Some slates of a batch."""
    if len(rows) == batch.n:
        return batch
    candidates, starts = batch.candidates, batch.candidate_starts
    if candidates is not None and starts is not None:
        counts = np.diff(starts)
        mask = np.zeros(batch.n, np.bool_)
        mask[rows] = True
        slate_of, named = batch.candidates_named()
        candidates = named[mask[slate_of]]
        starts = np.concatenate([[0], np.cumsum(counts[rows])]).astype(np.int64)
    rest: dict[str, Any] = {
        name: None if getattr(batch, name) is None else getattr(batch, name)[rows]
        for name in batch._fields
        if name not in ("candidates", "candidate_starts")
    }
    return SlateBatch(**rest, candidates=candidates, candidate_starts=starts)


class JudgedSlates:
    """The weighted slates of a log and a target, as often as they are asked for, in the same order."""

    def __init__(
        self,
        log: RankedLog,
        target: Target,
        fits: CrossFit | None,
        slates: int,
        spread: Spread | None = None,
        progress: Callable[[], Progress] = lambda: silent,
        by_places: bool = False,
    ) -> None:
        # With other probabilities at hand, those of places are used if no slate lacks one that it needs.
        self._by_places, self._has_places = by_places, by_places
        self._log, self._target, self._fits, self._progress = log, target, fits, progress
        self._spread, self._slates = spread, slates
        keeps = slates * log.k * 5 <= MOST_KEPT
        self._kept: list[WeightedSlates] | None = [] if keeps else None
        self._whole = False

    def __iter__(self) -> Iterator[WeightedSlates]:
        if self._whole and self._kept is not None:
            yield from self._kept
            return
        if self._kept is not None:
            self._kept.clear()
        for batch in self._log.batches(self._progress()):
            kept, logged = usable(batch, by_places=self._by_places)
            weighted = self._weighted(kept, logged)
            if self._kept is not None:
                self._kept.append(weighted)
            yield weighted
        self._whole = True

    def find_places(self) -> int | None:
        """Whether estimators by position can judge, before the first batch: how many slates have an item
        where the target may show it, with a probability that is not known; None: log or target has none."""
        batches = (usable(batch, by_places=self._by_places)[0] for batch in self._log.batches())
        found = slates_with_gaps(self._target, batches)
        self._has_places = self._by_places or found == 0
        return found

    def _weighted(self, slates: SlateBatch, logged: Table) -> WeightedSlates:
        target = checked_chances(self._target.prefix_chances(slates), slates)
        alone = _prefixes_untold(slates)
        target[alone] = target[alone, -1:]
        predicted = None
        if self._fits is not None and not self._by_places:
            predicted = self._fits.predictions(self._target, slates)
        return WeightedSlates(
            clicks=np.where(slates.items == NO_ITEM, 0, slates.clicks).astype(np.float64),
            logged=None if self._by_places else np.minimum(logged, 1.0),
            target=target,
            logged_places=logged_places(slates) if self._has_places else None,
            target_places=self._target.place_chances(slates) if self._has_places else None,
            predicted=None if predicted is None else predicted.logged,
            predicted_target=None if predicted is None else predicted.target,
            spread=self._spread_of(slates),
            # The check by item is one of first items, whose probability must be known.
            items=None if alone.any() and not self._by_places else slates.items,
        )

    def _spread_of(self, slates: SlateBatch) -> Table | None:
        if self._spread is None or slates.drawn_from is None:
            return None
        return self._spread.known_after(slates.drawn_from)

    def seen(self) -> list[float] | None:
        """For each number of first places: the share of requests whose slate of the target was ever shown so
        far down, to anybody; None unless the target shows one slate for a request. Of a large log some
        requests stand for all: drawn, because what is shown may come and go in a rhythm."""
        if not isinstance(self._target, DeterministicTarget) or not self._slates:
            return None
        random, wanted = stream(0, "evaluation", "requests asked"), []
        for slates in self._usable():
            drawn = random.random(slates.n) * self._slates < MOST_ASKED
            asked = some_slates(slates, np.flatnonzero(drawn))
            # A page has as many places as it had.
            best = np.where(asked.items == NO_ITEM, np.int32(NO_ITEM), self._target.best_slates(asked))
            wanted.append(best)
        different, times = np.unique(np.concatenate(wanted), axis=0, return_counts=True)
        found = np.zeros(different.shape, np.bool_)
        for slates in self._usable():
            found |= prefixes_seen(slates.items, different)
        return [float(share) for share in times @ found / times.sum()]

    def _usable(self) -> Iterator[SlateBatch]:
        for batch in self._log.batches(self._progress()):
            yield usable(batch, by_places=self._by_places)[0]


def _prefixes_untold(slates: SlateBatch) -> NDArray[np.bool_]:
    """Slates of which the log tells the probability as a whole, and not those of all prefixes."""
    if slates.propensities is None:
        return np.zeros(slates.n, np.bool_)
    return np.asarray((np.isnan(slates.propensities) & (slates.items != NO_ITEM)).any(axis=1))


def checked_chances(chances: Table, slates: SlateBatch) -> Table:
    """What a target said, or InvalidInput: a subclass may be anybody's."""
    found = np.array(chances, np.float64)
    if found.shape != slates.items.shape:
        raise InvalidInput(
            f"prefix_chances must give a number for each position, {slates.items.shape}, got {found.shape}"
        )
    if not ((found >= 0) & (found <= 1 + 1e-6)).all():
        raise InvalidInput("prefix_chances must be probabilities, and some are not between 0 and 1")
    if (found[:, 1:] > found[:, :-1] * (1 + 1e-6) + 1e-12).any():
        raise InvalidInput(
            "prefix_chances must not rise along a slate: they are those of its first 1, 2, ... items"
        )
    return np.minimum.accumulate(np.minimum(found, 1.0), axis=1)
