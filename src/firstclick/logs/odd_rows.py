"""Rows of a log that are not as they should be: counted by reason, with the numbers of the first ones."""

import numpy as np
from numpy.typing import NDArray

from firstclick.files.table import LINES_NAMED, Skipped
from firstclick.kernels.slate_reading import (
    BAD_EXAMINED,
    EMPTY,
    N_CHANCES,
    NO_CHANCE,
    NULL_ITEM,
    OUTSIDE,
    RISING,
    TWICE,
)

UNUSABLE = {
    EMPTY: "without items",
    NULL_ITEM: "with an empty place in the slate",
    TWICE: "with an item twice",
    OUTSIDE: "with a click that is at no position of the slate",
}
DOUBTFUL = {
    NO_CHANCE: "with a propensity that is not above 0 and at most 1; taken as not known",
    RISING: "with propensities that rise from one prefix to the next; taken as not known",
    N_CHANCES: "with more or fewer propensities than items; taken as not known",
    BAD_EXAMINED: "with an `examined` that is negative or above the length of the slate; taken as not told",
}
_ANY_UNUSABLE = EMPTY | NULL_ITEM | TWICE | OUTSIDE


class OddRows:
    """What was wrong in the batches of one walk through a log."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys([*UNUSABLE, *DOUBTFUL], 0)
        self._first: dict[int, list[int]] = {bit: [] for bit in self._counts}

    def note(self, problems: NDArray[np.uint8], numbers: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """Count the problems of slates with these numbers. Which of them are usable; None: all."""
        if not problems.any():
            return None
        unusable = (problems & _ANY_UNUSABLE) > 0
        told = np.zeros(len(problems), np.bool_)
        for bit in self._counts:
            # A slate that is left out is told once, and nothing more of it.
            found = ((problems & bit) > 0) & ~(told if bit in UNUSABLE else unusable)
            told |= found
            n = int(found.sum())
            self._counts[bit] += n
            room = LINES_NAMED - len(self._first[bit])
            if n and room:
                self._first[bit] += numbers[found][:room].tolist()
        return ~unusable if unusable.any() else None

    def told(self, reasons: dict[int, str]) -> tuple[Skipped, ...]:
        """The reasons that there were, of UNUSABLE or of DOUBTFUL."""
        return tuple(
            Skipped(reason, self._counts[bit], tuple(self._first[bit]), "row")
            for bit, reason in reasons.items()
            if self._counts[bit]
        )
