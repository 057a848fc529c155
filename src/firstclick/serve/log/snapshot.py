"""What a model has learned, as bytes, and back. A cache: whatever is wrong with it, the log is still there.

Magic, length of the page, page (JSON), arrays, SHA-256 of all before. Of the catalog it contains what differs
from the first event.
"""

import hashlib
import json
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import FirstclickError
from firstclick.in_pieces import json_pieces

MAGIC = b"fcsnap01"
_LENGTH = struct.Struct("<I")
_SHA_SIZE = 32


class BadSnapshot(FirstclickError, ValueError):
    """Bytes that are no snapshot, or were damaged."""


def write_snapshot(page: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """The page and the arrays as bytes."""
    listed = [[name, array.dtype.str, array.shape] for name, array in arrays.items()]
    head = "".join(json_pieces(page | {"arrays": listed}, allow_nan=False)).encode()
    parts = [MAGIC, _LENGTH.pack(len(head)), head]
    parts += (np.ascontiguousarray(array).tobytes() for array in arrays.values())
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return b"".join([*parts, digest.digest()])


def read_snapshot(content: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The page and the arrays, or BadSnapshot."""
    body, digest = content[:-_SHA_SIZE], content[-_SHA_SIZE:]
    if not body.startswith(MAGIC) or hashlib.sha256(body).digest() != digest:
        raise BadSnapshot("the snapshot is damaged, or none of ours")
    try:
        (length,) = _LENGTH.unpack_from(body, len(MAGIC))
        at = len(MAGIC) + _LENGTH.size + length
        page = json.loads(body[len(MAGIC) + _LENGTH.size : at])
        if not isinstance(page, dict):
            raise TypeError(page)
        arrays = {}
        for name, dtype, shape in page.pop("arrays"):
            if np.dtype(dtype).hasobject:
                raise ValueError("an array of objects")
            size = np.dtype(dtype).itemsize * int(np.prod(shape, dtype=np.int64))
            # A copy, because an array over bytes is read-only.
            arrays[name] = np.frombuffer(body[at : at + size], dtype).reshape(shape).copy()
            at += size
        if at != len(body):
            raise ValueError("bytes left over")
    except (KeyError, TypeError, ValueError, RecursionError, struct.error):
        raise BadSnapshot("the snapshot's page and arrays do not fit together") from None
    return page, arrays
