"""A model as one file: its whole log, and the digest of what it comes to. Both ways block by block."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from typing import BinaryIO

import msgspec

from firstclick.catalog.encoder import Encoder
from firstclick.catalog.feature_scale import FeatureScale
from firstclick.catalog.item import Item
from firstclick.errors import FirstclickError, InvalidInput, WorkFailed
from firstclick.files.progress import Progress, silent
from firstclick.online.random_key import LARGEST_KEY
from firstclick.registry import policy_class
from firstclick.serve.log.events import Created, Event, ItemsChanged, ItemsPut, Kind, packed, unpacked
from firstclick.serve.log.model_file import ModelFile, model_file
from firstclick.serve.model.model import Known, Model
from firstclick.serve.model.new_events import check_context_size, check_items, check_name, model_seed
from firstclick.serve.model.replay import Log, Memory, recover
from firstclick.serve.store.store import Store, StoredModel
from firstclick.validation.whole_number import whole_number
from firstclick.wire.errors import Conflict, Malformed, OtherVersion, Refused
from firstclick.wire.limits import MOST_ROWS

# Events that go into the store in one transaction: others write in between.
LOADED_AT_ONCE = 2000


def export_model(log: Log, stored: StoredModel) -> Iterator[bytes]:
    """The log of a model up to its head, as the pieces of a file."""
    check_whole(log, stored)
    chunks = log.events(stored.id, 0, stored.head)
    return model_file(stored.name, chunks, lambda: recover(log, stored).digest())


def check_whole(log: Log, stored: StoredModel) -> None:
    """Conflict if some events are archived, and not at hand."""
    if (base := log.base(stored.id)) is not None:
        raise Conflict(
            f"events 2 to {base.seq - 1} of model {stored.name!r} are archived, and the whole log is needed: "
            "name the files that they are in by --archive FILE on the command line"
        )


def import_model(
    store: Store,
    name: str,
    content: bytes | BinaryIO | ModelFile,
    *,
    relearn: bool = False,
    progress: Progress = silent,
) -> StoredModel:
    """A new model with the log of an exported one; it comes to the same, or it is refused.

    With `relearn` it is learned by this version's arithmetic, whatever it came to before. Nobody sees the
    model before it is whole, and if it is refused nothing is left of it.
    """
    check_name(name)
    _check_free(store, name)
    if isinstance(content, bytes):
        content = BytesIO(content)
    file = content if isinstance(content, ModelFile) else ModelFile(content)
    if file.first != 1:
        raise Malformed(
            f"the file holds events {file.first} to {file.last} of an archived model; import what "
            "`firstclick export --archive FILE` makes of it"
        )
    # What the log goes back to was folded before: `ModelFile` has seen to that.
    folding = _Folding(name, Memory(file.rollbacks), copied=file.last if relearn else None)
    with _reserved(store) as number:
        for events in file.events():
            _load(store, number, folding.fold(events))
            progress(events[-1].seq, file.last)
        model = folding.model
        assert model is not None
        if not relearn and model.digest() != file.digest:
            raise Malformed(
                "the file's events do not come to the digest that it was exported with: it was changed, "
                "or exported by a version of firstclick that learns differently"
            )
        stored = store.publish(number, name, file.last)
    # So that nobody who takes it up has to fold all of it again.
    seq, snapshot = model.snapshot()
    store.save_snapshot(stored.id, seq, snapshot)
    return stored


def relearn(store: Store, log: Log, stored: StoredModel, name: str) -> StoredModel:
    """A new model that begins as another did and learns from all its slates, by this version's arithmetic.

    `log` is the store, or the store and the files in which the model's events were archived.
    """
    check_name(name)
    _check_free(store, name)
    check_whole(log, stored)
    with _reserved(store) as number:
        for events in log.events(stored.id, 0, stored.head):
            if events[0].seq == 1:
                events[0] = _of_this_version(events[0], stored.head)
                # What this version cannot work with it refuses now.
                Model(0, name, unpacked(events[0], Created))
            _load(store, number, events)
        return store.publish(number, name, stored.head)


def _of_this_version(first: Event, copied: int) -> Event:
    """The creation of a model as if it were made today, by one that is learned again: so many events were
    another's."""
    created = unpacked(first, Created)
    version = policy_class(created.policy).version
    return first._replace(payload=packed(msgspec.structs.replace(created, version=version, copied=copied)))


@contextmanager
def _reserved(store: Store) -> Iterator[int]:
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


def _load(store: Store, number: int, events: list[Event]) -> None:
    try:
        for start in range(0, len(events), LOADED_AT_ONCE):
            store.load(number, events[start : start + LOADED_AT_ONCE])
    except InvalidInput as error:
        raise Malformed(f"not an exported model: {error}") from None


def _check_free(store: Store, name: str) -> None:
    if any(stored.name == name for stored in store.models()):
        raise Conflict(f"there is a model {name!r} already; choose another name")


class _Folding:
    """What the events of a file come to; Malformed when they could not have come through the doors that
    others come through, or cannot be folded."""

    def __init__(self, name: str, memory: Memory, *, copied: int | None) -> None:
        """`copied`: how many events are learned again by this version's arithmetic; None: none are."""
        self._name = name
        self._memory = memory
        self._copied = copied
        self._doors: _Doors | None = None
        self.model: Model | None = None

    def fold(self, events: list[Event]) -> list[Event]:
        """The next events, the creation first, as they go into the store."""
        try:
            if self.model is None or self._doors is None:
                if self._copied is not None:
                    events = [_of_this_version(events[0], self._copied), *events[1:]]
                created = unpacked(events[0], Created)
                self._doors = _Doors(created)
                self.model = Model(0, self._name, created, first=events[0])
            self._doors.check(events)
            self._memory.fold(self.model, events, _not_reached)
            return events
        except OtherVersion:
            then = unpacked(events[0], Created)
            raise Malformed(
                f"the file was learned by version {then.version} of {then.policy}, and this firstclick has "
                f"version {policy_class(then.policy).version}, which learns differently; run `firstclick "
                "import --relearn` to learn its slates again, or import it with the firstclick that exported "
                "it"
            ) from None
        except (FirstclickError, ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
            raise Malformed(f"the file's events cannot be folded: {error}") from None


class _Doors:
    """What a file says must have been able to come through the doors that others come through."""

    def __init__(self, created: Created) -> None:
        whole_number("k", created.k, at_least=1, at_most=MOST_ROWS)
        model_seed(created.seed)
        whole_number("key", created.key or 0, at_least=0, at_most=LARGEST_KEY)
        # Another version may have other settings; the model says so.
        if policy_class(created.policy).version == created.version:
            check_context_size(policy_class(created.policy)(**created.settings))
        if created.feature_scale is not None:
            scale = FeatureScale.from_json(created.feature_scale)
            if scale.n_features != created.n_features or not scale.divisor > 0:
                raise InvalidInput("the scale of features does not fit them")
        n_items = len(created.items.ids)
        self._n_features = created.n_features
        self._n_inputs = len(Encoder.from_json(created.encoder).inputs) if created.encoder else 0
        if created.encoder and [len(values) for values in created.values] != [self._n_inputs] * n_items:
            raise InvalidInput("the values of the items do not fit the encoder")
        check_items(_items(created.items), created.n_features)

    def check(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.kind == Kind.ITEMS_PUT:
                check_items(_items(unpacked(event, ItemsPut)), self._n_features)
            elif event.kind == Kind.ITEMS_CHANGED:
                self._check_changes(unpacked(event, ItemsChanged))

    def _check_changes(self, body: ItemsChanged) -> None:
        n_inputs = self._n_inputs
        check_items(_items(body), self._n_features)
        values = body.values if n_inputs else [[] for _ in body.ids]
        for sent, given in zip(body.sent, values, strict=True):
            size = (n_inputs if sent else 0) if isinstance(sent, bool) else len(sent)
            if len(given) != size or not (isinstance(sent, bool) or all(0 <= one < n_inputs for one in sent)):
                raise InvalidInput("the values of the items do not fit the encoder")


def _items(body: ItemsPut | ItemsChanged) -> list[Item]:
    table = body.table()
    rows = [None] * len(body.ids) if table is None else table
    return [Item(*parts) for parts in zip(body.ids, body.names, body.groups, rows, strict=True)]


def _not_reached(seq: int) -> Known:
    raise WorkFailed(f"event {seq} has not been folded yet")
