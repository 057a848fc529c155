"""Feedback from the token that comes back to the receipt that is given for it."""

import operator
import time
from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec import UNSET

from firstclick.serve.log.events import Kind, NewEvent, full_payload, says_the_same
from firstclick.serve.log.token import Token
from firstclick.serve.model.model import Model
from firstclick.serve.store.store import Appended
from firstclick.validation.quoting import quoted
from firstclick.wire.errors import Conflict, Malformed, Refused, Unknown
from firstclick.wire.feedback import ACCEPTED, DUPLICATE, ClickReport, Receipt


def positions(said: ClickReport) -> list[int]:
    """The positions that were clicked, from the top, each once; or Malformed."""
    if said.clicks is None:
        if said.click is UNSET:
            raise Malformed("click is missing; give it, null if nothing was clicked, or give clicks")
        return [] if said.click is None else [_whole("click", said.click)]
    if said.click is not UNSET:
        raise Malformed("click and clicks are both given; give click for the first one, or clicks for all")
    if isinstance(said.clicks, str | bytes) or not isinstance(said.clicks, Iterable):
        raise Malformed(f"clicks must be a list of positions, got {quoted(said.clicks)}")
    found = sorted(_whole("clicks", position) for position in said.clicks)
    for position, other in pairwise(found):
        if position == other:
            raise Malformed(f"clicks must be different positions, got {quoted(position)} twice")
    return found


def _whole(name: str, value: object) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise Malformed(f"{name}: a position must be a whole number, got {quoted(value)}") from None


def feedback_event(model: Model, token: Token, said: ClickReport, clicks: Sequence[int]) -> NewEvent:
    """What is to be written, or a Refused; the clicks come from the top."""
    examined = said.examined
    _check_positions(token.size, clicks, examined)
    if model.engine.policy.wants_all_clicks and said.clicks is None and clicks and examined is None:
        examined = clicks[0] + 1
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
    )
    return NewEvent(Kind.FEEDBACK, token.nonce, payload, time.time())


def _check_positions(size: int, clicks: Sequence[int], examined: int | None) -> None:
    for click in clicks:
        if not 0 <= click < size:
            raise Malformed(
                f"click must be null or a position of the slate, 0 to {size - 1}, got {quoted(click)}"
                if size
                else f"the slate was empty, so click must be null, got {quoted(click)}"
            )
    if examined is None:
        return
    if not 0 <= _whole("examined", examined) <= size:
        raise Malformed(
            f"examined must lie between 0 and {size}, the items of the slate, got {quoted(examined)}"
        )
    if clicks and clicks[-1] >= examined:
        raise Malformed(
            f"position {clicks[-1]} was clicked, and only {examined} positions are said to be examined; "
            f"examined must be at least {clicks[-1] + 1}, or left out"
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
