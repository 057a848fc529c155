"""The probability of every slate of a model's log, from what the model knew when it drew it.

The log is folded once. Where a slate was drawn, the probabilities of its prefixes follow from all that could
have decided it: the policy, uniform exploration, the baseline and its floor, and the arms of a trial.
"""

import struct
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.evaluation.propensities.places import allowed_rows, uniform_chances
from firstclick.evaluation.propensities.propensity import Propensity
from firstclick.evaluation.propensities.slate_propensity import propensity_later
from firstclick.files.progress import Progress, silent
from firstclick.online.baseline import Baseline
from firstclick.online.request import SlateRequest
from firstclick.serve.log.drawn import Drawn
from firstclick.serve.log.events import (
    Correction,
    Event,
    FeedbackEvent,
    Kind,
    read_feedback,
    time_out_of,
    unpacked,
)
from firstclick.serve.log.token import number_in
from firstclick.serve.model.build import this_build
from firstclick.serve.model.catalog_state import CatalogState
from firstclick.serve.model.model import Model
from firstclick.serve.model.replay import Log, changes_in, created_in
from firstclick.serve.model.sources import OTHER_ARM, Drawer, drawers_of, visit_slates
from firstclick.serve.model.trial import BASELINE, MODEL
from firstclick.serve.store.store import StoredModel
from firstclick.streams import stream_key

# Slates whose probabilities are being computed while the fold goes on, for each thread.
AHEAD = 32

HOLDOUT = (
    "shown to a holdout: the log does not say how likely the floor would have let the policy decide; slates "
    "of the other arm are told given their arm"
)
NOT_THE_SAME = "does not come again from what it was drawn from"

# How to weigh what has to be computed yet: the weight of each part, and what gives it.
Parts = list[tuple[float, Callable[[], Propensity]]]


class LoggedSlate(NamedTuple):
    """A slate of a log, and how likely it was."""

    seq: int
    received: float  # seconds since the epoch
    rows: tuple[int, ...]
    clicks: tuple[int, ...]  # positions, from 0
    examined: int | None
    timed_out: float | None  # when it was given up, because nobody reported it; seconds since the epoch
    propensity: Propensity | None
    not_evaluable: str = ""  # why there is no propensity
    model: str = ""  # that drew it: the log's own, or one that it was copied from
    choice: str = ""  # who decided: policy, floor, holdout or baseline; empty where there is no list
    policy_share: float | None = None  # the probability with which that was the policy
    explored: bool = False
    explore: float = 0.0  # the share of slates drawn uniformly
    arm: int | None = None  # of a trial
    given_arm: bool = False  # the probability is that within its arm, or within the arms of this model
    same_build: bool = False  # this very build drew it
    drawn_again: bool = False  # the very same slate comes of what it was drawn from
    candidates: tuple[int, ...] | None = None  # of a request that named some
    drawn_from: int | None = None  # the event after which it was drawn


class LoggedPropensities(NamedTuple):
    """The slates of a log in the order of its events."""

    items: Sequence[Any]  # the item of each row
    slates: list[LoggedSlate]
    seconds: float

    def reasons(self) -> Counter[str]:
        """Why slates have no probability, and how many."""
        return Counter(one.not_evaluable for one in self.slates if one.propensity is None)

    def methods(self) -> Counter[str]:
        """How probabilities were found."""
        return Counter(one.propensity.method for one in self.slates if one.propensity is not None)

    def relative_errors(self) -> NDArray[np.float64]:
        """The largest relative standard error of each slate that has one."""
        found = []
        for one in self.slates:
            if one.propensity is not None and one.propensity.method in ("monte carlo", "redrawn"):
                chances, errors = one.propensity.chances, one.propensity.errors
                found.append(np.max(errors[chances > 0] / chances[chances > 0], initial=0.0))
        return np.array(found)


def logged_propensities(
    log: Log,
    stored: StoredModel,
    *,
    relative_error: float = 0.05,
    last: int = 0,
    jobs: int = 1,
    seed: int = 0,
    progress: Progress = silent,
) -> LoggedPropensities:
    """The probability of the slates of a model's log, of the last ones alone if `last` says how many.

    Probabilities that are not exact have a relative standard error of `relative_error` at most, if so many
    draws can be afforded (docs/research/estimators.md). They do not depend on `jobs`, the number of threads.
    """
    if not 0 < relative_error <= 1:
        raise InvalidInput(f"must be above 0 and at most 1, got {relative_error:g}", "relative_error")
    started = time.monotonic()
    base = log.base(stored.id)
    begins = 1 if base is None else base.seq
    changes = list(changes_in(log, stored, begins))
    corrections = {
        one.seq: one.feedback
        for one in (unpacked(event, Correction) for event in changes if event.kind == Kind.CORRECTION)
    }
    created = created_in(log, stored)
    catalog = CatalogState.after(
        created, lambda: changes_in(log, stored, begins), base.content if base else b""
    )
    after = _after(log, stored, begins, last)
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(jobs)) if jobs > 1 else None
        # What waits is not waited for where something went wrong, or somebody pressed Ctrl-C.
        stack.push(lambda kind, *_: pool.shutdown(cancel_futures=True) if pool and kind else None)
        work = _Work(pool, jobs, corrections)
        for drawer in drawers_of(log, stored):
            question = _Question(drawer, work, relative_error, seed)
            visit_slates(
                drawer,
                question,
                after=after,
                use_snapshots=True,
                passed_over=work.pass_over,
                progress=progress,
            )
        found = work.finished()
    for event in chain.from_iterable(log.events(stored.id, max(after, begins - 1), stored.head)):
        if event.kind == Kind.FEEDBACK and event.seq in work.passed_over:
            told = _told(event, corrections)
            found[event.seq] = told._replace(not_evaluable=work.passed_over[event.seq])
    slates = [found[seq] for seq in sorted(found)]
    return LoggedPropensities(catalog.catalog.items, slates, time.monotonic() - started)


def _after(log: Log, stored: StoredModel, begins: int, last: int) -> int:
    """The event after which the last so many slates are; all for 0."""
    if not last:
        return 0
    events = chain.from_iterable(log.events(stored.id, begins - 1, stored.head))
    seqs = deque((event.seq for event in events if event.kind == Kind.FEEDBACK), maxlen=last)
    return seqs[0] - 1 if seqs else 0


def _told(event: Event, corrections: dict[int, bytes]) -> LoggedSlate:
    """What the log says of the outcome; a correction stands in the place of a time-out."""
    payload = corrections.get(event.seq, event.payload)
    try:
        said = read_feedback(payload)
    except (ValueError, struct.error):
        return LoggedSlate(event.seq, event.received, (), (), None, None, None)
    given_up = None if event.seq in corrections else time_out_of(event.payload)
    seconds = None if given_up is None else given_up / 1000
    return LoggedSlate(event.seq, event.received, said.rows, said.clicks, said.examined, seconds, None)


class _Work:
    """Slates whose probabilities are computed, by other threads if there are some."""

    def __init__(self, pool: ThreadPoolExecutor | None, jobs: int, corrections: dict[int, bytes]) -> None:
        self._pool, self._ahead = pool, AHEAD * jobs
        self.corrections = corrections
        self.passed_over: dict[int, str] = {}
        self._found: dict[int, LoggedSlate] = {}
        self._waiting: deque[tuple[LoggedSlate, Future[Propensity]]] = deque()

    def pass_over(self, seq: int, why: str) -> None:
        self.passed_over[seq] = why

    def add(self, slate: LoggedSlate, parts: Parts, n: int) -> None:
        if self._pool is None:
            self._found[slate.seq] = slate._replace(propensity=_mixed(parts, n))
            return
        self._waiting.append((slate, self._pool.submit(_mixed, parts, n)))
        while len(self._waiting) > self._ahead:
            self._take()

    def _take(self) -> None:
        slate, future = self._waiting.popleft()
        self._found[slate.seq] = slate._replace(propensity=future.result())

    def finished(self) -> dict[int, LoggedSlate]:
        """All slates, by event."""
        while self._waiting:
            self._take()
        return self._found


def _mixed(parts: Parts, n: int) -> Propensity:
    """The probability if one of these parts decides, each with its weight."""
    chances, squares, draws, methods = np.zeros(n), np.zeros(n), 0, ["exact"]
    for weight, part in parts:
        one = part()
        chances += weight * one.chances
        squares += (weight * one.errors) ** 2
        draws += one.draws
        methods.append(one.method)
    worst = max(methods, key=("exact", "quadrature", "monte carlo", "redrawn").index)
    return Propensity(np.minimum(chances, 1.0), np.sqrt(squares), worst, draws)


def _candidates(request: SlateRequest, n_rows: int) -> tuple[int, ...]:
    """The rows that may be in the slate, pinned ones included."""
    return tuple(
        np.union1d(allowed_rows(request, n_rows), [*request.rows.pinned.values()]).astype(int).tolist()
    )


def _floor_is_known(model: Model) -> bool:
    """Whether the share that the floor leaves to the policy is known of slates of a holdout too: the log does
    not keep it there, and it is 1 where the floor sets no limit."""
    baseline = model.launch.baseline
    return baseline is None or baseline.floor.max_loss >= 1


class _Question:
    """Asked at each slate of one model, when the model knows what it knew then."""

    def __init__(self, drawer: Drawer, work: _Work, relative_error: float, seed: int) -> None:
        self._name, self._work, self._seed = drawer.name, work, seed
        self._relative_error = relative_error

    def __call__(self, model: Model, event: Event, said: FeedbackEvent, drawn: Drawn) -> None:
        rows = np.array(said.rows, np.int64)
        mine, builds = this_build(type(model.engine.policy)), model.builds
        same_build = drawn.build is not None and drawn.build < len(builds) and builds[drawn.build] == mine
        again = model.redrawn(number_in(event.nonce), drawn, said.context)
        chosen, explored = drawn.chosen, drawn.explore is not None and drawn.explore.drawn
        slate = _told(event, self._work.corrections)._replace(
            model=self._name,
            choice="" if chosen is None else chosen.choice.word,
            policy_share=None if chosen is None else chosen.share,
            explored=explored,
            explore=model.explorer.share,
            arm=None if drawn.assigned is None else drawn.assigned.arm,
            same_build=same_build,
            drawn_again=np.array_equal(again, rows),
            drawn_from=drawn.seq,
        )
        if same_build and not slate.drawn_again:
            self._work.pass_over(event.seq, NOT_THE_SAME)
            return
        shares = self._shares(model, drawn)
        if isinstance(shares, str):
            self._work.pass_over(event.seq, shares)
            return
        request = model.request_of(drawn, said.context)
        by_list = chosen is not None and not chosen.by_policy
        parts = self._parts(model, request, rows, event.seq, shares, by_list, explored)
        trial, listed = model.launch.running, request.rows.candidates
        others = trial is not None and any(arm.kind == MODEL for arm in trial.arms)
        slate = slate._replace(
            given_arm=drawn.assigned is not None and (others or not _floor_is_known(model)),
            candidates=None if listed is None else _candidates(request, len(model.catalog.items)),
        )
        self._work.add(slate, parts, len(rows))

    def _shares(self, model: Model, drawn: Drawn) -> tuple[float, float] | str:
        """How likely the policy and the list were to decide, or why that cannot be said."""
        baseline, chosen, trial = model.launch.baseline, drawn.chosen, model.launch.running
        policy_share = 1.0 if baseline is None or chosen is None else chosen.share
        if trial is None or drawn.assigned is None or drawn.assigned.trial != trial.id:
            return policy_share, 1.0 - policy_share
        kind = trial.arms[drawn.assigned.arm].kind
        if kind == MODEL:
            return OTHER_ARM
        if not _floor_is_known(model):
            return HOLDOUT if kind == BASELINE else (policy_share, 1.0 - policy_share)
        # Whoever asks is in one of the arms by chance. Of those that are this model's, the policy decides all
        # but the holdout.
        buckets = np.bincount(trial.tally.periods[drawn.assigned.period].owner, minlength=len(trial.arms))
        own = sum(n for n, arm in zip(buckets, trial.arms, strict=True) if arm.kind != MODEL)
        listed = sum(n for n, arm in zip(buckets, trial.arms, strict=True) if arm.kind == BASELINE)
        return 1.0 - listed / own, listed / own

    def _parts(
        self,
        model: Model,
        request: SlateRequest,
        rows: NDArray[np.int64],
        seq: int,
        shares: tuple[float, float],
        list_drew: bool,
        explored: bool,
    ) -> Parts:
        """What could have decided the slate, and how likely each was to."""
        by_policy, by_list = shares
        engine, explore = model.engine, model.explorer.share
        seed = int(stream_key(self._seed, "slate", seq)) >> 1
        parts: Parts = []
        if explore:
            uniform = uniform_chances(request, len(engine.catalog.items), rows)
            parts.append((by_policy * explore, lambda: Propensity(uniform, np.zeros(len(rows)), "exact")))

        def drawn_by_policy(asked: SlateRequest, drew_it: bool) -> Callable[[], Propensity]:
            return propensity_later(
                engine, asked, rows, relative_error=self._relative_error, seed=seed, drew_it=drew_it
            )

        if by_policy * (1 - explore) > 0:
            parts.append(
                (by_policy * (1 - explore), drawn_by_policy(request, not list_drew and not explored))
            )
        baseline: Baseline | None = model.launch.baseline
        if baseline is not None and by_list > 0:
            filled, _ = baseline.filling(engine, request)
            parts.append((by_list, drawn_by_policy(filled, list_drew)))
        return parts


def table_rows(found: LoggedPropensities) -> Iterator[dict[str, Any]]:
    """The slates as rows of the Parquet file, see COLUMNS."""

    def named(rows: tuple[int, ...] | None) -> list[str] | None:
        return None if rows is None else [str(found.items[row]) for row in rows]

    for one in found.slates:
        chances = one.propensity
        yield {
            "seq": one.seq,
            "time": one.received,
            "items": named(one.rows),
            "clicks": list(one.clicks),
            "examined": one.examined,
            "candidates": named(one.candidates),
            "timed_out": one.timed_out,
            "propensities": None if chances is None else chances.chances.tolist(),
            "errors": None if chances is None else chances.errors.tolist(),
            "method": None if chances is None else chances.method,
            "draws": None if chances is None else chances.draws,
            "not_evaluable": one.not_evaluable or None,
            "model": one.model or None,
            "choice": one.choice or None,
            "policy_share": one.policy_share,
            "explored": one.explored,
            "explore": one.explore,
            "arm": one.arm,
            "given_arm": one.given_arm,
            "same_build": one.same_build,
            "drawn_again": one.drawn_again,
            "drawn_from": one.drawn_from,
        }


COLUMNS = {
    "seq": "BIGINT", "time": "DOUBLE", "items": "VARCHAR[]", "clicks": "SMALLINT[]", "examined": "SMALLINT",
    "candidates": "VARCHAR[]", "timed_out": "DOUBLE", "propensities": "DOUBLE[]", "errors": "DOUBLE[]",
    "method": "VARCHAR", "draws": "BIGINT", "not_evaluable": "VARCHAR", "model": "VARCHAR",
    "choice": "VARCHAR", "policy_share": "DOUBLE", "explored": "BOOLEAN", "explore": "DOUBLE",
    "arm": "SMALLINT", "given_arm": "BOOLEAN", "same_build": "BOOLEAN", "drawn_again": "BOOLEAN",
    "drawn_from": "BIGINT",
}  # fmt: skip
