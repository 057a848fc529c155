"""How an error message shows a value: short, and never a second error."""

from math import log10

import numpy as np

LONGEST = 80


def quoted(value: object, longest: int = LONGEST) -> str:
    """The value as Python writes it, cut after `longest` characters; of a huge whole number its length.

    >>> quoted("tea")
    "'tea'"
    >>> quoted(10**5000)
    'a whole number of about 5,001 digits'
    """
    number = isinstance(value, np.number) and not isinstance(value, np.timedelta64)
    plain = value.item() if number else value  # type: ignore[attr-defined]
    if isinstance(plain, int) and plain.bit_length() > 3.3 * longest:
        # Python does not write numbers of more than 4,300 digits, and nobody reads them.
        sign = "negative " if plain < 0 else ""
        return f"a {sign}whole number of about {int(log10(abs(plain))) + 1:,} digits"
    try:
        text = repr(plain)
    except Exception:  # Such a number may be part of a list; and any class may write itself wrongly.
        return f"a value of type {type(plain).__name__} that cannot be printed"
    text = " ".join(text.split()) if "\n" in text else text
    return text if len(text) <= longest else f"{text[:longest]}..."
