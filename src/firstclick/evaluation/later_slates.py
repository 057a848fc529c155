"""The slates of a model's log that were drawn after some event."""

from collections.abc import Iterator

import numpy as np

from firstclick.evaluation.judged_slates import some_slates
from firstclick.files.progress import Progress, silent
from firstclick.logs.ranked_log import RankedLog, SlateBatch


class LaterSlates(RankedLog):
    """Those slates alone that were drawn from this event on: a model frozen there has learned from none.

    A slate that was drawn before and reported after is left out too. Late reports are not like others: a
    slate without a click is reported when its time is over.
    """

    def __init__(self, log: RankedLog, event: int) -> None:
        self._log, self._event = log, event
        self.name, self.items, self.segments, self.k = log.name, log.items, log.segments, log.k

    def batches(self, progress: Progress = silent) -> Iterator[SlateBatch]:
        """Those of the log, in its order, without the slates that were drawn before."""
        for batch in self._log.batches(progress):
            if batch.drawn_from is not None:
                later = some_slates(batch, np.flatnonzero(batch.drawn_from >= self._event))
                if later.n:
                    yield later
