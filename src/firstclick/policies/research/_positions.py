"""What policies share that know how likely each position is examined."""

from math import sqrt
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.click_models import ClickModel, PositionBased
from firstclick.errors import InvalidInput
from firstclick.kernels.compiling import kernel
from firstclick.parameters import param
from firstclick.policies.base import PlainParameters, Policy, State
from firstclick.validation.ranges import BIT, Range, check_no_more


class PositionState(NamedTuple):
    """What was shown where, and clicked."""

    shown: NDArray[np.int64]  # items x positions
    hits: NDArray[np.int64]
    examination: NDArray[np.float64]  # by position: the chance of being examined
    time: NDArray[np.int64]


@kernel
def sums_of(state, row):  # type: ignore[no-untyped-def]
    """How often an item was shown, how often it was examined on the average of all users, and clicked."""
    shown, examined, hits = 0.0, 0.0, 0.0
    for position in range(len(state.examination)):
        shown += state.shown[row, position]
        examined += state.examination[position] * state.shown[row, position]
        hits += state.hits[row, position]
    return shown, examined, hits


@kernel
def spread(slate, n, chances):  # type: ignore[no-untyped-def]
    """Put the best of `n` ranked items where the chance is largest, the next where it is next largest, and so
    on; return the position of the last that has any chance."""
    ranked = slate[:n].copy()
    # Positions of equal chance from the top down, as a stable sort has them.
    where = np.argsort(-chances[:n], kind="mergesort")
    for j in range(n):
        slate[where[j]] = ranked[j]
    last = n - 1
    while last > 0 and chances[where[last]] == 0.0:
        last -= 1
    return where[last] if n > 0 else 0


class PositionPolicy(Policy):
    """A policy for users who examine each position by a known chance, whatever stands elsewhere."""

    family = "clicks"
    made_for = ("by-position",)
    click_model: ClassVar[ClickModel] = PositionBased()
    wants_all_clicks: ClassVar[bool] = True
    by_item = ("shown", "hits")

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
                f"must have a chance above 0, got {self.examination}", "examination", self.name
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

    def merge(self, first: PositionState, second: PositionState) -> PositionState:
        return PositionState(
            first.shown + second.shown, first.hits + second.hits, first.examination, first.time + second.time
        )

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        for position in range(examined):
            state.shown[slate[position], position] += 1
            state.hits[slate[position], position] += clicks[position]
        state.time[0] += 1

    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):  # type: ignore[no-untyped-def]
        # That of Beta(1 + hits, 1 + misses), with the examinations to be expected.
        for j in range(len(rows)):
            _, examined, hits = sums_of(state, rows[j])
            # More clicks than examinations to be expected are possible, an attraction above 1 is not.
            rate = (1.0 + hits) / (2.0 + max(examined, hits))
            means[j] = rate
            deviations[j] = sqrt(rate * (1.0 - rate) / (3.0 + max(examined, hits)))
