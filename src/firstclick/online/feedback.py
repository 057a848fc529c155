"""What a page tells of a slate: which positions were clicked, and how far the user looked, if it knows."""

import operator
from collections.abc import Iterable
from types import EllipsisType
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.validation.quoting import quoted
from firstclick.validation.whole_number import whole_number


def told(
    size: int,
    click: SupportsIndex | EllipsisType | None,
    clicks: Iterable[SupportsIndex] | None,
    examined: SupportsIndex | None,
    *,
    wants_all: bool,
) -> tuple[NDArray[np.uint8], int | None]:
    """A 1 for each position of a slate of this size that was clicked, and how many were examined.

    Exactly one of `click`, the first, which may be None for no click, and `clicks`, all of them, is given;
    `...` is not given. To a learner that wants all of them the first says nothing of what stands below it.
    """
    if (click is ...) == (clicks is None):
        got = "neither" if clicks is None else "both"
        raise InvalidInput(
            f"give either click, a position or None, or clicks, a list of positions; got {got} of them"
        )
    bits = np.zeros(size, np.uint8)
    if clicks is not None:
        for position in _several(clicks):
            place = _position("each of clicks must be a position", position, size)
            if bits[place]:
                raise InvalidInput(f"clicks must name a position once, got {place} twice")
            bits[place] = 1
    elif click is not None:
        first = _position("click must be a position or None", click, size)
        bits[first] = 1
        if wants_all and examined is None:
            return bits, first + 1
    if examined is None:
        return bits, None
    seen = whole_number("examined", examined, at_least=0, at_most=size, because=", the length of the slate")
    if bits[seen:].any():
        last = int(np.flatnonzero(bits)[-1])
        raise InvalidInput(
            f"position {last} was clicked, so that examined must be at least {last + 1}, got {seen}"
        )
    return bits, seen


def _several(clicks: Iterable[SupportsIndex]) -> list[SupportsIndex]:
    try:
        if isinstance(clicks, str | bytes):
            raise TypeError
        return list(clicks)
    except TypeError:
        raise InvalidInput(f"clicks must be a list of positions, got {quoted(clicks)}") from None


def _position(rule: str, click: SupportsIndex | EllipsisType, size: int) -> int:
    try:
        if isinstance(click, bool | EllipsisType):
            raise TypeError
        position = operator.index(click)
    except TypeError:
        raise InvalidInput(f"{rule}, got {quoted(click)}") from None
    if size == 0:
        raise InvalidInput(f"the slate is empty, so click must be None, got {quoted(position)}")
    if not 0 <= position < size:
        raise InvalidInput(f"click must be a position of the slate, 0 to {size - 1}, got {quoted(position)}")
    return position
