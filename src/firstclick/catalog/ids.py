"""What an item may be called: a text, or a whole number."""

from collections import Counter
from collections.abc import Iterable
from operator import countOf

import numpy as np

from firstclick.errors import InvalidInput
from firstclick.validation.quoting import quoted
from firstclick.validation.whole_number import in_powers

ItemId = str | int

# Room for a UUID as a number. No file could hold any number: Python writes 4,300 digits at most.
LARGEST_ID = 2**128 - 1
IDS = "must be texts or whole numbers"


def item_id(item: object, name: str = "item", rule: str = "must be a text or a whole number") -> ItemId:
    """Return the id as a plain text or int, NumPy's own types included.

    Args:
        item: The id.
        name: The argument that has the id, for the error.
        rule: The rule for the argument, for the error.
    """
    if isinstance(item, str):
        return str(item)
    if not isinstance(item, int | np.integer) or isinstance(item, bool | np.timedelta64):
        raise InvalidInput(f"{rule}, got {quoted(item)}", name)
    if abs(number := int(item)) > LARGEST_ID:
        raise InvalidInput(
            f"must be at most {in_powers(LARGEST_ID)} in size as a whole number, got {quoted(number)}; give "
            "a text",
            name,
        )
    return number


def item_ids(items: Iterable[ItemId], name: str = "items") -> list[ItemId]:
    """The ids as a list, or InvalidInput."""
    ids = ids_to_find(items, name)
    numbers = [item for item in ids if isinstance(item, int)]
    if numbers:
        item_id(min(numbers), name)
        item_id(max(numbers), name)
    return ids


def ids_to_find(items: Iterable[ItemId], name: str = "items") -> list[ItemId]:
    """As `item_ids`, for a lookup: numbers that are too large for an id may be among them. None is found."""
    # A text is iterable too: 'b12' would quietly mean the items 'b', '1' and '2', and bytes mean numbers.
    if isinstance(items, str):
        text = quoted(items)
        raise InvalidInput(f"must be a list of ids, got the text {text}; say [{text}]", name)
    if isinstance(items, bytes | bytearray | memoryview):
        raise InvalidInput(f"must be a list of ids, got bytes, {quoted(items)}; decode them to texts", name)
    try:
        given = list(items)
    except TypeError:
        raise InvalidInput(f"must be a list of ids, got {quoted(items)}", name) from None
    # Ids of one plain type are taken as they are; others are looked at one by one.
    kind = type(given[0]) if given else str
    if kind in (str, int) and countOf(map(type, given), kind) == len(given):
        return given
    return [item_id(item, name, IDS) for item in given]


def new_ids(items: Iterable[ItemId]) -> list[ItemId]:
    """The ids of items to add: at least one, and none of them twice."""
    ids = item_ids(items)
    if not ids:
        raise InvalidInput("must have at least one id, got an empty list", "items")
    if len(set(ids)) < len(ids):
        twice = next(item for item, times in Counter(ids).items() if times > 1)
        raise InvalidInput(f"must be distinct, got {quoted(twice)} twice", "items")
    return ids
