"""A model's log as a file: written and read block by block, so that no log is too long for the memory.

    magic, then blocks. A block: its kind, events in it, those of them that are not feedback, bytes of its
    content as stored and as unpacked; the content, deflated; SHA-256 of all this and of the SHA-256 of the
    block before.

The first block is a page (JSON), the last the number of events and the digest of what they come to. Between
them are the events in columns and, in an archive that does not begin with the creation, what the model knew
before. The sums are chained: a block that is changed, missing or in another place is noticed.
"""

import hashlib
import json
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Any, BinaryIO, NamedTuple

import msgspec
import numpy as np

from firstclick.errors import WorkFailed
from firstclick.serve.log.events import BODY_OF, NONCE_SIZE, Event, Kind, RolledBack, unpacked
from firstclick.wire.errors import Malformed

NAME, FORMAT = b"fcmodel", b"1"
MAGIC = NAME + FORMAT
# Times, rows and lengths get much shorter by the fastest setting; a better one takes several times as long.
LEVEL = 1
_HEAD = struct.Struct("<BIIQQ")
_SHA_SIZE = 32
# One event, such as a catalog, may be large; more than this is a file made to fill the memory.
LARGEST_BLOCK = 1 << 30


class Block(IntEnum):
    """What a block holds."""

    PAGE = 0
    EVENTS = 1
    BASE = 2
    END = 3


class _Found(NamedTuple):
    """A block's head, and its content unless it was passed over."""

    kind: int
    n_events: int
    n_changes: int
    content: bytes | None


def model_file(
    name: str, chunks: Iterator[list[Event]], digest: Callable[[], str], *, first: int = 1, base: bytes = b""
) -> Iterator[bytes]:
    """The file, a block at a time: events from `first` on, what they come to, and `base`, what was known
    before them if the creation is not among them."""
    seal = b""

    def block(kind: Block, content: bytes, n_events: int = 0, n_changes: int = 0) -> bytes:
        nonlocal seal
        packed = zlib.compress(content, LEVEL)
        whole = _HEAD.pack(kind, n_events, n_changes, len(packed), len(content)) + packed
        seal = hashlib.sha256(seal + whole).digest()
        return whole + seal

    yield MAGIC + block(Block.PAGE, json.dumps({"name": name, "first": first}).encode())
    if base:
        yield block(Block.BASE, base)
    following = first
    for events in chunks:
        for event in events:
            if event.seq != following:
                raise WorkFailed(f"{name}: event {following} comes next in the log, and is not there")
            following += 1
        n_changes = sum(event.kind != Kind.FEEDBACK for event in events)
        yield block(Block.EVENTS, _columns(events), len(events), n_changes)
    end = {"events": following - first, "digest": digest()}
    yield block(Block.END, json.dumps(end).encode())


def _columns(events: Sequence[Event]) -> bytes:
    kinds, nonces, payloads = (b"".join(column) for column in zip(
        *((bytes((event.kind,)), event.nonce, event.payload) for event in events), strict=True
    ))  # fmt: skip
    received = np.array([event.received for event in events], "<f8").tobytes()
    lengths = np.array([len(event.payload) for event in events], "<u4").tobytes()
    return b"".join([kinds, received, lengths, nonces, payloads])


class ModelFile:
    """An exported model, or an archive. All of the file is looked at when it is opened: Malformed if it was
    cut off, changed, or is something else."""

    def __init__(self, file: BinaryIO) -> None:
        """`file` can be sought in, and stays open as long as this is used."""
        self._file = file
        self._at_start = file.tell()
        # Where events go back to: few, and wanted before the first event is folded.
        self.rollbacks: list[Event] = []
        self.base = b""
        self._check()

    def _check(self) -> None:
        blocks = self._blocks()
        first = next(blocks, None)
        if first is None:
            raise _cut()
        page = _page(first, Block.PAGE)
        if type(page.get("first")) is not int or page["first"] < 1:
            raise _unfit()
        self.name, self.first = str(page.get("name")), int(page["first"])
        following = self.first
        for found in blocks:
            if found.kind == Block.EVENTS:
                events = _events(found, following, feedback=False)
                _check_changes(events)
                self.rollbacks += [event for event in events if event.kind == Kind.ROLLED_BACK]
                following += found.n_events
            elif found.kind == Block.BASE and following == self.first and found.content is not None:
                self.base = found.content
            else:
                end = _page(found, Block.END)
                if end.get("events") != following - self.first or following == self.first:
                    raise _unfit()
                self.last, self.digest = following - 1, str(end.get("digest"))
                if self._file.read(1) or (self.first > 1) != bool(self.base):
                    raise _unfit()
                return
        raise _cut()

    def events(
        self, after: int = 0, upto: int | None = None, *, feedback: bool = True
    ) -> Iterator[list[Event]]:
        """The events with after < seq <= upto, a block at a time; without `feedback` only the others."""
        upto = self.last if upto is None else min(upto, self.last)
        following = self.first

        def wanted(head: _Found) -> bool:
            last = following + head.n_events - 1
            return head.kind == Block.EVENTS and last > after and (feedback or head.n_changes > 0)

        for found in self._blocks(wanted):
            if following > upto:
                return
            if found.content is not None:
                chunk = _events(found, following, feedback=feedback)
                if following <= after or chunk[-1].seq > upto:
                    chunk = [event for event in chunk if after < event.seq <= upto]
                if chunk:
                    yield chunk
            following += found.n_events

    def _blocks(self, wanted: Callable[[_Found], bool] = lambda head: True) -> Iterator[_Found]:
        """The blocks in order; those that are not wanted are passed over, without their content."""
        file = self._file
        file.seek(self._at_start)
        if (start := file.read(len(MAGIC))) != MAGIC:
            if start.startswith(NAME) and len(start) == len(MAGIC):
                raise Malformed(
                    f"the exported model has format {chr(start[-1])!r}, and this firstclick reads format "
                    f"{FORMAT.decode()!r}; import it with the firstclick that exported it"
                )
            raise Malformed("not an exported model: the file does not begin as one does")
        at, seal = self._at_start + len(MAGIC), b""
        while head := file.read(_HEAD.size):
            if len(head) < _HEAD.size:
                raise _cut()
            kind, n_events, n_changes, size, unpacked_size = _HEAD.unpack(head)
            if max(size, unpacked_size) > LARGEST_BLOCK:
                raise Malformed("not an exported model: a block of it is larger than any can be")
            found = _Found(kind, n_events, n_changes, None)
            at += _HEAD.size + size + _SHA_SIZE
            if wanted(found):
                packed = file.read(size)
                sealed = hashlib.sha256(seal + head + packed).digest()
                seal = file.read(_SHA_SIZE)
                if len(seal) < _SHA_SIZE:
                    raise _cut()
                if seal != sealed:
                    raise Malformed("the file was changed or damaged: a block of it has another checksum")
                found = found._replace(content=_inflated(packed, unpacked_size))
            else:
                file.seek(at - _SHA_SIZE)
                seal = file.read(_SHA_SIZE)
            yield found
            # Who reads two parts of the file at a time has moved on in it.
            file.seek(at)


def _inflated(packed: bytes, size: int) -> bytes:
    try:
        inflating = zlib.decompressobj()
        content = inflating.decompress(packed, size + 1)
    except zlib.error:
        raise _unfit() from None
    if len(content) != size or not inflating.eof or inflating.unused_data:
        raise _unfit()
    return content


def _page(found: _Found, kind: Block) -> dict[str, Any]:
    try:
        page = json.loads(found.content or b"")
    except (ValueError, RecursionError):
        raise _unfit() from None
    if found.kind != kind or not isinstance(page, dict):
        raise _unfit()
    return page


def _events(found: _Found, first: int, *, feedback: bool) -> list[Event]:
    """The events of a block, the first of which has this number."""
    n, content = found.n_events, found.content
    assert content is not None
    fixed = (1 + 8 + 4 + NONCE_SIZE) * n
    if not n or len(content) < fixed:
        raise _unfit()
    kinds = np.frombuffer(content, "<u1", n)
    received = np.frombuffer(content, "<f8", n, n)
    lengths = np.frombuffer(content, "<u4", n, 9 * n).astype(np.int64)
    nonces, payload = content[13 * n : fixed], content[fixed:]
    if np.count_nonzero(kinds != Kind.FEEDBACK) != found.n_changes or lengths.sum() != len(payload):
        raise _unfit()
    if not np.isfinite(received).all() or not set(np.unique(kinds).tolist()) <= {*BODY_OF, Kind.FEEDBACK}:
        raise _unfit()
    # A log begins with its creation, and has no other.
    if np.flatnonzero(kinds == Kind.CREATED).tolist() != ([0] if first == 1 else []):
        raise _unfit()
    ends = np.cumsum(lengths)
    places = np.arange(n) if feedback else np.flatnonzero(kinds != Kind.FEEDBACK)
    return [
        Event(
            first + i,
            kind,
            nonces[i * NONCE_SIZE : (i + 1) * NONCE_SIZE],
            payload[start:end],
            at,
        )
        for i, kind, start, end, at in zip(
            places.tolist(),
            kinds[places].tolist(),
            (ends - lengths)[places].tolist(),
            ends[places].tolist(),
            received[places].tolist(),
            strict=True,
        )
    ]


def _check_changes(events: Sequence[Event]) -> None:
    """What a log goes back to came before."""
    try:
        for event in events:
            if event.kind == Kind.ROLLED_BACK and not 1 <= unpacked(event, RolledBack).to < event.seq:
                raise _unfit()
    except msgspec.MsgspecError:
        raise _unfit() from None


def _unfit() -> Malformed:
    return Malformed("not an exported model: its parts do not fit together")


def _cut() -> Malformed:
    return Malformed("the file was cut off: its end is missing; copy it, or export the model, again")
