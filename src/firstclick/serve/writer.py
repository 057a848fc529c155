"""Group commit: many callers hand in events, one thread puts them into the log, a batch at a time.

While one batch goes to the disk the next one gathers by itself; a single caller never waits for company. An
answer is given only after the commit and after the model has learned from it.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from firstclick.serve.log.events import Event, NewEvent
from firstclick.serve.log.tuning import Clock
from firstclick.serve.model.model import Model
from firstclick.serve.store.crash_points import step
from firstclick.serve.store.numbering import ModelGone
from firstclick.serve.store.store import Appended, Marks, Store
from firstclick.wire.errors import OtherHistory, Overloaded, Refused, StoreBroken, Unavailable

log = logging.getLogger("firstclick.serve")

# From so many callers in a batch on, the writer waits so many seconds for others.
BUSY = 8
BREATH = 0.001

Done = Callable[[Sequence[Appended] | Refused], None]
NewEvents = Sequence[tuple[Model, NewEvent]]


class _Waiting(NamedTuple):
    events: NewEvents
    done: Done


class Writer:
    """The one thread that appends. `submit` is safe from any thread; `done` is called on the writer's."""

    def __init__(
        self,
        store: Store,
        fold: Callable[[Model, Sequence[Event], int], None],
        *,
        max_batch: int = 512,
        max_queue: int = 10_000,
        clock: Clock = time,
    ) -> None:
        self._clock = clock
        self._store = store
        self._fold = fold
        self._max_batch = max_batch
        self._max_queue = max_queue
        self._waiting: deque[_Waiting] = deque()
        self._n_waiting = 0
        self._changed = threading.Condition()
        self._closing = False
        self.commits = 0
        self.events = 0
        self.seconds = 0.004  # how long a commit took lately
        self.broken: StoreBroken | None = None  # why nothing can be written until a restart
        self.trouble: Unavailable | None = None  # why the last try failed
        self.tried = clock.monotonic()  # when that was
        self._thread = threading.Thread(target=self._run, name="firstclick-writer", daemon=True)
        self._thread.start()

    @property
    def n_waiting(self) -> int:
        """Events that no commit has taken up yet."""
        return self._n_waiting

    def submit(self, events: NewEvents, done: Done) -> None:
        """Have the events appended, together with whatever else waits; Overloaded when too much does."""
        with self._changed:
            if self._closing:
                raise Unavailable("the service is closing; send the same again in a moment")
            if refusal := _set_back(events):
                raise refusal
            if self._n_waiting and self._n_waiting + len(events) > self._max_queue:
                commits = self._n_waiting / self._max_batch
                raise Overloaded(
                    f"{self._n_waiting} events wait to be written, and at most {self._max_queue} may; "
                    "send the same again after a while",
                    retry_after=max(1.0, commits * self.seconds),
                )
            self._waiting.append(_Waiting(events, done))
            self._n_waiting += len(events)
            self._changed.notify()

    def note(self, trouble: Unavailable | None) -> None:
        """What became of the last try to write to the store."""
        self.trouble, self.tried = trouble, self._clock.monotonic()

    def close(self) -> None:
        """Write what waits, then stop."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while batch := self._next_batch():
            if len(batch) >= BUSY:
                # Many are at it: a breath, in which the event loop hands in more, makes larger commits.
                time.sleep(BREATH)
                self._add_to(batch)
            try:
                self._commit(batch)
            except Exception:
                # Nothing may end this thread: nobody would be answered any more.
                log.exception("a batch of events could not be handled")
                _refuse(batch, Unavailable("the service failed to write; send the same again"))

    def _next_batch(self) -> list[_Waiting]:
        with self._changed:
            while not self._waiting and not self._closing:
                self._changed.wait()
            return self._add_to([])

    def _add_to(self, batch: list[_Waiting]) -> list[_Waiting]:
        """The batch with what waits, as far as there is room; one alone may be larger."""
        room = self._max_batch - sum(len(waiting.events) for waiting in batch)
        with self._changed:
            while self._waiting and (not batch or len(self._waiting[0].events) <= room):
                batch.append(self._waiting.popleft())
                room -= len(batch[-1].events)
                self._n_waiting -= len(batch[-1].events)
        return batch

    def _commit(self, batch: list[_Waiting]) -> None:
        batch = _without_set_back(batch)
        events = [pair for waiting in batch for pair in waiting.events]
        if not events:
            return
        folded = {model.id: model.last for model, _ in events}
        started = time.monotonic()
        try:
            appended = self._append([(model.id, event) for model, event in events], folded)
        except OtherHistory as found:
            for model, _ in events:
                if model.id in found.models:
                    model.refuse_appends()
            # Nothing was written; what is for other models is, now.
            self._commit(batch)
            return
        except ModelGone as gone:
            # Others must not be refused because somebody deleted this one.
            refused: list[_Waiting] = []
            others: list[_Waiting] = []
            for waiting in batch:
                of_it = any(model.id == gone.model for model, _ in waiting.events)
                (refused if of_it else others).append(waiting)
            _refuse(refused, gone)
            if others:
                self._commit(others)
            return
        except Refused as refusal:
            if isinstance(refusal, StoreBroken):
                self.broken = refusal
            if isinstance(refusal, Unavailable):
                self.note(refusal)
            _refuse(batch, refusal)
            return
        self.note(None)
        self.commits += 1
        self.events += len(events)
        self.seconds += 0.1 * (time.monotonic() - started - self.seconds)
        self._learn(events, appended)
        step("after apply")
        start = 0
        for waiting in batch:
            stop = start + len(waiting.events)
            _tell(waiting, appended[start:stop])
            start = stop
        step("after reply")

    def _append(self, batch: list[tuple[int, NewEvent]], folded: Marks) -> list[Appended]:
        try:
            return self._store.append(batch, folded)
        except (StoreBroken, OtherHistory):
            raise
        except Unavailable:
            if not self._store.shared:
                raise
            # A connection that broke may have committed before: the nonces tell, when it is done again.
            return self._store.append(batch, folded)

    def _learn(self, events: NewEvents, appended: Sequence[Appended]) -> None:
        new: dict[Model, list[Event]] = {}
        last: dict[Model, int] = {}
        for (model, event), place in zip(events, appended, strict=True):
            fresh = new.setdefault(model, [])
            if place.new:
                fresh.append(Event(place.seq, event.kind, event.nonce, event.payload, event.received))
            # One that is not new may still have to be learned: from another process, or from a first try.
            last[model] = max(last.get(model, 0), place.seq)
        for model, fresh in new.items():
            model.appended = max(model.appended, last[model])
            try:
                self._fold(model, fresh, last[model])
            except OtherHistory:
                pass  # The store was set back after the commit. The model is loaded again, and that is told.
            except Exception:
                # They are in the log, so they are acknowledged; the model is behind, and `ready` says so.
                log.exception("%s: events up to %d are in the log but not learned", model.name, last[model])


def _set_back(events: NewEvents) -> Refused | None:
    """Why these are not taken: the store has another log than their model has folded."""
    found = (model.set_back for model, _ in events if model.set_back)
    return next(map(Unavailable, found), None)


def _without_set_back(batch: list[_Waiting]) -> list[_Waiting]:
    """Those that can be written; the others are told why not."""
    left = []
    for waiting in batch:
        if refusal := _set_back(waiting.events):
            _tell(waiting, refusal)
        else:
            left.append(waiting)
    return left


def _refuse(batch: list[_Waiting], refusal: Refused) -> None:
    for waiting in batch:
        _tell(waiting, refusal)


def _tell(waiting: _Waiting, outcome: Sequence[Appended] | Refused) -> None:
    """One who cannot be told, because he has gone, must not keep the others from hearing."""
    try:
        waiting.done(outcome)
    except Exception:
        log.exception("nobody could be told what became of %d events", len(waiting.events))
