"""What policies share that know how likely each position is examined."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from firstclick.click_models import ClickModel, PositionBased
from firstclick.errors import InvalidInput
from firstclick.kernels.positions import PositionState, count_positions, estimate_attractions
from firstclick.parameters import param
from firstclick.policies.base import PlainParameters, Policy, State
from firstclick.validation.ranges import BIT, Range, check_no_more


class PositionPolicy(Policy):
    """A policy for users who examine each position by a known chance, whatever stands elsewhere."""

    family = "clicks"
    made_for = ("by-position",)
    click_model: ClassVar[ClickModel] = PositionBased()
    wants_all_clicks: ClassVar[bool] = True

    examination: tuple[float, ...] = param(
        PositionBased.usual,
        "chances of being examined by position, separated by /; the last one holds for all further positions",
        at_least=0,
        at_most=1,
        told="examination",
    )
    eps: float = param(0.01, "the confidence budget is (1 + eps) log t", at_least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not any(self.examination):
            raise InvalidInput(
                f"{self.name}: some chance of examination must be above 0, got {self.examination}"
            )

    def numbers(self, k: int, features: NDArray[np.float64]) -> PlainParameters:
        # Kernels find the chances in the state: an array of k, where a tuple would be compiled by length.
        return self._pack(examination=0.0)

    def initial_state(self, n_items: int, n_features: int, k: int) -> PositionState:
        return PositionState(
            shown=np.zeros((n_items, k), np.int64),
            hits=np.zeros((n_items, k), np.int64),
            examination=PositionBased(*self.examination).by_position(k),
            time=np.zeros(1, np.int64),
        )

    def ranges(self, n_items: int, k: int) -> dict[str, Range]:
        return {"examination": BIT}

    def check_state(self, state: State, n_items: int, k: int) -> None:
        super().check_state(state, n_items, k)
        check_no_more(self.name, "hits", state.hits, "shown", state.shown)

    def grow(self, state: PositionState, n_items: int) -> PositionState:
        more = ((0, n_items - len(state.shown)), (0, 0))
        return state._replace(shown=np.pad(state.shown, more), hits=np.pad(state.hits, more))

    def merge(self, first: PositionState, second: PositionState) -> PositionState:
        return PositionState(
            first.shown + second.shown, first.hits + second.hits, first.examination, first.time + second.time
        )

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        count_positions(state, slate, examined, clicks)

    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):  # type: ignore[no-untyped-def]
        estimate_attractions(state, rows, means, deviations)
