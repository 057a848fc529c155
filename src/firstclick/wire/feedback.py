"""What is shown, what a page reports of it, and the receipt for that."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from firstclick.catalog.ids import ItemId
from firstclick.not_given import NOT_GIVEN, NotGiven
from firstclick.validation.quoting import quoted
from firstclick.wire.errors import Malformed

Status = Literal["accepted", "duplicate", "corrected"]
ACCEPTED: Status = "accepted"
DUPLICATE: Status = "duplicate"
CORRECTED: Status = "corrected"


class Receipt(NamedTuple):
    """Feedback that is in the log: `accepted` now, or a `duplicate` of what was there, or a click that has
    `corrected` a slate which counted as one without a click, because nobody had reported it in time.

    >>> Receipt("accepted", 7).status
    'accepted'
    """

    status: Status
    seq: int


class ServedSlate(NamedTuple):
    """A slate, best first; what is held for each item's attraction; what to send back with the click; and the
    pinned items that are not in it, because they are excluded or withdrawn.

    `explored`: it was drawn uniformly, not by the policy. `not_evaluable` says why the slate cannot be drawn
    again later, if it cannot. `reasons` has a word for each item: policy, explored, pinned, floor, holdout or
    baseline. `without_exploring` tells, if it was asked for and is known, whether the policy would show each
    item if it did not explore.

    >>> ServedSlate(items=["tea"], scores=[0.5], token="AwEA", seq=3).items
    ['tea']
    """

    items: list[ItemId]
    scores: list[float | None]
    token: str
    seq: int
    skipped_pins: tuple[ItemId, ...] = ()
    explored: bool = False
    not_evaluable: str = ""
    reasons: tuple[str, ...] = ()
    without_exploring: tuple[bool, ...] | None = None


class ClickReport(NamedTuple):
    """What a page says of a slate, or of its token: `click`, the first position clicked (None: none was), or
    `clicks`, all of them; and how many positions from the top were examined, if it knows.

    >>> from firstclick.serve import Item, open_service
    >>> with open_service("shop.db") as service:
    ...     _ = service.create("shop", policy="random", k=2, items=[Item("tea"), Item("milk")], seed=1)
    ...     report = ClickReport(service.recommend("shop"), clicks=[0, 1], examined=2)
    >>> report.clicks, report.examined
    ([0, 1], 2)
    """

    slate: str | ServedSlate
    click: int | NotGiven | None = NOT_GIVEN
    clicks: Sequence[int] | None = None
    examined: int | None = None

    def token(self) -> str:
        """The token of the slate, or Malformed."""
        token = getattr(self.slate, "token", self.slate)
        if not isinstance(token, str):
            raise Malformed(f"a slate, or its token, must be given with a click, got {quoted(token)}")
        return token


# A slate, or its token, and the first click; or more.
Entry = tuple[str | ServedSlate, int | None] | ClickReport


def report_of(entry: Entry) -> ClickReport:
    """What an entry of a batch says, or Malformed."""
    if isinstance(entry, ClickReport):
        return entry
    given: object = entry
    # Not any tuple: a slate alone is one too.
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise Malformed(
            f"an entry must be (slate, click) or ClickReport(slate, clicks=...), got {quoted(given)}"
        )
    return ClickReport(*given)
