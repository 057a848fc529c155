"""The floor under a policy's clicks: how large a share of pages may show its slates instead of the baseline.

`kernels/floor.py` says what is promised and why it holds. Here are its words for people.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.kernels.floor import (
    BASE_CLICKS,
    BASE_PAGES,
    LEAST,
    MOST,
    PAGES,
    POLICY_CLICKS,
    POLICY_PAGES,
    SHARES,
    allowed_share,
    blank_floor,
    observe_page,
    rate_bounds,
    room,
)  # fmt: skip
from firstclick.validation.quoting import quoted

CONFIDENCE = 0.95

ASSUMED = (
    "Assumed: the baseline's click rate is constant. Only reported pages count, and whether a page is "
    "reported does not depend on what it showed. A click is a page with at least one click."
)


class FloorReport(NamedTuple):
    """Where a floor stands."""

    max_loss: float
    confidence: float
    pages: int
    policy_pages: int
    policy_clicks: int
    baseline_pages: int
    baseline_clicks: int
    # The baseline's click rate lies between these two, with confidence, at all times at once.
    baseline_rate_low: float
    baseline_rate_high: float
    # The expected clicks of all pages so far are at least so many times those of the baseline.
    at_least: float
    # So many pages without a click the policy may still show beyond a share of max_loss.
    room: float
    share: float  # of the next page, if nothing is out
    assumed: str = ASSUMED

    def __str__(self) -> str:
        """The promise, what it rests on, and what came of it so far."""
        promise = (
            f"With {self.confidence:.0%} confidence, at all times at once: the expected clicks of the pages "
            f"so far are at least {1 - self.max_loss:.0%} of what the baseline would have got on them. "
            f"{self.assumed}"
        )
        if not self.pages:
            return f"{promise} No page was reported yet."
        return (
            f"{promise} {self.pages:,} pages: at least {self.at_least:.1%} of the baseline; the policy "
            f"showed {self.policy_pages:,}, and shows {self.share:.1%} of the next. The baseline's click "
            f"rate is between {self.baseline_rate_low:.2%} and {self.baseline_rate_high:.2%}."
        )


class Floor:
    """Decides the share of the policy's slates, page by page.

    `array` is all it knows: `kernels.floor` has its places. Not safe for use by several threads at once.

    >>> floor = Floor(max_loss=0.05)
    >>> floor.share()
    0.05
    >>> for page in range(400):  # The policy showed every 20th, and all of these were clicked.
    ...     floor.observe(0.05, by_policy=page % 20 == 0, clicked=page % 5 == 0)
    >>> floor.share()
    1.0
    >>> floor.report().policy_pages
    20
    """

    def __init__(
        self, max_loss: float, confidence: float = CONFIDENCE, array: NDArray[np.float64] | None = None
    ) -> None:
        """A floor before its first page, or one that goes on with `array`."""
        self.max_loss = check_max_loss(max_loss)
        if not 0 < confidence < 1:
            raise InvalidInput(f"must be above 0 and below 1, got {quoted(confidence)}", "confidence")
        self.confidence = confidence
        self.array = blank_floor(confidence) if array is None else array

    def share(self, out: float = 0.0, replicas: int = 1) -> float:
        """The probability with which the next page may show the policy's slate.

        `out` is the sum of `taken(share)` over slates of this process that are out: recommended, and not yet
        observed by this floor. They count as no click. Each of `replicas` processes may spend an equal part
        of the room. A process does not see what others have out. So together they may overspend, by at most
        (1 - 1/replicas) of the room, and by at most 1 - max_loss for each slate that others had out.
        Processes that have not heard of each other yet, as for a second or two after a start, may each spend
        all of it. The same holds for slates that a process forgets when it dies. What was overspent is won
        back: as long as the room is negative, the share is below max_loss.
        """
        return float(allowed_share(self.array, self.max_loss, float(out), float(replicas)))

    def taken(self, share: float) -> float:
        """The part of the room that a slate of this share takes while it is out."""
        return max(share - self.max_loss, 0.0)

    def observe(self, share: float, by_policy: bool, clicked: bool) -> None:
        """Add a page that was reported: its share when it was recommended (0 where the policy could not be
        shown, as in a holdout), whether it showed the policy's slate, and whether it was clicked."""
        observe_page(self.array, float(share), bool(by_policy), bool(clicked))

    def report(self) -> FloorReport:
        """Where it stands."""
        array = self.array
        pages = array[PAGES]
        low, high = rate_bounds(array)
        above = array[LEAST] / array[MOST] - array[SHARES]
        return FloorReport(
            max_loss=self.max_loss,
            confidence=self.confidence,
            pages=int(pages),
            policy_pages=int(array[POLICY_PAGES]),
            policy_clicks=int(array[POLICY_CLICKS]),
            baseline_pages=int(array[BASE_PAGES]),
            baseline_clicks=int(array[BASE_CLICKS]),
            baseline_rate_low=low,
            baseline_rate_high=high,
            at_least=float(1 + above / pages) if pages else 1.0,
            room=float(room(array, self.max_loss)),
            share=self.share(),
        )


def check_max_loss(value: object) -> float:
    """The largest share of the baseline's clicks that may be lost, or InvalidInput."""
    # 1 promises nothing: the policy decides every slate, and the list is there to compare with.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise InvalidInput(
            f"must be a share of the baseline's clicks above 0, such as 0.05, and at most 1 (all of "
            f"them), got {quoted(value)}",
            "max_loss",
        )
    return float(value)
