"""Many slates in one event: feedback as `events` packs it, one after another, compressed."""

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Of the slates before they are compressed: some millions of them. They are in memory as a whole when they
# are learned.
MOST_BYTES = 256_000_000
# And after: what a store takes as one event without trouble.
MOST_PACKED = 64_000_000
_SIZE = struct.Struct("<I")


class TooManySlates(ValueError):
    """More than one event may hold."""


class Packed(NamedTuple):
    """Payloads of feedback, compressed: how long each is, four bytes each, and all of them."""

    slates: int
    sizes: bytes
    content: bytes


def pack(payloads: Iterable[bytes]) -> Packed:
    """The payloads, read as they come; TooManySlates when there is no room for one."""
    sizes, content = zlib.compressobj(), zlib.compressobj()
    size_pieces, pieces = [], []
    slates = total = packed = 0
    for payload in payloads:
        total += len(payload)
        size_pieces.append(sizes.compress(_SIZE.pack(len(payload))))
        pieces.append(content.compress(payload))
        packed += len(pieces[-1])
        if total > MOST_BYTES or packed > MOST_PACKED:
            raise TooManySlates(
                f"one warm start may hold {MOST_BYTES // 1_000_000} MB of slates, {MOST_PACKED // 1_000_000} "
                f"MB compressed; the first {slates:,} fit: give the log in several parts"
            )
        slates += 1
    return Packed(
        slates,
        b"".join([*size_pieces, sizes.flush()]),
        b"".join([*pieces, content.flush()]),
    )


def unpack(sizes: bytes, content: bytes) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The payloads one after another, and where each ends; ValueError if these are none."""
    try:
        lengths = np.frombuffer(_inflated(sizes, MOST_BYTES), "<u4")
        joined = np.frombuffer(bytearray(_inflated(content, MOST_BYTES)), np.uint8)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    ends = np.cumsum(lengths, dtype=np.int64)
    if len(joined) != (ends[-1] if len(ends) else 0):
        raise ValueError("the sizes are not those of the slates")
    return joined, ends


def each_payload(content: NDArray[np.uint8], ends: NDArray[np.int64]) -> Iterator[bytes]:
    """The payloads one by one."""
    joined, start = content.tobytes(), 0
    for end in ends.tolist():
        yield joined[start:end]
        start = end


def _inflated(packed: bytes, most: int) -> bytes:
    reader = zlib.decompressobj()
    content = reader.decompress(packed, most)
    if reader.unconsumed_tail or not reader.eof:
        raise ValueError("more than an event may hold, or cut off")
    return content
