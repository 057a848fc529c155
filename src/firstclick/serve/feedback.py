"""Feedback from the token that comes back to the receipt that is given for it."""

import time
from typing import NamedTuple

from firstclick.serve.errors import Conflict, Malformed, Refused, Unknown
from firstclick.serve.events import Kind, NewEvent, feedback_payload, says_the_same
from firstclick.serve.model import Model
from firstclick.serve.store.store import Appended
from firstclick.serve.token import Token

ACCEPTED, DUPLICATE = "accepted", "duplicate"


class Receipt(NamedTuple):
    """Feedback that is in the log: `accepted` now, or a `duplicate` of what was there."""

    status: str
    seq: int


def feedback_event(model: Model, token: Token, click: int | None) -> NewEvent:
    """What is to be written, or a Refused."""
    if click is not None and not 0 <= click < token.size:
        raise Malformed(
            f"click must be null or a position of the slate, 0 to {token.size - 1}, got {click}"
            if token.size
            else f"the slate was empty, so click must be null, got {click}"
        )
    if not has_rows(model, token):
        raise Unknown(
            "unknown token: it shows items that this model's log does not have, as may be after a backup "
            "was restored; drop it"
        )
    payload = feedback_payload(click, token.issued_ms, token.rows)
    return NewEvent(Kind.FEEDBACK, token.nonce, payload, time.time())


def has_rows(model: Model, token: Token) -> bool:
    """Whether the log, as far as it is folded here, has given all rows of the token."""
    return max(token.row_numbers(), default=-1) < len(model.shelf.catalog.items)


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
