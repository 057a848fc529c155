"""The slates of a log, each visited at the event that it was drawn from.

A log is folded once, and stops wherever slates were drawn: there the model knows what it knew then.
"""

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import FirstclickError
from firstclick.files.progress import Progress, silent
from firstclick.serve.log.copies import creation_of
from firstclick.serve.log.drawn import MARK_SIZE, NOT_RECORDED, Drawn, read_drawn
from firstclick.serve.log.events import Event, FeedbackEvent, Kind, read_feedback
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
    recover,
)
from firstclick.serve.store.store import StoredModel

# Events whose slates are visited, read at once.
AT_ONCE = 1000

LOST = "drawn from events that this log does not have"
NOT_HERE = "drawn by a policy, or a version of one, that is not installed here"
ARCHIVED = "drawn from events that are archived"
UNREADABLE = "it cannot be read"
OTHER_ARM = "drawn by another model, for an arm of a trial; its own log has the slate"

# The model as it was when it drew a slate, the event of the slate's feedback, and what that says.
Visit = Callable[[Model, Event, FeedbackEvent, Drawn], None]
# An event whose slate cannot be visited, and why.
PassedOver = Callable[[int, str], None]


def _ignored(seq: int, why: str) -> None:
    pass


class Drawer(NamedTuple):
    """A model that has drawn slates of a log: the log's own, or one that it was copied from."""

    name: str
    policy: str
    is_origin: bool
    log: Log
    stored: StoredModel  # its head is the last event that may be its own
    after: int  # its slates are in events after this one
    why_not: str = ""  # why no slate of it can be drawn again, if so


def drawers_of(log: Log, stored: StoredModel) -> list[Drawer]:
    """Who has drawn the slates of a log: the model itself, then the models that it was copied from."""
    created = created_in(log, stored)
    found = [Drawer(stored.name, created.policy, False, log, stored, created.n_copied)]
    after = 0
    for place, origin in enumerate(created.origins):
        its = origin.created
        why_not = ARCHIVED if log.base(stored.id) is not None else ""
        try:
            policy_of(creation_of(created, place), origin.model)
        except FirstclickError:
            why_not = NOT_HERE
        seen = OriginLog(log, created, place)
        head = StoredModel(stored.id, origin.model, origin.upto)
        found.append(Drawer(origin.model, its.policy, True, seen, head, after, why_not))
        after = origin.upto
    return found


def visit_slates(
    drawer: Drawer,
    visit: Visit,
    *,
    after: int = 0,
    use_snapshots: bool = False,
    passed_over: PassedOver = _ignored,
    progress: Progress = silent,
) -> Counter[str]:
    """Visit the slates that this model has drawn, in the order of what they were drawn from; only those in
    events after `after`. Why others cannot be visited, and how many; `passed_over` is told of each.

    16 bytes a slate are held meanwhile. With `use_snapshots` the fold begins at the newest one before the
    first source; without, at the log's begin.
    """
    log, stored = drawer.log, drawer.stored
    after = max(after, drawer.after, 1)
    if drawer.why_not:
        reasons: Counter[str] = Counter()
        for event in chain.from_iterable(log.events(stored.id, after, stored.head)):
            if event.kind == Kind.FEEDBACK:
                reasons[drawer.why_not] += 1
                passed_over(event.seq, drawer.why_not)
        return reasons
    base = log.base(stored.id)
    begins = 1 if base is None else base.seq
    seqs, sources, reasons = _sources(log, stored, begins, after, passed_over)
    if not len(seqs):
        return reasons
    if use_snapshots:
        model = recover(log, StoredModel(stored.id, stored.name, int(sources[0])))
    else:
        model = first_model(log, stored, first_event_in(log, stored))
    waiting = _Waiting(log, model, seqs, sources, reasons, visit, passed_over)
    memory = Memory(changes_in(log, stored, model.seq))

    def fold(events: list[Event]) -> None:
        memory.fold(model, events, lambda seq: known_after(log, model, seq))

    waiting.visit_due()
    last = int(sources[-1])
    for chunk in log.events(stored.id, model.seq, last):
        start = 0
        while (due := waiting.next_source()) <= chunk[-1].seq:
            stop = due - chunk[0].seq + 1
            fold(chunk[start:stop])
            waiting.visit_due()
            start = stop
        fold(chunk[start:])
        progress(model.seq, last)
    return reasons


def _sources(
    log: Log, stored: StoredModel, begins: int, after: int, passed_over: PassedOver
) -> tuple[NDArray[np.int64], NDArray[np.int64], Counter[str]]:
    """The events whose slates can be drawn again, by what they were drawn from; and why others cannot."""
    found: list[NDArray[np.int64]] = [np.empty((0, 2), np.int64)]
    reasons: Counter[str] = Counter()
    # The event that an archived log begins with is part of what the fold begins with.
    for chunk in log.events(stored.id, max(after, begins - 1), stored.head):
        pairs = []
        for event in chunk:
            if event.kind == Kind.FEEDBACK:
                source = _source(event, begins)
                if isinstance(source, str):
                    reasons[source] += 1
                    passed_over(event.seq, source)
                else:
                    pairs.append((source.seq, event.seq))
        found.append(np.array(pairs, np.int64).reshape(-1, 2))
    table = np.concatenate(found)
    table = table[np.argsort(table[:, 0], kind="stable")]
    return table[:, 1], table[:, 0], reasons


def _source(event: Event, begins: int) -> Drawn | str:
    """What a slate was drawn from, or why that is not known, in a log that begins with this event."""
    try:
        drawn = read_drawn(read_feedback(event.payload).fields)
    except (LookupError, ValueError, struct.error):
        return UNREADABLE
    if drawn is None:
        return NOT_RECORDED
    if drawn.arm_fields is not None:
        return OTHER_ARM
    if drawn.seq < begins:
        return ARCHIVED
    if drawn.seq >= event.seq:
        return LOST
    return drawn.not_evaluable or drawn


class _Waiting:
    """The slates that are still to be visited."""

    def __init__(
        self,
        log: Log,
        model: Model,
        seqs: NDArray[np.int64],
        sources: NDArray[np.int64],
        reasons: Counter[str],
        visit: Visit,
        passed_over: PassedOver,
    ) -> None:
        self._log, self._model, self._reasons, self._visit = log, model, reasons, visit
        self._passed_over = passed_over
        self._slates = self._read(seqs, sources)
        self._next = next(self._slates, None)

    def _read(self, seqs: NDArray[np.int64], sources: NDArray[np.int64]) -> Iterator[tuple[int, Event]]:
        places = iter(range(len(seqs)))
        while some := list(islice(places, AT_ONCE)):
            wanted = seqs[some].tolist()
            events = {event.seq: event for event in self._log.events_at(self._model.id, wanted)}
            for place, seq in zip(some, wanted, strict=True):
                yield int(sources[place]), events[seq]

    def next_source(self) -> int:
        """The event after which the next slate was drawn; beyond all events if there is none."""
        return 2**63 - 1 if self._next is None else self._next[0]

    def visit_due(self) -> None:
        """Visit all slates that were drawn from what the model knows now."""
        while self._next is not None and self._next[0] == self._model.seq:
            event = self._next[1]
            said = read_feedback(event.payload)
            drawn = read_drawn(said.fields)
            assert drawn is not None
            if drawn.mark != self._model.nonce[-MARK_SIZE:]:
                self._reasons[LOST] += 1
                self._passed_over(event.seq, LOST)
            else:
                self._visit(self._model, event, said, drawn)
            self._next = next(self._slates, None)
