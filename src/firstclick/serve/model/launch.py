"""Who decides the slates of a model, its policy or the list that is shown today, and what came of it: the
baseline with its floor, and the trial. Part of the fold."""

import struct
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.catalog import Catalog
from firstclick.online.baseline import Baseline, Choice, Chosen, n_shown
from firstclick.online.floor import Floor
from firstclick.serve.log.drawn import Assigned, Drawn, read_drawn
from firstclick.serve.log.events import (
    BaselineSet,
    Created,
    Event,
    Kind,
    Recommended,
    TrialArm,
    TrialShares,
    TrialStarted,
    TrialStopped,
    read_feedback,
    time_out_of,
    unpacked,
)
from firstclick.serve.model.trial import ALL, ASKED, BASELINE, MODEL, POLICY, Trial
from firstclick.trials.assignment import Unit

# Slates of which it is remembered who decided them.
LATELY = 200
# Names of arrays in a snapshot.
FLOOR = "launch.floor"
TRIAL = "launch.trial."


class Decision(NamedTuple):
    """Who decides a slate: None stands for no list, and for no trial."""

    chosen: Chosen | None = None
    assigned: Assigned | None = None


THE_POLICY = Decision()


class Launch:
    """What decides whether a slate is the policy's, the list's or another model's; changed by events."""

    def __init__(self, key: np.uint64, created: Created, catalog: Catalog) -> None:
        self._key, self._catalog = key, catalog
        self._copied = created.n_copied  # Slates up to this event were shown by another model.
        self.baseline: Baseline | None = None
        self.since = 1  # The event that the list came with: earlier slates say nothing of it.
        self.file_mark = ""
        self.trial: Trial | None = None
        # Who decided the last slates, for people to look at: no part of what is folded.
        self.lately: deque[str] = deque(maxlen=LATELY)
        # The trials, by id, whose arms learn from the slates of all.
        self._shared: list[int] = []
        if created.baseline is not None:
            self._set_baseline(1, created.baseline)

    @property
    def decides(self) -> bool:
        """Whether anybody but the policy may decide a slate."""
        return self.baseline is not None or self.running is not None

    @property
    def running(self) -> Trial | None:
        """The trial that is running."""
        return self.trial if self.trial is not None and self.trial.runs else None

    def apply(self, event: Event) -> None:
        """One event that is not feedback."""
        match event.kind:
            case Kind.BASELINE:
                self._set_baseline(event.seq, unpacked(event, BaselineSet))
            case Kind.TRIAL_STARTED if self.running is None:  # Else another process was quicker.
                self.trial = Trial(event.seq, event.received, unpacked(event, TrialStarted))
                if self.trial.body.learn_from == ALL:
                    self._shared.append(self.trial.id)
            case Kind.TRIAL_SHARES:
                shares = unpacked(event, TrialShares)
                # Two processes may change them, or one may stop the trial meanwhile.
                if self.running is not None and shares.trial == self.running.id:
                    self.running.change_shares(shares.shares)
            case Kind.TRIAL_STOPPED:
                stopped = unpacked(event, TrialStopped)
                trial = self.trial
                # Who asks decides what is shown, whatever came before.
                if trial and stopped.trial == trial.id and (trial.runs or stopped.why == ASKED):
                    trial.stopped = stopped
            case Kind.RECOMMENDED if self.running is not None:
                self.running.add_recommended(unpacked(event, Recommended))
        if self.trial is not None:
            self.trial.advance(_ms(event.received))

    def _set_baseline(self, seq: int, body: BaselineSet) -> None:
        """Another list, or none. The floor starts anew, unless only what may be lost is another."""
        old = self.baseline
        # A list that came otherwise is newer than the file, which is not to be taken again.
        self.file_mark = body.file_mark or self.file_mark
        if not body.items:
            self.baseline, self.since = None, seq
        elif old is not None and old.items == tuple(body.items):
            old.floor = Floor(body.max_loss, array=old.floor.array)
        else:
            rows = self._catalog.rows_of(body.items)
            self.baseline = Baseline(self._key, body.items, rows, Floor(body.max_loss))
            self.since = seq
            self.lately.clear()

    def decide(
        self, number: int, unit: Unit | None = None, *, out: float = 0.0, replicas: int = 1
    ) -> Decision:
        """Who decides the slate of this number, for this unit. `Floor.share` explains the rest."""
        trial, baseline = self.running, self.baseline
        assigned = None if trial is None else trial.assign(unit, number)
        holdout = trial is not None and assigned is not None and trial.arms[assigned.arm].kind == BASELINE
        if baseline is None:
            # Another process may have removed the list when the trial began: the slate belongs to no arm.
            return Decision(None, None if holdout else assigned)
        if holdout:
            return Decision(Chosen(Choice.HOLDOUT, 0.0), assigned)
        if self.trial is not None and self.trial.stopped is not None and self.trial.stopped.show == BASELINE:
            return Decision(Chosen(Choice.BASELINE, 0.0), assigned)
        return Decision(baseline.choose(number, out=out, replicas=replicas), assigned)

    def taken(self, chosen: Chosen | None) -> float:
        """The part of the floor's room that a slate takes while it is out."""
        if self.baseline is None or chosen is None:
            return 0.0
        return self.baseline.floor.taken(chosen.share)

    def arm_of(self, assigned: Assigned | None) -> TrialArm | None:
        """The arm of the running trial that a slate was assigned to."""
        trial = self.running
        return None if trial is None or assigned is None else trial.arms[assigned.arm]

    def decider(self, drawn: Drawn) -> str:
        """Who decided a slate: policy, floor, holdout or baseline, or the arm that another model decides."""
        if drawn.chosen is not None and not drawn.chosen.by_policy:
            return drawn.chosen.choice.word
        trial, assigned = self.trial, drawn.assigned
        if trial is not None and assigned is not None and assigned.trial == trial.id:
            arm = trial.arms[assigned.arm] if assigned.arm < len(trial.arms) else None
            if arm is not None and arm.kind == MODEL:
                return arm.name
        return POLICY

    def teaches(self, payload: bytes) -> bool:
        """Whether a slate teaches this model's policy: not if another model drew it, for an arm of a trial
        whose arms learn from their own slates. The same whenever it is asked: a slate of an earlier trial may
        be answered, or corrected, late."""
        drawn = None if self.trial is None else _drawn_of(payload)
        if drawn is None or drawn.arm_fields is None or drawn.assigned is None:
            return True
        return drawn.assigned.trial in self._shared

    def observe(self, events: Sequence[Event], clicks: NDArray[np.int64], wait: float) -> None:
        """Feedback, in the order of the log, and the first click of each, -1 for none. A page is counted in a
        trial `wait` seconds after it was recommended."""
        if self.baseline is None and self.trial is None:
            return
        for event, click in zip(events, clicks.tolist(), strict=True):
            if self.trial is not None:
                # At each event: nothing may depend on how many come together.
                self.trial.advance(_ms(event.received))
            drawn, clicked = _drawn_of(event.payload), click >= 0
            if drawn is None or event.seq <= self._copied:
                continue
            chosen = drawn.chosen
            if chosen is not None or drawn.assigned is not None:
                self.lately.append(self.decider(drawn))
            # A slate of an earlier list may be answered late.
            if self.baseline is not None and chosen is not None and drawn.seq >= self.since:
                self.baseline.floor.observe(chosen.share, by_policy=chosen.by_policy, clicked=clicked)
            if self.trial is not None and drawn.assigned is not None:
                issued = _ms(read_feedback(event.payload).issued)
                deadline = issued + _ms(wait)
                self.trial.count(
                    drawn.assigned, clicked, deadline, _ms(event.received),
                    given_up=time_out_of(event.payload) is not None,
                    by_floor=chosen is not None and chosen.choice == Choice.FLOOR,
                )  # fmt: skip

    def correct(self, payload: bytes) -> None:
        """A slate that was taken for one without a click was clicked later."""
        drawn = _drawn_of(payload)
        if self.trial is not None and drawn is not None and drawn.assigned is not None:
            self.trial.correct(drawn.assigned)

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
        """All of it but the arrays."""
        baseline = self.baseline
        return {
            "since": self.since,
            "baseline": baseline and [list(baseline.items), baseline.floor.max_loss],
            "file_mark": self.file_mark,
            "trial": self.trial and self.trial.as_json(),
            "shared": self._shared,
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The numbers of the floor and of the trial."""
        found: dict[str, NDArray[Any]] = {}
        if self.baseline is not None:
            found[FLOOR] = self.baseline.floor.array.copy()
        if self.trial is not None:
            found |= {TRIAL + name: array for name, array in self.trial.arrays().items()}
        return found

    def restore(self, page: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a snapshot; LookupError, TypeError or ValueError if it does not fit."""
        self.baseline, self.trial, self.file_mark = None, None, str(page["file_mark"])
        self._shared = [int(trial) for trial in page["shared"]]
        self.since = int(page["since"])
        if page["baseline"] is not None:
            items, max_loss = page["baseline"]
            self._set_baseline(self.since, BaselineSet(items, max_loss))
            assert self.baseline is not None
            self.baseline.floor = Floor(max_loss, array=arrays[FLOOR])
        if page["trial"] is not None:
            of_trial = {name: array for name, array in arrays.items() if name.startswith(TRIAL)}
            self.trial = Trial.restored(
                page["trial"], {name.removeprefix(TRIAL): array for name, array in of_trial.items()}
            )


def _drawn_of(payload: bytes) -> Drawn | None:
    try:
        return read_drawn(read_feedback(payload).fields)
    except (LookupError, ValueError, struct.error):
        return None


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
