"""Were the slates in a log drawn as the log says? Every one that can be is drawn again."""

import struct
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import FirstclickError
from firstclick.files.progress import Progress, silent
from firstclick.serve.log.copies import creation_of
from firstclick.serve.log.drawn import MARK_SIZE, NOT_RECORDED, Drawn, read_drawn
from firstclick.serve.log.events import Created, Event, FeedbackEvent, Kind, read_feedback
from firstclick.serve.log.token import number_in
from firstclick.serve.model.build import this_build
from firstclick.serve.model.model import Model, policy_of
from firstclick.serve.model.origin_log import OriginLog
from firstclick.serve.model.replay import (
    Log,
    Memory,
    changes_in,
    created_in,
    first_event_in,
    first_model,
    known_after,
)
from firstclick.serve.store.store import StoredModel

# Events whose slates are drawn again, read at once.
AT_ONCE = 1000
MOST_TOLD = 10

LOST = "drawn from events that this log does not have"
COPIED = "drawn by the model that this one was copied from"
NOT_HERE = "drawn by a policy, or a version of one, that is not installed here"
ARCHIVED = "drawn from events that are archived"
UNREADABLE = "it cannot be read"
OTHER_ARM = "drawn by another model, for an arm of a trial; its own log has the slate"


class SlateAudit(NamedTuple):
    """The slates of a log, drawn again from what they were drawn from.

    Slates that differ are a fault, unless another build made them: another version of firstclick, Numba or
    LLVM, or another processor, may round otherwise.
    """

    name: str
    equal: int
    differing: int
    other_build: int  # they differ, and another build made them
    not_evaluable: dict[str, int]  # by reason
    told: tuple[str, ...]  # a sentence for each of the first that differ
    seconds: float
    # Of a fork: how many of these slates each of the models has drawn that it was copied from.
    by_origin: dict[str, int]


def audit_slates(store: Log, stored: StoredModel, progress: Progress = silent) -> SlateAudit:
    """Draw every slate of a log again that can be, each by the model that drew it."""
    started = time.monotonic()
    created = created_in(store, stored)
    found = _own_slates(store, stored, progress)
    by_origin: Counter[str] = Counter()
    for place, origin in enumerate(created.origins):
        its = _slates_of_origin(store, stored, created, place, progress)
        by_origin[f"{origin.model} ({origin.created.policy})"] += its.equal + its.differing + its.other_build
        found = _together(found, its)
    first = created.origins[0].created if created.origins else created
    if first.copied and (unknown := _n_feedback(store, stored, first.copied)):
        reasons = Counter(found.not_evaluable) + Counter({COPIED: unknown})
        found = found._replace(not_evaluable=dict(sorted(reasons.items())))
    return found._replace(seconds=time.monotonic() - started, by_origin=dict(by_origin))


def _slates_of_origin(
    store: Log, stored: StoredModel, created: Created, place: int, progress: Progress
) -> SlateAudit:
    """The slates that a log has of one of the models that it was copied from."""
    origin = created.origins[place]
    its = StoredModel(stored.id, origin.model, origin.upto)
    log = OriginLog(store, created, place)
    reason = ""
    if store.base(stored.id) is not None:
        reason = ARCHIVED
    try:
        policy_of(creation_of(created, place), origin.model)
    except FirstclickError:
        reason = NOT_HERE
    if not reason:
        return _own_slates(log, its, progress)
    n = _n_feedback(log, its, origin.upto, after=origin.created.copied)
    return SlateAudit(origin.model, 0, 0, 0, {reason: n} if n else {}, (), 0.0, {})


def _n_feedback(store: Log, stored: StoredModel, upto: int, *, after: int = 0) -> int:
    chunks = store.events(stored.id, after, upto)
    return sum(event.kind == Kind.FEEDBACK for chunk in chunks for event in chunk)


def _together(one: SlateAudit, other: SlateAudit) -> SlateAudit:
    told = (*one.told, *(f"{sentence}; {other.name} drew it" for sentence in other.told))
    return one._replace(
        equal=one.equal + other.equal,
        differing=one.differing + other.differing,
        other_build=one.other_build + other.other_build,
        not_evaluable=dict(sorted((Counter(one.not_evaluable) + Counter(other.not_evaluable)).items())),
        told=told[:MOST_TOLD],
    )


def _own_slates(store: Log, stored: StoredModel, progress: Progress) -> SlateAudit:
    """The slates that the model itself has drawn."""
    model = first_model(store, stored, first_event_in(store, stored))
    seqs, sources, reasons = _sources(store, stored, model)
    audit = _Redraw(store, model, seqs, sources, reasons)
    memory = Memory(changes_in(store, stored, model.seq))

    def fold(events: list[Event]) -> None:
        memory.fold(model, events, lambda seq: known_after(store, model, seq))

    audit.redraw()
    for chunk in store.events(stored.id, model.seq, stored.head):
        start = 0
        while (due := audit.next_source()) <= chunk[-1].seq:
            stop = due - chunk[0].seq + 1
            fold(chunk[start:stop])
            audit.redraw()
            start = stop
        fold(chunk[start:])
        progress(model.seq, stored.head)
    return SlateAudit(
        stored.name,
        audit.outcomes["equal"],
        audit.outcomes["differs"],
        audit.outcomes["other build"],
        dict(sorted(reasons.items())),
        tuple(audit.told),
        0.0,
        {},
    )


def _sources(
    store: Log, stored: StoredModel, model: Model
) -> tuple[NDArray[np.int64], NDArray[np.int64], Counter[str]]:
    """The events whose slates can be drawn again, by what they were drawn from; and why others cannot."""
    found: list[NDArray[np.int64]] = [np.empty((0, 2), np.int64)]
    reasons: Counter[str] = Counter()
    # The event that an archived log begins with is part of what the fold begins with.
    after = max(model.seq - 1, 1, model.created.copied)
    for chunk in store.events(stored.id, after, stored.head):
        pairs = []
        for event in chunk:
            if event.kind == Kind.FEEDBACK:
                source = _source(event, model)
                if isinstance(source, str):
                    reasons[source] += 1
                else:
                    pairs.append((source.seq, event.seq))
        found.append(np.array(pairs, np.int64).reshape(-1, 2))
    table = np.concatenate(found)
    table = table[np.argsort(table[:, 0], kind="stable")]
    return table[:, 1], table[:, 0], reasons


def _source(event: Event, model: Model) -> Drawn | str:
    """What a slate was drawn from, or why that is not known."""
    try:
        drawn = read_drawn(read_feedback(event.payload).fields)
    except (LookupError, ValueError, struct.error):
        return UNREADABLE
    if drawn is None:
        return NOT_RECORDED
    if drawn.arm_fields is not None:
        return OTHER_ARM
    if drawn.seq < model.seq:
        return ARCHIVED
    if drawn.seq >= event.seq:
        return LOST
    return drawn.not_evaluable or drawn


class _Redraw:
    """The slates that are still to be drawn again, and what came of the others."""

    def __init__(
        self,
        store: Log,
        model: Model,
        seqs: NDArray[np.int64],
        sources: NDArray[np.int64],
        reasons: Counter[str],
    ) -> None:
        self._store, self._model, self._reasons = store, model, reasons
        self._waiting = self._read(seqs, sources)
        self._next = next(self._waiting, None)
        self.outcomes: Counter[str] = Counter()
        self.told: list[str] = []

    def _read(self, seqs: NDArray[np.int64], sources: NDArray[np.int64]) -> Iterator[tuple[int, Event]]:
        places = iter(range(len(seqs)))
        while some := list(islice(places, AT_ONCE)):
            wanted = seqs[some].tolist()
            events = {event.seq: event for event in self._store.events_at(self._model.id, wanted)}
            for place, seq in zip(some, wanted, strict=True):
                yield int(sources[place]), events[seq]

    def next_source(self) -> int:
        """The event after which the next slate was drawn; beyond all events if there is none."""
        return 2**63 - 1 if self._next is None else self._next[0]

    def redraw(self) -> None:
        """Draw all slates again that were drawn from what the model knows now."""
        while self._next is not None and self._next[0] == self._model.seq:
            event = self._next[1]
            said = read_feedback(event.payload)
            drawn = read_drawn(said.fields)
            assert drawn is not None
            if drawn.mark != self._model.nonce[-MARK_SIZE:]:
                self._reasons[LOST] += 1
            else:
                self._compare(event, said, drawn)
            self._next = next(self._waiting, None)

    def _compare(self, event: Event, said: FeedbackEvent, drawn: Drawn) -> None:
        model = self._model
        rows = tuple(model.redrawn(number_in(event.nonce), drawn, said.context).tolist())
        if rows == said.rows:
            self.outcomes["equal"] += 1
            return
        mine, builds = this_build(type(model.engine.policy)), model.builds
        same = drawn.build is not None and drawn.build < len(builds) and builds[drawn.build] == mine
        self.outcomes["differs" if same else "other build"] += 1
        if same and len(self.told) < MOST_TOLD:
            items = model.catalog.items
            self.told.append(
                f"event {event.seq} shows {[items[row] for row in said.rows]}, and what it was drawn from, "
                f"event {drawn.seq}, gives {[items[row] for row in rows]}"
            )
