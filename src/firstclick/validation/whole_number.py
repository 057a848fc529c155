"""The door for every count: a whole number within its bounds, or a sentence that says why not."""

import operator
from typing import SupportsIndex

from firstclick.errors import InvalidInput
from firstclick.validation.quoting import quoted

# Arrays and kernels count in 64 bits, with a sign.
LARGEST_COUNT = 2**63 - 1
# A seed is hashed, and may be a hash itself.
LARGEST_SEED = 2**256 - 1


def whole_number(
    name: str,
    value: SupportsIndex,
    *,
    at_least: int,
    at_most: int | None = LARGEST_COUNT,
    because: str = "",
) -> int:
    """The value is a plain int from `at_least` to `at_most`; anything else raises InvalidInput.

    None is no limit, for what is compared and never kept.
    True and False are refused: they are ints to Python, but never meant as counts.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InvalidInput(f"must be a whole number, got {quoted(value)}", name) from None
    if number < at_least:
        raise InvalidInput(f"must be at least {at_least}, got {quoted(number)}", name)
    if at_most is not None and number > at_most:
        limit = f"{in_powers(at_most)}{because}"
        raise InvalidInput(f"must be at most {limit}, got {quoted(number)}", name)
    return number


def in_powers(limit: int) -> str:
    """A limit as people read it: 2^63 - 1, not 19 digits.

    >>> in_powers(255), in_powers(2**63 - 1), in_powers(2**53)
    ('255', '2^63 - 1', '2^53')
    """
    if limit >= 2**53:
        if limit & (limit - 1) == 0:
            return f"2^{limit.bit_length() - 1}"
        if limit & (limit + 1) == 0:
            return f"2^{limit.bit_length()} - 1"
    return str(limit)


def seed_number(seed: SupportsIndex) -> int:
    """The seed as a plain int; InvalidInput if it is none, is negative, or has more than 256 bits."""
    return whole_number("seed", seed, at_least=0, at_most=LARGEST_SEED)
