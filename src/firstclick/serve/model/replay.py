"""A model from its log: with the newest snapshot that is whole, or without any.

The log of an archived model begins at its base: what the model knew when the events before were archived.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Protocol, TypeVar

from firstclick.errors import InvalidInput, WorkFailed
from firstclick.files.progress import Progress, silent
from firstclick.serve.log.events import Created, Event, Kind, RolledBack, unpacked
from firstclick.serve.log.history import Mark
from firstclick.serve.log.snapshot import BadSnapshot
from firstclick.serve.model.model import TOGETHER, Known, Model
from firstclick.serve.store.store import Base, Store, StoredModel
from firstclick.wire.errors import Conflict, OtherHistory

AT_ONCE = 10_000

log = logging.getLogger("firstclick.serve")
T = TypeVar("T")


class Log(Protocol):
    """What logs are read from: a store, or a store and the files that events of it were archived in."""

    def events(
        self, model: int, after: int, upto: int | None = None, *, feedback: bool = True
    ) -> Iterator[list[Event]]:
        """As `Store.events`."""

    def snapshots(self, model: int) -> list[tuple[int, bytes]]:
        """As `Store.snapshots`."""

    def base(self, model: int) -> Base | None:
        """As `Store.base`."""

    def marks(self, model: int, first: int, last: int) -> dict[int, Mark]:
        """As `Store.marks`."""

    def events_at(self, model: int, seqs: Sequence[int]) -> list[Event]:
        """As `Store.events_at`."""


def recover(
    store: Log,
    stored: StoredModel,
    *,
    use_snapshots: bool = True,
    progress: Progress = silent,
    lost: Callable[[int], None] = lambda seq: None,
) -> Model:
    """The model after the event `stored.head`.

    `lost` is told of snapshots that were made after an event which the log does not have, any more.
    """

    def folded() -> Model:
        first = first_event_in(store, stored)
        model = _from_snapshot(store, stored, unpacked(first, Created), lost) if use_snapshots else None
        if model is None:
            model = first_model(store, stored, first)
        memory = Memory(changes_in(store, stored, model.seq))
        catch_up(store, model, stored.head, memory=memory, progress=progress)
        return model

    model = unless_archived_meanwhile(store, stored, folded)
    if isinstance(store, Store) and (base := store.bases().get(stored.id)) is not None:
        model.archived_before, model.archived_issued = base.seq, base.issued
    return model


def first_model(store: Log, stored: StoredModel, first: Event) -> Model:
    """The model that a fold without snapshots begins with: after the creation, or at the base."""
    base, created = store.base(stored.id), unpacked(first, Created)
    if base is None or stored.head == 1:
        return Model(stored.id, stored.name, created, first=first)
    if stored.head < base.seq:
        raise archived(stored.name, base)
    try:
        model = Model.restored(stored.id, stored.name, base.content, created, any_code=True)
        _check_past(store, model)
    except BadSnapshot as error:
        raise WorkFailed(
            f"the events of model {stored.name!r} up to {base.seq - 1} are archived, and what it knew then "
            f"cannot be read: {error}; run `firstclick export {stored.name} --archive FILE`, and import that"
        ) from None
    return model


def archived(name: str, base: Base) -> InvalidInput:
    """The refusal of what would need archived events."""
    return InvalidInput(
        f"events 2 to {base.seq - 1} of model {name!r} are archived; choose event 1, or one from event "
        f"{base.seq} on"
    )


def check_whole(log: Log, stored: StoredModel) -> None:
    """Conflict if some events are archived, and not at hand."""
    if (base := log.base(stored.id)) is not None:
        raise Conflict(
            f"events 2 to {base.seq - 1} of model {stored.name!r} are archived, and the whole log is needed: "
            "name the files that they are in by --archive FILE on the command line"
        )


def unless_archived_meanwhile(store: Log, stored: StoredModel, work: Callable[[], T]) -> T:
    """What the work comes to. It is done again if it failed while events that it was reading were archived:
    on PostgreSQL this happens beside everybody else."""
    while True:
        before = store.base(stored.id)
        try:
            return work()
        except (WorkFailed, OtherHistory):
            now = store.base(stored.id)
            if now is None or (before is not None and before.seq == now.seq):
                raise


class Memory:
    """What a model knew after those events that its log goes back to later.

    It is kept while the log is folded. Folding the log anew for each rollback, which may go back to a time
    after another, would take twice as long with each of them.
    """

    def __init__(self, changes: Iterable[Event]) -> None:
        """For a log, or the rest of one, of which these are the events that are not feedback."""
        self._uses = Counter(
            unpacked(event, RolledBack).to for event in changes if event.kind == Kind.ROLLED_BACK
        )
        self._kept: dict[int, Known] = {}

    def fold(
        self,
        model: Model,
        events: list[Event],
        known_at: Callable[[int], Known],
        *,
        together: int = AT_ONCE,
    ) -> None:
        """The next events; `known_at` is asked for what was known before the first that we saw."""

        def known(seq: int) -> Known:
            if seq not in self._kept:
                return known_at(seq)
            self._uses[seq] -= 1
            return self._kept[seq] if self._uses[seq] else self._kept.pop(seq)

        self._keep(model)
        start = 0
        for end, event in enumerate(events, 1):
            if event.seq in self._uses:
                model.apply(events[start:end], known, together=together)
                self._keep(model)
                start = end
        model.apply(events[start:], known, together=together)

    def _keep(self, model: Model) -> None:
        if self._uses[model.seq]:
            self._kept[model.seq] = model.known()


def catch_up(
    store: Log,
    model: Model,
    upto: int | None = None,
    *,
    memory: Memory | None = None,
    progress: Progress = silent,
) -> None:
    """Fold what the log has after the model's last event; OtherHistory if the log is another one.

    With a memory it is a model that nobody uses yet: much is learned in one go, because nobody waits.
    """
    together = TOGETHER if memory is None else AT_ONCE
    memory = memory or Memory([])
    if not isinstance(store, Store):
        for events in store.events(model.id, model.seq, upto):
            memory.fold(model, events, lambda seq: known_after(store, model, seq), together=together)
            progress(model.seq, upto or model.seq)
        return
    if upto is None:
        upto = store.head(model.id)
    try:
        while model.seq < upto:
            events, last = store.events_after(model.id, model.last, upto)
            if not events:
                break
            memory.fold(model, events, lambda seq: known_after(store, model, seq), together=together)
            model.check_link(last)
            progress(model.seq, upto)
    except OtherHistory:
        raise model.refuse_appends() from None


def known_after(store: Log, model: Model, seq: int) -> Known:
    """What the model knew after an earlier event."""
    return recover(store, StoredModel(model.id, model.name, seq)).known()


def not_reached(seq: int) -> Known:
    """For a log that is folded from its first event with a memory, which has what the log goes back to."""
    raise WorkFailed(f"event {seq} has not been folded yet")


def first_event_in(store: Log, stored: StoredModel) -> Event:
    """The first event of the model's log."""
    return next(chain.from_iterable(store.events(stored.id, 0, 1)))


def created_in(store: Log, stored: StoredModel) -> Created:
    """How the model began: what the first event of its log says."""
    return unpacked(first_event_in(store, stored), Created)


def changes_in(store: Log, stored: StoredModel, after: int) -> Iterable[Event]:
    """The events of the model's log after this one that are not feedback."""
    return chain.from_iterable(store.events(stored.id, after, stored.head, feedback=False))


def _from_snapshot(
    store: Log, stored: StoredModel, created: Created, lost: Callable[[int], None]
) -> Model | None:
    for seq, content in store.snapshots(stored.id):
        if isinstance(store, Store) and (base := store.bases().get(stored.id)) is not None and seq < base.seq:
            continue  # Its events are archived.
        # A store that was set back may go on otherwise, with snapshots of what it has lost.
        there = store.marks(stored.id, seq, seq).get(seq)
        if there is not None and seq > stored.head:
            continue  # An earlier time is asked for.
        try:
            if there is None:
                lost(seq)
                raise BadSnapshot("the log does not have its last event")
            model = Model.restored(stored.id, stored.name, content, created)
            if not model.last.same(there):
                lost(seq)
                raise BadSnapshot("the log has another event in the place of its last one, or before it")
            return model
        except BadSnapshot as error:
            log.warning("%s: snapshot at %d is not used: %s", stored.name, seq, error)
    return None


def _check_past(store: Log, model: Model) -> None:
    """A store that was set back may go on otherwise, with snapshots of what it has lost."""
    last = list(chain.from_iterable(store.events(model.id, model.seq - 1, model.seq)))
    if [(event.nonce, event.received) for event in last] != [(model.last.nonce, model.last.received)]:
        raise BadSnapshot("the log has another event in the place of its last one")
