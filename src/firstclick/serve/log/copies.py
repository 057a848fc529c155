"""The log of a model in a copy of it, and how to read it there.

A fork has every event of its origin in the same place. Where an event says something else to another policy,
such as features in another scale, or means nothing to it, the copy keeps what it was. So the log of the
origin can be read from the copy, and its slates be drawn again, wherever the origin is.

Models are named by their place in `Created.origins`, the first one first: a fork of a fork has two.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from firstclick.serve.log.drawn import with_origins, without_origins
from firstclick.serve.log.events import (
    FLOAT_SIZE,
    Copied,
    Created,
    Event,
    FeedbackEvent,
    FirstItems,
    ItemsChanged,
    Kind,
    Origin,
    WarmStart,
    full_payload,
    issued_ms,
    packed,
    read_feedback,
    unpacked,
)
from firstclick.serve.log.slate_pack import each_payload, pack, unpack

T = TypeVar("T")


def left_out(event: Event, place: int) -> Event:
    """The event in a copy of the log of origin `place`, if it means nothing there."""
    return event._replace(kind=Kind.COPIED, payload=packed(Copied(place, event.kind, event.payload)))


def with_features(
    body: FirstItems | ItemsChanged, rows: NDArray[np.float64], place: int
) -> FirstItems | ItemsChanged:
    """The items with other features than origin `place` has for them."""
    return msgspec.structs.replace(
        body,
        n_features=rows.shape[1],
        features=rows.astype("<f8").tobytes(),
        earlier=body.earlier | {place: body.features},
    )


def with_other_words(payload: bytes, said: FeedbackEvent, place: int) -> bytes:
    """Feedback that says what `said` says, where origin `place` has `payload`: the fields are kept."""
    fields = read_feedback(payload).fields
    others, kept = without_origins(fields)
    kept = kept | {place: payload[: len(payload) - len(fields)]}
    return full_payload(
        said.clicks,
        issued_ms(payload),
        np.array(said.rows, "<u4").tobytes(),
        examined=said.examined,
        context=np.array(said.context, "<f8").tobytes(),
        features=np.array(said.features, "<f8").tobytes(),
        fields=with_origins(others, kept),
    )


def with_other_slates(warm_start: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """The payload of a warm start, with what `change` makes of the feedback in it."""
    body = msgspec.msgpack.decode(warm_start, type=WarmStart)
    if body.counts:
        return warm_start
    try:
        changed = pack(map(change, each_payload(*unpack(body.sizes, body.content))))
    except ValueError:
        return warm_start  # Nobody can learn from it.
    return packed(WarmStart(body.weight, *changed, body.file_mark))


def origin_of(created: Created, name: str, id: int, upto: int, *, same_features: bool) -> Origin:
    """The model of this creation as the origin of another, which has the same items."""
    features = b"" if same_features else created.items.features
    items = FirstItems([], [], [], created.n_features, features)
    its = msgspec.structs.replace(created, items=items, values=[], file_marks=[], origins=[])
    return Origin(name, id, upto, its)


def creation_of(created: Created, place: int) -> Created:
    """The creation of origin `place` of a model that begins so."""
    its = created.origins[place].created
    later = [*(origin.created.items.features for origin in created.origins[place:]), created.items.features]
    return msgspec.structs.replace(
        its,
        items=msgspec.structs.replace(
            created.items, n_features=its.n_features, features=next(filter(None, later), b"")
        ),
        values=created.values,
        file_marks=created.file_marks,
        origins=created.origins[:place],
    )


def seen_by(event: Event, place: int, created: Created) -> Event:
    """An event of a log that begins with `created` as it is in the log of origin `place`."""
    if event.seq == 1:
        return event._replace(payload=packed(creation_of(created, place)))
    match event.kind:
        case Kind.COPIED:
            body = unpacked(event, Copied)
            if body.origin < place:
                return event
            return seen_by(event._replace(kind=body.kind, payload=body.payload), place, created)
        case Kind.FEEDBACK:
            return event._replace(payload=_earlier_payload(event.payload, place))
        case Kind.WARM_START:
            earlier = with_other_slates(event.payload, lambda payload: _earlier_payload(payload, place))
            return event._replace(payload=earlier)
        case Kind.ITEMS_CHANGED:
            return event._replace(payload=packed(_earlier_items(unpacked(event, ItemsChanged), place)))
    return event


def drawn_by(created: Created, seq: int) -> int | None:
    """The place of the origin that drew the slate of this event; None: the model itself."""
    return next((place for place, origin in enumerate(created.origins) if seq <= origin.upto), None)


def _earlier_items(body: ItemsChanged, place: int) -> ItemsChanged:
    features = _at(body.earlier, place)
    if features is None:
        return body
    return msgspec.structs.replace(
        body,
        n_features=len(features) // (FLOAT_SIZE * len(body.ids)),
        features=features,
        earlier=_below(body.earlier, place),
    )


def _earlier_payload(payload: bytes, place: int) -> bytes:
    try:
        fields = read_feedback(payload).fields
        others, kept = without_origins(fields)
    except (LookupError, ValueError):
        return payload  # Nobody could read it there either.
    head = _at(kept, place)
    if head is None:
        return payload
    return head + with_origins(others, _below(kept, place))


def _at(kept: Mapping[int, T], place: int) -> T | None:
    """What origin `place` has: what the next one that has something else has kept."""
    later = [other for other in kept if other >= place]
    return kept[min(later)] if later else None


def _below(kept: Mapping[int, T], place: int) -> dict[int, T]:
    return {other: its for other, its in kept.items() if other < place}
