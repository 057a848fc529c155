"""Feedback from the token that comes back to the receipt that is given for it."""

import time
from collections.abc import Sequence

from firstclick.online.feedback import examined_of
from firstclick.serve.log.events import Kind, NewEvent, full_payload, says_the_same
from firstclick.serve.log.token import Token
from firstclick.serve.model.model import Model
from firstclick.serve.store.store import Appended
from firstclick.wire.errors import Conflict, Expired, Refused, Unknown
from firstclick.wire.feedback import ACCEPTED, DUPLICATE, ClickReport, Receipt


def feedback_event(model: Model, token: Token, said: ClickReport, clicks: list[int]) -> NewEvent:
    """What is to be written, or an error; `clicks` are the positions that `said` names."""
    first_alone = model.engine.policy.wants_all_clicks and said.clicks is None
    examined = examined_of(token.size, clicks, said.examined, first_alone=first_alone)
    if not has_rows(model, token):
        raise Unknown(
            "unknown token: it shows items that this model's log does not have, as may be after a backup "
            "was restored; drop it"
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
    return NewEvent(Kind.FEEDBACK, token.nonce, payload, time.time())


def check_not_archived(model: Model, token: Token) -> None:
    """Expired if the slate is as old as some whose events are archived: it may have been counted there."""
    if token.issued_ms <= model.archived_issued:
        raise Expired(
            f"the slate was recommended before event {model.archived_before}, and what was counted of that "
            "time is archived; drop it"
        )


def has_rows(model: Model, token: Token) -> bool:
    """Whether the log, as far as it is folded here, has given all rows of the token."""
    return max(token.row_numbers(), default=-1) < len(model.catalog.items)


def receipt(event: NewEvent, place: Appended) -> Receipt | Refused:
    """What became of feedback whose nonce stands in the log now."""
    if place.new:
        return Receipt(ACCEPTED, place.seq)
    if says_the_same(place.payload, event.payload):
        return Receipt(DUPLICATE, place.seq)
    return Conflict(
        f"other feedback for this slate came before, as event {place.seq}, and stays; "
        "send one piece of feedback for each slate"
    )


def outcomes(
    read: Sequence[NewEvent | Refused], appended: Sequence[Appended] | Refused
) -> list[Receipt | Refused]:
    """What became of each entry, when those that were not refused at once have their place in the log."""
    if isinstance(appended, Refused):
        return [entry if isinstance(entry, Refused) else appended for entry in read]
    places = iter(appended)
    return [entry if isinstance(entry, Refused) else receipt(entry, next(places)) for entry in read]
