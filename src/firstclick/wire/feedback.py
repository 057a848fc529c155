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
    """Confirms that feedback is in the log.

    >>> Receipt("accepted", 7).status
    'accepted'

    Attributes:
        status: `accepted`: the feedback is new. `duplicate`: it was in the log already. `corrected`: a click
            replaced the "no click" of a slate that nobody had reported in time.
        seq: The number of the event in the model's log.
    """

    status: Status
    seq: int


class ServedSlate(NamedTuple):
    """A slate from the service, and the token to send back with the click.

    >>> ServedSlate(items=["tea"], scores=[0.5], token="AwEA", seq=3).items
    ['tea']

    Attributes:
        items: The items to show, best first.
        scores: The estimated attraction of each item; None where the policy has no estimate.
        token: Send it back with the feedback.
        seq: The last event of the log that this slate was based on.
        skipped_pins: Pinned items that are not shown because they are excluded or hidden.
        explored: Whether the slate was drawn uniformly instead of by the policy.
        not_evaluable: Why the slate cannot be used for evaluation later; empty if it can.
        reasons: Why each item is shown: `policy`, `explored`, `pinned`, `floor`, `holdout` or `baseline`.
        without_exploring: With `explain=True`: whether the policy would show each item without exploring.
            None if unknown.
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
    """What a page reports for one slate. Give either `click` or `clicks`.

    >>> from firstclick.serve import Item, open_service
    >>> with open_service("shop.db") as service:
    ...     _ = service.create("shop", policy="random", k=2, items=[Item("tea"), Item("milk")], seed=1)
    ...     report = ClickReport(service.recommend("shop"), clicks=[0, 1], examined=2)
    >>> report.clicks, report.examined
    ([0, 1], 2)

    Attributes:
        slate: The slate, or its token.
        click: The position that was clicked first, from 0; None if nothing was clicked.
        clicks: All positions that were clicked.
        examined: How many positions from the top the user looked at, if the page knows.
    """

    slate: str | ServedSlate
    click: int | NotGiven | None = NOT_GIVEN
    clicks: Sequence[int] | None = None
    examined: int | None = None

    def token(self) -> str:
        """The token of the slate, or Malformed."""
        token = getattr(self.slate, "token", self.slate)
        if not isinstance(token, str):
            raise Malformed(f"must be the token of a slate, got {quoted(token)}", "token")
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
            f"must be pairs of slate and click, or ClickReport(slate, clicks=...), got {quoted(given)}",
            "entries",
        )
    return ClickReport(*given)
