"""What linear learners of several clicks share: what they make of the positions after the last one."""

from typing import ClassVar

from firstclick.click_models import ClickModel, DependentClick, PositionBased
from firstclick.declaration import param
from firstclick.policies._linear import LinearPolicy


class DependentClickPolicy(LinearPolicy):
    """A linear learner of users who click what attracts them, and after each click leave by chance."""

    click_model: ClassVar[ClickModel] = DependentClick()

    stop: float | None = param(
        None, "chance of leaving after a click, if known", kind=float, above=0, at_most=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stop is not None:
            # All positions may have been examined, and the weights say how likely it is. They follow from
            # what was known before, so that neither logs nor slates can change places.
            for name, value in (
                ("click_model", PositionBased()), ("mergeable", False), ("order_free", False)
            ):  # fmt: skip
                object.__setattr__(self, name, value)
