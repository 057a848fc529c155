"""How often a slate has other items than the one that the policy holds for best."""

import time
from collections import deque

import numpy as np
from numpy.typing import NDArray

from firstclick.serve.model.model import Model

REMEMBERED = 1000
# To find the best slate every item is looked at: not more often than this, nor for more of the time.
SHARE = 0.01
SELDOM = 1.0
# With so many items it takes some milliseconds: not while somebody waits for a slate.
MANY_ITEMS = 5000
# Of so many slates one is compared: that is enough to know the share, and costs the others nothing.
ONE_IN = 4


class Exploration:
    """The last slates, each compared with the best one as of a moment ago."""

    def __init__(self) -> None:
        self._differs: deque[bool] = deque(maxlen=REMEMBERED)
        self._best = b""
        self._next = 0.0
        self._seen = -1
        self._is_due = False

    def note(self, model: Model, rows: NDArray[np.int64]) -> None:
        """A slate that nothing was asked of; one in some is looked at."""
        self._seen += 1
        if self._seen % ONE_IN or not model.engine.policy.best_by_estimates:
            return
        now = time.monotonic()
        if now >= self._next:
            self._is_due = True
            if len(model.catalog.items) < MANY_ITEMS:
                self.look_if_due(model)
        if self._best:
            self._differs.append(_as_set(rows) != self._best)

    def look_if_due(self, model: Model) -> None:
        """Find the best slate, if slates were shown since it was found."""
        if self._is_due:
            self._is_due = False
            started = time.monotonic()
            self._best = _as_set(model.best_rows(model.k))
            self._next = started + max(SELDOM, (time.monotonic() - started) / SHARE)

    def share(self) -> tuple[float, int] | None:
        """The share of slates that differ, and of how many; None if nothing is known."""
        seen = list(self._differs)
        return (sum(seen) / len(seen), len(seen)) if seen else None


def _as_set(rows: NDArray[np.int64]) -> bytes:
    # Without their order: where two items are held for nearly equal, that tells of chance alone.
    return np.sort(rows).tobytes()
