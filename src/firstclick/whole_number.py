"""The door for every count: a whole number within its bounds, or a sentence that says why not."""

import operator
from typing import SupportsIndex

from firstclick.errors import InvalidInput


def whole_number(
    name: str, value: SupportsIndex, *, at_least: int, at_most: int | None = None, because: str = ""
) -> int:
    """The value is a plain int from `at_least` to `at_most`; anything else raises InvalidInput.

    True and False are refused: they are ints to Python, but never meant as counts.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InvalidInput(f"{name} must be a whole number, got {value!r}") from None
    if number < at_least:
        raise InvalidInput(f"{name} must be at least {at_least}, got {number}")
    if at_most is not None and number > at_most:
        raise InvalidInput(f"{name} must be at most {at_most}{because}, got {number}")
    return number
