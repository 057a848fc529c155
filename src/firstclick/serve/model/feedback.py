"""Feedback from the token that comes back to the receipt that is given for it."""

from collections.abc import Sequence

import msgspec

from firstclick.online.feedback import examined_of
from firstclick.serve.log.events import (
    Correction,
    Kind,
    NewEvent,
    full_payload,
    packed,
    read_feedback,
    says_the_same,
    time_out_of,
)
from firstclick.serve.log.token import Token, nonce_of_correction
from firstclick.serve.model.model import Model
from firstclick.serve.store.store import Appended
from firstclick.wire.errors import Conflict, Expired, Late, Refused, Unknown
from firstclick.wire.feedback import ACCEPTED, CORRECTED, DUPLICATE, ClickReport, Receipt


def feedback_event(model: Model, token: Token, said: ClickReport, clicks: list[int], now: float) -> NewEvent:
    """What is to be written, or an error; `clicks` are the positions that `said` names."""
    first_alone = model.engine.policy.wants_all_clicks and said.clicks is None
    name = "click" if said.clicks is None else "clicks"
    examined = examined_of(token.size, clicks, said.examined, first_alone=first_alone, name=name)
    if not has_rows(model, token):
        raise Unknown(
            "is unknown: it shows items that the model's log does not have, which happens after a backup was "
            "restored; drop it",
            "token",
        )
    payload = full_payload(
        clicks,
        token.issued_ms,
        token.rows,
        examined=examined,
        context=token.context,
        features=token.features,
        fields=token.fields,
    )
    return NewEvent(Kind.FEEDBACK, token.nonce, payload, now)


def check_not_archived(model: Model, token: Token) -> None:
    """Expired if the slate is as old as some whose events are archived: it may have been counted there."""
    if token.issued_ms <= model.archived_issued:
        raise Expired(
            f"is of a slate from before event {model.archived_before}, and earlier events are archived; drop "
            "it",
            "token",
        )


def has_rows(model: Model, token: Token) -> bool:
    """Whether the log, as far as it is folded here, has given all rows of the token."""
    return max(token.row_numbers(), default=-1) < len(model.catalog.items)


def receipt(model: Model, event: NewEvent, place: Appended) -> Receipt | Refused | NewEvent:
    """What became of feedback, or of a correction, whose nonce stands in the log now; or the correction that
    has to be written now."""
    if event.kind == Kind.CORRECTION:
        before, said = (
            msgspec.msgpack.decode(one.payload, type=Correction).feedback for one in (place, event)
        )
        if place.new:
            return Receipt(CORRECTED, place.seq)
        return Receipt(DUPLICATE, place.seq) if says_the_same(before, said) else _conflict(place.seq)
    if place.new:
        return Receipt(ACCEPTED, place.seq)
    if says_the_same(place.payload, event.payload):
        return Receipt(DUPLICATE, place.seq)
    given_up = time_out_of(place.payload)
    return _conflict(place.seq) if given_up is None else _late(model, event, place, given_up)


def _late(model: Model, event: NewEvent, place: Appended, given_up_ms: int) -> Receipt | Refused | NewEvent:
    """Feedback for a slate that counts as one without a click, because nobody had reported it in time."""
    before, said = read_feedback(place.payload), read_feedback(event.payload)
    if (before.rows, before.context, before.features) != (said.rows, said.context, said.features):
        return _conflict(place.seq)
    if not said.clicks:
        return Receipt(DUPLICATE, place.seq)
    policy = model.engine.policy
    if not policy.corrects or said.features:
        return Late(
            f"is of a slate that counts as not clicked, as event {place.seq}, because no feedback came in "
            f"time, and {policy.label} cannot take that back"
            + (" for a request with features" if policy.corrects else "")
            + "; set no_click_after to a longer time if this happens often",
            "token",
        )
    body = Correction(place.seq, given_up_ms / 1000, event.payload)
    return NewEvent(Kind.CORRECTION, nonce_of_correction(event.nonce), packed(body), event.received)


def _conflict(seq: int) -> Conflict:
    return Conflict(
        f"has other feedback already, as event {seq}, which stays; send one report for each slate", "token"
    )


def outcomes(
    model: Model, read: Sequence[NewEvent | Receipt | Refused], appended: Sequence[Appended] | Refused
) -> list[Receipt | Refused | NewEvent]:
    """What became of each entry, when those that are events have their place in the log; or the correction
    that has to be written for it."""
    if isinstance(appended, Refused):
        return [appended if isinstance(entry, NewEvent) else entry for entry in read]
    places = iter(appended)
    return [receipt(model, entry, next(places)) if isinstance(entry, NewEvent) else entry for entry in read]
