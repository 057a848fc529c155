"""The events of a model's log, and their bytes.

A log is all there is: whoever folds the same events in the same order knows the same, bit for bit.
Feedback, of which there are millions, is packed so that a kernel can read it (`serve.fold`); the rest is
MessagePack.
"""

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from firstclick.catalog import ItemId

NONCE_SIZE = 16


class Kind(IntEnum):
    """What happened."""

    CREATED = 0
    FEEDBACK = 1
    ITEMS_PUT = 2
    ITEMS_WITHDRAWN = 3
    ROLLED_BACK = 4


class NewEvent(NamedTuple):
    """What is to be appended. The nonce, unique in the model, makes sending it twice harmless."""

    kind: int
    nonce: bytes
    payload: bytes
    received: float  # seconds since the epoch by the receiver's clock: for people, it orders nothing


class Event(NamedTuple):
    """What is in the log; `seq` counts 1, 2, 3, ... in each model."""

    seq: int
    kind: int
    nonce: bytes
    payload: bytes
    received: float


class Item(NamedTuple):
    """An item as it is put into a catalog."""

    id: ItemId
    name: str = ""
    group: str = ""
    features: NDArray[np.float64] | None = None


class ItemsPut(msgspec.Struct, frozen=True, array_like=True):
    """Items that were added or changed, in this order."""

    ids: list[ItemId]
    names: list[str]
    groups: list[str]
    n_features: int  # 0 for items without features
    features: bytes  # float64, little-endian, row after row

    @classmethod
    def of(cls, items: Sequence[Item]) -> "ItemsPut":
        """The items, which have all equally many features, or none."""
        rows = [item.features for item in items if item.features is not None]
        table = np.asarray(rows, "<f8") if rows else np.empty((len(items), 0), "<f8")
        return cls(
            [item.id for item in items],
            [item.name for item in items],
            [item.group for item in items],
            table.shape[1],
            table.tobytes(),
        )

    def table(self) -> NDArray[np.float64] | None:
        """The features, one row an item, or None."""
        if not self.n_features:
            return None
        return np.frombuffer(self.features, "<f8").reshape(len(self.ids), self.n_features)


class Created(msgspec.Struct, frozen=True):
    """A model begins: its policy, what does not change later, and its first items."""

    policy: str
    settings: dict[str, Any]
    k: int
    seed: int
    n_features: int  # 0 for a catalog without features
    items: ItemsPut
    feature_scale: dict[str, Any] | None = None


class ItemsWithdrawn(msgspec.Struct, frozen=True):
    """Items that are not shown any more."""

    ids: list[ItemId]


class RolledBack(msgspec.Struct, frozen=True):
    """What was known after event `to` is known again; rows given since then stay, hidden."""

    to: int


Body = Created | ItemsPut | ItemsWithdrawn | RolledBack
BODY_OF: dict[int, type[Body]] = {
    Kind.CREATED: Created,
    Kind.ITEMS_PUT: ItemsPut,
    Kind.ITEMS_WITHDRAWN: ItemsWithdrawn,
    Kind.ROLLED_BACK: RolledBack,
}
KIND_OF = {body: kind for kind, body in BODY_OF.items()}
T = TypeVar("T", bound=Body)


def packed(body: Body) -> bytes:
    """The payload of any event but feedback."""
    return msgspec.msgpack.encode(body)


def unpacked(event: Event | NewEvent, expected: type[T]) -> T:
    """The body in a payload; msgspec.DecodeError when the bytes are something else."""
    return msgspec.msgpack.decode(event.payload, type=expected)


# Feedback: click (-1 for none), when the slate was recommended (ms since the epoch), then the rows.
FEEDBACK_HEAD = struct.Struct("<hq")
NO_CLICK = -1


class Feedback(NamedTuple):
    """Which position of a slate was clicked first."""

    click: int | None
    issued: float  # seconds since the epoch
    rows: tuple[int, ...]


def feedback_payload(click: int | None, issued_ms: int, rows: bytes) -> bytes:
    """The payload of feedback; `rows` are 32-bit numbers, little-endian, as they are in a token."""
    return FEEDBACK_HEAD.pack(NO_CLICK if click is None else click, issued_ms) + rows


def says_the_same(payload: bytes, other: bytes) -> bool:
    """Whether two payloads of feedback tell of the same slate and click, whenever it was recommended."""
    click, rows = slice(0, 2), slice(FEEDBACK_HEAD.size, None)
    return payload[click] == other[click] and payload[rows] == other[rows]


def read_feedback(payload: bytes) -> Feedback:
    """What a payload of feedback says."""
    click, issued = FEEDBACK_HEAD.unpack_from(payload)
    rows = np.frombuffer(payload, "<u4", offset=FEEDBACK_HEAD.size)
    return Feedback(None if click == NO_CLICK else click, issued / 1000, tuple(rows.tolist()))


def as_json(event: Event, items: Sequence[ItemId]) -> dict[str, Any]:
    """The event in words, for people and for other programs; `items` has the item of every row."""
    told: dict[str, Any] = {
        "seq": event.seq,
        "kind": Kind(event.kind).name.lower().replace("_", "-"),
        "received": event.received,
        "nonce": event.nonce.hex(),
    }
    if event.kind == Kind.FEEDBACK:
        said = read_feedback(event.payload)
        return told | {
            "click": said.click,
            "issued": said.issued,
            "items": [items[row] for row in said.rows],
        }
    body = unpacked(event, BODY_OF[event.kind])
    told |= {name: getattr(body, name) for name in body.__struct_fields__}
    for name, value in list(told.items()):
        if isinstance(value, ItemsPut):
            told[name] = _items_in_words(value)
    if isinstance(body, ItemsPut):
        for name in body.__struct_fields__:
            del told[name]
        told["items"] = _items_in_words(body)
    return told


def _items_in_words(body: ItemsPut) -> list[dict[str, Any]]:
    table = body.table()
    return [
        {"id": item, "name": name, "group": group}
        | ({} if table is None else {"features": table[row].tolist()})
        for row, (item, name, group) in enumerate(zip(body.ids, body.names, body.groups, strict=True))
    ]
