"""A model from its log: with the newest snapshot that is whole, or without any."""

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable
from itertools import chain

from firstclick.catalog.ids import ItemId
from firstclick.serve.log.events import Created, Event, Kind, RolledBack, unpacked
from firstclick.serve.log.snapshot import BadSnapshot
from firstclick.serve.model.catalog_state import CatalogCopy, CatalogState
from firstclick.serve.model.model import TOGETHER, Known, Model
from firstclick.serve.store.store import Store, StoredModel

AT_ONCE = 10_000

log = logging.getLogger("firstclick.serve")


def recover(
    store: Store,
    stored: StoredModel,
    *,
    upto: int | None = None,
    use_snapshots: bool = True,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Model:
    """The model after event `upto`, by default the last that the log has now."""
    last = stored.head if upto is None else upto
    model = _from_snapshot(store, stored, last) if use_snapshots else None
    if model is None:
        model = Model(stored.id, stored.name, created_as(store, stored))
    changes = list(chain.from_iterable(store.events(stored.id, model.seq, last, feedback=False)))
    # Nobody uses it yet, so nobody waits while much is learned in one go.
    catch_up(
        store,
        model,
        last,
        use_snapshots=use_snapshots,
        progress=progress,
        together=AT_ONCE,
        memory=Memory(changes),
    )
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
    use_snapshots: bool = True,
    progress: Callable[[int, int], None] = lambda done, total: None,
    together: int = TOGETHER,
    memory: Memory | None = None,
) -> None:
    """Fold what the log has after the model's last event."""
    memory = memory or Memory([])
    for events in store.events(model.id, model.seq, upto):
        memory.fold(
            model,
            events,
            lambda seq: known_after(store, model, seq, use_snapshots=use_snapshots),
            together=together,
        )
        progress(model.seq, upto or model.seq)


def known_after(store: Store, model: Model, seq: int, *, use_snapshots: bool = True) -> Known:
    """What the model knew after an earlier event."""
    stored = StoredModel(model.id, model.name, seq)
    return recover(store, stored, upto=seq, use_snapshots=use_snapshots).known()


def _from_snapshot(store: Store, stored: StoredModel, upto: int) -> Model | None:
    snapshots = [(seq, content) for seq, content in store.snapshots(stored.id) if seq <= upto]
    if not snapshots:
        return None
    changes = list(chain.from_iterable(store.events(stored.id, 0, upto, feedback=False)))
    created = unpacked(changes[0], Created)
    for seq, content in snapshots:
        try:
            model = Model.restored(
                stored.id, stored.name, created, content, lambda seq: items_at(seq, changes, created)
            )
            _check_past(store, model)
            return model
        except BadSnapshot as error:
            log.warning("%s: snapshot at %d is not used: %s", stored.name, seq, error)
    return None


def _check_past(store: Store, model: Model) -> None:
    """A store that was set back may go on otherwise, with snapshots of what it has lost."""
    last = list(chain.from_iterable(store.events(model.id, model.seq - 1, model.seq)))
    if model.nonce and [event.nonce for event in last] != [model.nonce]:
        raise BadSnapshot("the log has another event in the place of its last one")


def created_as(store: Store, stored: StoredModel) -> Created:
    """The first event of the model's log."""
    return unpacked(next(chain.from_iterable(store.events(stored.id, 0, 1))), Created)


def items_of_rows(store: Store, stored: StoredModel) -> list[ItemId]:
    """The item of every row that the model's log has given."""
    changes = list(chain.from_iterable(store.events(stored.id, 0, stored.head, feedback=False)))
    return items_at(stored.head, changes, unpacked(changes[0], Created)).catalog.items


def items_at(seq: int, changes: list[Event], created: Created) -> CatalogState:
    """The items after event `seq`, from all events that are not feedback."""
    state = CatalogState(created)
    past = [event for event in changes if event.kind != Kind.CREATED and event.seq <= seq]
    wanted = {unpacked(event, RolledBack).to for event in past if event.kind == Kind.ROLLED_BACK}
    waiting = deque(sorted(wanted))
    stood: dict[int, CatalogCopy] = {}
    for event in past:
        while waiting and waiting[0] < event.seq:
            stood[waiting.popleft()] = state.copy()
        state.apply(event, stood.__getitem__)
    return state
