"""From weighted slates to an answer: all estimates, the one to believe, and whether to believe it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.evaluation.estimators.all_estimators import ESTIMATORS
from firstclick.evaluation.estimators.choice import (
    FOLDS,
    SLATES_IN_FOLD,
    Choice,
    behaviour,
    choose,
    may_be_chosen,
)
from firstclick.evaluation.estimators.estimator import Estimator, Means
from firstclick.evaluation.estimators.intervals import (
    Intervals,
    bernstein,
    normal,
    stabilised,
    stabilising_weights,
)
from firstclick.evaluation.estimators.position_ips import IIPS
from firstclick.evaluation.estimators.prefix_ips import RIPS
from firstclick.evaluation.estimators.support import CANNOT_SAY, Support, SupportSums, judge
from firstclick.evaluation.estimators.weighted_slates import (
    Table,
    WeightedSlates,
    check,
    chosen_rows,
    known,
    place_weights,
    prefix_weights,
)
from firstclick.streams import stream

# Slates are worked on so many at a time.
CHUNK = 65_536


@dataclass(frozen=True)
class Estimate:
    """What one estimator says, in clicks a page. `interval` is how its bounds were found: "normal",
    "stabilised" or "bernstein". `valid` is False if such bounds are not right for this log."""

    name: str
    title: str
    right_if: str
    value: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float
    interval: str
    valid: bool
    loss: float | None  # in cross-validation; None: not a candidate


@dataclass(frozen=True)
class Evaluation:
    """The answer. `chosen` is the estimate to believe, None if the log cannot say; `estimates` has all of
    them, to be shown as comparison and never as an answer where the support's verdict is "cannot say"."""

    slates: int
    shown: float  # clicks a page, as logged
    confidence: float
    learning: bool
    chosen: str | None
    reasons: tuple[str, ...]
    estimates: tuple[Estimate, ...]
    support: Support

    @property
    def answer(self) -> Estimate | None:
        """The estimate to believe."""
        return next((one for one in self.estimates if one.name == self.chosen), None)


def evaluate(
    slates: WeightedSlates | Iterable[WeightedSlates],
    *,
    learning: bool,
    click_model: str | None = None,
    confidence: float = 0.95,
    missing: int = 0,
    unreported: int = 0,
    seen: Sequence[float] | None = None,
    candidates: int | None = None,
    explore: float = 0.1,
    seed: int = 0,
) -> Evaluation:
    """The value of the target from slates of a log, and its difference from what was shown.

    `slates` are arrays, or batches of them that can be gone through twice. `learning`: whether the logger
    changed with the clicks it saw. `click_model` is the one that fits the log ("cm", "pbm", ...).
    `missing` (slates without a propensity that are not in `slates`), `unreported`, `seen` (by number of first
    places: the share of requests whose slate of the target the log has so far down), `candidates` and
    `explore` go into the verdict and its advice.

    >>> rng = np.random.default_rng(2)
    >>> slates = np.array([rng.permutation(3)[:2] for _ in range(3000)])
    >>> attracted = rng.random((3000, 2)) < np.array([0.9, 0.5, 0.1])[slates]
    >>> clicks = attracted & (np.cumsum(attracted, axis=1) == 1)  # a cascade: the first that attracts
    >>> target = np.cumprod(slates == [0, 1], axis=1) * 1.0  # always shows item 0, then item 1
    >>> logged = np.tile([1 / 3, 1 / 6], (3000, 1))
    >>> found = evaluate(WeightedSlates(clicks * 1.0, logged, target), learning=False)
    >>> found.chosen, found.support.verdict, found.answer.low < 0.95 < found.answer.high
    ('sn-rips', 'ok', True)
    """
    if not 0 < confidence < 1:
        raise InvalidInput(f"must lie between 0 and 1, got {confidence}", "confidence")
    batches = _Chunks(slates, learning)
    first = _first_pass(batches)
    if first is None:
        raise InvalidInput("must have at least one slate, got none", "slates")
    n = first.sums.n
    if not n:
        return _nothing(first, missing, unreported, candidates, explore, confidence, learning)
    usable = first.estimators
    second = _second_pass(batches, first)
    weights = second.stabilising
    found: dict[str, tuple[Intervals, str, bool]] = {}
    for one in usable:
        terms = second.terms[one.name]
        if not learning:
            found[one.name] = normal(terms, second.shown, confidence), "normal", True
        elif weights is not None:
            found[one.name] = stabilised(terms, second.shown, weights, confidence), "stabilised", True
        elif one.name in second.mirrored:
            mirrored = second.mirrored[one.name]
            k = len(first.sums.clicks)
            found[one.name] = bernstein(terms, mirrored, second.shown, k, confidence), "bernstein", True
        else:
            found[one.name] = normal(terms, second.shown, confidence), "normal", False
    choice = _choice(usable, second, found, weights, click_model, seed)
    estimates = tuple(_estimate(one, *found[one.name], choice.losses.get(one.name)) for one in usable)
    best = next(one for one in estimates if one.name == choice.name)
    family = next(one.family for one in usable if one.name == choice.name)
    sums = first.places if family == "position" and first.places is not None else first.sums
    support = judge(
        sums,
        missing=missing,
        unreported=unreported,
        seen=seen,
        half_width=(best.difference_high - best.difference_low) / 2,
        candidates=candidates,
        explore=explore,
    )
    refused = support.verdict == CANNOT_SAY
    return Evaluation(
        n, float(second.shown.mean()), confidence, learning, None if refused else choice.name,
        support.reasons if refused else (*choice.reasons, _interval_rule(learning, weights is not None)),
        estimates, support,
    )  # fmt: skip


class _Chunks:
    """Batches of at most CHUNK slates, checked, as often as they are asked for."""

    def __init__(self, slates: WeightedSlates | Iterable[WeightedSlates], learning: bool) -> None:
        self._learning = learning
        self._batches = [slates] if isinstance(slates, WeightedSlates) else slates
        if isinstance(self._batches, Iterator):
            raise InvalidInput("must be batches that can be gone through twice, got an iterator", "slates")

    def __iter__(self) -> Iterator[WeightedSlates]:
        done = 0
        for batch in self._batches:
            check(batch, done)
            if not self._learning:
                batch = batch._replace(spread=None)
            done += batch.n
            for start in range(0, batch.n, CHUNK):
                yield chosen_rows(batch, slice(start, start + CHUNK))


@dataclass
class _First:
    estimators: list[Estimator]
    means: dict[str, Means]
    prefixes: SupportSums | None
    places: SupportSums | None
    has_spread: bool

    @property
    def sums(self) -> SupportSums:
        """Those of prefixes, if they are known."""
        found = self.places if self.prefixes is None else self.prefixes
        assert found is not None
        return found


def _counted(slates: WeightedSlates) -> Table:
    """How much each slate counts in a mean."""
    return np.ones(slates.n) if slates.spread is None else stabilising_weights(slates.spread)


def _first_pass(batches: _Chunks) -> _First | None:
    found: _First | None = None
    total = 0.0
    for batch in batches:
        slates = known(batch)
        if found is None:
            k = slates.clicks.shape[1]
            usable = [one for one in ESTIMATORS if one.can_use(slates)]
            prefixes = None if slates.logged is None else SupportSums(k)
            places = None if slates.logged_places is None else SupportSums(k, by_place=True)
            found = _First(usable, {}, prefixes, places, slates.spread is not None)
        for sums, weigh in ((found.prefixes, prefix_weights), (found.places, place_weights)):
            if sums is not None:
                sums.missing += batch.n - slates.n
                sums.add(slates, weigh(slates))
        counted = _counted(slates)
        total += float(counted.sum())
        for one in found.estimators:
            if one.columns is not None:
                kept = found.means.setdefault(one.name, {})
                for key, column in one.columns(slates).items():
                    kept[key] = kept.get(key, 0.0) + counted @ column
    if found is not None and total > 0:
        found.means = {
            name: {key: one / total for key, one in kept.items()} for name, kept in found.means.items()
        }
    return found


@dataclass
class _Second:
    terms: dict[str, Table]
    mirrored: dict[str, Table]
    shown: Table
    stabilising: Table | None


def _second_pass(batches: _Chunks, first: _First) -> _Second:
    n = first.sums.n
    by_weight = [one for one in first.estimators if one.weights is not None and one.unbiased]
    found = _Second(
        {one.name: np.empty(n) for one in first.estimators},
        {} if first.has_spread else {one.name: np.empty(n) for one in by_weight},
        np.empty(n),
        np.empty(n) if first.has_spread else None,
    )
    done = 0
    for batch in batches:
        slates = known(batch)
        rows = slice(done, done + slates.n)
        done += slates.n
        for one in first.estimators:
            found.terms[one.name][rows] = one.terms(slates, first.means.get(one.name, {}))
        found.shown[rows] = slates.clicks.sum(axis=1)
        for one in by_weight if found.mirrored else ():
            assert one.weights is not None
            found.mirrored[one.name][rows] = (one.weights(slates) * (1.0 - slates.clicks)).sum(axis=1)
        if found.stabilising is not None:
            found.stabilising[rows] = _counted(slates)
    return found


def _choice(
    usable: list[Estimator],
    second: _Second,
    found: dict[str, tuple[Intervals, str, bool]],
    weights: Table | None,
    click_model: str | None,
    seed: int,
) -> Choice:
    has_prefixes = RIPS.name in second.terms
    candidates = [
        one for one in usable
        if (may_be_chosen(one, click_model) or not has_prefixes)
        and found[one.name][2]
    ]  # fmt: skip
    n = len(second.shown)
    n_folds = min(FOLDS, n // SLATES_IN_FOLD)
    if len(candidates) == 1 or n_folds < 2:
        said = behaviour(click_model, has_prefixes=has_prefixes)
        return Choice((RIPS if has_prefixes else IIPS).name, (said,), {})
    folds = stream(seed, "folds").permutation(n) % n_folds
    counted = np.ones(n) if weights is None else weights
    sums = np.stack(
        [_by_fold(folds, second.terms[one.name] * counted, n_folds) for one in candidates], axis=1
    )
    counts = _by_fold(folds, counted, n_folds)
    return choose(candidates, sums, counts, click_model, stream(seed, "splits"))


def _by_fold(folds: NDArray[np.int64], values: Table, n_folds: int) -> Table:
    return np.bincount(folds, values, n_folds).astype(np.float64)


def _estimate(one: Estimator, found: Intervals, interval: str, valid: bool, loss: float | None) -> Estimate:
    return Estimate(one.name, one.title, one.right_if, *found.value, *found.difference, interval, valid, loss)


def _interval_rule(learning: bool, has_spread: bool) -> str:
    if not learning:
        return "The logger did not learn: normal intervals."
    if has_spread:
        return "The logger learned: intervals with variance-stabilising weights (Hadad et al. 2021)."
    return (
        "The logger learned, and how likely the target's slates were at each moment is not known: "
        "empirical Bernstein intervals, which hold always and are wide."
    )


def _nothing(
    first: _First,
    missing: int,
    unreported: int,
    candidates: int | None,
    explore: float,
    confidence: float,
    learning: bool,
) -> Evaluation:
    support = judge(
        first.sums, missing=missing, unreported=unreported, candidates=candidates, explore=explore
    )
    # 0 clicks per impression instead of NaN, which JSON does not have.
    return Evaluation(0, 0.0, confidence, learning, None, support.reasons, (), support)
