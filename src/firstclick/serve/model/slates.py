"""Were the slates in a log drawn as the log says? Every one that can be is drawn again."""

import time
from collections import Counter
from typing import NamedTuple

from firstclick.files.progress import Progress, silent
from firstclick.serve.log.drawn import Drawn
from firstclick.serve.log.events import Event, FeedbackEvent
from firstclick.serve.log.token import number_in
from firstclick.serve.model.build import this_build
from firstclick.serve.model.model import Model
from firstclick.serve.model.replay import Log
from firstclick.serve.model.sources import Drawer, drawers_of, visit_slates
from firstclick.serve.store.store import StoredModel

MOST_TOLD = 10


class SlateAudit(NamedTuple):
    """The slates of a log, drawn again from what they were drawn from.

    Slates that differ are a fault, unless another build made them: another version of firstclick, Numba or
    LLVM, or another processor, may round otherwise.
    """

    name: str
    equal: int
    differing: int
    other_build: int  # they differ, and another build made them
    not_evaluable: dict[str, int]  # by reason
    told: tuple[str, ...]  # a sentence for each of the first that differ
    seconds: float
    # Of a fork: how many of these slates each of the models has drawn that it was copied from.
    by_origin: dict[str, int]


def audit_slates(store: Log, stored: StoredModel, progress: Progress = silent) -> SlateAudit:
    """Draw every slate of a log again that can be, each by the model that drew it."""
    started = time.monotonic()
    outcomes: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    by_origin: Counter[str] = Counter()
    told: list[str] = []
    for drawer in drawers_of(store, stored):
        redraw = _Redraw(drawer)
        reasons += visit_slates(drawer, redraw, progress=progress)
        outcomes += redraw.outcomes
        told += redraw.told
        if drawer.is_origin:
            by_origin[f"{drawer.name} ({drawer.policy})"] += redraw.outcomes.total()
    return SlateAudit(
        stored.name,
        outcomes["equal"],
        outcomes["differs"],
        outcomes["other build"],
        dict(sorted(reasons.items())),
        tuple(told[:MOST_TOLD]),
        time.monotonic() - started,
        dict(by_origin),
    )


class _Redraw:
    """Draws the slates of one model again, and keeps what came of it."""

    def __init__(self, drawer: Drawer) -> None:
        self._drew_it = f"; {drawer.name} drew it" if drawer.is_origin else ""
        self.outcomes: Counter[str] = Counter()
        self.told: list[str] = []

    def __call__(self, model: Model, event: Event, said: FeedbackEvent, drawn: Drawn) -> None:
        rows = tuple(model.redrawn(number_in(event.nonce), drawn, said.context).tolist())
        if rows == said.rows:
            self.outcomes["equal"] += 1
            return
        mine, builds = this_build(type(model.engine.policy)), model.builds
        same = drawn.build is not None and drawn.build < len(builds) and builds[drawn.build] == mine
        self.outcomes["differs" if same else "other build"] += 1
        if same and len(self.told) < MOST_TOLD:
            items = model.catalog.items
            self.told.append(
                f"event {event.seq} shows {[items[row] for row in said.rows]}, and what it was drawn from, "
                f"event {drawn.seq}, gives {[items[row] for row in rows]}{self._drew_it}"
            )
