"""A large JSON body cut into pieces, each of which is decoded by itself.

Decoding holds the interpreter's lock from the first byte to the last: beside a body of 60 MB nobody else
would be answered for a second, whichever thread decodes it. The search for places to cut is compiled and
holds no lock; between two pieces others have their turn.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np

from firstclick.kernels.compiling import shared_kernel
from firstclick.wire.errors import Malformed, TooLarge

# Bytes that are decoded in one go, in about a millisecond; and what one entry may have, which is not cut.
PIECE = 65_536
LARGEST_ENTRY = 1_000_000

_QUOTE, _BACKSLASH, _COMMA = (np.uint8(ord(character)) for character in '"\\,')
_OPEN_LIST, _CLOSE_LIST, _OPEN_OBJECT, _CLOSE_OBJECT = (np.uint8(ord(character)) for character in "[]{}")


class Piece(NamedTuple):
    """Some entries of a list that is a field of the body, as a JSON list."""

    field: str
    content: bytes


class Place(NamedTuple):
    """Where in a body the name of a field is, and where a piece of its list is."""

    name_start: int
    name_end: int
    start: int
    end: int


@shared_kernel
def find_pieces(content, size, pieces):  # type: ignore[no-untyped-def]
    """Fill `pieces` with rows of four places: where the name of a field begins and ends, and where entries of
    its list begin and end, `size` bytes of them at least, unless they are the last ones.

    Only lists of at least `size` bytes are cut, which are fields of the outermost object. Returns how many
    pieces there are, or -1 if brackets or quotes do not match. Whether all is JSON is not looked at.
    """
    depth, found, first, start = 0, 0, 0, 0
    name_start, name_end = 0, 0
    in_text = escaped = of_object = in_list = False
    for at in range(len(content)):
        byte = content[at]
        if in_text:
            if escaped:
                escaped = False
            elif byte == _BACKSLASH:
                escaped = True
            elif byte == _QUOTE:
                in_text = False
                if depth == 1:
                    name_end = at + 1
        elif byte == _QUOTE:
            in_text = True
            if depth == 1:
                name_start = at
        elif byte in (_OPEN_LIST, _OPEN_OBJECT):
            depth += 1
            if depth == 1:
                of_object = byte == _OPEN_OBJECT
            elif depth == 2:
                in_list = of_object and byte == _OPEN_LIST
                first, start = found, at + 1
        elif byte in (_CLOSE_LIST, _CLOSE_OBJECT):
            depth -= 1
            if depth < 0:
                return -1
            if depth == 1 and in_list:
                in_list = False
                if found > first or at - start >= size:
                    pieces[found, 0], pieces[found, 1] = name_start, name_end
                    pieces[found, 2], pieces[found, 3] = start, at
                    found += 1
        elif byte == _COMMA and depth == 2 and in_list and at - start >= size:
            pieces[found, 0], pieces[found, 1] = name_start, name_end
            pieces[found, 2], pieces[found, 3] = start, at
            found += 1
            start = at + 1
    return found if depth == 0 and not in_text else -1


def cut(body: bytes, size: int = PIECE) -> tuple[bytes, Iterator[Piece]]:
    """The body with empty lists in the place of long ones, and the entries of these, in order.

    Malformed if it cannot be cut because it is no JSON; TooLarge if one entry, or all that is no list, is.
    """
    places = np.empty((2 * (len(body) // size) + 2, 4), np.int64)
    n = find_pieces(np.frombuffer(body, np.uint8), size, places)
    if n < 0 and len(body) > LARGEST_ENTRY:
        raise Malformed("the body cannot be read: its brackets or quotes do not match; send one whole object")
    # In what is no JSON there are none: the decoder says what is wrong.
    found = [Place(*row) for row in places[: max(n, 0)].tolist()]
    # Two pieces of one list have only their comma between them.
    goes_on = [False, *(one.end + 1 == other.start for one, other in pairwise(found)), False]
    rest, start = [], 0
    for place, follows in zip(found, goes_on, strict=False):
        if not follows:
            rest.append(body[start : place.start])
        start = place.end
    rest.append(body[start:])
    if max(sum(map(len, rest)), *(place.end - place.start for place in found), 0) > LARGEST_ENTRY + size:
        raise TooLarge(f"one entry of a list may have {LARGEST_ENTRY} bytes, and so may all that is no list")
    pieces = (
        Piece(_name(body[place.name_start : place.name_end]), _entries(body[place.start : place.end], part))
        for place, part in zip(found, map(any, pairwise(goes_on)), strict=False)
    )
    return b"".join(rest), pieces


def warm_up() -> None:
    """Have the kernel compiled now, not while somebody waits."""
    cut(b"{}")


def _entries(text: bytes, part: bool) -> bytes:
    if part and not text.strip():
        raise Malformed("the body cannot be read: a list has a comma with nothing beside it")
    return b"[" + text + b"]"


def _name(text: bytes) -> str:
    try:
        return msgspec.json.decode(text, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Malformed("the body cannot be read: a list must be a field of an object") from None
