"""The baseline of a model as its log says, and what it has cost or gained so far: part of the fold."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.catalog import Catalog
from firstclick.online.baseline import Baseline, Chosen, n_shown
from firstclick.online.floor import Floor
from firstclick.serve.log.drawn import read_drawn
from firstclick.serve.log.events import BaselineSet, Created, Event, read_feedback

FLOOR = "launch.floor"  # the array of a snapshot


class Launch:
    """What decides whether a slate is the policy's or the list's; changed by events alone."""

    def __init__(self, key: np.uint64, created: Created, catalog: Catalog) -> None:
        self._key, self._catalog = key, catalog
        self.baseline: Baseline | None = None
        self.since = 1  # The event that the list came with: earlier slates say nothing of it.
        self.file_mark = ""
        if created.baseline is not None:
            self.set_baseline(1, created.baseline)

    def set_baseline(self, seq: int, body: BaselineSet) -> None:
        """Another list, or none. The floor starts anew, unless only what may be lost is another."""
        old = self.baseline
        self.file_mark = body.file_mark
        if not body.items:
            self.baseline, self.since = None, seq
        elif old is not None and old.items == tuple(body.items):
            old.floor = Floor(body.max_loss, array=old.floor.array)
        else:
            rows = self._catalog.rows_of(body.items)
            self.baseline = Baseline(self._key, body.items, rows, Floor(body.max_loss))
            self.since = seq

    def choose(self, number: int, *, out: float = 0.0, replicas: int = 1) -> Chosen | None:
        """Who decides the slate of this number; None: there is only the policy."""
        return None if self.baseline is None else self.baseline.choose(number, out=out, replicas=replicas)

    def taken(self, chosen: Chosen | None) -> float:
        """The part of the floor's room that a slate takes while it is out."""
        if self.baseline is None or chosen is None:
            return 0.0
        return self.baseline.floor.taken(chosen.share)

    def observe(self, events: Sequence[Event], clicks: NDArray[np.int64]) -> None:
        """Feedback, in the order of the log, and the first click of each, -1 for none."""
        if self.baseline is None:
            return
        for event, click in zip(events, clicks.tolist(), strict=True):
            try:
                drawn = read_drawn(read_feedback(event.payload).fields)
            except (LookupError, ValueError, struct.error):
                continue
            # A slate of an earlier list may be answered late.
            if drawn is not None and drawn.chosen is not None and drawn.seq >= self.since:
                chosen = drawn.chosen
                self.baseline.floor.observe(chosen.share, by_policy=chosen.by_policy, clicked=click >= 0)

    def facts(self) -> dict[str, Any] | None:
        """The list and what became of it, in numbers and sentences; None if there is no list."""
        if self.baseline is None:
            return None
        return {
            "items": list(self.baseline.items),
            "shown": n_shown(self._catalog, self.baseline.rows),
            "since": self.since,
            **self.baseline.floor.report()._asdict(),
        }

    def as_json(self) -> dict[str, Any]:
        """All of it but the numbers of the floor; empty if there never was a list."""
        if self.baseline is None:
            return {"since": self.since} if self.since > 1 else {}
        return {
            "items": list(self.baseline.items),
            "max_loss": self.baseline.floor.max_loss,
            "since": self.since,
            "file_mark": self.file_mark,
        }

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """The numbers of the floor, for a snapshot."""
        return {} if self.baseline is None else {FLOOR: self.baseline.floor.array.copy()}

    def restore(self, page: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a snapshot; LookupError, TypeError or ValueError if it does not fit."""
        self.baseline, self.since = None, int(page.get("since", 1))
        if "items" in page:
            self.set_baseline(self.since, BaselineSet(page["items"], page["max_loss"], page["file_mark"]))
            assert self.baseline is not None
            self.baseline.floor = Floor(page["max_loss"], array=arrays[FLOOR])
