"""What policies share that need no click model: they compare items that had the same chances."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firstclick.click_models import ClickModel, PositionBased
from firstclick.errors import InvalidInput
from firstclick.kernels.compiling import kernel
from firstclick.parameters import param
from firstclick.policies.base import Policy, State
from firstclick.validation.ranges import check_no_more

# A number for each pair of so many items takes 16 MB.
MOST_ITEMS = 2000
# What to do instead of asking for some items only, or for some in certain places.
_COMPARE_SHOWN = "or take top-rank:pairs=shown, which compares only items that were both shown"
CLICK_MODEL = "or take a policy with a click model, such as cascade-mixed"


class RankingPolicy(Policy):
    """A policy that only takes better items to be clicked more often in the same places."""

    family = "ranking"
    made_for = ("by-position",)
    click_model: ClassVar[ClickModel] = PositionBased()
    # What a slate compares depends on what was known before it.
    mergeable: ClassVar[bool] = False
    order_free: ClassVar[bool] = False
    # Items are compared that had the same chances, which it saw to when it showed them.
    learns_from_others: ClassVar[bool] = False
    # A request that leaves items out, or moves them, gives other chances to each.
    misreads: ClassVar[Mapping[str, str]] = {
        "candidates": _COMPARE_SHOWN, "exclude": _COMPARE_SHOWN, "pinned": CLICK_MODEL, "at_most": CLICK_MODEL
    }  # fmt: skip

    horizon: int = param(
        100_000, "n: slates that its confidence is meant for; 100,000 is our choice",
        at_least=2, told="horizon",
    )  # fmt: skip


class PairPolicy(RankingPolicy):
    """A policy that counts, for pairs of items that had the same chances, which one was clicked alone."""

    def _no_wins(self, n_items: int) -> NDArray[np.int32]:
        if n_items > MOST_ITEMS:
            raise InvalidInput(
                f"must be at most {MOST_ITEMS:,} for {self.name}, which keeps a number for each pair, got "
                f"{n_items:,}; choose some of them first, or use a policy with features",
                "items",
            )
        return np.zeros((n_items, n_items), np.int32)


def widened(square: NDArray[Any], n_items: int) -> NDArray[Any]:
    """The square array with zeros for the items added."""
    more = n_items - len(square)
    return np.pad(square, ((0, more), (0, more)))


@kernel
def allowed_by(request, n_items):  # type: ignore[no-untyped-def]
    """A 1 for each row that the request allows."""
    candidates, hidden = request.candidates, request.hidden
    allowed = np.ones(n_items, np.uint8)
    if len(candidates) > 0:
        allowed[:] = 0
        for row in candidates:
            allowed[row] = 1
    # The catalog may have rows already for which a policy has made no room yet.
    for row in range(min(len(hidden), n_items)):
        if hidden[row]:
            allowed[row] = 0
    return allowed


class BlockPolicy(RankingPolicy):
    """A policy that gives slots to blocks of items, and counts how often an item was shown and clicked.

    A state has an array by slot, which says how far the block is that begins there, -1 for none.
    """

    by_slot: ClassVar[str]

    def _no_blocks(self, k: int) -> NDArray[np.int64]:
        """One block, for all slots."""
        by_slot = np.full(k, -1, np.int64)
        by_slot[0] = 0
        return by_slot

    def check_state(self, state: State, n_items: int, k: int) -> None:
        super().check_state(state, n_items, k)
        check_no_more(self.name, "hits", state.hits, "shown", state.shown)
        first = getattr(state, self.by_slot)[0]
        if first < 0:
            raise InvalidInput(f"must be at least 0 for the first slot, got {first}", self.by_slot, self.name)


@kernel
def slots_of_block(by_slot, start):  # type: ignore[no-untyped-def]
    """How many slots the block has that begins here."""
    slots = 1
    while start + slots < len(by_slot) and by_slot[start + slots] < 0:
        slots += 1
    return slots
