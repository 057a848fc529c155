"""A model from its log: with the newest snapshot that is whole, or without any."""

import logging
from collections.abc import Callable
from itertools import chain

from firstclick.catalog import ItemId
from firstclick.serve.events import Created, Event, Kind, unpacked
from firstclick.serve.model import Model
from firstclick.serve.shelf import Shelf
from firstclick.serve.snapshot import BadSnapshot
from firstclick.serve.store.store import Store, StoredModel

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
        first = next(chain.from_iterable(store.events(stored.id, 0, 1)))
        model = Model(stored.id, stored.name, unpacked(first, Created))
    catch_up(store, model, last, use_snapshots=use_snapshots, progress=progress)
    return model


def catch_up(
    store: Store,
    model: Model,
    upto: int | None = None,
    *,
    use_snapshots: bool = True,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Fold what the log has after the model's last event."""

    def model_at(seq: int) -> Model:
        return recover(store, StoredModel(model.id, model.name, seq), upto=seq, use_snapshots=use_snapshots)

    for events in store.events(model.id, model.seq, upto):
        model.apply(events, model_at)
        progress(model.seq, upto or model.seq)


def _from_snapshot(store: Store, stored: StoredModel, upto: int) -> Model | None:
    snapshots = [(seq, content) for seq, content in store.snapshots(stored.id) if seq <= upto]
    if not snapshots:
        return None
    changes = list(chain.from_iterable(store.events(stored.id, 0, upto, feedback=False)))
    created = unpacked(changes[0], Created)
    for seq, content in snapshots:
        try:
            return Model.restored(
                stored.id, stored.name, created, content, lambda seq: shelf_at(seq, changes, created)
            )
        except BadSnapshot as error:
            log.warning("%s: snapshot at %d is not used: %s", stored.name, seq, error)
    return None


def items_of_rows(store: Store, stored: StoredModel) -> list[ItemId]:
    """The item of every row that the model's log has given."""
    changes = list(chain.from_iterable(store.events(stored.id, 0, stored.head, feedback=False)))
    return shelf_at(stored.head, changes, unpacked(changes[0], Created)).catalog.items


def shelf_at(seq: int, changes: list[Event], created: Created) -> Shelf:
    """The items after event `seq`, from all events that are not feedback."""
    shelf = Shelf(created)
    for event in changes:
        if event.kind != Kind.CREATED and event.seq <= seq:
            shelf.apply(event, lambda earlier: shelf_at(earlier, changes, created))
    return shelf
