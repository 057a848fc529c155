"""What a slate was drawn from: the end of a token, and of the event that comes of it.

A slate is a function of the state after event `seq`, of the request and of the number in the nonce. Whoever
has the log can therefore draw it again, if the log says which `seq` and which request.

The bytes are fields, each with a tag and its length.
"""

import operator
import struct
import zlib
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from firstclick.online.baseline import Choice, Chosen, reasons
from firstclick.online.explore import Explored

# How many bytes of the nonce of event `seq` are kept, to know a slate that was drawn from a lost history: its
# last ones, because nonces begin with the time.
MARK_SIZE = 4
# The bytes that candidates, exclude, pinned, at_most and features may take in a token and in the log: about
# 1,200 candidates in no order out of a million, or any number that are neighbours in the catalog.
MOST_BYTES = 2048

# Why a slate cannot be drawn again, as people read it. The numbers are stored.
TOO_MANY_CANDIDATES = "too many candidates, or items to exclude, or caps"
TOO_MANY_FEATURES = "the features in the request take too much room"
NOT_RECORDED = "the log does not say what it was drawn from"
REASONS = {1: TOO_MANY_CANDIDATES, 2: TOO_MANY_FEATURES}

# Rows of the catalog, or the name of a list.
Set = NDArray[np.int64] | str


class Tag(IntEnum):
    """The fields. A number is never given a second meaning."""

    SOURCE = 1  # seq, build, mark
    K = 2
    CANDIDATES = 3
    CANDIDATES_LIST = 4
    EXCLUDE = 5
    EXCLUDE_LIST = 6
    PINNED = 7
    AT_MOST = 8
    FEATURES = 9
    EXPLORE = 10
    NOT_EVALUABLE = 11
    CHOICE = 12  # of a model with a baseline: who decided
    TRIAL = 13
    TIMED_OUT = 14  # of an event: nobody reported the slate in time; ms since the epoch when it was given up
    ORIGIN = 15  # of feedback in a copy of a log: the payloads that it had elsewhere, see `copies`
    ARM_FIELDS = 16  # of a slate that another model drew, for an arm of a trial: its own fields


class Assigned(NamedTuple):
    """The trial, the period of it and the arm that a slate belongs to, and the bucket of its unit; None if
    the request named no unit."""

    trial: int
    period: int
    arm: int
    bucket: int | None


class Drawn(NamedTuple):
    """What a slate was drawn from. `k` and the rest are None where the request did not say."""

    seq: int
    mark: bytes  # the last bytes of the nonce of event `seq`
    build: int | None = None  # which of the builds in the log drew it
    k: int | None = None
    candidates: Set | None = None
    exclude: Set | None = None
    pinned: tuple[tuple[int, int], ...] = ()  # position and row
    at_most: Any = None
    features: NDArray[np.float64] | None = None  # of the candidates, in the order of their rows
    explore: Explored | None = None
    not_evaluable: str = ""
    chosen: Chosen | None = None
    assigned: Assigned | None = None
    arm_fields: bytes | None = None  # of the other model that drew the slate, for an arm of a trial

    def packed(self, n_rows: int) -> tuple[bytes, str]:
        """The fields of a slate of a catalog with so many rows, and why it cannot be drawn again, if so."""
        head = _field(Tag.SOURCE, _varint(self.seq) + _varint(_coded(self.build)) + self.mark)
        if self.explore is not None:
            head += _field(Tag.EXPLORE, _packed_explore(self.explore))
        if self.chosen is not None:
            head += _field(Tag.CHOICE, _CHOICE.pack(*self.chosen))
        if self.assigned is not None:
            trial, period, arm, bucket = self.assigned
            head += _field(Tag.TRIAL, b"".join(map(_varint, (trial, period, arm, _coded(bucket)))))
        if self.arm_fields is not None:
            head += _field(Tag.ARM_FIELDS, self.arm_fields)
        request = b"".join(self._request(n_rows))
        if len(request) <= MOST_BYTES:
            features = b""
            if self.features is not None:
                features = _field(Tag.FEATURES, _deflated(self.features.astype("<f8").tobytes()))
            if len(request) + len(features) <= MOST_BYTES:
                return head + request + features, ""
            why = TOO_MANY_FEATURES
        else:
            why = TOO_MANY_CANDIDATES
        code = next(code for code, reason in REASONS.items() if reason == why)
        # Pins are kept: they are the reason of their places.
        return head + _field(Tag.NOT_EVALUABLE, bytes([code])) + self._pins(), why

    def reasons(self, rows: Sequence[int]) -> tuple[str, ...]:
        """Why each of the rows of the slate is in it."""
        explored = self.explore is not None and self.explore.drawn
        return reasons(rows, (row for _, row in self.pinned), self.chosen, explored)

    def _pins(self) -> bytes:
        return _field(Tag.PINNED, b"".join(_PIN.pack(*pin) for pin in self.pinned)) if self.pinned else b""

    def _request(self, n_rows: int) -> Iterator[bytes]:
        if self.k is not None:
            yield _field(Tag.K, _varint(self.k))
        for tag, by_name, rows in (
            (Tag.CANDIDATES, Tag.CANDIDATES_LIST, self.candidates),
            (Tag.EXCLUDE, Tag.EXCLUDE_LIST, self.exclude),
        ):
            if isinstance(rows, str):
                yield _field(by_name, rows.encode())
            elif rows is not None:
                yield _field(tag, pack_rows(rows, n_rows))
        yield self._pins()
        if self.at_most is not None:
            yield _field(Tag.AT_MOST, msgspec.msgpack.encode(self.at_most, enc_hook=operator.index))


_PIN = struct.Struct("<BI")
_EXPLORE = struct.Struct("<?dI")
_CHOICE = struct.Struct("<BdB")
_TIME = struct.Struct("<q")
_TIMED_OUT_HEAD = bytes([Tag.TIMED_OUT, _TIME.size])


def read_drawn(fields: bytes) -> Drawn | None:
    """What the fields say; None if they do not say where the slate was drawn from.

    ValueError, LookupError or struct.error for bytes that are no fields.
    """
    found = dict(_fields(fields))
    source = found.get(Tag.SOURCE)
    if source is None:
        return None
    seq, at = _read_varint(source, 0)
    build, at = _read_varint(source, at)
    features, explore, reason = map(found.get, (Tag.FEATURES, Tag.EXPLORE, Tag.NOT_EVALUABLE))
    return Drawn(
        seq,
        source[at : at + MARK_SIZE],
        build - 1 if build else None,
        _read_varint(found[Tag.K], 0)[0] if Tag.K in found else None,
        _set(found, Tag.CANDIDATES, Tag.CANDIDATES_LIST),
        _set(found, Tag.EXCLUDE, Tag.EXCLUDE_LIST),
        tuple(_PIN.iter_unpack(found.get(Tag.PINNED, b""))),
        msgspec.msgpack.decode(found[Tag.AT_MOST]) if Tag.AT_MOST in found else None,
        None if features is None else np.frombuffer(_inflated(features), "<f8"),
        None if explore is None else _read_explore(explore),
        "" if reason is None else REASONS[reason[0]],
        _read_choice(found[Tag.CHOICE]) if Tag.CHOICE in found else None,
        _read_assigned(found[Tag.TRIAL]) if Tag.TRIAL in found else None,
        found.get(Tag.ARM_FIELDS),
    )


def with_time_out(fields: bytes, given_up_ms: int) -> bytes:
    """The fields of a slate that nobody has reported by this time."""
    return fields + _field(Tag.TIMED_OUT, _TIME.pack(given_up_ms))


def may_be_timed_out(content: bytes) -> bool:
    """Whether bytes that end with fields may end with that one: two bytes tell it of nearly all."""
    return content[-_TIME.size - 2 : -_TIME.size] == _TIMED_OUT_HEAD


def timed_out(fields: bytes) -> int | None:
    """When the slate was taken for one without a click, because nobody had reported it, in ms since the
    epoch; None if somebody did report it."""
    if not may_be_timed_out(fields):
        return None
    try:
        found = dict(_fields(fields)).get(Tag.TIMED_OUT)
        return None if found is None else int(_TIME.unpack(found)[0])
    except (LookupError, ValueError, struct.error):
        return None


def with_origins(fields: bytes, payloads: dict[int, bytes]) -> bytes:
    """The fields, and the payloads that a copied event had elsewhere, if there are any."""
    # First: fields of a slate that timed out are known by their end.
    return (_field(Tag.ORIGIN, msgspec.msgpack.encode(payloads)) if payloads else b"") + fields


def without_origins(fields: bytes) -> tuple[bytes, dict[int, bytes]]:
    """What was put together by `with_origins`; ValueError or LookupError for bytes that are no fields."""
    others, payloads = b"", {}
    for tag, content in _fields(fields):
        if tag == Tag.ORIGIN:
            payloads = msgspec.msgpack.decode(content, type=dict[int, bytes])
        else:
            others += _field(tag, content)
    return others, payloads


def pack_rows(rows: NDArray[np.int64], n_rows: int) -> bytes:
    """Rows of a catalog, in ascending order, as the smaller of them and all others: differences, deflated."""
    listed = len(rows) <= n_rows - len(rows)
    if not listed:
        others = np.ones(n_rows, bool)
        others[rows] = False
        rows = np.flatnonzero(others)
    steps = np.diff(rows, prepend=0)
    size = next(size for size in (1, 2, 4) if not len(steps) or int(steps.max()) < 256**size)
    return bytes([size + 8 * listed]) + _varint(n_rows) + _deflated(steps.astype(f"<u{size}").tobytes())


def unpack_rows(content: bytes) -> NDArray[np.int64]:
    """The rows, in ascending order."""
    n_rows, at = _read_varint(content, 1)
    rows = np.cumsum(np.frombuffer(_inflated(content[at:]), f"<u{content[0] & 7}"), dtype=np.int64)
    if content[0] & 8:
        return rows
    others = np.ones(n_rows, bool)
    others[rows] = False
    return np.flatnonzero(others)


def _deflated(content: bytes) -> bytes:
    """Compressed if that is shorter; the first byte tells."""
    short = zlib.compress(content, 1)
    return b"\1" + short if len(short) < len(content) else b"\0" + content


def _inflated(content: bytes) -> bytes:
    try:
        return zlib.decompress(content[1:]) if content[:1] == b"\1" else content[1:]
    except zlib.error as error:
        raise ValueError(str(error)) from None


def _set(found: dict[int, bytes], tag: Tag, by_name: Tag) -> Set | None:
    if by_name in found:
        return found[by_name].decode()
    return unpack_rows(found[tag]) if tag in found else None


def _packed_explore(explore: Explored) -> bytes:
    among = explore.among
    first = among[0] if among else 0
    head = _EXPLORE.pack(explore.drawn, explore.share, first)
    # Without caps and pins each place has one item less to choose from.
    if among == tuple(range(first, first - len(among), -1)):
        return head + bytes([len(among)])
    return head + b"\0" + struct.pack(f"<{len(among)}I", *among)


def _read_explore(content: bytes) -> Explored:
    drawn, share, first = _EXPLORE.unpack_from(content)
    n, rest = content[_EXPLORE.size], content[_EXPLORE.size + 1 :]
    among = tuple(range(first, first - n, -1)) if n else struct.unpack(f"<{len(rest) // 4}I", rest)
    return Explored(share, drawn, among)


def _read_choice(content: bytes) -> Chosen:
    choice, share, listed = _CHOICE.unpack_from(content)
    return Chosen(Choice(choice), share, listed)


def _read_assigned(content: bytes) -> Assigned:
    trial, at = _read_varint(content, 0)
    period, at = _read_varint(content, at)
    arm, at = _read_varint(content, at)
    bucket, _ = _read_varint(content, at)
    return Assigned(trial, period, arm, bucket - 1 if bucket else None)


def _coded(number: int | None) -> int:
    return 0 if number is None else number + 1


def _field(tag: int, content: bytes) -> bytes:
    return bytes([tag]) + _varint(len(content)) + content


def _fields(content: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(content):
        size, start = _read_varint(content, at + 1)
        if start + size > len(content):
            raise ValueError("a field is cut off")
        yield content[at], content[start : start + size]
        at = start + size


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the highest bit says that more follow."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def _read_varint(content: bytes, at: int) -> tuple[int, int]:
    """The number at this place, and where it ends."""
    number = shift = 0
    while True:
        byte = content[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
