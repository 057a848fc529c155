"""The oracle: is what clients were answered true of the log, and is the served model what the log says?

It knows only what clients sent and were answered (`ClientHistory`) and the store as it was left, and runs
code of its own process: a broken server does not check itself.
"""

import base64
import struct
import threading
import time
from collections import Counter
from itertools import chain, pairwise
from typing import Any, NamedTuple

from firstclick.errors import FirstclickError
from firstclick.serve.log.drawn import NOT_RECORDED, read_drawn, with_time_out
from firstclick.serve.log.events import (
    BODY_OF,
    ROW_SIZE,
    Correction,
    Created,
    ItemsChanged,
    ItemsWithdrawn,
    Kind,
    SettingsChanged,
    TrialShares,
    TrialStarted,
    full_payload,
    read_feedback,
    time_out_of,
    unpacked,
)
from firstclick.serve.log.token import HEAD, MAC_SIZE, TAIL, nonce_of_correction
from firstclick.serve.model.audit import audit_stored
from firstclick.serve.model.replay import recover
from firstclick.serve.model.slates import audit_slates
from firstclick.serve.model.sources import LOST, OTHER_ARM
from firstclick.serve.trial_arms import nonce_in_arm
from firstclick.trials.assignment import bucket_of, owners
from tests.support.made_log import N_ITEMS

ACKNOWLEDGED = ("accepted", "duplicate", "corrected")
# Events that are neither a change of a catalog nor a rollback.
UNASKED = (Kind.CREATED, Kind.FEEDBACK, Kind.CORRECTION, Kind.RECOMMENDED, Kind.TRIAL_STARTED)
# Models that are asked as an arm of the trial of another one, and of which one: whatever that is sent, they
# are sent as well.
ARM_OF = {"rival": "bar"}


class Answer(NamedTuple):
    """What a client was answered to a click that it had sent."""

    click: int | None
    status: str
    seq: int | None
    sent: float  # when the click was


class Slate:
    """A token, the clicks that were sent with it, and the answers."""

    def __init__(self, model, token):
        self.model = model
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        _, _, _, self.issued_ms, self.nonce, size = HEAD.unpack_from(raw)
        end = HEAD.size + ROW_SIZE * size
        # Slates of these trials have no context and no features of their own.
        self.rows, self.fields = raw[HEAD.size : end], raw[end + TAIL.size : -MAC_SIZE]
        self.clicks = set()
        self.answers = []
        self.sent = 0.0
        self.unit = None  # who asked for it

    def payload(self, click):
        clicks = [] if click is None else [click]
        return full_payload(clicks, self.issued_ms, self.rows, fields=self.fields)

    def acknowledged(self):
        return [answer for answer in self.answers if answer.status in ACKNOWLEDGED]


class Change(NamedTuple):
    """A change of a catalog or a rollback that was asked for: what the log would say of it."""

    model: str
    said: tuple[Any, ...]
    seq: int | None = None  # when it was acknowledged
    sent: float = 0.0


class Served(NamedTuple):
    """What a running server reported of a model: its own audit, and its digest."""

    model: str
    seq: int
    digest: str
    equal: bool


class ClientHistory:
    """All that clients sent and were answered; written by many threads."""

    def __init__(self):
        self._lock = threading.Lock()
        self.slates = {}
        self.changes_sent, self.changes_done = [], []
        self.followers = {}
        self.served = []
        self.set_back = False  # whether the store was, and slates may be of what it has lost
        self.statuses = Counter()

    def record_sent(self, model, token, click):
        """To be called before it is sent."""
        with self._lock:
            slate = self.slates.setdefault(token, Slate(model, token))
            slate.clicks.add(click)
            slate.sent = time.monotonic()

    def record_slate(self, model, token, unit=None):
        """A slate that a client was given, whether or not it will report it."""
        with self._lock:
            self.slates.setdefault(token, Slate(model, token)).unit = unit

    def record_answer(self, token, click, status, seq):
        with self._lock:
            self.statuses[status] += 1
            slate = self.slates[token]
            slate.answers.append(Answer(click, status, seq, slate.sent))

    def record_changes_sent(self, changes):
        """Changes of one request: they come together, one after the other, or not at all."""
        with self._lock:
            self._changes_sent_at = time.monotonic()  # By one client, one after the other.
            self.changes_sent += changes
            # What is put has a name of its own, so that this is it and no other.
            self.followers |= {(first.model, first.said): then.said for first, then in pairwise(changes)}

    def record_changes_done(self, changes, seq):
        """The last of them was acknowledged as event `seq`."""
        with self._lock:
            self.changes_done += [
                change._replace(seq=seq - back, sent=self._changes_sent_at)
                for back, change in enumerate(reversed(changes))
            ]

    def forget_before(self, moment):
        """Drop answers to what was sent before the store was set back: they may not be true any more."""
        self.set_back = True
        self.changes_done = [change for change in self.changes_done if change.sent > moment]
        for slate in self.slates.values():
            slate.answers = [answer for answer in slate.answers if answer.sent > moment]


class CheckResult(NamedTuple):
    """What is wrong, a sentence each, and how much there was to check."""

    complaints: list[str]
    events: int
    acked: int
    lost: int
    doubled: int
    unacked: int  # in the log though no answer arrived: allowed
    redrawn: int  # slates that were drawn again, equal

    def __str__(self):
        counts = ", ".join(
            f"{count} {name}" for name, count in self._asdict().items() if name != "complaints"
        )
        return "\n".join([counts, *self.complaints[:20]])


def check(store, history):
    """The oracle O of a store that no process uses now."""
    complaints, total = store.check(), Counter()
    logs = {stored.name: list(chain.from_iterable(store.events(stored.id, 0))) for stored in store.models()}
    for stored in store.models():
        audited = ModelCheck(store, stored, logs, history)
        found = list(audited.complaints())
        complaints += [f"{stored.name}: {complaint}" for complaint in found]
        total.update(audited.counts)
    return CheckResult(complaints, *(total[name] for name in CheckResult._fields[1:]))


class ModelCheck:
    """One model of the store, its log, and what clients know of it."""

    def __init__(self, store, stored, logs, history):
        self.store, self.stored, self.history = store, stored, history
        self.events, self.is_arm = logs[stored.name], stored.name in ARM_OF
        self.origin = logs[ARM_OF[stored.name]] if self.is_arm else []
        self.at = {event.seq: event for event in self.events}
        slates = [slate for slate in history.slates.values() if slate.model == stored.name]
        self.slates = {slate.nonce: slate for slate in slates}
        self.served = [served for served in history.served if served.model == stored.name]
        self.counts = Counter(events=len(self.events))

    def complaints(self):
        yield from self.of_numbers()
        yield from self.of_acknowledgements()
        if not self.is_arm:
            yield from self.of_feedback()
            yield from self.of_corrections()
        yield from self.of_changes()
        if self.is_arm:
            yield from self.of_copies()
        yield from self.of_units()
        for served in self.served:
            if not served.equal:
                yield f"the server's own audit at {served.seq} found {served.digest}"
        try:
            yield from self.of_model()
        except FirstclickError as error:
            yield f"its log cannot be folded: {error}"

    def of_numbers(self):
        if [event.seq for event in self.events] != list(range(1, self.stored.head + 1)):
            yield f"its events are not numbered 1 to {self.stored.head}"
        nonces = Counter(event.nonce for event in self.events)
        if doubled := sum(n - 1 for n in nonces.values()):
            self.counts["doubled"] += doubled
            yield f"{doubled} nonces are in the log more than once"

    def of_acknowledgements(self):
        nonces = {event.nonce for event in self.events}
        for slate in self.slates.values():
            answers = slate.acknowledged()
            self.counts["acked"] += bool(answers)
            if answers and slate.nonce not in nonces:
                self.counts["lost"] += 1
                yield f"feedback acknowledged as event {answers[0].seq} is not in the log"
                continue
            if sum(answer.status in ("accepted", "corrected") for answer in answers) > 1:
                yield f"one slate was accepted twice: {answers}"
            for answer in answers:
                event = self.at.get(answer.seq or 0)
                if event is None or not _says(event, slate, answer.click):
                    yield f"event {answer.seq} is not what was acknowledged as such"

    def of_feedback(self):
        for event in self.events:
            if event.kind != Kind.FEEDBACK:
                continue
            slate = self.slates.get(event.nonce)
            if time_out_of(event.payload) is not None:
                # The client may not have got the slate.
                if slate is not None and not _says(event, slate, None):
                    yield f"event {event.seq} gives up another slate than was shown"
            elif slate is None or event.payload not in map(slate.payload, slate.clicks):
                yield f"event {event.seq} is feedback that nobody sent"
            else:
                self.counts["unacked"] += not slate.acknowledged()

    def of_corrections(self):
        by_nonce = {nonce_of_correction(nonce): slate for nonce, slate in self.slates.items()}
        for event in self.events:
            if event.kind != Kind.CORRECTION:
                continue
            slate, corrected = by_nonce.get(event.nonce), self.at.get(unpacked(event, Correction).seq)
            if slate is None or not any(_says(event, slate, click) for click in slate.clicks - {None}):
                yield f"event {event.seq} is a correction that nobody sent"
            elif corrected is None or not _says(corrected, slate, None):
                yield f"event {event.seq} corrects what is not a slate without a click"

    def of_changes(self):
        logged = {event.seq: _said(event) for event in self.events if event.kind not in UNASKED}
        name = ARM_OF.get(self.stored.name, self.stored.name)
        sent = Counter(change.said for change in self.history.changes_sent if change.model == name)
        for said, n in Counter(logged.values()).items():
            if n > sent[said]:
                yield f"{said[:2]} is {n} times in the log and was sent {sent[said]} times"
        for seq, said in logged.items():
            then = self.history.followers.get((name, said))
            if then is not None and logged.get(seq + 1) != then:
                yield f"event {seq} is one half of a request, and the other does not follow"
        for change in self.history.changes_done:
            if change.model == self.stored.name and logged.get(change.seq or 0) != change.said:
                yield f"event {change.seq} is not {change.said[:2]}, acknowledged as such"

    def of_copies(self):
        """Whether an arm got its own slates and those of the list: all of them, and no others."""
        started = next(event for event in self.origin if event.kind == Kind.TRIAL_STARTED)
        trial = unpacked(started, TrialStarted)
        number = int.from_bytes(trial.key[:4], "little")
        due = {}
        for event in self.origin:
            drawn = read_drawn(read_feedback(event.payload).fields) if event.kind == Kind.FEEDBACK else None
            if drawn is not None and drawn.assigned is not None:
                listed = drawn.chosen is not None and not drawn.chosen.by_policy
                if listed or trial.arms[drawn.assigned.arm].model == self.stored.name:
                    due[nonce_in_arm(event.nonce, number)] = event
        copies = {event.nonce: event for event in self.events if event.kind == Kind.FEEDBACK}
        for nonce in copies.keys() - due.keys():
            yield f"event {copies[nonce].seq} is a copy of nothing that it is to learn"
        corrected, its_corrected = (
            {unpacked(event, Correction).seq for event in events if event.kind == Kind.CORRECTION}
            for events in (self.origin, self.events)
        )
        for nonce, event in due.items():
            original, copy = read_feedback(event.payload), copies.get(nonce)
            # An item that was put while a server died may never have reached the arm. Those have the last
            # rows.
            of_all = max(original.rows) < N_ITEMS
            if copy is None:
                if of_all:
                    yield f"it has no copy of event {event.seq} of {ARM_OF[self.stored.name]}"
                continue
            its = read_feedback(copy.payload)
            if (its.clicks, its.issued, its.examined) != (
                original.clicks,
                original.issued,
                original.examined,
            ):
                yield f"event {copy.seq} is not what it is a copy of"
            if of_all and its.rows != original.rows:
                yield f"event {copy.seq} shows other items than it is a copy of"
            if event.seq in corrected and copy.seq not in its_corrected:
                yield f"it has not got the late click on event {copy.seq}"

    def of_units(self):
        """Whether units have kept their arms wherever they were asked for, but for moved buckets."""
        owner, key = [], b""
        for event in self.events:
            body = None if event.kind == Kind.FEEDBACK else unpacked(event, BODY_OF[event.kind])
            if isinstance(body, TrialStarted):
                key, owner = body.key, [owners(body.shares).tolist()]
            elif isinstance(body, TrialShares) and (after := _moved(owner[-1], body.shares)) != owner[-1]:
                owner.append(after)
        for slate in self.slates.values():
            drawn = read_drawn(slate.fields) if slate.unit else None
            if drawn is not None and drawn.assigned is not None:
                _, period, arm, bucket = drawn.assigned
                if bucket != bucket_of(slate.unit, key):
                    yield f"{slate.unit} was in bucket {bucket}, which is not its own"
                elif arm != owner[period][bucket]:
                    yield f"{slate.unit} was in arm {arm} in period {period}, not its own"

    def of_model(self):
        """Whether the model that was served is what the log comes to."""
        store, stored = self.store, self.stored
        yield from audit_stored(store, stored).differing
        model = recover(store, stored, use_snapshots=False)
        slates = [event for event in self.events if event.kind == Kind.FEEDBACK]
        if model.click_stats.slates != len(slates):
            yield f"{model.click_stats.slates} slates learned, {len(slates)} in the log"
        clicks = sum(bool(read_feedback(event.payload).clicks) for event in slates)
        clicks += sum(event.kind == Kind.CORRECTION for event in self.events)
        if model.click_stats.clicks != clicks:
            yield f"{model.click_stats.clicks} clicks learned, {clicks} in the log"
        drawn = audit_slates(store, stored)
        self.counts["redrawn"] += drawn.equal
        # A slate that was shown before its store was set back may come back after that.
        lost = drawn.not_evaluable.get(LOST, 0) if self.history.set_back else 0
        # What others drew, for an arm of a trial, or sent to an arm, is not drawn again here.
        others = drawn.not_evaluable.get(OTHER_ARM, 0)
        others += drawn.not_evaluable.get(NOT_RECORDED, 0) if self.is_arm else 0
        if drawn.equal + lost + others != len(slates):
            yield f"of {len(slates)} slates {drawn.equal} were drawn again equal: {drawn}"
        if (trial := model.launch.trial) is not None:
            counted = Recount(trial.tally.pages, trial.tally.clicks, trial.tally.corrected, trial.n_waiting)
            if counted != (wanted := recounted(self.events)):
                yield f"its trial has counted {counted}, and the log has {wanted}"
        if recover(store, stored).digest() != model.digest():
            yield "a restart with snapshots comes to another model than the log"
        for served in self.served:
            if served.seq > stored.head:
                yield f"event {served.seq} was served, and the log ends at {stored.head}"
            elif served.equal:
                then = recover(store, stored._replace(head=served.seq), use_snapshots=False)
                if then.digest() != served.digest:
                    yield f"the model served at {served.seq} is not what the log comes to"


def _says(event, slate, click):
    """Whether this event reports this click of this slate."""
    if event.kind == Kind.CORRECTION:
        feedback = unpacked(event, Correction).feedback
        return event.nonce == nonce_of_correction(slate.nonce) and feedback == slate.payload(click)
    if event.nonce != slate.nonce:
        return False
    given_up = time_out_of(event.payload)
    if given_up is None:
        return event.payload == slate.payload(click)
    fields = with_time_out(slate.fields, given_up)
    return click is None and event.payload == full_payload([], slate.issued_ms, slate.rows, fields=fields)


def _moved(before, shares):
    """The arms of the buckets after a change of shares: each arm that gets smaller gives its last ones away,
    in their order to the first arm that gets larger, then to the next."""
    wanted = [round(share * len(before)) for share in shares]
    after, kept, free = list(before), [0] * len(shares), []
    for bucket, arm in enumerate(before):
        kept[arm] += 1
        if kept[arm] > wanted[arm]:
            free.append(bucket)
    for arm, n in enumerate(wanted):
        for _ in range(n - before.count(arm)):
            after[free.pop(0)] = arm
    return after


class Recount(NamedTuple):
    """What a trial should have counted, by arm, and how many pages still wait."""

    pages: list[int]
    clicks: list[int]
    corrected: list[int]
    waiting: int = 0


def recounted(events):
    """The pages of the last trial of a log, event by event, the slow and obvious way."""
    trial, total, waiting, wait = 0, Recount([], [], []), list[tuple[float, int, bool]](), 0.0
    for event in events:
        body = None if event.kind == Kind.FEEDBACK else unpacked(event, BODY_OF[event.kind])
        if isinstance(body, Created | SettingsChanged) and body.no_click_after is not None:
            wait = body.no_click_after
        elif isinstance(body, TrialStarted):
            trial = int.from_bytes(body.key[:4], "little")
            total, waiting = Recount(*([0] * len(body.arms) for _ in range(3))), []
        elif isinstance(body, Correction):
            page = _page(body.feedback, trial)
            if page is not None:
                total.corrected[page[1]] += 1
        elif body is None and (found := _page(event.payload, trial)) is not None:
            waiting.append((round(found[0] * 1000) + round(wait * 1000), *found[1:]))
        # A page is counted when its time has passed, by the clock of the log.
        now = round(event.received * 1000)
        for due, arm, clicked in waiting:
            if due <= now:
                total.pages[arm] += 1
                total.clicks[arm] += clicked
        waiting = [page for page in waiting if page[0] > now]
    return total._replace(waiting=len(waiting))


def _page(payload, trial):
    """When the page was shown, its arm, and whether it was clicked, if it is one of this trial."""
    try:
        said = read_feedback(payload)
        drawn = read_drawn(said.fields)
    except (ValueError, struct.error):
        return None
    if drawn is None or drawn.assigned is None or drawn.assigned.trial != trial:
        return None
    return said.issued, drawn.assigned.arm, bool(said.clicks)


def _said(event):
    """A change as `put`, `withdrawn` and `rolled_back` below tell it."""
    body = unpacked(event, BODY_OF[event.kind])
    if isinstance(body, ItemsChanged):
        return put(body.ids, body.names, body.available, body.features)
    if isinstance(body, ItemsWithdrawn):
        return withdrawn(body.ids)
    if isinstance(body, TrialShares):
        return shares(body.shares)
    return rolled_back(body.to)


def put(*sent):
    """Ids, names, what is available, and the features as bytes."""
    return "put", *(part if isinstance(part, bytes) else tuple(part) for part in sent)


def withdrawn(ids):
    return "withdrawn", tuple(ids)


def shares(of_arms):
    return "shares", tuple(of_arms)


def rolled_back(to):
    return "rolled back", to
