"""What a client sends, as JSON: ids, clicks and contexts may be NumPy's own numbers and arrays."""

import msgspec
import numpy as np

from firstclick.errors import InvalidInput
from firstclick.validation.quoting import quoted


def encoded(body: object) -> bytes:
    """The body as JSON, or InvalidInput; whether its values are right, the server says."""
    try:
        return msgspec.json.encode(body, enc_hook=_plain)
    except InvalidInput:
        raise
    except ValueError:  # Python writes 4,300 digits at most.
        raise InvalidInput(
            "a whole number must be at most 2^53 in size to be sent, got one of thousands of digits; if it "
            "is an id, give a text"
        ) from None


def _plain(value: object) -> object:
    # Of dates NumPy would make numbers, and of masked values null.
    array = value if isinstance(value, np.generic | np.ndarray) and not np.ma.is_masked(value) else None
    if array is not None and array.dtype.kind not in "mM":
        return array.tolist()
    raise InvalidInput(
        f"{quoted(value)} is a {type(value).__name__}, which cannot be sent; give a number or a text"
    )
