"""What has to be done now and then: follow other processes, make snapshots, look after keys."""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from firstclick.serve.log.history import Mark
from firstclick.serve.log.token import SECRET_SIZE
from firstclick.serve.model.model import Model
from firstclick.serve.model.replay import catch_up
from firstclick.serve.store.crash_points import step
from firstclick.serve.store.store import ApiKey, StoredModel
from firstclick.wire.errors import OtherHistory, Refused, Unavailable

if TYPE_CHECKING:
    from firstclick.serve.service import Service

log = logging.getLogger("firstclick.serve")

DAY = 86_400
# A new key for tokens so often; an old one is believed until its last token has expired.
ROTATE_DAYS = 30.0
# Seconds that a clock may be set by without a word.
JUMP = 60.0
# The number of no model.
NO_MODEL = 0
# Seconds that a look spends on what deleted models have left.
SWEEP_SECONDS = 0.1
# Seconds in which every process has heard of a new key for tokens.
HEARD_WITHIN = 3600.0
# Seconds that the end of a service waits for a model that is being loaded.
LOAD_SECONDS = 5.0


class Maintenance:
    """A thread that keeps the service's models near the heads of their logs, and their snapshots young."""

    def __init__(
        self, service: "Service", *, poll_seconds: float, snapshot_events: int, snapshot_seconds: float
    ) -> None:
        self._service = service
        self._store = service.store
        self._clock, self._tuning = service.clock, service.tuning
        # Where nobody else appends there is nothing to follow.
        seldom = self._tuning.seldom_seconds
        self._pause = poll_seconds if self._store.shared else max(seldom, poll_seconds)
        self._snapshot_events = snapshot_events
        self._snapshot_seconds = snapshot_seconds
        self._snapshots: dict[str, tuple[int, float]] = {}
        self._behind_since: dict[str, float] = {}
        self._last_contact = self._clock.monotonic()
        self.api_keys: tuple[ApiKey, ...] = tuple(self._store.api_keys())
        self._replicas: list[tuple[str, float, dict[int, int]]] = []
        self._heard = 0.0
        self._in_trouble = False
        self._taking_up: set[str] = set()
        self._loading: list[threading.Thread] = []
        self._reading_keys = threading.Lock()
        self._running = threading.Lock()
        self._offset = self._clock.time() - self._clock.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="firstclick-maintenance", daemon=True)
        if self._tuning.background_threads:
            self._thread.start()

    def close(self) -> None:
        """Stop. A model that is just being loaded may take a while: nothing is lost with it."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        for thread in self._loading:
            thread.join(LOAD_SECONDS)

    def run_due(self) -> None:
        """Do what is due, and wait for the models that it loads."""
        self._probe_if_due()
        self.look()
        for thread in self._loading:
            thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._pause):
            self._probe_if_due()
            try:
                self.look()
                if self._in_trouble:
                    log.warning("the store answers again")
                self._in_trouble = False
            except Refused as refusal:
                # Say it once, not five times a second.
                if not self._in_trouble:
                    log.warning("the store does not answer; what is known is served meanwhile: %s", refusal)
                self._in_trouble = True
            except Exception:
                log.exception("looking after the models failed; trying again")

    def _probe_if_due(self) -> None:
        """Where nothing was written lately, and while nothing can be: try whether it can."""
        writer = self._service.writer
        if writer.trouble is None and self._clock.monotonic() - writer.tried < self._tuning.probe_seconds:
            return
        try:
            self._store.probe(self._clock.time())
            writer.note(None)
        except Unavailable as refusal:
            # Not more than noted, even if the store is broken: only what was sent to be kept ends the server.
            writer.note(refusal)
        except Exception:
            log.exception("trying to write to the store failed")

    def look(self) -> None:
        """Do what is due."""
        with self._running:
            self._run_once()

    def _run_once(self) -> None:
        now = self._clock.monotonic()
        self._watch_clock(now)
        # Before the logs: a revoked key must not stay good because a model is in trouble.
        if now - self._heard >= self._tuning.seldom_seconds:
            self._heard = now
            self.reload_api_keys()
            self._follow_token_keys()
            self._follow_archives()
            self._tell_others()
        models = self._service.models
        # How far each was before the store is asked.
        before = {model.name: (model, model.last) for model in models.all()}
        ends = self._store.ends()
        for name in self._drop_deleted([model for model, _ in before.values()], [one for one, _ in ends]):
            del before[name]
        for stored, last in ends:
            if stored.name in before:
                self._follow(stored, last, *before[stored.name], now)
            elif stored.name not in models.outdated:
                self._begin(models.take_up, stored)
        self._last_contact = self._clock.monotonic()
        self._sweep()

    def _drop_deleted(self, at_work: Sequence[Model], stored: Sequence[StoredModel]) -> list[str]:
        """Serve no more what another process deleted; their names.

        A model of the same name with a higher number was made after that.
        """
        numbers = {one.name: one.id for one in stored}
        gone = [model for model in at_work if numbers.get(model.name, model.id + 1) > model.id]
        for model in gone:
            log.warning(
                "model %r is not in the store any more: it was deleted, and is not served", model.name
            )
            self._service.forget(model.name, model.id)
        for name in self._service.models.broken.keys() - numbers.keys() - {model.name for model in at_work}:
            self._service.forget(name, NO_MODEL)
        return [model.name for model in gone]

    def _sweep(self) -> None:
        """Remove what deleted models have left, for a moment only: others write in between."""
        until = time.monotonic() + SWEEP_SECONDS
        while self._store.sweep() and time.monotonic() < until and not self._stop.is_set():
            time.sleep(0.001)

    def forget(self, name: str) -> None:
        """The model is not served any more."""
        self._snapshots.pop(name, None)
        self._behind_since.pop(name, None)

    def _begin(self, load: Callable[[StoredModel], object], stored: StoredModel) -> None:
        """Load a model in a thread: its log may be long, and the others must not wait for it."""
        if stored.name not in self._taking_up:
            self._taking_up.add(stored.name)
            thread = threading.Thread(target=self._load, args=(load, stored), daemon=True)
            self._loading = [one for one in self._loading if one.is_alive()] + [thread]
            thread.start()

    def _load(self, load: Callable[[StoredModel], object], stored: StoredModel) -> None:
        try:
            load(stored)
        except Refused as refusal:
            log.warning("%s: %s", stored.name, refusal)
        finally:
            self._taking_up.discard(stored.name)

    def _follow(self, stored: StoredModel, last: Mark | None, model: Model, before: Mark, now: float) -> None:
        """Bring one model to the head of its log; what goes wrong with it is its own affair.

        `before` is the last event it had folded before the store was asked, `last` the last of its log.
        """
        try:
            # If the log is longer, what was folded is compared when the rest is read.
            if stored.id != model.id or (stored.head <= before.seq and not before.same(last)):
                model.refuse_appends()
            if model.set_back:
                self._start_again(stored)
                return
            if stored.head > model.seq:
                self._behind_since.setdefault(model.name, now)
                catch_up(self._store, model, stored.head)
            self._behind_since.pop(model.name, None)
            self._service.note_build(model)
            self._snapshot_if_due(model, now)
            if (exploring := self._service.exploring.get(model.name)) is not None:
                exploring.look_if_due(model)
        except OtherHistory:
            model.refuse_appends()
            self._start_again(stored)
        except Refused:
            raise
        except Exception:
            log.exception("%s: following its log failed; trying again", stored.name)

    def _start_again(self, stored: StoredModel) -> None:
        # Of the history that is gone; those of the other one have lower numbers.
        self._snapshots.pop(stored.name, None)
        self._behind_since.pop(stored.name, None)
        self._begin(self._service.models.start_again, stored)

    def _follow_archives(self) -> None:
        """Events may be archived by another process."""
        models = {model.id: model for model in self._service.models.all()}
        for id, base in self._store.bases().items():
            if id in models:
                models[id].archived_before, models[id].archived_issued = base.seq, base.issued
                if models[id].seq < base.seq and not models[id].set_back:
                    # What it would have to fold next is in a file now: it is loaded again from the base.
                    models[id].set_back = (
                        f"model {models[id].name!r}: its events before {base.seq} were archived, and it is "
                        "being loaded again; send the same again"
                    )

    def _tell_others(self) -> None:
        seqs = {model.id: model.seq for model in self._service.models.all()}
        self._store.note_replica(self._service.name, seqs, self._clock.time())
        self._replicas = self._store.replicas()

    def _watch_clock(self, now: float) -> None:
        """Tokens expire by the clock: that many do at once because it was set must not go unnoticed."""
        offset = self._clock.time() - now
        if abs(offset - self._offset) > JUMP:
            log.warning(
                "the clock of this machine jumped by %.0f s: tokens of slates seem older or younger by that",
                offset - self._offset,
            )
        self._offset = offset

    def reload_api_keys(self) -> None:
        """Take the keys that the store has now."""
        # Read and kept by one thread at a time: an older list must not take the place of a newer one.
        with self._reading_keys:
            self.api_keys = tuple(self._store.api_keys())

    def lag(self, name: str) -> float:
        """For how many seconds the log has had events that the model has not learned, as far as we know."""
        return max(self.silence() if self._store.shared else 0.0, self.behind(name))

    def behind(self, name: str) -> float:
        """The same, without what may have come while the store was silent."""
        now = self._clock.monotonic()
        return now - self._behind_since.get(name, now)

    def silence(self) -> float:
        """Seconds since the store last told how its logs stand, beyond the usual pause."""
        return max(0.0, self._clock.monotonic() - self._last_contact - 2 * self._pause)

    def replicas(self, model: Model) -> list[dict[str, object]]:
        """The processes that serve this model: how far each is, and when it was heard of."""
        mine = self._service.name
        told: list[dict[str, object]] = [
            {"name": mine, "seq": model.seq, "lag": self.lag(model.name), "seen": 0.0, "self": True}
        ]
        now = self._clock.time()
        for name, seen, seqs in self._replicas:
            if name != mine and model.id in seqs:
                behind = max(0.0, now - seen) if seqs[model.id] < model.seq else 0.0
                told.append(
                    {"name": name, "seq": seqs[model.id], "lag": behind, "seen": now - seen, "self": False}
                )
        return told

    def snapshot_seq(self, name: str) -> int:
        """The last event of the newest snapshot that this process made."""
        return self._snapshots.get(name, (0, 0.0))[0]

    def _snapshot_if_due(self, model: Model, now: float) -> None:
        # What was folded at the start counts: whoever restarts often must not fold it again and again.
        seq, made = self._snapshots.setdefault(model.name, (model.restored_from, now))
        new = model.seq - seq
        if new >= self._snapshot_events or (new > 0 and now - made >= self._snapshot_seconds):
            self.snapshot(model)

    def snapshot(self, model: Model) -> None:
        """Keep what the model knows now, so that a restart need not fold the whole log."""
        step("before snapshot")
        with model.lock:
            last, (seq, content) = model.last, model.snapshot()
        self._store.save_snapshot(model.id, seq, content, last)
        self._snapshots[model.name] = seq, self._clock.monotonic()

    def _follow_token_keys(self) -> None:
        keys = self._store.token_keys()
        now = self._clock.time()
        if not keys or now - keys[-1].created >= ROTATE_DAYS * DAY:
            keys.append(self._store.add_token_key(secrets.token_bytes(SECRET_SIZE), now))
        # A key is done when the key after it is older than any token may be, and all have heard of it.
        done = [
            key.id
            for key, after in pairwise(keys)
            if now - after.created > self._service.token_days * DAY + HEARD_WITHIN
        ]
        if done:
            self._store.drop_token_keys(max(done) + 1)
            keys = [key for key in keys if key.id > max(done)]
        self._service.keys.follow(keys)
