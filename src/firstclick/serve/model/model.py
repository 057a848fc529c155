"""A model: what the events of one log, folded in order, have taught a policy about its items."""

import hashlib
import logging
import os
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import compress, groupby
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.catalog import Subset
from firstclick.catalog.ids import ItemId
from firstclick.errors import WorkFailed
from firstclick.in_pieces import json_pieces, sorted_pieces
from firstclick.kernels.arrays import NO_LIMITS
from firstclick.online.baseline import Chosen, decided, reasons
from firstclick.online.engine import PolicyEngine
from firstclick.online.explore import Explored, Explorer, check_share
from firstclick.online.request import (
    RowRequest,
    SlateRequest,
    read_request,
    request_of_rows,
    without_exploring,
)
from firstclick.policies.base import Policy, State
from firstclick.registry import policy_class
from firstclick.serve.log.codec import SKIPPED, fold
from firstclick.serve.log.drawn import MARK_SIZE, Drawn, read_drawn
from firstclick.serve.log.events import (
    Build,
    Correction,
    Created,
    Event,
    FeedbackEvent,
    Kind,
    Recommended,
    RolledBack,
    SettingsChanged,
    WarmStart,
    feedback_payload,
    read_feedback,
    time_out_of,
    unpacked,
)
from firstclick.serve.log.history import START, Mark, link_of, links_of
from firstclick.serve.log.snapshot import BadSnapshot, read_snapshot, write_snapshot
from firstclick.serve.log.tuning import Clock
from firstclick.serve.model.build import this_build
from firstclick.serve.model.catalog_state import CatalogCopy, CatalogState
from firstclick.serve.model.click_stats import ClickStats
from firstclick.serve.model.head_start import learn_warm_start
from firstclick.serve.model.launch import THE_POLICY, Decision, Launch
from firstclick.serve.model.open_slates import OpenSlates
from firstclick.serve.model.reports import Reports
from firstclick.source_code import code_hash
from firstclick.streams import stream
from firstclick.validation.quoting import quoted
from firstclick.wire.errors import Malformed, OtherHistory, OtherVersion, refusing

log = logging.getLogger("firstclick.serve")

# Feedback learned in one go: a recommendation that comes meanwhile waits for no more than these.
TOGETHER = 64
RECENT = 8
# Events whose links are kept: a store that was set back by fewer is told by how many.
PAST = 4096
# Slates made in one call at most.
MOST_READY = 16
# Kernels are compiled for a number with a sign.
LARGEST_NUMBER = 2**63 - 1


class Ranked(NamedTuple):
    """A slate in rows, its items, and what is held for the attraction of each (None: nothing).

    `context` and `features`, of each row, are those of the request, as a token has them.
    """

    rows: NDArray[np.int64]
    items: list[ItemId]
    scores: list[float | None]
    seq: int
    fields: bytes  # what it was drawn from, see `log.drawn`
    context: bytes = b""
    features: bytes = b""
    skipped_pins: tuple[ItemId, ...] = ()
    explored: bool = False  # drawn uniformly, not by the policy
    not_evaluable: str = ""  # why nobody can draw it again, if so
    reasons: tuple[str, ...] = ()  # why each row is in it
    without_exploring: tuple[bool, ...] | None = None  # whether the policy would show each row anyway
    chosen: Chosen | None = None  # of a model with a baseline
    arm: int = 0  # of a trial
    by_arm: bool = False  # drawn by another model, for that arm


class InForce(NamedTuple):
    """Which events of a log count: those that no rollback has undone."""

    kept: tuple[tuple[int, int], ...] = ()  # first and last of each stretch that ended with a rollback
    since: int = 1  # and all from this one on

    def has(self, seq: int) -> bool:
        """Whether what this event taught is known."""
        return seq >= self.since or any(first <= seq <= last for first, last in self.kept)

    def after_rollback(self, to: int, at: int) -> "InForce":
        """Those that count from event `at` on, if these counted after event `to`, to which it goes back."""
        return InForce((*self.kept, (self.since, to)), at)


class Known(NamedTuple):
    """What a model knew after some event: all that a rollback brings back."""

    state: State
    items: CatalogCopy
    in_force: "InForce"


class Model:
    """The fold of a log. `apply` goes on with it; all else reads. Safe for use by several threads."""

    def __init__(
        self,
        id: int,
        name: str,
        created: Created,
        items: CatalogState | None = None,
        *,
        first: Event | None = None,
    ) -> None:
        """The model after the first event of its log, or with items that are further on.

        Without that event, of which `created` is the body, it cannot tell later which log it has folded.
        """
        self.id = id
        self.name = name
        self.created = created
        self.items = items or CatalogState(created)
        self.catalog = self.items.catalog
        policy = policy_of(created, name)
        # Numbers that follow from features follow from the first ones.
        numbers = policy.numbers(created.k, created.first_features())
        self.engine = PolicyEngine(
            policy, self.catalog, k=created.k, scale=self.catalog.scale, numbers=numbers
        )
        self.click_stats = ClickStats()
        self.reports = Reports()
        self.in_force = InForce()
        self.no_click_after = created.no_click_after  # seconds; 0: never
        self.open = OpenSlates()  # of this process: no part of what is folded
        self.recent: deque[tuple[float, FeedbackEvent]] = deque(maxlen=RECENT)  # for people to look at
        self.last = Mark(1, b"", 0.0, START)
        if first is not None:
            self.last = Mark(1, first.nonce, first.received, link_of(first, START))
        # The links of the last events: when the log is another one, how far both are the same.
        self.past = deque([self.last.link], maxlen=PAST)
        self.changed_before = 0  # an event before this one, or itself, was changed after it was appended
        self.appended = 1  # the last event that this process has put into the log
        # Why nothing more is appended: the store has another log. Another Model takes the place of this one.
        self.set_back = ""
        self.builds = [created.build]
        self.warm_starts: list[str] = []  # the file of each log that was a head start: a hash, or nothing
        self.restored_from = 0  # the event after which the snapshot was made that this came from
        # Events from 2 to the one before this are archived; their newest slate is of this time, in ms.
        self.archived_before = 1
        self.archived_issued = 0
        self.clock: Clock = time
        self.lock = threading.RLock()
        self._ready: list[tuple[int, tuple[NDArray[np.int64], NDArray[np.float64]]]] = []
        self._ready_seq = 0
        self._ready_fields = b""
        self._at_once = 1
        self._key = np.uint64(created.key)
        self.explorer = Explorer.of(self._key, created.explore)
        self.launch = Launch(self._key, created, self.catalog)
        self.wants_context = policy.n_context > 0

    @property
    def seq(self) -> int:
        """The last event that was folded."""
        return self.last.seq

    @property
    def nonce(self) -> bytes:
        """Of the last event that was folded."""
        return self.last.nonce

    @property
    def build(self) -> int | None:
        """Which of the builds in the log this process is; None if it is none of them."""
        mine = this_build(type(self.engine.policy))
        return self.builds.index(mine) if mine in self.builds else None

    @property
    def k(self) -> int:
        return self.created.k

    @property
    def n_given_features(self) -> int:
        """The features that people give for an item; the policy may see more."""
        scale, encoder = self.catalog.scale, self.catalog.encoder
        if encoder is not None:
            return len(encoder.inputs)
        return len(scale.names) if scale else self.created.n_features

    @property
    def policy(self) -> str:
        return self.engine.policy.label

    def apply(
        self, events: Sequence[Event], known_at: Callable[[int], Known], *, together: int = TOGETHER
    ) -> None:
        """Fold the next events, in order; those that are folded already are passed over.

        `known_at` tells what was known after an earlier event, for rollbacks. At most `together` pieces of
        feedback are learned while others wait.
        """
        for is_feedback, run in groupby(events, lambda event: event.kind == Kind.FEEDBACK):
            run_events = list(run)
            if is_feedback:
                for start in range(0, len(run_events), together):
                    self._learn(run_events[start : start + together])
            else:
                for event in run_events:
                    self._change(event, known_at)

    def _learn(self, events: list[Event]) -> None:
        with self.lock:
            fresh = [event for event in events if event.seq > self.seq]
            if not fresh:
                return
            self._expect(fresh[0])
            clicks = self._fold(fresh)
            self._passed(fresh)
            if len(self.open):
                self.open.answered(*(event.nonce for event in fresh))
            self.reports.timed_out += sum(time_out_of(event.payload) is not None for event in fresh)
            learned = clicks != SKIPPED
            if not learned.all():
                log.error("%s: %d pieces of feedback show what it never had", self.name, (~learned).sum())
                self.click_stats.skipped += int((~learned).sum())
                fresh = list(compress(fresh, learned.tolist()))
            self.launch.observe(fresh, clicks[learned], self.no_click_after)
            self.click_stats.add(np.array([event.received for event in fresh]), clicks[learned])
            self.recent.extend((event.received, read_feedback(event.payload)) for event in fresh[-RECENT:])

    def _fold(self, events: list[Event]) -> NDArray[np.int64]:
        """Learn from the slates of which the policy is to learn; the first click of each, see `fold`."""
        payloads = [event.payload for event in events]
        if self.launch.trial is None:
            return fold(self.engine, payloads)
        teaches = np.array([self.launch.teaches(payload) for payload in payloads])
        clicks = np.empty(len(payloads), np.int64)
        clicks[teaches] = fold(self.engine, list(compress(payloads, teaches)))
        clicks[~teaches] = [self._click_in(payload) for payload in compress(payloads, ~teaches)]
        return clicks

    def _click_in(self, payload: bytes) -> int:
        """The first click of a slate that teaches nothing, or SKIPPED, as `fold` tells it."""
        try:
            said = read_feedback(payload)
        except (ValueError, struct.error):
            return SKIPPED
        if max(said.rows, default=-1) >= len(self.catalog.items) or len(said.rows) > self.k:
            return SKIPPED
        return -1 if said.click is None else said.click

    def _change(self, event: Event, known_at: Callable[[int], Known]) -> None:
        earlier = None
        if event.kind == Kind.ROLLED_BACK and event.seq > self.seq:
            # May read the log, which takes its time: before the lock.
            earlier = known_at(unpacked(event, RolledBack).to)
        with self.lock:
            if event.seq <= self.seq:
                return
            self._expect(event)
            if event.kind == Kind.BUILD:
                self.builds.append(unpacked(event, Build))
            elif event.kind == Kind.SETTINGS:
                self._set(unpacked(event, SettingsChanged))
            elif event.kind == Kind.WARM_START:
                self._warm_start(unpacked(event, WarmStart))
            elif event.kind == Kind.RECOMMENDED:
                self.reports.add(event.received, unpacked(event, Recommended))
            elif event.kind == Kind.CORRECTION:
                self._correct(unpacked(event, Correction), event.received)
            self.items.apply(
                event,
                self.engine.change_features,
                lambda seq: earlier.items if earlier else self.items.copy(),
            )
            if earlier is not None:
                state = _copied(earlier.state)
                self.engine.state = self.engine.policy.grow(state, len(self.catalog.items))
                to = unpacked(event, RolledBack).to
                self.in_force = earlier.in_force.after_rollback(to, event.seq)
            self.engine.follow_catalog()
            self.launch.apply(event)
            self._passed([event])

    def _set(self, changed: SettingsChanged) -> None:
        if changed.explore is not None:
            self.explorer = Explorer.of(self._key, changed.explore)
        if changed.no_click_after is not None:
            self.no_click_after = changed.no_click_after

    def _warm_start(self, body: WarmStart) -> None:
        draw = stream(int(self._key), "warm start", len(self.warm_starts))
        self.warm_starts.append(body.file_mark)
        if not learn_warm_start(self.engine, body, draw):
            what = "counts of items" if body.counts else f"a log of {body.slates} slates"
            log.error("%s: %s cannot learn from %s", self.name, self.policy, what)

    def _correct(self, body: Correction, received: float) -> None:
        """Learn a click in the place of none. Whoever cannot passes over it: the policy of a copied log."""
        said = self._correcting(body.feedback)
        if said is None:
            self.click_stats.skipped += 1
            return
        self.launch.correct(body.feedback)
        if self.launch.teaches(body.feedback):
            # What was rolled back taught nothing that could be taken back.
            if self.in_force.has(body.seq):
                self.engine.unlearn_rows(np.array(said.rows, np.int64))
            fold(self.engine, [body.feedback])
        self.click_stats.correct(body.counted, said.clicks[0])
        self.reports.corrected += 1
        self.recent.append((received, said))

    def _correcting(self, payload: bytes) -> FeedbackEvent | None:
        """The click, if it is one that this model can have shown and that its policy can learn so."""
        try:
            said = read_feedback(payload)
        except (ValueError, struct.error):
            return None
        n = len(said.rows)
        fits = self.engine.policy.corrects and not self.wants_context and not said.context
        fits = fits and not said.features and 0 < n <= self.k and max(said.rows) < len(self.catalog.items)
        fits = (
            fits and bool(said.clicks) and said.clicks[-1] < (n if said.examined is None else said.examined)
        )
        return said if fits and (said.examined or 0) <= n else None

    def live_replicas(self, now: float, process: str = "") -> int:
        """How many processes recommend slates of this model, `process` included whether or not the log knows
        of it yet."""
        return self.reports.live(now, process)

    def _passed(self, events: list[Event]) -> None:
        links = links_of(events, self.last.link)
        self.past.extend(links)
        self.last = Mark(events[-1].seq, events[-1].nonce, events[-1].received, links[-1])

    def check_link(self, last: Mark) -> None:
        """Whether the log's own link of the last event fits what was folded; the log's is the one to keep."""
        with self.lock:
            if self.last.seq == last.seq and not self.last.same(last):
                log.error(
                    "%s: events up to %d are not what was appended: the log was changed in its place",
                    self.name, last.seq,
                )  # fmt: skip
                self.last, self.past[-1] = last, last.link
                self.changed_before = last.seq

    def refuse_appends(self) -> OtherHistory:
        """From now on: the store's log is not the one that was folded here. What whoever appends is told."""
        if not self.set_back:
            self.set_back = (
                f"model {self.name!r}: the store was set back, and does not hold all events that were read "
                "from it before; the model is being loaded again from its log, send the same again"
            )
            log.critical(
                "%s: the store does not hold all events that were read from it before; no feedback is taken "
                "until the model is loaded again",
                self.name,
            )
        return OtherHistory(self.set_back, [self.id])

    def known(self) -> Known:
        """What is known now, to go back to later."""
        with self.lock:
            return Known(_copied(self.engine.state), self.items.copy(), self.in_force)

    def _expect(self, event: Event) -> None:
        if event.seq != self.seq + 1:
            raise WorkFailed(f"{self.name}: event {self.seq + 1} comes next in the log, got {event.seq}")

    def recommend(
        self,
        number: int,
        *,
        candidates: Iterable[ItemId] | Subset | str | None = None,
        exclude: Iterable[ItemId] | Subset | str = (),
        decision: Decision = THE_POLICY,
        explain: bool = False,
        **asked: Any,
    ) -> Ranked:
        """The slate to show; the log so far, `number` and what is asked, as for `read_request`, decide it.

        `candidates` and `exclude` may be names of lists. `decision` says who decides, see `Launch.decide`;
        the policy, if it says nothing.
        """
        with self.lock, refusing:
            request = read_request(
                self.engine,
                candidates=self._listed(candidates),
                exclude=self._listed(exclude, "exclude"),
                **asked,
            )
            slate, chosen = decided(
                self.engine, self._key, number, request, scored=True, explorer=self.explorer,
                baseline=self.launch.baseline,
                chosen=decision.chosen,
            )  # fmt: skip
            rows = request.rows
            drawn = self._drawn(slate.explored)._replace(
                chosen=chosen,
                assigned=decision.assigned,
                k=rows.k if rows.k != self.k else None,
                candidates=candidates if isinstance(candidates, str) else rows.candidates,
                exclude=exclude if isinstance(exclude, str) else _ascending(rows.exclude),
                pinned=tuple(rows.pinned.items()),
                at_most=rows.at_most,
                features=rows.features if len(rows.features) else None,
            )
            fields, not_evaluable = drawn.packed(len(self.catalog.items))
            return self._ranked(slate.rows, slate.means, fields)._replace(
                context=_packed(rows.context),
                features=_packed(slate.features),
                skipped_pins=request.skipped_pins,
                explored=slate.explored is not None and slate.explored.drawn,
                not_evaluable=not_evaluable,
                reasons=drawn.reasons(slate.rows.tolist()),
                without_exploring=self._would_show(request, slate.rows) if explain else None,
                chosen=chosen,
                arm=0 if decision.assigned is None else decision.assigned.arm,
            )

    def _would_show(self, request: SlateRequest, rows: NDArray[np.int64]) -> tuple[bool, ...] | None:
        """Whether the policy would show each of the rows if it did not explore; None if nobody knows."""
        best = without_exploring(self.engine, request)
        return None if best is None else tuple(np.isin(rows, best).tolist())

    def fields_of_arm(self, decision: Decision, theirs: Ranked, rows: NDArray[np.int64]) -> bytes:
        """The fields of a slate of these rows that another model drew, for an arm of a trial of this one."""
        its = read_drawn(theirs.fields)
        # What the reasons of its places follow from is told in the rows of this model.
        places = zip(enumerate(rows.tolist()), theirs.reasons, strict=True)
        pinned = [pair for pair, why in places if why == "pinned"]
        drawn = self._drawn(None if its is None else its.explore)._replace(
            chosen=decision.chosen,
            assigned=decision.assigned,
            pinned=tuple(pinned),
            arm_fields=theirs.fields,
        )
        return drawn.packed(len(self.catalog.items))[0]

    def redrawn(self, number: int, drawn: Drawn, context: Sequence[float]) -> NDArray[np.int64]:
        """The rows of the slate that the model makes now for the request of an earlier one."""
        with self.lock:
            slate, _ = decided(
                self.engine, self._key, number, self.request_of(drawn, context), scored=False,
                explorer=self.explorer, baseline=self.launch.baseline, chosen=drawn.chosen,
            )  # fmt: skip
            return slate.rows

    def explained(
        self, drawn: Drawn, context: Sequence[float], rows: Sequence[int]
    ) -> tuple[bool, ...] | None:
        """Whether the policy would have shown each of these rows without exploring, for the request of an
        earlier slate and from what it knows now."""
        with self.lock:
            return self._would_show(self.request_of(drawn, context), np.array(rows, np.int64))

    def request_of(self, drawn: Drawn, context: Sequence[float]) -> SlateRequest:
        """The request of an earlier slate."""
        with self.lock:
            catalog, n_columns = self.catalog, self.engine.features.shape[1]
            candidates, exclude = self._listed(drawn.candidates), self._listed(drawn.exclude)
            if isinstance(candidates, Subset):
                candidates = np.sort(catalog.rows(candidates))
            if isinstance(exclude, Subset):
                exclude = catalog.rows_of(list(exclude))
            features = NO_LIMITS.features if drawn.features is None else drawn.features.reshape(-1, n_columns)
            asked = RowRequest(
                self.k if drawn.k is None else drawn.k,
                candidates,
                [] if exclude is None else list(exclude),
                dict(drawn.pinned),
                drawn.at_most,
                np.array(context) if context else NO_LIMITS.context,
                features,
            )
            return request_of_rows(self.engine, asked)

    def _listed(self, items: Any, argument: str = "candidates") -> Any:
        """The list of this name; what is no name stays as it is."""
        if not isinstance(items, str):
            return items
        if items not in self.items.lists:
            known = ", ".join(map(repr, self.items.lists)) or "none"
            raise Malformed(
                f"must be ids or the name of a list ({known}), got {quoted(items)}; for an id write "
                f"[{quoted(items)}], or create a list with PUT /v1/models/{self.name}/lists/NAME",
                argument,
            )
        return self.items.lists[items]

    def _drawn(self, explored: Explored | None) -> Drawn:
        """What a plain slate is drawn from now."""
        return Drawn(self.seq, self.nonce[-MARK_SIZE:], self.build, explore=explored)

    def _ranked(self, rows: NDArray[np.int64], means: NDArray[np.float64], fields: bytes) -> Ranked:
        items = self.catalog.items
        return Ranked(
            rows,
            [items[row] for row in rows.tolist()],
            [None if mean != mean else mean for mean in means.tolist()],
            self.seq,
            fields,
            reasons=reasons(rows.tolist(), (), None, False),
        )

    def next_slate(self) -> tuple[int, Ranked]:
        """A number drawn by chance, and `recommend(number)`, of a policy that wants no context.

        Where requests come faster than feedback, several are made in one call and wait for their turn; none
        outlives the next event.
        """
        with self.lock:
            if not self._ready or self._ready_seq != self.seq:
                # As many as were asked for since the last event, roughly: what is left over is thrown away.
                used_up = not self._ready and self._ready_seq == self.seq
                self._at_once = min(2 * self._at_once, MOST_READY) if used_up else max(self._at_once // 2, 1)
                numbers = np.frombuffer(os.urandom(8 * self._at_once), np.int64) & LARGEST_NUMBER
                plain = NO_LIMITS._replace(hidden=self.engine.hidden())
                slates = self.engine.recommend_many(self._key, numbers.tolist(), self.k, plain)
                self._ready = list(zip(numbers.tolist(), slates, strict=True))
                self._ready_seq = self.seq
                self._ready_fields, _ = self._drawn(None).packed(len(self.catalog.items))
            number, (rows, means) = self._ready.pop()
            if self.explorer.share:
                return number, self._explored(number, rows, means)
            return number, self._ranked(rows, means, self._ready_fields)

    def _explored(self, number: int, rows: NDArray[np.int64], means: NDArray[np.float64]) -> Ranked:
        """A slate of a model that explores: the one that the policy made, or one that is drawn uniformly."""
        if self.explorer.draws(number):
            return self.recommend(number)
        n = len(self.catalog)
        explored = Explored(self.explorer.share, False, tuple(range(n, n - len(rows), -1)))
        fields, _ = self._drawn(explored).packed(len(self.catalog.items))
        return self._ranked(rows, means, fields)

    def best_rows(self, n: int) -> NDArray[np.int64]:
        """The slate without exploration: the shown rows of the highest estimates; none if nothing is held."""
        with self.lock:
            rows = np.flatnonzero(self.catalog.hidden == 0)
            means, _ = self.engine.estimates(rows)
        rows, means = rows[~np.isnan(means)], means[~np.isnan(means)]
        if not len(means):
            return rows[:0]
        n = min(n, len(rows))
        first = np.argpartition(-means, n - 1)[:n]
        return rows[first[np.argsort(-means[first], kind="stable")]]

    def digest(self) -> str:
        """SHA-256 of all that is known: equal for all who folded the same events."""
        with self.lock:
            # Copied now and hashed later: nobody waits for the digest of a large catalog.
            catalog, names, groups = self.catalog, dict(self.items.names), dict(self.catalog.group_of)
            arrays = [*_copied(self.engine.state), catalog.hidden.copy(), self.engine.features.copy()]
            page = {"seq": self.seq, "items": catalog.items.copy(), "history": self.click_stats.as_json()}
            arrays += self.launch.arrays().values()
            page |= {
                "builds": [msgspec.to_builtins(build) for build in self.builds],
                "lists": {name: list(listed) for name, listed in sorted(self.items.lists.items())},
                "explore": self.explorer.share,
                "launch": self.launch.as_json(),
                "warm_starts": self.warm_starts.copy(),
                "no_click_after": self.no_click_after,
                "reports": self.reports.as_json(),
                "in_force": [list(self.in_force.kept), self.in_force.since],
                "unavailable": sorted_pieces(map(str, catalog.unavailable)),
                "values": [
                    (str(item), values)
                    # 5 and '5' are two items; their values may have no order.
                    for item, values in sorted_pieces(
                        catalog.values.items(), key=lambda pair: (str(pair[0]), type(pair[0]) is str)
                    )
                ],
            }
        page["names"] = sorted_pieces((str(item), name) for item, name in names.items())
        page["groups"] = sorted_pieces((str(item), group or "") for item, group in groups.items())
        digest = hashlib.sha256()
        for text in json_pieces(page):
            digest.update(text.encode())
        for array in arrays:
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def _code(self) -> str:
        """What decides what a log comes to: a snapshot of other code is not believed."""
        return code_hash(__name__, type(self.engine.policy))

    def snapshot(self) -> tuple[int, bytes]:
        """The last event, and what is known after it, as bytes."""
        with self.lock:
            catalog, arrays = self.items.snapshot()
            page = {
                "seq": self.seq,
                "nonce": self.last.nonce.hex(),
                "received": self.last.received,
                "link": self.last.link.hex(),
                "code": self._code(),
                "history": self.click_stats.as_json(),
                "catalog": catalog,
                "builds": [msgspec.to_builtins(build) for build in self.builds],
                "explore": self.explorer.share,
                "launch": self.launch.as_json(),
                "warm_starts": self.warm_starts,
                "no_click_after": self.no_click_after,
                "reports": self.reports.as_json(),
                "in_force": [list(self.in_force.kept), self.in_force.since],
            }
            arrays |= self.launch.arrays()
            return self.seq, write_snapshot(page, self.engine.state._asdict() | arrays)

    @classmethod
    def restored(
        cls, id: int, name: str, content: bytes, created: Created, *, any_code: bool = False
    ) -> "Model":
        """The model of a snapshot, or BadSnapshot. `created` is the first event of its log.

        With `any_code` of one whose events are archived: it cannot be folded again, so it outlives the code
        that made it, as long as the version of the policy is the same.
        """
        page, arrays = read_snapshot(content)
        try:
            seq = int(page["seq"])
            model = cls(id, name, created, CatalogState.restored(created, page["catalog"], arrays))
            if not any_code and page["code"] != model._code():
                raise BadSnapshot("the snapshot was made by other code, which may have folded otherwise")
            model.engine = model.engine.with_state(arrays)
            model.click_stats = ClickStats.from_json(page["history"])
            nonce, link = bytes.fromhex(page["nonce"]), bytes.fromhex(page["link"])
            model.last = Mark(seq, nonce, float(page["received"]), link)
            model.builds = msgspec.convert(page["builds"], list[Build])
            model.explorer = Explorer.of(model._key, check_share(page["explore"], model.engine.policy))
            model.launch.restore(page["launch"], arrays)
            model.warm_starts = [str(mark) for mark in page["warm_starts"]]
            model.no_click_after = float(page["no_click_after"])
            model.reports = Reports.from_json(page["reports"])
            kept, since = page["in_force"]
            model.in_force = InForce(tuple((int(first), int(last)) for first, last in kept), int(since))
        except (LookupError, TypeError, ValueError) as error:
            raise BadSnapshot(f"the snapshot does not fit the model: {error}") from None
        model.past = deque([model.last.link], maxlen=PAST)
        model.restored_from = model.appended = seq
        return model

    def warm_up(self) -> None:
        """Have every kernel compiled that users would wait for; nothing is learned."""
        n_context = self.engine.policy.n_context
        self.recommend(0, context=np.zeros(n_context) if n_context else None)
        self.best_rows(1)
        if self.explorer.share:
            self.warm_up_exploration()
        with self.lock:
            blank = self.engine.with_state(_copied(self.engine.state)._asdict())
            no_rows = np.empty(0, np.int64)
            blank.policy.with_changed_features(
                blank.state, blank.arrays_to_learn(), no_rows, blank.features[no_rows]
            )
        fold(blank, [feedback_payload(None, 0, b"")])
        if self.no_click_after:
            self.warm_up_corrections()

    def warm_up_corrections(self) -> None:
        """Have the kernel compiled that takes back what a slate taught."""
        with self.lock:
            blank = self.engine.with_state(_copied(self.engine.state)._asdict())
        if blank.policy.corrects:
            blank.unlearn_rows(np.empty(0, np.int64))

    def warm_up_exploration(self) -> None:
        """Have the kernel compiled that draws uniformly."""
        with self.lock:
            self.engine.draw_uniformly(self.explorer.key, 0, 1, NO_LIMITS)

    def unreported(self) -> float | None:
        """The share of slates whose outcome nobody reports; None while too little is known."""
        with self.lock:
            return self.reports.unreported(self.click_stats, self.clock.time())

    def warnings(self) -> list[str]:
        """What is wrong with what pages report, if anything."""
        with self.lock:
            return self.reports.warnings(self.click_stats, self.clock.time())

    def describe(self) -> dict[str, Any]:
        """The model in words and numbers."""
        with self.lock:
            catalog = self.catalog
            return {
                "name": self.name,
                "policy": self.policy,
                "k": self.k,
                "seed": self.created.seed,
                "explore": self.explorer.share,
                "no_click_after": self.no_click_after,
                "n_features": self.n_given_features,
                "items": len(catalog),
                "withdrawn": len(self.items.names) - int((catalog.withdrawn == 0).sum()),
                "unavailable": sum(catalog.has(item) for item in catalog.unavailable),
                "seq": self.seq,
                "slates": self.click_stats.slates,
                "clicks": self.click_stats.clicks,
                "recommended": self.reports.recommended,
                "unreported": self.unreported(),
                "timed_out": self.reports.timed_out,
                "corrected": self.reports.corrected,
                "pending": len(self.open),
                "lost": self.open.lost,
                "restored_from": self.restored_from,
                "archived_before": self.archived_before,
                "refuses_appends": self.set_back,
                "notes": [*self._origin_in_words(), *self.items.oddities.sentences(), *self.warnings()],
            }

    def _origin_in_words(self) -> list[str]:
        """Of a fork: whose slates it began with."""
        if not self.created.origins:
            return []
        last = self.created.origins[-1]
        return [f"events up to {last.upto:,} are those of {last.model} ({last.created.policy})"]


def policy_of(created: Created, name: str) -> Policy:
    """The policy that the model was created with, or OtherVersion."""
    # Before its settings are looked at, which may be others in another version.
    known = policy_class(created.policy)
    if created.version != known.version:
        raise OtherVersion(
            f"it was learned by version {created.version} of {known.name}, and this firstclick has version "
            f"{known.version}, which learns differently. Its log is kept. To start a new model from its "
            f"slates, stop the server if the store is an SQLite file and run `firstclick relearn {name} "
            f"--name NEW --store STORE`; `firstclick log {name} --store STORE` exports them"
        )
    return known(**created.settings)


def _ascending(rows: Sequence[int]) -> NDArray[np.int64] | None:
    """Each row once, in order; None for none."""
    return np.unique(np.array(rows, np.int64)) if len(rows) else None


def _packed(numbers: NDArray[np.float64]) -> bytes:
    return numbers.astype("<f8").tobytes()


def _copied(state: State) -> State:
    return type(state)(*(array.copy() for array in state))
