"""What linear policies of several clicks share: what they make of the positions after the last one."""

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.click_models import ClickModel, DependentClick, LeavingUnseen
from firstclick.kernels.clicks import UNTOLD
from firstclick.kernels.posterior import linear, mean, observe, observe_slate, probability_of
from firstclick.kernels.ranking import features_at
from firstclick.parameters import param
from firstclick.policies._linear import LinearPolicy
from firstclick.policies.base import PlainParameters
from firstclick.validation.ranges import COUNT, Range

# What stands for a chance of leaving that nobody knows, and for learning down to the last click alone.
LEARNED, LAST_CLICK = -1.0, 0.0


class DependentState(NamedTuple):
    """What a linear policy of several clicks knows: the posterior, and how often users go on after one."""

    precision: NDArray[np.float64]
    moment: NDArray[np.float64]
    factor: NDArray[np.float64]
    observations: NDArray[np.int64]
    time: NDArray[np.int64]
    going_on: NDArray[np.float64]  # how many were seen to go on, and how many would be if all did


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

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        """Where the page does not tell how far was examined, what comes after the last click counts with the
        chance that the user went on. If `stop` is LEARNED, it follows from how many were seen to go on: by a
        click further down, which those who go on make with a chance that follows from what is held of the
        items there."""
        posterior, sigma, stop = linear(state), numbers.sigma, numbers.stop
        scale = getattr(numbers, "scale", 1.0)  # Only a CascadeLinUCB has one.
        if stop == LAST_CLICK:
            observe_slate(posterior, catalog, request, slate, examined, clicks, sigma, scale)
            return
        seen, n = state.going_on, len(slate)
        end = n if examined == UNTOLD else examined
        last = end - 1
        while last >= 0 and not clicks[last]:
            last -= 1
        sure, weight = end, 1.0
        if examined == UNTOLD:
            sure = last + 1
            if stop == LEARNED:
                stop = 1.0 - min((seen[0] + 0.5) / (seen[1] + 1.0), 1.0)
            theta = mean(state.moment, state.factor, sigma)
            silent = 1.0  # the chance that somebody who looks at all positions below clicks none
            for position in range(n - 1, -1, -1):
                if clicks[position]:
                    seen[0] += position < last
                    seen[1] += 1.0 - silent
                if position == last:
                    went_on = (1.0 - stop) * silent
                    weight = went_on / (stop + went_on) if went_on > 0.0 else 0.0
                x = features_at(catalog, request, slate[position], position)
                silent *= 1.0 - probability_of(x, theta, scale)
        else:
            for position in range(min(end, n - 1)):  # After the last place nobody can go on.
                seen[0] += clicks[position] and position + 1 < end
                seen[1] += clicks[position]
        for position in range(end):
            counted = 1.0 if position < sure else weight
            if counted > 0.0:
                x = features_at(catalog, request, slate[position], position)
                observe(posterior, x, clicks[position], sigma, scale, counted)
        state.time[0] += 1
