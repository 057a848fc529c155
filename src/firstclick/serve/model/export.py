"""A model as one file: its whole log, and the digest of what it comes to."""

from itertools import chain
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.encoder import Encoder
from firstclick.catalog.feature_scale import FeatureScale
from firstclick.catalog.item import Item
from firstclick.errors import FirstclickError, InvalidInput, WorkFailed
from firstclick.online.random_key import LARGEST_KEY
from firstclick.registry import policy_class
from firstclick.serve.log.events import (
    BODY_OF,
    NONCE_SIZE,
    Created,
    Event,
    ItemsChanged,
    ItemsPut,
    Kind,
    NewEvent,
    RolledBack,
    packed,
    unpacked,
)
from firstclick.serve.log.snapshot import BadSnapshot, read_snapshot, write_snapshot
from firstclick.serve.model.model import Known, Model
from firstclick.serve.model.new_events import check_context_size, check_items, check_name, model_seed
from firstclick.serve.model.replay import Memory, recover
from firstclick.serve.store.store import Store, StoredModel
from firstclick.validation.whole_number import whole_number
from firstclick.wire.errors import Conflict, Malformed, OtherVersion
from firstclick.wire.limits import MOST_ROWS

FORMAT = "firstclick model 1"


def export_model(store: Store, stored: StoredModel) -> bytes:
    """The log of a model up to its head, as bytes."""
    events = list(chain.from_iterable(store.events(stored.id, 0, stored.head)))
    page = {"format": FORMAT, "name": stored.name, "digest": recover(store, stored).digest()}
    arrays: dict[str, NDArray[Any]] = {
        "kind": np.array([event.kind for event in events], "<u1"),
        "received": np.array([event.received for event in events], "<f8"),
        "nonce": np.frombuffer(b"".join(event.nonce for event in events), "<u1"),
        "ends": np.cumsum([len(event.payload) for event in events], dtype="<i8"),
        "payload": np.frombuffer(b"".join(event.payload for event in events), "<u1"),
    }
    return write_snapshot(page, arrays)


def exported_name(content: bytes) -> str:
    """The name that an exported model had; Malformed if the bytes are something else."""
    return str(_read(content)[0].get("name"))


def import_model(store: Store, name: str, content: bytes, *, relearn: bool = False) -> StoredModel:
    """A new model with the log of an exported one; it comes to the same, or it is refused.

    With `relearn` it is learned by this version's arithmetic, whatever it came to before.
    """
    check_name(name)
    _check_free(store, name)
    page, events = _read(content)
    try:
        _check_doors(events)
        if relearn:
            events[0] = _of_this_version(events[0], len(events))
        model = Model(0, name, unpacked(events[0], Created), first=events[0])
        Memory(events).fold(model, events[1:], _not_reached)
    except OtherVersion:
        then = unpacked(events[0], Created)
        raise Malformed(
            f"the file was learned by version {then.version} of {then.policy}, and this firstclick has "
            f"version {policy_class(then.policy).version}, which learns differently; run `firstclick import "
            "--relearn` to learn its slates again, or import it with the firstclick that exported it"
        ) from None
    except (FirstclickError, ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
        raise Malformed(f"the file's events cannot be folded: {error}") from None
    if not relearn and model.digest() != page.get("digest"):
        raise Malformed(
            "the file's events do not come to the digest that it was exported with: it was changed, "
            "or exported by a version of firstclick that learns differently"
        )
    stored = store.create(name, [NewEvent(*event[1:]) for event in events])
    # So that nobody who takes it up has to fold all of it again.
    seq, snapshot = model.snapshot()
    store.save_snapshot(stored.id, seq, snapshot)
    return stored


def relearn(store: Store, stored: StoredModel, name: str) -> StoredModel:
    """A new model that begins as another did and learns from all its slates, by this version's arithmetic."""
    check_name(name)
    _check_free(store, name)
    first, *others = chain.from_iterable(store.events(stored.id, 0, stored.head))
    begun = _of_this_version(first, stored.head)
    Model(0, name, unpacked(begun, Created))  # What this version cannot work with it refuses now.
    return store.create(name, [NewEvent(*event[1:]) for event in (begun, *others)])


def _of_this_version(first: Event, copied: int) -> Event:
    """The creation of a model as if it were made today; so many events were another's."""
    created = unpacked(first, Created)
    version = policy_class(created.policy).version
    return first._replace(payload=packed(msgspec.structs.replace(created, version=version, copied=copied)))


def _check_free(store: Store, name: str) -> None:
    if any(stored.name == name for stored in store.models()):
        raise Conflict(f"there is a model {name!r} already; choose another name")


def _check_doors(events: list[Event]) -> None:
    """What a file says must have been able to come through the doors that others come through."""
    created = unpacked(events[0], Created)
    whole_number("k", created.k, at_least=1, at_most=MOST_ROWS)
    model_seed(created.seed)
    whole_number("key", created.key or 0, at_least=0, at_most=LARGEST_KEY)
    check_context_size(policy_class(created.policy)(**created.settings))
    if created.feature_scale is not None:
        scale = FeatureScale.from_json(created.feature_scale)
        if scale.n_features != created.n_features or not scale.divisor > 0:
            raise InvalidInput("the scale of features does not fit them")
    n_inputs = len(Encoder.from_json(created.encoder).inputs) if created.encoder else 0
    if created.encoder and [len(values) for values in created.values] != [n_inputs] * len(created.items.ids):
        raise InvalidInput("the values of the items do not fit the encoder")
    check_items(_items(created.items), created.n_features)
    for event in events:
        if event.kind == Kind.ITEMS_PUT:
            check_items(_items(unpacked(event, ItemsPut)), created.n_features)
        elif event.kind == Kind.ITEMS_CHANGED:
            _check_changes(unpacked(event, ItemsChanged), created.n_features, n_inputs)


def _check_changes(body: ItemsChanged, n_features: int, n_inputs: int) -> None:
    check_items(_items(body), n_features)
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
    """Every event that a log goes back to was folded before; `_read` has seen to that."""
    raise WorkFailed(f"event {seq} has not been folded yet")


def _read(content: bytes) -> tuple[dict[str, Any], list[Event]]:
    try:
        page, arrays = read_snapshot(content)
        if page.get("format") != FORMAT:
            raise BadSnapshot(f"expected {FORMAT!r}, got {str(page.get('format'))[:40]!r}")
        kinds, received, ends = (arrays[name] for name in ("kind", "received", "ends"))
        nonces, payload = arrays["nonce"].tobytes(), arrays["payload"].tobytes()
        n = len(kinds)
        for array, dtype in ((kinds, "<u1"), (received, "<f8"), (ends, "<i8")):
            if array.shape != (n,) or array.dtype != np.dtype(dtype):
                raise ValueError
        starts = np.concatenate([[0], ends[:-1]])
        if not n or len(nonces) != n * NONCE_SIZE or ends[-1] != len(payload) or (ends < starts).any():
            raise ValueError
        if not np.isfinite(received).all() or not set(kinds.tolist()) <= {*BODY_OF, Kind.FEEDBACK}:
            raise ValueError
        if kinds[0] != Kind.CREATED or (kinds[1:] == Kind.CREATED).any():
            raise ValueError
        events = [
            Event(
                i + 1,
                int(kinds[i]),
                nonces[i * NONCE_SIZE : (i + 1) * NONCE_SIZE],
                payload[starts[i] : ends[i]],
                float(received[i]),
            )
            for i in range(n)
        ]
        if len({event.nonce for event in events}) < n:
            raise ValueError
        for event in events:
            if event.kind == Kind.ROLLED_BACK and not 1 <= unpacked(event, RolledBack).to < event.seq:
                raise ValueError
    except BadSnapshot as error:
        raise Malformed(f"not an exported model: {error}") from None
    except (LookupError, TypeError, ValueError):
        raise Malformed("not an exported model: its parts do not fit together") from None
    return page, events
