"""The check of every list: what can be iterated, but is not a text, bytes or a mapping."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from firstclick.errors import InvalidInput
from firstclick.validation.quoting import quoted

T = TypeVar("T")
NOT_LISTS = (str, bytes, bytearray, memoryview, Mapping)


def as_list(name: str, given: Iterable[T], of: str) -> list[T]:
    """Return the values of an iterable; `name` is the argument, and `of` names the values in the error.

    >>> as_list("clicks", range(3), "positions")
    [0, 1, 2]

    Raises:
        InvalidInput: It cannot be iterated, or is a text, bytes or a mapping, whose parts are other things.
    """
    if not isinstance(given, NOT_LISTS):
        try:
            return list(given)
        except TypeError:
            pass
    raise InvalidInput(f"must be a list of {of}, got {quoted(given)}", name)
