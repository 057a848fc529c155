"""A trial as the log of a model says: who sees which arm, and what was clicked. Part of the fold."""

import heapq
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.hashing import uniform
from firstclick.serve.log.drawn import Assigned
from firstclick.serve.log.events import Recommended, TrialArm, TrialStarted, TrialStopped
from firstclick.streams import stream_key
from firstclick.trials.assignment import Unit, arm_of_draw, bucket_of
from firstclick.trials.tally import MOST_PERIODS, Tally

POLICY, BASELINE, MODEL = KINDS = ("policy", "baseline", "model")
OWN, ALL = LEARN_FROM = ("own", "all")
ASKED, WORSE = ("asked", "worse")  # why a trial was stopped
WAITING = "waiting"


class Trial:
    """A trial from its start on, running or stopped; changed by events alone."""

    def __init__(self, seq: int, started: float, body: TrialStarted) -> None:
        self.seq = seq
        self.started = started  # seconds since the epoch
        self.body = body
        self.id = body.id
        self.tally = Tally(body.shares, body.stretch)
        self.stopped: TrialStopped | None = None
        # Slates that processes say they have recommended, by arm.
        self.recommended = [0] * len(body.arms)
        # Slates that a page has reported, by arm: not those that were given up.
        self.reported = [0] * len(body.arms)
        # Slates whose outcome is known, and of these those that the arm decided itself: on others the floor
        # showed the list.
        self.known = [0] * len(body.arms)
        self.decided = [0] * len(body.arms)
        # Pages that are reported, and not counted before their time has passed: else clicks, which come
        # early, would be counted before pages without a click. Deadline in ms, and what to count.
        self._waiting: list[tuple[int, int, int, int, int]] = []
        self._draw_key = stream_key(self.id, "trial")

    @property
    def arms(self) -> list[TrialArm]:
        return self.body.arms

    @property
    def runs(self) -> bool:
        return self.stopped is None

    @property
    def n_waiting(self) -> int:
        """Pages that are reported and not counted yet."""
        return len(self._waiting)

    def assign(self, unit: Unit | None, number: int) -> Assigned:
        """The arm of a request, by its unit or, without one, by its number."""
        if unit is None:
            arm = arm_of_draw(float(uniform(self._draw_key, np.uint64(number))), self.tally.owner)
            return Assigned(self.id, self.tally.period, arm, None)
        bucket = bucket_of(unit, self.body.key)
        return Assigned(self.id, self.tally.period, int(self.tally.owner[bucket]), bucket)

    def change_shares(self, shares: Sequence[float]) -> None:
        """Start a new period, unless there are as many as there may be: two processes may have been at it."""
        if self.may_change:
            self.tally.change_shares(shares)

    @property
    def may_change(self) -> bool:
        """Whether its shares may be changed once more."""
        return len(self.tally.periods) < MOST_PERIODS

    def count(
        self,
        page: Assigned,
        clicked: bool,
        deadline_ms: int,
        now_ms: int,
        *,
        given_up: bool = False,
        by_floor: bool = False,
    ) -> None:
        """A page whose outcome is known now; it is counted when its time has passed. `given_up`: nobody has
        reported it. `by_floor`: the floor showed the list in place of what the arm would have shown."""
        tally = self.tally
        if page.trial != self.id or page.period > tally.period or page.arm >= tally.n_arms:
            return
        if page.bucket is not None and tally.periods[page.period].owner[page.bucket] != page.arm:
            return
        self.known[page.arm] += 1
        self.reported[page.arm] += not given_up
        self.decided[page.arm] += not by_floor
        bucket = -1 if page.bucket is None else page.bucket
        heapq.heappush(self._waiting, (deadline_ms, page.period, page.arm, bucket, int(clicked)))
        self.advance(now_ms)

    def advance(self, now_ms: int) -> None:
        """Count the pages whose time has passed."""
        while self._waiting and self._waiting[0][0] <= now_ms:
            _, period, arm, bucket, clicked = heapq.heappop(self._waiting)
            self.tally.add(arm, None if bucket < 0 else bucket, bool(clicked), period)

    def add_recommended(self, said: Recommended) -> None:
        """What a process says it has recommended since the trial began."""
        if said.since >= self.started:
            for arm, slates in said.slates.items():
                if 0 <= arm < len(self.recommended):
                    self.recommended[arm] += slates

    def correct(self, page: Assigned) -> None:
        """A page that was counted without a click was clicked later."""
        if page.trial == self.id and page.arm < self.tally.n_arms:
            self.tally.correct(page.arm)

    def as_json(self) -> dict[str, Any]:
        """What it is, for snapshots and digests; its counts are `arrays`."""
        return {
            "seq": self.seq,
            "started": self.started,
            "body": msgspec.to_builtins(self.body),
            "recommended": self.recommended,
            "reported": self.reported,
            "known": self.known,
            "decided": self.decided,
            "stopped": None if self.stopped is None else msgspec.to_builtins(self.stopped),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What was counted, and the pages that wait."""
        waiting = np.array(sorted(self._waiting), np.int64).reshape(-1, 5)
        return {**self.tally.arrays(), WAITING: waiting}

    @classmethod
    def restored(cls, page: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "Trial":
        """The trial of a snapshot; LookupError, TypeError or ValueError if it does not fit."""
        trial = cls(int(page["seq"]), float(page["started"]), msgspec.convert(page["body"], TrialStarted))
        for word in ("recommended", "reported", "known", "decided"):
            setattr(trial, word, [int(slates) for slates in page[word]])
        if page["stopped"] is not None:
            trial.stopped = msgspec.convert(page["stopped"], TrialStopped)
        trial.tally = Tally.restored({name: array for name, array in arrays.items() if name != WAITING})
        trial._waiting = [tuple(line) for line in arrays[WAITING].tolist()]
        return trial
