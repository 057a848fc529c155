"""The events of a model's log, and their bytes.

A log is all there is: whoever folds the same events in the same order knows the same, bit for bit.
Feedback, of which there are millions, is packed so that a kernel can read it (`serve.log.codec`); the rest is
MessagePack.
"""

import struct
from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.feature_scale import FeatureScale
from firstclick.catalog.ids import ItemId
from firstclick.catalog.item import Item
from firstclick.in_pieces import array_of
from firstclick.serve.log.drawn import NOT_RECORDED, may_be_timed_out, read_drawn, timed_out

NONCE_SIZE = 16


class Kind(IntEnum):
    """What happened."""

    CREATED = 0
    FEEDBACK = 1
    ITEMS_CHANGED = 2
    ITEMS_WITHDRAWN = 3
    ROLLED_BACK = 4
    AVAILABILITY = 5
    BUILD = 6
    LIST_PUT = 7
    LIST_REMOVED = 8
    SETTINGS = 9
    BASELINE = 10
    WARM_START = 11
    TRIAL_STARTED = 12
    TRIAL_SHARES = 13
    TRIAL_STOPPED = 14
    CORRECTION = 15
    RECOMMENDED = 16
    COPIED = 17


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


class FirstItems(msgspec.Struct, frozen=True, array_like=True):
    """The items that a model begins with."""

    ids: list[ItemId]
    names: list[str]
    groups: list[str]
    n_features: int  # 0 for items without features
    features: bytes  # float64, little-endian, row after row
    # In a copy of a log: the features as a model in `Created.origins` has them, by its place; see `copies`.
    earlier: dict[int, bytes] = {}

    @classmethod
    def of(cls, items: Sequence[Item]) -> "FirstItems":
        """The items, all with name and group, and with equally many features, or none."""
        rows: Any = [item.features for item in items if item.features is not None]
        table = array_of(rows).astype("<f8") if rows else np.empty((len(items), 0), "<f8")
        return cls(
            [item.id for item in items],
            [str(item.name) for item in items],
            [str(item.group) for item in items],
            table.shape[1],
            table.tobytes(),
        )

    def table(self) -> NDArray[np.float64] | None:
        """The features, one row an item, or None."""
        return _table(self)


class ItemsChanged(msgspec.Struct, frozen=True, array_like=True):
    """Items that were added or changed, in this order, and what was sent of each: the rest stays as it is.

    Who sends it does not look at what is there, because another process may change that meanwhile: the fold
    merges. `features` has a row for each item, which a new item gets as it is.
    """

    ids: list[ItemId]
    names: list[str | None]  # None: not sent
    groups: list[str | None]
    available: list[bool | None]
    # All features, none of them, or the inputs of the encoder that were sent, by number.
    sent: list[bool | list[int]]
    n_features: int  # 0 for items without features
    features: bytes  # float64, little-endian, row after row, as the policy sees them
    # As people gave them: for each item the values of the inputs that were sent. Empty without an encoder.
    values: list[list[Any]]
    # How many items were new to who sent it; for each input, how many of these have a level that the encoder
    # does not know, and how many items a cell that it cannot read.
    n_new: int
    unknown: list[int]
    unreadable: list[int]
    # Of items that a catalog file put: a hash of what it said of each. A file that says the same again at the
    # next start puts nothing.
    file_marks: list[str]
    earlier: dict[int, bytes] = {}  # as in `FirstItems`

    def table(self) -> NDArray[np.float64] | None:
        """The features, one row an item, or None."""
        return _table(self)


class Availability(msgspec.Struct, frozen=True):
    """Items that may be shown from now on, and items that may not."""

    on: list[ItemId]
    off: list[ItemId]


class Build(msgspec.Struct, frozen=True):
    """What decides the last bits of a slate, beside the log: a process that draws slates and is of none of
    the builds that the log has so far."""

    firstclick: str  # version, and a hash of the code that folds and draws
    numba: str
    llvmlite: str
    processor: str


class ListPut(msgspec.Struct, frozen=True):
    """A list of items that requests can name."""

    name: str
    items: list[ItemId]


class ListRemoved(msgspec.Struct, frozen=True):
    """A list that is no more."""

    name: str


class SettingsChanged(msgspec.Struct, frozen=True):
    """What may be changed while a model runs."""

    # None: it stays as it was.
    explore: float | None = None  # the share of slates that are drawn uniformly
    no_click_after: float | None = (
        None  # seconds after which a slate that nobody reported had no click; 0: never
    )


class Recommended(msgspec.Struct, frozen=True):
    """How many slates a process has recommended since it last said so."""

    process: str
    since: float  # seconds since the epoch
    slates: dict[int, int]  # by arm


class Correction(msgspec.Struct, frozen=True):
    """A click on a slate that was taken for one without a click, because nobody had reported it in time: what
    that taught is taken back, and the click is learned. A slate is corrected once."""

    seq: int  # the event that is corrected
    counted: float  # when that was received
    feedback: bytes  # the payload of the feedback


class BaselineSet(msgspec.Struct, frozen=True):
    """The list that is shown today, best first, and the share of its clicks that may be lost; no items: there
    is none any more."""

    items: list[ItemId]
    max_loss: float
    file_mark: str = ""  # a hash of the file that it came from: one that says the same again changes nothing


# An item in a head start that has counts in place of slates.
COUNTED_ITEM = np.dtype([("row", "<u4"), ("looks", "<f8"), ("clicks", "<f8")])


class WarmStart(msgspec.Struct, frozen=True):
    """Slates that others have shown, as a head start: see `slate_pack`, `Ranker.warm_start`."""

    weight: float
    slates: int
    sizes: bytes
    content: bytes
    file_mark: str = ""  # a hash of the file that they came from: it is learned once
    # In place of slates: how often items were looked at and clicked, a COUNTED_ITEM each.
    counts: bytes = b""


class TrialArm(msgspec.Struct, frozen=True):
    """Who decides the slates of an arm: this model's policy, its baseline, or another model."""

    name: str
    kind: str  # one of trial.KINDS
    model: str = ""  # the name of that other model
    key: int = 0  # and its key, by which it is told from a later one of this name


class TrialStarted(msgspec.Struct, frozen=True):
    """A trial begins: its arms, and what decides who sees which."""

    arms: list[TrialArm]
    shares: list[float]
    key: bytes  # of the hash that gives each unit its bucket
    learn_from: str  # own: an arm learns from its own slates and from the baseline's; all: from all
    stop_if_worse: bool
    stretch: int  # pages of the second figure

    @property
    def id(self) -> int:
        """By which slates name it. Not the seq: in a store that was set back another trial may have it."""
        return int.from_bytes(self.key[:4], "little")


class TrialShares(msgspec.Struct, frozen=True):
    """Other shares for the arms of a trial: a new period of it begins."""

    trial: int
    shares: list[float]


class TrialStopped(msgspec.Struct, frozen=True):
    """The trial is over; from now on the policy decides every slate, or the baseline."""

    trial: int
    show: str  # policy or baseline
    why: str  # "asked", or "worse"


class Copied(msgspec.Struct, frozen=True, array_like=True):
    """An event of the model that a log was copied from, which means nothing in the copy. It keeps its place,
    because slates and rollbacks name events by their place."""

    origin: int  # whose event it is: the place in `Created.origins`
    kind: int
    payload: bytes


class Origin(msgspec.Struct, frozen=True):
    """The model that the events of a log up to one of them were copied from, and that drew their slates."""

    model: str  # its name
    id: int  # its number in the store; 0 if it came in a file
    upto: int
    # Its creation, but for what is the same in the copy's; see `copies`.
    created: "Created"


class Created(msgspec.Struct, frozen=True):
    """A model begins: its policy, what does not change later, and its first items."""

    policy: str
    settings: dict[str, Any]
    k: int
    seed: int
    n_features: int  # 0 for a catalog without features
    items: FirstItems
    # What is explored, and the version of the policy's arithmetic: stored, so that no later default or label
    # can change them.
    key: int
    version: int
    build: Build
    feature_scale: dict[str, Any] | None = None
    encoder: dict[str, Any] | None = None  # how raw values become features, see `Encoder`
    values: list[list[Any]] = []  # of each item, as people gave them, in the order of the encoder's inputs
    unavailable: list[ItemId] = []
    file_marks: list[str] = []  # as in `ItemsChanged`
    explore: float = 0.0  # as in `SettingsChanged`
    no_click_after: float = 0.0  # as in `SettingsChanged`
    baseline: BaselineSet | None = None
    # The models that earlier events come from, the first one first: `firstclick fork`.
    origins: list[Origin] = []

    @property
    def n_copied(self) -> int:
        """The first so many events come from the log of another model, which drew their slates."""
        return self.origins[-1].upto if self.origins else 0

    def first_features(self) -> NDArray[np.float64]:
        """The features of the first items, without columns if they have none."""
        table = self.items.table()
        return np.empty((len(self.items.ids), 0)) if table is None else table


class ItemsWithdrawn(msgspec.Struct, frozen=True):
    """Items that are not shown any more."""

    ids: list[ItemId]


class RolledBack(msgspec.Struct, frozen=True):
    """What was known after event `to` is known again, and the catalog is that of then; rows given since stay,
    withdrawn. What is available stays as it is, and so do lists and settings."""

    to: int


def _table(items: FirstItems | ItemsChanged) -> NDArray[np.float64] | None:
    if not items.n_features:
        return None
    return np.frombuffer(items.features, "<f8").reshape(len(items.ids), items.n_features)


Body = (
    Created | ItemsWithdrawn | RolledBack | ItemsChanged | Availability
    | Build | ListPut | ListRemoved | SettingsChanged | BaselineSet | WarmStart | Correction | Recommended
    | TrialStarted | TrialShares | TrialStopped | Copied
)  # fmt: skip
BODY_OF: dict[int, type[Body]] = {
    Kind.CREATED: Created,
    Kind.ITEMS_WITHDRAWN: ItemsWithdrawn,
    Kind.ROLLED_BACK: RolledBack,
    Kind.ITEMS_CHANGED: ItemsChanged,
    Kind.AVAILABILITY: Availability,
    Kind.BUILD: Build,
    Kind.LIST_PUT: ListPut,
    Kind.LIST_REMOVED: ListRemoved,
    Kind.SETTINGS: SettingsChanged,
    Kind.BASELINE: BaselineSet,
    Kind.WARM_START: WarmStart,
    Kind.TRIAL_STARTED: TrialStarted,
    Kind.TRIAL_SHARES: TrialShares,
    Kind.TRIAL_STOPPED: TrialStopped,
    Kind.CORRECTION: Correction,
    Kind.RECOMMENDED: Recommended,
    Kind.COPIED: Copied,
}
KIND_OF = {body: kind for kind, body in BODY_OF.items()}
T = TypeVar("T", bound=Body)


def packed(body: Body) -> bytes:
    """The payload of any event but feedback."""
    return msgspec.msgpack.encode(body)


def unpacked(event: Event | NewEvent, expected: type[T]) -> T:
    """The body in a payload; msgspec.DecodeError when the bytes are something else."""
    return msgspec.msgpack.decode(event.payload, type=expected)


# Feedback: the click (-1 for none), when the slate was recommended (ms since the epoch), then the rows.
FEEDBACK_HEAD = struct.Struct("<hq")
NO_CLICK = -1
# In the place of the click: more is told than one click or none, and another head follows. It has the number
# of rows, how many positions were examined (-1 if the page does not tell), and how many numbers the context
# and the features of a row have; then come a bit for each position, the rows, the context and the features.
MORE = -3
# The same, and fields follow: what the slate was drawn from, see `drawn`.
WITH_FIELDS = -4
MORE_HEAD = struct.Struct("<HhHH")
ROW_SIZE, FLOAT_SIZE = 4, 8


class FeedbackEvent(NamedTuple):
    """Which positions of a slate were clicked, and what was known when it was recommended."""

    clicks: tuple[int, ...]  # from the top
    issued: float  # seconds since the epoch
    rows: tuple[int, ...]
    examined: int | None = None  # how many positions from the top, if the page tells
    context: tuple[float, ...] = ()
    features: tuple[tuple[float, ...], ...] = ()  # of each row, where the request brought its own
    fields: bytes = b""  # what the slate was drawn from, see `drawn`

    @property
    def click(self) -> int | None:
        """The first position clicked."""
        return self.clicks[0] if self.clicks else None


def feedback_payload(click: int | None, issued_ms: int, rows: bytes) -> bytes:
    """The payload of feedback; `rows` are 32-bit numbers, little-endian, as they are in a token."""
    return FEEDBACK_HEAD.pack(NO_CLICK if click is None else click, issued_ms) + rows


def full_payload(
    clicks: Collection[int],
    issued_ms: int,
    rows: bytes,
    *,
    examined: int | None = None,
    context: bytes = b"",
    features: bytes = b"",
    fields: bytes = b"",
) -> bytes:
    """The payload of feedback with several clicks, or with more than that; as short as it can be.

    `context` and `features` are 64-bit floats, as they are in a token, and so are the fields.
    """
    if len(clicks) <= 1 and examined is None and not context and not features and not fields:
        return feedback_payload(next(iter(clicks), None), issued_ms, rows)
    n = len(rows) // ROW_SIZE
    bits = np.zeros(n, np.uint8)
    bits[list(clicks)] = 1
    n_columns = len(features) // (FLOAT_SIZE * n) if n else 0
    more = MORE_HEAD.pack(n, -1 if examined is None else examined, len(context) // FLOAT_SIZE, n_columns)
    marks = np.packbits(bits, bitorder="little").tobytes()
    head = FEEDBACK_HEAD.pack(WITH_FIELDS if fields else MORE, issued_ms)
    return head + more + marks + rows + context + features + fields


def issued_ms(payload: bytes) -> int:
    """When the slate of this feedback was recommended, in ms since the epoch; 0 if the payload is none."""
    return int(FEEDBACK_HEAD.unpack_from(payload)[1]) if len(payload) >= FEEDBACK_HEAD.size else 0


def time_out_of(payload: bytes) -> int | None:
    """When a slate without a click was given up, because nobody had reported it, in ms since the epoch; None
    of feedback that somebody did report."""
    # The whole payload ends as its fields do, and most end otherwise: they need not be read.
    if may_be_timed_out(payload):
        try:
            return timed_out(read_feedback(payload).fields)
        except (ValueError, struct.error):
            pass
    return None


def says_the_same(payload: bytes, other: bytes) -> bool:
    """Whether two payloads of feedback tell the same of the same items, whenever and from whatever they were
    drawn: a request may have been answered twice, by two processes."""
    if payload == other:
        return True
    try:
        one, two = read_feedback(payload), read_feedback(other)
    except (ValueError, struct.error):
        return False
    return one._replace(issued=0.0, fields=b"") == two._replace(issued=0.0, fields=b"")


def read_feedback(payload: bytes) -> FeedbackEvent:
    """What a payload of feedback says; ValueError or struct.error if it is none."""
    click, issued = FEEDBACK_HEAD.unpack_from(payload)
    at = FEEDBACK_HEAD.size
    if click not in (MORE, WITH_FIELDS):
        rows = np.frombuffer(payload, "<u4", offset=at)
        return FeedbackEvent(() if click == NO_CLICK else (click,), issued / 1000, tuple(rows.tolist()))
    n, examined, n_context, n_columns = MORE_HEAD.unpack_from(payload, at)
    at += MORE_HEAD.size
    marks = np.frombuffer(payload, np.uint8, -(-n // 8), at)
    rows = np.frombuffer(payload, "<u4", n, at + len(marks))
    at += len(marks) + rows.nbytes
    n_floats = n_context + n * n_columns if click == WITH_FIELDS else -1
    floats = np.frombuffer(payload, "<f8", n_floats, at)
    return FeedbackEvent(
        tuple(np.flatnonzero(np.unpackbits(marks, bitorder="little")).tolist()),
        issued / 1000,
        tuple(rows.tolist()),
        None if examined < 0 else examined,
        tuple(floats[:n_context].tolist()),
        tuple(map(tuple, floats[n_context:].reshape(n, n_columns).tolist())) if n_columns else (),
        payload[at + floats.nbytes :],
    )


class Words(NamedTuple):
    """What it takes to tell a model's events in words."""

    items: Sequence[ItemId]  # the item of every row
    inputs: Sequence[str] = ()  # the columns that people give, of a model with an encoder
    scale: FeatureScale | None = None  # what the model does to features
    wants_all: bool = False  # its policy wants all clicks
    arms: Mapping[int, Sequence[str]] = {}  # the names of the arms of each trial, by its id


def as_json(event: Event, words: Words) -> dict[str, Any]:
    """The event in words, for people and for other programs.

    Features are as people gave them; but for rounding, where a model has no encoder. Where it has one, those
    of a request are told as the encoder made them: `encoded_features`.
    """
    told: dict[str, Any] = {
        "seq": event.seq,
        "kind": Kind(event.kind).name.lower().replace("_", "-"),
        "received": event.received,
        "nonce": event.nonce.hex(),
    }
    if event.kind == Kind.FEEDBACK:
        return told | _feedback_in_words(event.payload, words)
    body = unpacked(event, BODY_OF[event.kind])
    if isinstance(body, ItemsChanged):
        return told | {"items": _changes_in_words(body, words)}
    if isinstance(body, Correction):
        return told | {"corrects": body.seq} | _feedback_in_words(body.feedback, words)
    if isinstance(body, WarmStart):
        if body.counts:
            return told | {"items": len(body.counts) // COUNTED_ITEM.itemsize, "weight": body.weight}
        return told | {"slates": body.slates, "weight": body.weight}
    told |= msgspec.structs.asdict(body)
    if isinstance(body, SettingsChanged):
        told = {word: value for word, value in told.items() if value is not None}
    if isinstance(body, TrialStarted):
        told["trial"] = body.id
        del told["key"]  # With it, whoever knows a unit could find its bucket.
    if isinstance(body, Created):
        told["items"] = _items_in_words(body.items, words.scale)
        told["n_features"] = len(words.scale.names) if words.scale is not None else body.n_features
        if body.encoder is None:
            del told["encoder"]
        else:
            for item, values in zip(told["items"], body.values, strict=True):
                item["features"] = dict(zip(words.inputs, values, strict=True))
        del told["values"], told["file_marks"]
        told["origins"] = [
            {"model": its.model, "id": its.id, "upto": its.upto, "policy": its.created.policy}
            | {"settings": its.created.settings, "version": its.created.version}
            for its in body.origins
        ]
        told["copied"] = body.n_copied
        for word in ("copied", "no_click_after", "baseline", "origins"):
            if not told[word]:
                del told[word]
    return msgspec.to_builtins(told)  # type: ignore[no-any-return]


def _feedback_in_words(payload: bytes, words: Words) -> dict[str, Any]:
    """`click` is the first one; `clicks` are there if there are several, the rest if it was told.

    For a policy that wants all clicks the first one alone is written with what was examined: where that is
    not told, one click is all of them.
    """
    try:
        said = read_feedback(payload)
        shown = [words.items[row] for row in said.rows]
    except (IndexError, ValueError, struct.error):
        # Nobody learned from it either.
        return {"click": None, "issued": None, "items": [], "unreadable": payload.hex()}
    told: dict[str, Any] = {"click": said.click, "issued": said.issued, "items": shown}
    if len(said.clicks) > 1 or (words.wants_all and said.examined is None):
        told["clicks"] = list(said.clicks)
    if said.examined is not None:
        told["examined"] = said.examined
    if said.context:
        told["context"] = list(said.context)
    if said.features:
        word = "encoded_features" if words.inputs else "features"
        told[word] = _as_given(np.array(said.features), words.scale)
    if (given_up := timed_out(said.fields)) is not None:
        told["timed_out"] = given_up / 1000
    return told | _source_in_words(said, words)


def _source_in_words(said: FeedbackEvent, words: Words) -> dict[str, Any]:
    """What the slate was drawn from, and what the request allowed."""
    try:
        drawn = read_drawn(said.fields)
    except (LookupError, ValueError, struct.error):
        drawn = None
    if drawn is None:
        return {"not_evaluable": NOT_RECORDED}
    told: dict[str, Any] = {"drawn_from": drawn.seq, "build": drawn.build, "k": drawn.k}
    for word, rows in (("candidates", drawn.candidates), ("exclude", drawn.exclude)):
        told[word] = rows if isinstance(rows, str | None) else [words.items[row] for row in rows.tolist()]
    told["pinned"] = {str(place): words.items[row] for place, row in drawn.pinned} or None
    told["at_most"] = drawn.at_most
    if drawn.explore is not None:
        told["explored"] = drawn.explore.drawn
        told["explore"] = drawn.explore.share
        told["explore_propensities"] = drawn.explore.propensities()
    if drawn.assigned is not None:
        told |= drawn.assigned._asdict()
        names = words.arms.get(drawn.assigned.trial, ())
        told["arm_name"] = names[drawn.assigned.arm] if drawn.assigned.arm < len(names) else None
    if drawn.chosen is not None:
        told["choice"] = drawn.chosen.choice.word
        told["policy_share"] = drawn.chosen.share
    why = drawn.reasons(said.rows)
    told["reasons"] = list(why) if set(why) - {"policy"} else None
    told["not_evaluable"] = drawn.not_evaluable or None
    return {word: value for word, value in told.items() if value is not None}


def _as_given(table: NDArray[np.float64], scale: FeatureScale | None) -> list[list[float]]:
    given: list[list[float]] = (table if scale is None else scale.undo(table)).tolist()
    return given


def _items_in_words(body: FirstItems, scale: FeatureScale | None) -> list[dict[str, Any]]:
    table = body.table()
    rows = None if table is None else _as_given(table, scale)
    return [
        {"id": item, "name": name, "group": group} | ({} if rows is None else {"features": rows[row]})
        for row, (item, name, group) in enumerate(zip(body.ids, body.names, body.groups, strict=True))
    ]


def _changes_in_words(body: ItemsChanged, words: Words) -> list[dict[str, Any]]:
    """What was sent of each item."""
    table = body.table()
    rows = [] if table is None or words.inputs else _as_given(table, words.scale)
    told = []
    for place, item in enumerate(body.ids):
        sent = body.sent[place]
        line: dict[str, Any] = {"id": item}
        for word, values in (("name", body.names), ("group", body.groups), ("available", body.available)):
            if values[place] is not None:
                line[word] = values[place]
        if words.inputs and sent:
            names = words.inputs if sent is True else [words.inputs[one] for one in sent]
            line["features"] = dict(zip(names, body.values[place], strict=True))
        elif rows and sent:
            line["features"] = rows[place]
        told.append(line)
    return told
