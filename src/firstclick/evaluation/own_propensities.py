"""The log of a model with the probability of every slate, computed from the fold."""

import struct
from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from firstclick.evaluation.logged_propensities import logged_propensities
from firstclick.evaluation.own_log import OwnLog
from firstclick.evaluation.propensities.places import uniform_chances
from firstclick.evaluation.propensities.slate_propensity import slate_propensity
from firstclick.evaluation.spread import LogWithFold, Spread
from firstclick.evaluation.targets import Places, Target, plain_batch
from firstclick.files.progress import Progress, silent
from firstclick.kernels.arrays import NO_LIMITS
from firstclick.logs.ranked_log import SlateBatch
from firstclick.online.request import RowRequest, request_of_rows
from firstclick.serve.log.drawn import read_drawn
from firstclick.serve.log.events import Kind, read_feedback
from firstclick.serve.model.model import Model
from firstclick.serve.model.replay import Log, catch_up, recover
from firstclick.serve.store.store import StoredModel

# Points of the log at which the logger is asked what it would show, and slates of the target it is asked of.
POINTS, EXAMPLES = 50, 8
ROUGH = 0.2
# What is less likely counts as this: slates of a logger that has given up would else count nothing at all.
LEAST = 1e-6


class OwnLogWithPropensities(LogWithFold):
    """A model's log whose slates have their probabilities; what is asked of the log itself, it answers.

    Slates whose request allowed some items only, or pinned one, have none: the log of a model does not tell
    here what else the request allowed, so that no other policy can be judged on them.
    """

    def __init__(
        self, log: OwnLog, *, relative_error: float = 0.05, jobs: int = 1, seed: int = 0,
        progress: Progress = silent,
    ) -> None:  # fmt: skip
        self._own, self._seed = log, seed
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

    def has_events_of(self, log: Log, stored: StoredModel) -> bool:
        """As `OwnLog.has_events_of`."""
        return self._own.has_events_of(log, stored)

    def batches(self, progress: Progress = silent) -> Iterator[SlateBatch]:
        """The slates in the order of their events."""
        for batch in self._own.batches(progress):
            chances = np.full(batch.items.shape, np.nan)
            for row, seq in enumerate(batch.numbers.tolist()):
                if (known := self._chances.get(seq)) is not None and len(known):
                    chances[row] = [*known, *[known[-1]] * (self.k - len(known))]
            yield batch._replace(propensities=chances)
        self.skipped = self._own.skipped

    def spread_of(self, target: Target) -> Spread | None:
        """From the policy and its uniform share at some events; a baseline or a trial is passed over."""
        examples = target.examples(EXAMPLES)
        if examples is None:
            return None
        wanted = target.prefix_chances(plain_batch(examples))
        log, stored = self._own.log, self._own.stored
        first = 1 if (base := log.base(stored.id)) is None else base.seq
        events = np.unique(np.linspace(first, stored.head, POINTS, endpoint=False).astype(np.int64))
        model = recover(log, stored._replace(head=int(events[0])))
        squares = np.empty((len(events), self.k))
        for row, event in enumerate(events.tolist()):
            if event > model.seq:
                catch_up(log, model, event)
            logged = np.array([self._chances_now(model, slate) for slate in examples])
            squares[row] = (wanted / np.maximum(logged, LEAST)).mean(axis=0)
        return Spread(events, squares)

    def _chances_now(self, model: Model, slate: Places) -> NDArray[np.float64]:
        """How likely the model shows the first 1, 2, ... items of a slate."""
        engine, k = model.engine, self.k
        ids = [self.items[place] for place in slate.tolist() if place >= 0]
        rows = [engine.catalog.row_of(item) for item in ids]
        if not rows or any(row is None or not engine.catalog.is_shown(row) for row in rows):
            return np.zeros(k)
        asked = request_of_rows(
            engine, RowRequest(len(rows), None, (), {}, None, NO_LIMITS.context, NO_LIMITS.features)
        )
        known = np.array(rows, np.int64)
        found = slate_propensity(engine, asked, known, relative_error=ROUGH, seed=self._seed).chances
        share = model.explorer.share
        if share:
            uniform = uniform_chances(asked, len(engine.catalog.items), known)
            found = share * uniform + (1 - share) * found
        return np.append(found, [found[-1]] * (k - len(found)))


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
