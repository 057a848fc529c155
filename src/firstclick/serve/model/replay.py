"""A model from its log: with the newest snapshot that is whole, or without any."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain

from firstclick.files.progress import Progress, silent
from firstclick.serve.log.events import Created, Event, Kind, RolledBack, unpacked
from firstclick.serve.log.snapshot import BadSnapshot
from firstclick.serve.model.model import TOGETHER, Known, Model
from firstclick.serve.store.store import Store, StoredModel
from firstclick.wire.errors import OtherHistory

AT_ONCE = 10_000

log = logging.getLogger("firstclick.serve")


def recover(
    store: Store,
    stored: StoredModel,
    *,
    use_snapshots: bool = True,
    progress: Progress = silent,
    lost: Callable[[int], None] = lambda seq: None,
) -> Model:
    """The model after the event `stored.head`.

    `lost` is told of snapshots that were made after an event which the log does not have, any more.
    """
    first = first_event_in(store, stored)
    model = _from_snapshot(store, stored, unpacked(first, Created), lost) if use_snapshots else None
    if model is None:
        model = Model(stored.id, stored.name, unpacked(first, Created), first=first)
    memory = Memory(changes_in(store, stored, model.seq))
    catch_up(store, model, stored.head, memory=memory, progress=progress)
    return model


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
    store: Store,
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


def known_after(store: Store, model: Model, seq: int) -> Known:
    """What the model knew after an earlier event."""
    return recover(store, StoredModel(model.id, model.name, seq)).known()


def first_event_in(store: Store, stored: StoredModel) -> Event:
    """The first event of the model's log."""
    return next(chain.from_iterable(store.events(stored.id, 0, 1)))


def created_in(store: Store, stored: StoredModel) -> Created:
    """How the model began: what the first event of its log says."""
    return unpacked(first_event_in(store, stored), Created)


def changes_in(store: Store, stored: StoredModel, after: int) -> Iterable[Event]:
    """The events of the model's log after this one that are not feedback."""
    return chain.from_iterable(store.events(stored.id, after, stored.head, feedback=False))


def _from_snapshot(
    store: Store, stored: StoredModel, created: Created, lost: Callable[[int], None]
) -> Model | None:
    for seq, content in store.snapshots(stored.id):
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
