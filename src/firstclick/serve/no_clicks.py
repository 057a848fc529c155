"""Slates that nobody reports: after their time they are written to the log as pages without a click.

Also how many slates this process has recommended, which the log is told once a minute.
"""

import logging
import threading
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakSet

from firstclick.serve.log.drawn import with_time_out
from firstclick.serve.log.events import KIND_OF, Kind, NewEvent, Recommended, full_payload, packed
from firstclick.serve.log.token import new_nonce
from firstclick.serve.model.model import Model
from firstclick.serve.model.open_slates import OpenSlate
from firstclick.serve.model.reports import LIVE_SECONDS
from firstclick.wire.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from firstclick.serve.service import Service
    from firstclick.serve.store.store import Appended

log = logging.getLogger("firstclick.serve")

# Events in the writer's queue from which on slates without feedback wait: feedback comes first.
BUSY = 128
# Seconds for which a slate is waited for where no time is set, so as to know how many are open.
OPEN_SECONDS = 1800.0


class NoClicks:
    """A thread of its own, because it waits for commits: it must not keep replicas from being followed."""

    def __init__(self, service: "Service") -> None:
        self._service = service
        self._clock, self._tuning = service.clock, service.tuning
        # Of each model: slates by arm, since when, and whether the log was told of some.
        self._counts: dict[str, dict[int, int]] = {}
        self._since: dict[str, tuple[float, float]] = {}  # by the clock, and by one that nobody sets
        self._told: set[str] = set()
        self._counting = threading.Lock()
        self._warned: set[str] = set()
        self._warm: WeakSet[Model] = WeakSet()
        self._in_trouble = False
        self._running = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="firstclick-no-clicks", daemon=True)
        if self._tuning.background_threads:
            self._thread.start()

    def close(self) -> None:
        """Stop, and tell the log of the last slates, if it was told of any."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        for model in self._service.models.all():
            if model.name in self._told:
                # They are numbers for people: nobody waits for a store that is away.
                with suppress(Refused):
                    self._append_counts(model, self._clock.time())

    def count(self, name: str, arm: int = 0) -> None:
        """A slate was recommended."""
        with self._counting:
            counts = self._counts.get(name)
            if counts is None:
                counts = self._counts[name] = {}
                self._since.setdefault(name, (self._clock.time(), self._clock.monotonic()))
            counts[arm] = counts.get(arm, 0) + 1

    def forget(self, name: str) -> None:
        """The model is not served any more."""
        with self._counting:
            for counted in (self._counts, self._since):
                counted.pop(name, None)
            for names in (self._told, self._warned):
                names.discard(name)

    def _run(self) -> None:
        while not self._stop.wait(self._tuning.timeout_pause):
            try:
                self.look()
                self._in_trouble = False
            except Refused as refusal:
                if not self._in_trouble:
                    log.warning(
                        "slates that nobody reported wait, because nothing can be written: %s", refusal
                    )
                self._in_trouble = True
            except Exception:
                log.exception("looking after slates that nobody reported failed; trying again")

    def look(self) -> int:
        """Do what is due; return how many slates timed out."""
        with self._running:
            return self._run_once()

    def _run_once(self) -> int:
        now, given_up = self._clock.time(), 0
        for model in self._service.models.all():
            if not model.set_back:
                given_up += self._give_up(model, now)
                self._count_if_due(model, now)
                self._service.stop_if_worse(model)
                self._warn(model)
        return given_up

    def _give_up(self, model: Model, now: float) -> int:
        """Write to the log that the slates whose time has passed had no click."""
        after, given_up = model.no_click_after, 0
        if not after:
            # They teach nothing.
            while late := model.open.due((now - OPEN_SECONDS) * 1000, self._tuning.timeouts_at_once):
                model.open.answered(*(slate.nonce for slate in late))
            return 0
        if model not in self._warm:
            # Another process may have set the time: nobody is to wait for a kernel when a click comes late.
            model.warm_up_corrections()
            self._warm.add(model)
        while not self._stop.is_set() and self._service.writer.n_waiting < BUSY:
            late = model.open.due((now - after) * 1000, self._tuning.timeouts_at_once)
            if not late:
                break
            given_up += self._write(model, late)
        return given_up

    def _write(self, model: Model, late: "Sequence[OpenSlate]") -> int:
        received_ms = int(self._clock.time() * 1000)
        n_rows = len(model.catalog.items)
        events = []
        for slate in late:
            # Of a log that was set back, or of a time that is archived: as for a token.
            there = slate.issued_ms > model.archived_issued and max(slate.row_numbers(), default=-1) < n_rows
            if there:
                payload = full_payload(
                    (), slate.issued_ms, slate.rows, context=slate.context, features=slate.features,
                    fields=with_time_out(slate.fields, received_ms),
                )  # fmt: skip
                events.append(NewEvent(Kind.FEEDBACK, slate.nonce, payload, received_ms / 1000))
        if events:
            answer: Future[Sequence[Appended] | Refused] = Future()
            self._service.write_with_copies([(model, event) for event in events], answer.set_result)
            appended = answer.result()
            if isinstance(appended, Refused):
                raise appended
        else:
            appended = []
        # Those that are not new were reported to another process.
        model.open.answered(*(slate.nonce for slate in late))
        return sum(place.new for place in appended)

    def _count_if_due(self, model: Model, now: float) -> None:
        since = self._since.get(model.name)
        if since is None:
            return
        # Others share the room for losses with this process: they must soon know of it.
        told = model.reports.seen.get(self._service.process)
        soon = model.open.excess > 0 and (told is None or now - told > LIVE_SECONDS)
        if soon or self._clock.monotonic() - since[1] >= self._tuning.count_seconds:
            self._append_counts(model, now)

    def _append_counts(self, model: Model, now: float) -> None:
        with self._counting:
            counts, since = self._counts.pop(model.name, None), self._since.pop(model.name, (now, 0.0))
        if not counts:
            return
        body = Recommended(self._service.process, since[0], counts)
        event = NewEvent(KIND_OF[Recommended], new_nonce(int(now * 1000)), packed(body), now)
        try:
            self._service.append(model, event)
        except Refused:
            with self._counting:
                there = self._counts.setdefault(model.name, {})
                for arm, n in counts.items():
                    there[arm] = there.get(arm, 0) + n
                self._since[model.name] = since
            raise
        self._told.add(model.name)

    def _warn(self, model: Model) -> None:
        """Once for each model: what is wrong with what is reported."""
        if model.name not in self._warned and (warnings := model.warnings()):
            self._warned.add(model.name)
            for warning in warnings:
                log.warning("%s: %s", model.name, warning)
