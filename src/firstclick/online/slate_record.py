"""Which slates a ranker has shown and which of them it has forgotten, in one bit a slate.

The slates of a ranker are numbered. One that was shown and does not wait was learned or forgotten. Slates are
forgotten only while more than `max_pending` wait, so that for most rankers there is nothing to keep.
"""

from collections.abc import Mapping
from enum import Enum

# How far back it is recorded which slates were forgotten: 125 kB at most.
MOST_RECORDED = 1_000_000
# Of this many runs, the last ones, it is known how far each counted.
MOST_RUNS = 50


class Fate(Enum):
    """What became of a slate that does not wait for feedback."""

    LEARNED = "learned"
    FORGOTTEN = "forgotten"
    TOO_OLD = "learned or forgotten, too long ago to know which"
    NEVER_SHOWN = "never shown by this ranker"


class SlateRecord:
    """The slates of one ranker. `runs` tells how far each of its runs counted them.

    From number `first` on, bit i of `forgotten` says whether slate `first + i` was forgotten.
    """

    def __init__(
        self, runs: Mapping[str, int] | None = None, first: int = 0, forgotten: bytes | bytearray = b""
    ) -> None:
        self.runs = dict(runs or {})
        self.first = first
        self.forgotten = bytearray(forgotten)

    def copy(self) -> "SlateRecord":
        """The same, to go on with separately."""
        return SlateRecord(self.runs, self.first, self.forgotten)

    def count(self, run: str, shown: int) -> None:
        """This run has counted so far, and is the last one."""
        self.runs.pop(run, None)
        self.runs[run] = shown
        for oldest in list(self.runs)[:-MOST_RUNS]:
            del self.runs[oldest]

    def forget(self, number: int) -> None:
        """This slate, which waited, is forgotten."""
        if number - self.first >= MOST_RECORDED:
            # Half of the room is made free at once: this is rarely done.
            dropped = (number - self.first - MOST_RECORDED // 2) // 8
            del self.forgotten[:dropped]
            self.first += 8 * dropped
        if number < self.first:
            return
        byte, bit = divmod(number - self.first, 8)
        if byte >= len(self.forgotten):
            self.forgotten.extend(bytes(byte + 1 - len(self.forgotten)))
        self.forgotten[byte] |= 1 << bit

    def fate(self, run: str, number: int) -> Fate:
        """What became of this slate of this run, which does not wait."""
        if number >= self.runs.get(run, 0):
            return Fate.NEVER_SHOWN
        if number < self.first:
            return Fate.TOO_OLD
        byte, bit = divmod(number - self.first, 8)
        known = byte < len(self.forgotten) and self.forgotten[byte] >> bit & 1
        return Fate.FORGOTTEN if known else Fate.LEARNED


def parts_of(slate_id: str) -> tuple[int, str, int] | None:
    """The key of the ranker, the run and the number in the id of a slate; None if it is none."""
    parts = slate_id.split("-")
    if len(parts) != 3 or len(parts[0]) != 16:
        return None
    key, run, number = parts
    if not number.isascii() or not number.isdecimal() or len(number) > 20:
        return None
    try:
        return int(key, 16), run, int(number)
    except ValueError:
        return None
