"""How widely the weights of a target spread, as it was known before each slate was drawn.

Intervals for a logger that learned weigh slates by this (evaluation/estimators/intervals.py). They hold for
any numbers that were known before; the nearer to the truth, the narrower they are. So a few points of the
log, and a few slates of the target, are enough.
"""

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.evaluation.targets import Table, Target
from firstclick.logs.ranked_log import RankedLog


class Spread(NamedTuple):
    """The mean squared weight of the first 1, 2, ... items after some events, one a row."""

    events: NDArray[np.int64]  # ascending; the first is before the first slate
    squares: Table  # n x K

    def known_after(self, drawn_from: NDArray[np.int64]) -> Table:
        """As it was known after these events, from which slates were drawn. The events of their feedback
        would be too late: when that comes depends on the outcome, as no click comes with the time-out."""
        at = np.searchsorted(self.events, drawn_from, side="right") - 1
        return self.squares[np.maximum(at, 0)]


class LogWithFold(RankedLog):
    """A log whose logger can be asked what it would have shown at any time."""

    @abstractmethod
    def spread_of(self, target: Target) -> Spread | None:
        """How widely the weights of this target spread; None if the target does not say what it shows."""
