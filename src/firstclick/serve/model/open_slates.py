"""Slates that were recommended here and whose outcome is not known yet: in memory, of one model."""

import struct
import threading
from itertools import islice
from typing import NamedTuple

from firstclick.serve.log.events import ROW_SIZE

# A slate of six items takes about 300 bytes here. With long contexts or features the bytes are the limit.
MOST_SLATES = 200_000
MOST_BYTES = 100_000_000
# What a slate takes beside its own bytes.
OVERHEAD = 250


class OpenSlate(NamedTuple):
    """What a slate's token says, as far as an event without a click needs it."""

    nonce: bytes
    issued_ms: int
    rows: bytes
    context: bytes
    features: bytes
    fields: bytes

    def row_numbers(self) -> tuple[int, ...]:
        """The rows as numbers."""
        return struct.unpack(f"<{len(self.rows) // ROW_SIZE}I", self.rows)


# In plain tuples, which Python's garbage collector soon stops looking at: issued, rows, context, features,
# fields, excess.
_Kept = tuple[int, bytes, bytes, bytes, bytes, float]


class OpenSlates:
    """The open slates of a model, oldest first. Safe for use by several threads.

    A slate leaves when its feedback is folded, by whichever process it came, or when its time has passed.
    There is a limit; beyond it the oldest are `lost`, and teach nothing. `excess` is the sum of what slates
    were given as theirs.

    >>> slates = OpenSlates()
    >>> slates.add(b"n1", 1_000, bytes(4), excess=0.5)
    >>> slates.add(b"n2", 2_000, bytes(4))
    >>> len(slates), slates.excess
    (2, 0.5)
    >>> [slate.nonce for slate in slates.due(1_500, most=10)]
    [b'n1']
    >>> slates.answered(b"n1")
    >>> len(slates), slates.excess
    (1, 0.0)
    """

    def __init__(self, most: int = MOST_SLATES, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._slates: dict[bytes, _Kept] = {}  # in the order in which they were recommended
        self._bytes = 0
        self._excess = 0.0
        self._lock = threading.Lock()
        self.lost = 0

    def __len__(self) -> int:
        return len(self._slates)

    def add(
        self,
        nonce: bytes,
        issued_ms: int,
        rows: bytes,
        context: bytes = b"",
        features: bytes = b"",
        fields: bytes = b"",
        *,
        excess: float = 0.0,
    ) -> None:
        """A slate that was recommended now."""
        kept = (issued_ms, rows, context, features, fields, excess)
        with self._lock:
            if nonce in self._slates:
                self._remove(nonce)
            self._slates[nonce] = kept
            self._bytes += _size(kept)
            self._excess += excess
            while len(self._slates) > self._most or self._bytes > self._most_bytes:
                self._remove(next(iter(self._slates)))
                self.lost += 1

    def answered(self, *nonces: bytes) -> None:
        """What became of these slates is known, or will not be waited for; others are passed over."""
        with self._lock:
            for nonce in nonces:
                if nonce in self._slates:
                    self._remove(nonce)

    def due(self, issued_before_ms: float, most: int) -> list[OpenSlate]:
        """The oldest slates, if they were recommended before this time. They stay until `answered`."""
        with self._lock:
            found = []
            for nonce, (issued, rows, context, features, fields, _) in islice(self._slates.items(), most):
                if issued > issued_before_ms:
                    break
                found.append(OpenSlate(nonce, issued, rows, context, features, fields))
            return found

    @property
    def excess(self) -> float:
        """The sum over the slates that are open."""
        return self._excess

    def _remove(self, nonce: bytes) -> None:
        kept = self._slates.pop(nonce)
        self._bytes -= _size(kept)
        # Rounding does not add up: without slates the sum is 0.
        self._excess = self._excess - kept[5] if self._slates else 0.0


def _size(kept: _Kept) -> int:
    return OVERHEAD + len(kept[1]) + len(kept[2]) + len(kept[3]) + len(kept[4])
