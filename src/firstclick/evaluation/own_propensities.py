"""The log of a model with the probability of every slate, computed from the fold."""

import struct
from collections.abc import Iterator
from itertools import chain

import numpy as np

from firstclick.evaluation.logged_propensities import logged_propensities
from firstclick.evaluation.own_log import OwnLog
from firstclick.files.progress import Progress, silent
from firstclick.logs.ranked_log import RankedLog, SlateBatch
from firstclick.serve.log.drawn import read_drawn
from firstclick.serve.log.events import Kind, read_feedback


class OwnLogWithPropensities(RankedLog):
    """A model's log whose slates have their probabilities; what is asked of the log itself, it answers.

    Slates whose request allowed some items only, or pinned one, have none: the log of a model does not tell
    here what else the request allowed, so that no other policy can be judged on them.
    """

    def __init__(
        self, log: OwnLog, *, relative_error: float = 0.05, jobs: int = 1, seed: int = 0,
        progress: Progress = silent,
    ) -> None:  # fmt: skip
        self._own = log
        self.name, self.items, self.k, self.segments = log.name, log.items, log.k, log.segments
        self.unreported = log.unreported
        found = logged_propensities(
            log.log, log.stored, relative_error=relative_error, jobs=jobs, seed=seed, progress=progress
        )
        restricted = _restricted(log)
        self._chances = {
            slate.seq: slate.propensity.chances
            for slate in found.slates
            if slate.propensity is not None and slate.seq not in restricted
        }
        methods = ", ".join(f"{n:,} {method}" for method, n in sorted(found.methods().items()))
        self.notes = (
            *log.notes,
            f"probabilities of the logged slates from the fold: {methods or 'none'}",
            *(f"{n:,} slates without a probability: {why}" for why, n in sorted(found.reasons().items())),
        )
        if restricted:
            self.notes += (
                f"{len(restricted):,} slates are left out, because their request named candidates, exclude, "
                "pinned or at_most",
            )

    def batches(self, progress: Progress = silent) -> Iterator[SlateBatch]:
        """The slates in the order of their events."""
        for batch in self._own.batches(progress):
            chances = np.full(batch.items.shape, np.nan)
            for row, seq in enumerate(batch.numbers.tolist()):
                if (known := self._chances.get(seq)) is not None and len(known):
                    chances[row] = [*known, *[known[-1]] * (self.k - len(known))]
            yield batch._replace(propensities=chances)
        self.skipped = self._own.skipped


def _restricted(log: OwnLog) -> set[int]:
    """The events of slates whose request did not allow all items."""
    found = set()
    for event in chain.from_iterable(log.log.events(log.stored.id, 0, log.stored.head)):
        if event.kind != Kind.FEEDBACK:
            continue
        try:
            drawn = read_drawn(read_feedback(event.payload).fields)
        except (LookupError, ValueError, struct.error):
            continue
        if drawn is not None and not (
            drawn.candidates is None and drawn.exclude is None and not drawn.pinned and drawn.at_most is None
        ):
            found.add(event.seq)
    return found
