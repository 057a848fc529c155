"""What policies share that compare items two by two: who was clicked when the other was not."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firstclick.click_models import ClickModel, PositionBased
from firstclick.errors import InvalidInput
from firstclick.parameters import param
from firstclick.policies.base import Policy

# A number for each pair of so many items takes 16 MB.
MOST_ITEMS = 2000


class PairPolicy(Policy):
    """A policy that counts, for pairs of items that had the same chances, which one was clicked alone."""

    family = "ranking"
    made_for = ("by-position",)
    click_model: ClassVar[ClickModel] = PositionBased()
    # Which pairs a slate compares depends on what was known before it.
    mergeable: ClassVar[bool] = False
    order_free: ClassVar[bool] = False
    # Items are compared that had the same chances, which it saw to when it showed them.
    learns_from_others: ClassVar[bool] = False

    horizon: int = param(
        100_000, "n: slates that its confidence is meant for; 100,000 is our choice",
        at_least=2, told="horizon",
    )  # fmt: skip

    def _no_wins(self, n_items: int) -> NDArray[np.int32]:
        if n_items > MOST_ITEMS:
            raise InvalidInput(
                f"{self.name} keeps a number for each pair of items and takes at most {MOST_ITEMS:,} items, "
                f"got {n_items:,}; choose some of them first, or take a policy with features"
            )
        return np.zeros((n_items, n_items), np.int32)


def widened(square: NDArray[Any], n_items: int) -> NDArray[Any]:
    """The square array with zeros for the items added."""
    more = n_items - len(square)
    return np.pad(square, ((0, more), (0, more)))
