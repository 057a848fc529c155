"""What linear policies of several clicks share: what they make of the positions after the last one."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from firstclick.click_models import ClickModel, DependentClick, LeavingUnseen
from firstclick.kernels.weighting import LAST_CLICK, LEARNED, DependentState
from firstclick.parameters import param
from firstclick.policies._linear import LinearPolicy
from firstclick.policies.base import PlainParameters
from firstclick.validation.ranges import COUNT, Range


class DependentClickPolicy(LinearPolicy):
    """A linear policy of users who click what attracts them, and after each click leave by chance."""

    family = "clicks"
    made_for: ClassVar[tuple[str, ...]] = ("dependent-clicks",)
    click_model: ClassVar[ClickModel] = DependentClick()

    stop: float | str | None = param(
        None, "chance of leaving after a click, if known, or 'learned'; else it learns down to the last one",
        kind=float, above=0, at_most=1, words=("learned",),
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stop is not None:
            # What comes after the last click counts as much as it is likely to have been examined. That
            # follows from what was known before, so that neither logs nor slates can change places.
            for name, value in (
                ("click_model", LeavingUnseen()), ("mergeable", False), ("order_free", False)
            ):  # fmt: skip
                object.__setattr__(self, name, value)

    def numbers(self, k: int, features: NDArray[np.float64]) -> PlainParameters:
        stop = LEARNED if isinstance(self.stop, str) else self.stop or LAST_CLICK
        return super().numbers(k, features)._replace(stop=stop)

    def initial_state(self, n_items: int, n_features: int, k: int) -> DependentState:  # type: ignore[override]
        return DependentState(*super().initial_state(n_items, n_features, k), going_on=np.zeros(2))

    def ranges(self, n_items: int, k: int) -> dict[str, Range]:
        return {"going_on": COUNT}
