"""A model put into a store piece by piece: others write in between, nobody sees it before it is whole, and
nothing of it is left if it is refused."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from firstclick.errors import InvalidInput
from firstclick.serve.log.events import Event
from firstclick.serve.model.model import Model
from firstclick.serve.model.new_events import check_name
from firstclick.serve.store.store import Store, StoredModel
from firstclick.wire.errors import Conflict, Malformed, Refused


def check_new(store: Store, name: str) -> None:
    """Malformed or Conflict if a new model cannot be called so."""
    check_name(name)
    if any(stored.name == name for stored in store.models()):
        raise Conflict(f"{name!r} is taken by another model; choose another name", "name")


@contextmanager
def reserved(store: Store) -> Iterator[int]:
    """The number of a model that is put in piece by piece; nothing of it is left if that fails."""
    number = store.reserve()
    try:
        yield number
    except BaseException:
        # If the store does not answer, somebody removes it later.
        with suppress(Refused):
            store.give_up(number)
            while store.sweep():
                pass
        raise


def load(store: Store, number: int, events: list[Event]) -> None:
    """The next events of a model with a reserved number."""
    try:
        for start in range(0, len(events), store.tuning.events_at_once):
            store.load(number, events[start : start + store.tuning.events_at_once])
    except InvalidInput as error:
        raise Malformed(f"not an exported model: {error}") from None


def publish(store: Store, number: int, name: str, model: Model) -> StoredModel:
    """All events are in, and this is what they come to: the model gets its name."""
    stored = store.publish(number, name, model.seq)
    # So that nobody who takes it up has to fold all of it again.
    seq, snapshot = model.snapshot()
    store.save_snapshot(stored.id, seq, snapshot)
    return stored
