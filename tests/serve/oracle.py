"""The oracle: is what clients were told true of the log, and is the served model what the log says?

It knows nothing but what clients sent and were answered (`Ledger`) and the store as it was left, and runs
code of its own process: a broken server does not judge itself.
"""

import base64
import struct
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

from firstclick.errors import FirstclickError
from firstclick.serve.log.drawn import read_drawn, with_time_out
from firstclick.serve.log.events import (
    BODY_OF,
    ROW_SIZE,
    Correction,
    Created,
    Event,
    ItemsChanged,
    ItemsWithdrawn,
    Kind,
    SettingsChanged,
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
from firstclick.serve.model.sources import LOST
from firstclick.serve.store.store import Store, StoredModel

ACKNOWLEDGED = ("accepted", "duplicate", "corrected")


# What is no change of a catalog, and no rollback.
UNASKED = (Kind.CREATED, Kind.FEEDBACK, Kind.CORRECTION, Kind.RECOMMENDED)


class Answer(NamedTuple):
    """What a client was told of a click that it had sent."""

    click: int | None
    status: str
    seq: int | None


class Slate:
    """A token, the clicks that were sent with it, and the answers."""

    def __init__(self, model: str, token: str) -> None:
        self.model = model
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        _, _, _, self.issued_ms, self.nonce, size = HEAD.unpack_from(raw)
        end = HEAD.size + ROW_SIZE * size
        # Slates of these trials have no context and no features of their own.
        self.rows, self.fields = raw[HEAD.size : end], raw[end + TAIL.size : -MAC_SIZE]
        self.clicks: set[int | None] = set()
        self.answers: list[Answer] = []

    def payload(self, click: int | None) -> bytes:
        clicks = [] if click is None else [click]
        return full_payload(clicks, self.issued_ms, self.rows, fields=self.fields)


class Change(NamedTuple):
    """A change of a catalog or a rollback that was asked for: what the log would say of it."""

    model: str
    said: tuple[Any, ...]
    seq: int | None = None  # when it was acknowledged


class Served(NamedTuple):
    """What a running server said of a model: its own audit, and its digest."""

    model: str
    seq: int
    digest: str
    equal: bool


class Ledger:
    """All that clients sent and were told; written by many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.slates: dict[str, Slate] = {}
        self.changes_sent: list[Change] = []
        self.changes_done: list[Change] = []
        self.followers: dict[tuple[str, tuple[Any, ...]], tuple[Any, ...]] = {}
        self.served: list[Served] = []
        self.set_back = False  # whether the store was, and slates may be of what it has lost
        self.statuses: Counter[str] = Counter()

    def send(self, model: str, token: str, click: int | None) -> None:
        """To be called before it is sent."""
        with self._lock:
            self.slates.setdefault(token, Slate(model, token)).clicks.add(click)

    def show(self, model: str, token: str) -> None:
        """A slate that a client was given, whether or not it will report it."""
        with self._lock:
            self.slates.setdefault(token, Slate(model, token))

    def hear(self, token: str, click: int | None, status: str, seq: int | None) -> None:
        with self._lock:
            self.statuses[status] += 1
            self.slates[token].answers.append(Answer(click, status, seq))

    def send_changes(self, changes: Sequence[Change]) -> None:
        """Changes of one request: they come together, one after the other, or not at all."""
        with self._lock:
            self.changes_sent += changes
            self.followers |= {
                (first.model, first.said): then.said for first, then in pairwise(changes)
            }  # What is put has a name of its own, so that this is it and no other.

    def hear_changes(self, changes: Sequence[Change], seq: int) -> None:
        """The last of them was acknowledged as event `seq`."""
        with self._lock:
            self.changes_done += [
                change._replace(seq=seq - back) for back, change in enumerate(reversed(changes))
            ]


class Verdict(NamedTuple):
    """What is wrong, a sentence each, and how much there was to judge."""

    complaints: list[str]
    events: int
    acked: int
    lost: int
    doubled: int
    unacked: int  # in the log though no answer arrived: allowed
    redrawn: int = 0  # slates that were drawn again, equal

    def __str__(self) -> str:
        counted = (
            f"{self.events} events, {self.acked} acknowledged, {self.lost} lost, {self.doubled} doubled, "
            f"{self.unacked} committed and never answered, {self.redrawn} slates drawn again equal"
        )
        return "\n".join([counted, *self.complaints[:20]])


def judge(store: Store, ledger: Ledger) -> Verdict:
    """The oracle O of a store that nobody uses now."""
    complaints = store.check()
    total = Verdict(complaints, 0, 0, 0, 0, 0)
    for stored in store.models():
        events = list(chain.from_iterable(store.events(stored.id, 0)))
        found = _judge_log(stored, events, ledger)
        served = [said for said in ledger.served if said.model == stored.name]
        complaints += found.complaints + [
            f"{stored.name}: the server's own audit at {said.seq} found {said.digest}"
            for said in served
            if not said.equal
        ]
        try:
            wrong, redrawn = _judge_models(store, stored, events, ledger, served)
            complaints += wrong
            found = found._replace(redrawn=redrawn)
        except FirstclickError as error:
            complaints.append(f"{stored.name}: its log cannot be folded: {error}")
        total = Verdict(complaints, *(a + b for a, b in zip(total[1:], found[1:], strict=True)))
    return total


def _judge_log(stored: StoredModel, events: list[Event], ledger: Ledger) -> Verdict:
    wrong: list[str] = []
    if [event.seq for event in events] != list(range(1, stored.head + 1)):
        wrong.append(f"{stored.name}: its events are not numbered 1 to {stored.head}")
    nonces = Counter(event.nonce for event in events)
    doubled = sum(n - 1 for n in nonces.values())
    if doubled:
        wrong.append(f"{stored.name}: {doubled} nonces are in the log more than once")
    slates = {slate.nonce: slate for slate in ledger.slates.values() if slate.model == stored.name}
    at = {event.seq: event for event in events}
    acked = lost = 0
    for slate in slates.values():
        told = [answer for answer in slate.answers if answer.status in ACKNOWLEDGED]
        acked += bool(told)
        if told and slate.nonce not in nonces:
            lost += 1
            wrong.append(f"{stored.name}: feedback acknowledged as event {told[0].seq} is not in the log")
            continue
        if sum(answer.status in ("accepted", "corrected") for answer in told) > 1:
            wrong.append(f"{stored.name}: one slate was accepted twice: {told}")
        for answer in told:
            event = at.get(answer.seq or 0)
            if event is None or not _says(event, slate, answer.click):
                wrong.append(f"{stored.name}: event {answer.seq} is not what was acknowledged as such")
    unacked = 0
    for event in events:
        if event.kind == Kind.FEEDBACK:
            sent = slates.get(event.nonce)
            if time_out_of(event.payload) is not None:
                # Who was to be given a slate may not have got it.
                if sent is not None and not _says(event, sent, None):
                    wrong.append(f"{stored.name}: event {event.seq} gives up another slate than was shown")
            elif sent is None or event.payload not in map(sent.payload, sent.clicks):
                wrong.append(f"{stored.name}: event {event.seq} is feedback that nobody sent")
            elif not any(answer.status in ACKNOWLEDGED for answer in sent.answers):
                unacked += 1
    wrong += _judge_changes(stored, events, ledger) + _judge_corrections(stored, events, slates)
    return Verdict(wrong, len(events), acked, lost, doubled, unacked)


def _says(event: Event, slate: Slate, click: int | None) -> bool:
    """Whether this event tells this click of this slate."""
    if event.kind == Kind.CORRECTION:
        said = unpacked(event, Correction).feedback
        return event.nonce == nonce_of_correction(slate.nonce) and said == slate.payload(click)
    if event.nonce != slate.nonce:
        return False
    given_up = time_out_of(event.payload)
    if given_up is None:
        return event.payload == slate.payload(click)
    fields = with_time_out(slate.fields, given_up)
    return click is None and event.payload == full_payload([], slate.issued_ms, slate.rows, fields=fields)


def _judge_corrections(stored: StoredModel, events: list[Event], slates: dict[bytes, Slate]) -> list[str]:
    wrong = []
    by_nonce = {nonce_of_correction(nonce): slate for nonce, slate in slates.items()}
    at = {event.seq: event for event in events}
    for event in events:
        if event.kind == Kind.CORRECTION:
            slate, corrected = by_nonce.get(event.nonce), at.get(unpacked(event, Correction).seq)
            if slate is None or not any(_says(event, slate, click) for click in slate.clicks - {None}):
                wrong.append(f"{stored.name}: event {event.seq} is a correction that nobody sent")
            elif corrected is None or not _says(corrected, slate, None):
                wrong.append(f"{stored.name}: event {event.seq} corrects what is no slate without a click")
    return wrong


def _judge_changes(stored: StoredModel, events: list[Event], ledger: Ledger) -> list[str]:
    wrong = []
    logged = {event.seq: _said(event) for event in events if event.kind not in UNASKED}
    sent = Counter(change.said for change in ledger.changes_sent if change.model == stored.name)
    for said, n in Counter(logged.values()).items():
        if n > sent[said]:
            wrong.append(f"{stored.name}: {said[:2]} is {n} times in the log and was sent {sent[said]} times")
    for seq, said in logged.items():
        then = ledger.followers.get((stored.name, said))
        if then is not None and logged.get(seq + 1) != then:
            wrong.append(
                f"{stored.name}: event {seq} is one half of a request, and the other does not follow"
            )
    return wrong + [
        f"{stored.name}: event {change.seq} is not {change.said[:2]}, acknowledged as such"
        for change in ledger.changes_done
        if change.model == stored.name and logged.get(change.seq or 0) != change.said
    ]


class Recount(NamedTuple):
    """What a trial should have counted, by arm, and how many pages still wait."""

    pages: list[int]
    clicks: list[int]
    corrected: list[int]
    waiting: int = 0


def recounted(events: Iterable[Event]) -> Recount:
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


def _page(payload: bytes, trial: int) -> tuple[float, int, bool] | None:
    """When the page was shown, its arm, and whether it was clicked, if it is one of this trial."""
    try:
        said = read_feedback(payload)
        drawn = read_drawn(said.fields)
    except (ValueError, struct.error):
        return None
    if drawn is None or drawn.assigned is None or drawn.assigned.trial != trial:
        return None
    return said.issued, drawn.assigned.arm, bool(said.clicks)


def _said(event: Event) -> tuple[Any, ...]:
    """A change as `put`, `withdrawn` and `rolled_back` below tell it."""
    body = unpacked(event, BODY_OF[event.kind])
    if isinstance(body, ItemsChanged):
        return put(body.ids, body.names, body.available, body.features)
    if isinstance(body, ItemsWithdrawn):
        return withdrawn(body.ids)
    return rolled_back(body.to)  # type: ignore[union-attr]


def put(*sent: Any) -> tuple[Any, ...]:
    """Ids, names, what is available, and the features as bytes."""
    return "put", *(part if isinstance(part, bytes) else tuple(part) for part in sent)


def withdrawn(ids: Iterable[Any]) -> tuple[Any, ...]:
    return "withdrawn", tuple(ids)


def rolled_back(to: int) -> tuple[Any, ...]:
    return "rolled back", to


def _judge_models(
    store: Store, stored: StoredModel, events: list[Event], ledger: Ledger, served: Iterable[Served]
) -> tuple[list[str], int]:
    """What is wrong, and how many slates were drawn again equal."""
    wrong = list(audit_stored(store, stored).differing)
    model = recover(store, stored, use_snapshots=False)
    slates = [event for event in events if event.kind == Kind.FEEDBACK]
    if model.click_stats.slates != len(slates):
        wrong.append(f"{stored.name}: {model.click_stats.slates} slates learned, {len(slates)} in the log")
    clicks = sum(bool(read_feedback(event.payload).clicks) for event in slates)
    clicks += sum(event.kind == Kind.CORRECTION for event in events)
    if model.click_stats.clicks != clicks:
        wrong.append(f"{stored.name}: {model.click_stats.clicks} clicks learned, {clicks} in the log")
    drawn = audit_slates(store, stored)
    # A slate that was shown before its store was set back may come back after that.
    lost = drawn.not_evaluable.get(LOST, 0) if ledger.set_back else 0
    if drawn.equal + lost != len(slates):
        wrong.append(f"{stored.name}: of {len(slates)} slates {drawn.equal} were drawn again equal: {drawn}")
    if recover(store, stored).digest() != model.digest():
        wrong.append(f"{stored.name}: a restart with snapshots comes to another model than the log")
    for said in served:
        if said.seq > stored.head:
            wrong.append(f"{stored.name}: event {said.seq} was served, and the log ends at {stored.head}")
        elif said.equal:
            then = recover(store, stored._replace(head=said.seq), use_snapshots=False)
            if then.digest() != said.digest:
                wrong.append(f"{stored.name}: the model served at {said.seq} is not what the log comes to")
    return wrong, drawn.equal
