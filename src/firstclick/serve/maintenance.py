"""What has to be done now and then: follow other processes, make snapshots, look after keys."""

import logging
import secrets
import threading
import time
from itertools import pairwise
from typing import TYPE_CHECKING

from firstclick.serve.log.token import SECRET_SIZE
from firstclick.serve.model.model import Model
from firstclick.serve.model.replay import catch_up
from firstclick.serve.store.crash_points import step
from firstclick.serve.store.store import ApiKey, StoredModel
from firstclick.wire.errors import Refused

if TYPE_CHECKING:
    from firstclick.serve.service import Service

log = logging.getLogger("firstclick.serve")

DAY = 86_400
# A new key for tokens so often; an old one is believed until its last token has expired.
ROTATE_DAYS = 30.0
# Where nobody else appends there is nothing to follow.
SELDOM = 1.0
# Seconds that a clock may be set by without a word.
JUMP = 60.0
# Seconds in which every process has heard of a new key for tokens.
HEARD_WITHIN = 3600.0


class Maintenance:
    """A thread that keeps the service's models near the heads of their logs, and their snapshots young."""

    def __init__(
        self, service: "Service", *, poll_seconds: float, snapshot_events: int, snapshot_seconds: float
    ) -> None:
        self._service = service
        self._store = service.store
        self._pause = poll_seconds if self._store.shared else max(SELDOM, poll_seconds)
        self._snapshot_events = snapshot_events
        self._snapshot_seconds = snapshot_seconds
        self._snapshots: dict[str, tuple[int, float]] = {}
        self._behind_since: dict[str, float] = {}
        self._last_contact = time.monotonic()
        self.api_keys: tuple[ApiKey, ...] = tuple(self._store.api_keys())
        self._replicas: list[tuple[str, float, dict[int, int]]] = []
        self._heard = 0.0
        self._in_trouble = False
        self._taking_up: set[str] = set()
        self._reading_keys = threading.Lock()
        self._clock = time.time() - time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="firstclick-maintenance", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._pause):
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

    def look(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        self._watch_clock(now)
        # Before the logs: a revoked key must not stay good because a model is in trouble.
        if now - self._heard >= SELDOM:
            self._heard = now
            self.reload_api_keys()
            self._follow_token_keys()
            self._follow_archives()
            self._tell_others()
        models = self._service.models
        before = {name: models.find(name).seq for name in models.names()}
        for stored in self._store.models():
            if stored.name in before:
                self._follow(stored, before[stored.name], now)
            elif stored.name not in self._taking_up | models.outdated:
                # Its log may be long, and the others must not wait for it.
                self._taking_up.add(stored.name)
                threading.Thread(target=self._take_up, args=(stored,), daemon=True).start()
        self._last_contact = time.monotonic()

    def _take_up(self, stored: StoredModel) -> None:
        try:
            self._service.models.take_up(stored)
        except Refused as refusal:
            log.warning("%s: %s", stored.name, refusal)
        finally:
            self._taking_up.discard(stored.name)

    def _follow(self, stored: StoredModel, before: int, now: float) -> None:
        """Bring one model to the head of its log; what goes wrong with it is its own affair."""
        try:
            if stored.head < before:
                log.critical(
                    "%s: the log ends at event %d, and event %d was folded already: the store was set back "
                    "and acknowledged events are gone; starting from the log as it is",
                    stored.name, stored.head, before,
                )  # fmt: skip
                self._service.models.start_again(stored)
                return
            model = self._service.model(stored.name)
            if stored.head > model.seq:
                self._behind_since.setdefault(model.name, now)
                catch_up(self._store, model, stored.head)
            self._behind_since.pop(model.name, None)
            self._snapshot_if_due(model, now)
        except Refused:
            raise
        except Exception:
            log.exception("%s: following its log failed; trying again", stored.name)

    def _follow_archives(self) -> None:
        """Events may be archived by another process."""
        models = {model.id: model for model in map(self._service.model, self._service.names())}
        for id, base in self._store.bases().items():
            if id in models:
                models[id].archived_before, models[id].archived_issued = base.seq, base.issued
            if id in models and models[id].seq < base.seq:
                # What it would have to fold next is in a file now.
                self._service.models.start_again(StoredModel(id, models[id].name, base.seq))

    def _tell_others(self) -> None:
        models = map(self._service.model, self._service.names())
        self._store.note_replica(self._service.name, {model.id: model.seq for model in models}, time.time())
        self._replicas = self._store.replicas()

    def _watch_clock(self, now: float) -> None:
        """Tokens expire by the clock: that many do at once because it was set must not go unnoticed."""
        offset = time.time() - now
        if abs(offset - self._clock) > JUMP:
            log.warning(
                "the clock of this machine jumped by %.0f s: tokens of slates seem older or younger by that",
                offset - self._clock,
            )
        self._clock = offset

    def reload_api_keys(self) -> None:
        """Take the keys that the store has now."""
        # Read and kept by one thread at a time: an older list must not take the place of a newer one.
        with self._reading_keys:
            self.api_keys = tuple(self._store.api_keys())

    def lag(self, name: str) -> float:
        """For how many seconds the log has had events that the model has not learned, as far as we know."""
        now = time.monotonic()
        unseen = self.silence() if self._store.shared else 0.0
        return max(unseen, now - self._behind_since.get(name, now))

    def silence(self) -> float:
        """Seconds since the store last told how its logs stand, beyond the usual pause."""
        return max(0.0, time.monotonic() - self._last_contact - 2 * self._pause)

    def replicas(self, model: Model) -> list[dict[str, object]]:
        """The processes that serve this model: how far each is, and when it was heard of."""
        mine = self._service.name
        told: list[dict[str, object]] = [
            {"name": mine, "seq": model.seq, "lag": self.lag(model.name), "seen": 0.0, "self": True}
        ]
        now = time.time()
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
        seq, content = model.snapshot()
        self._store.save_snapshot(model.id, seq, content)
        self._snapshots[model.name] = seq, time.monotonic()

    def _follow_token_keys(self) -> None:
        keys = self._store.token_keys()
        now = time.time()
        if now - keys[-1].created >= ROTATE_DAYS * DAY:
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
