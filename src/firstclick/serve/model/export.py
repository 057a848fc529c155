"""A model as one file: its whole log, and the digest of what it comes to. Both ways block by block."""

from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import BinaryIO

from firstclick.catalog.encoder import Encoder
from firstclick.catalog.feature_scale import FeatureScale
from firstclick.catalog.item import Item
from firstclick.errors import FirstclickError, InvalidInput
from firstclick.files.progress import Progress, silent
from firstclick.registry import policy_class
from firstclick.serve.log.events import Created, Event, FirstItems, ItemsChanged, Kind, unpacked
from firstclick.serve.log.model_file import ModelFile, model_file
from firstclick.serve.model.fork import Fork
from firstclick.serve.model.loading import check_new, load, publish, reserved
from firstclick.serve.model.model import Model
from firstclick.serve.model.new_events import check_context_size, check_items, model_seed
from firstclick.serve.model.replay import Log, Memory, check_whole, not_reached, recover
from firstclick.serve.store.store import Store, StoredModel
from firstclick.streams import LARGEST_KEY
from firstclick.validation.whole_number import whole_number
from firstclick.wire.errors import Malformed, OtherVersion
from firstclick.wire.limits import MOST_ROWS


def export_model(log: Log, stored: StoredModel) -> Iterator[bytes]:
    """The log of a model up to its head, as the pieces of a file."""
    check_whole(log, stored)
    chunks = log.events(stored.id, 0, stored.head)
    return model_file(stored.name, chunks, lambda: recover(log, stored).digest())


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
    check_new(store, name)
    if isinstance(content, bytes):
        content = BytesIO(content)
    file = content if isinstance(content, ModelFile) else ModelFile(content)
    if file.first != 1:
        raise Malformed(
            f"the file holds events {file.first} to {file.last} of an archived model; import what "
            "`firstclick export --archive FILE` makes of it"
        )
    # What the log goes back to was folded before: `ModelFile` has seen to that.
    folding = _Folding(name, Memory(file.rollbacks), relearned=file if relearn else None)
    with reserved(store) as number:
        for events in file.events():
            load(store, number, folding.fold(events))
            progress(events[-1].seq, file.last)
        model = folding.model
        assert model is not None
        if not relearn and model.digest() != file.digest:
            raise Malformed(
                "the file's events do not come to the digest that it was exported with: it was changed, "
                "or exported by a version of firstclick that learns differently"
            )
        return publish(store, number, name, model)


class _Folding:
    """What the events of a file come to; Malformed when they could not have come through the doors that
    others come through, or cannot be folded."""

    def __init__(self, name: str, memory: Memory, *, relearned: ModelFile | None) -> None:
        """`relearned`: the file whose events are learned again by this version's arithmetic."""
        self._name = name
        self._memory = memory
        self._relearned = relearned
        self._fork: Fork | None = None
        self._doors: _Doors | None = None
        self.model: Model | None = None

    def fold(self, events: list[Event]) -> list[Event]:
        """The next events, the creation first, as they go into the store."""
        try:
            if self.model is None or self._doors is None:
                created = unpacked(events[0], Created)
                if self._relearned is not None:
                    file = self._relearned
                    self._fork = Fork(created, file.name, 0, file.last, None, None)
                    created = self._fork.created
                self._doors = _Doors(created)
            if self._fork is not None:
                events = self._fork.events(events)
            if self.model is None:
                self.model = Model(0, self._name, created, first=events[0])
            self._doors.check(events)
            self._memory.fold(self.model, events, not_reached)
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
        whole_number("key", created.key, at_least=0, at_most=LARGEST_KEY)
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
            if event.kind == Kind.ITEMS_CHANGED:
                self._check_changes(unpacked(event, ItemsChanged))

    def _check_changes(self, body: ItemsChanged) -> None:
        n_inputs = self._n_inputs
        check_items(_items(body), self._n_features)
        values = body.values if n_inputs else [[] for _ in body.ids]
        for sent, given in zip(body.sent, values, strict=True):
            size = (n_inputs if sent else 0) if isinstance(sent, bool) else len(sent)
            if len(given) != size or not (isinstance(sent, bool) or all(0 <= one < n_inputs for one in sent)):
                raise InvalidInput("the values of the items do not fit the encoder")


def _items(body: FirstItems | ItemsChanged) -> list[Item]:
    table = body.table()
    rows = [None] * len(body.ids) if table is None else table
    return [Item(*parts) for parts in zip(body.ids, body.names, body.groups, rows, strict=True)]
