"""Would the policy have shown an item if it had not explored? Slates of a log are asked where they were
drawn."""

from array import array
from collections import Counter

import numpy as np

from firstclick.files.progress import Progress, silent
from firstclick.serve.log.drawn import Drawn
from firstclick.serve.log.events import Event, FeedbackEvent
from firstclick.serve.model.model import Model
from firstclick.serve.model.replay import Log
from firstclick.serve.model.sources import drawers_of, visit_slates
from firstclick.serve.store.store import StoredModel

NO_BEST_SLATE = "drawn by a policy that does not rank by estimates, or has none"


class ExplainedSlates:
    """Of slates of a log, each named by its event: whether the policy would have shown each of the items
    without exploring. A slate of k items takes about 32 + k bytes."""

    def __init__(self, log: Log, stored: StoredModel, after: int = 0, progress: Progress = silent) -> None:
        """The slates in events after this one, each asked of the model that drew it."""
        self.reasons: Counter[str] = Counter()  # why others are not explained
        self._seqs, self._starts, self._told = array("q"), array("q"), bytearray()
        for drawer in drawers_of(log, stored):
            self.reasons += visit_slates(
                drawer, self._ask, after=after, use_snapshots=True, progress=progress
            )
        self._order = np.argsort(np.frombuffer(self._seqs, np.int64))
        self._sorted = np.frombuffer(self._seqs, np.int64)[self._order]

    def __len__(self) -> int:
        return len(self._seqs)

    def of(self, seq: int) -> list[bool] | None:
        """What is known of the slate of this event, an item each; None for nothing."""
        place = int(np.searchsorted(self._sorted, seq))
        if place == len(self._sorted) or self._sorted[place] != seq:
            return None
        at = int(self._order[place])
        stop = self._starts[at + 1] if at + 1 < len(self._starts) else len(self._told)
        return [bool(told) for told in self._told[self._starts[at] : stop]]

    def _ask(self, model: Model, event: Event, said: FeedbackEvent, drawn: Drawn) -> None:
        told = model.explained(drawn, said.context, said.rows)
        if told is None:
            self.reasons[NO_BEST_SLATE] += 1
            return
        self._seqs.append(event.seq)
        self._starts.append(len(self._told))
        self._told += bytes(told)
