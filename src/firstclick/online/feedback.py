"""The clicks that a page reports for a slate: the rules for rankers, the service and its clients.

The compiled fold of a log (`serve.log.codec`) is the only other place that knows them.
"""

import operator
from collections.abc import Iterable
from itertools import pairwise
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.not_given import NOT_GIVEN, NotGiven
from firstclick.validation.lists import as_list
from firstclick.validation.quoting import quoted
from firstclick.validation.whole_number import whole_number

# In place of a click NOT_GIVEN is nothing said: None says that nothing was clicked.
Click = SupportsIndex | NotGiven | None


def positions_of(click: Click, clicks: Iterable[SupportsIndex] | None) -> list[int]:
    """The positions that were clicked, from the top, each once.

    Exactly one must be given: `click`, the first position (None: no click), or `clicks`, all positions.
    """
    if clicks is None:
        if click is NOT_GIVEN:
            raise InvalidInput(
                "is missing; give it, None (in JSON null) if nothing was clicked, or give clicks, a list of "
                "positions",
                "click",
            )
        return [] if click is None else [_position("must be a position or None", "click", click)]
    if click is not NOT_GIVEN:
        raise InvalidInput("must be left out where clicks is given; give one of them", "click")
    given = as_list("clicks", clicks, "positions")
    found = sorted(_position("must be positions", "clicks", one) for one in given)
    for position, other in pairwise(found):
        if position == other:
            raise InvalidInput(f"must name a position once, got {quoted(position)} twice", "clicks")
    return found


def examined_of(
    size: int, positions: list[int], examined: SupportsIndex | None, *, first_alone: bool, name: str = "click"
) -> int | None:
    """How many positions of a slate of this size were examined; None if the page does not tell.

    `first_alone`: only the first click was reported to a policy that wants all of them, so that nothing is
    known of what stands below it. `name`: the argument that the positions came with.
    """
    if positions and (positions[0] < 0 or positions[-1] >= size):
        outside = positions[0] if positions[0] < 0 else positions[-1]
        if not size:
            raise InvalidInput(f"must be None, because the slate is empty, got {quoted(outside)}", name)
        wanted = "a position" if name == "click" else "positions"
        raise InvalidInput(f"must be {wanted} of the slate, 0 to {size - 1}, got {quoted(outside)}", name)
    if examined is None:
        return positions[0] + 1 if first_alone and positions else None
    seen = whole_number("examined", examined, at_least=0, at_most=size, because=", the length of the slate")
    if positions and positions[-1] >= seen:
        last = positions[-1]
        raise InvalidInput(
            f"must be at least {last + 1}, because position {last} was clicked, got {seen}; or leave it out",
            "examined",
        )
    return seen


def click_bits(
    size: int,
    click: Click,
    clicks: Iterable[SupportsIndex] | None,
    examined: SupportsIndex | None,
    *,
    wants_all: bool,
) -> tuple[NDArray[np.uint8], int | None]:
    """A 1 for each position that was clicked, and how many positions were examined."""
    positions = positions_of(click, clicks)
    name = "click" if clicks is None else "clicks"
    seen = examined_of(size, positions, examined, first_alone=wants_all and clicks is None, name=name)
    bits = np.zeros(size, np.uint8)
    for position in positions:
        bits[position] = 1
    return bits, seen


def _position(rule: str, name: str, click: object) -> int:
    try:
        if isinstance(click, bool):
            raise TypeError
        return operator.index(click)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidInput(f"{rule}, got {quoted(click)}", name) from None
