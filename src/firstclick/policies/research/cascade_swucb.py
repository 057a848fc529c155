"""CascadeSWUCB."""

from math import ceil, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.parameters import param
from firstclick.policies.base import PlainParameters, State
from firstclick.policies.research._forgetting import ForgettingCountPolicy, rank_by_radius
from firstclick.validation.ranges import BIT, Range


class WindowState(NamedTuple):
    """Counts of the last slates, and these slates, so that the oldest can be taken away again.

    The slate of time t is in line t modulo the number of lines.
    """

    examined: NDArray[np.int64]
    hits: NDArray[np.int64]
    shown: NDArray[np.int32]  # the rows of each slate that were examined, then -1
    clicked: NDArray[np.uint8]
    time: NDArray[np.int64]


class CascadeSWUCB(ForgettingCountPolicy):
    """Rank items by the upper confidence bound of their click rate in the last slates, a sliding window.

    For the cascade: the first click ends the slate, and items attract independently. Tastes may change at any
    time: what is older than `window` slates is forgotten.

    U(e) = hits / examined + sqrt(radius * log(min(t, window)) / examined), counted in the window, with t the
    slates learned from; items not examined in the window come first (our choice). With a window as long as
    the run it is cascade-ucb1:radius=0.5,start=first, slate by slate. Regret O(L sqrt(changes * n log n))
    where the window knows of the number of changes.

    The radius is sqrt(epsilon log(min(t, window)) / examined); epsilon = 0.5 is our choice.
    window = 2 sqrt(n log n) for n steps, which `horizon` sets, 2146 for 100,000, is what Garivier and
    Moulines 2011 have for one change. The state holds every slate of the window.
    """

    name = "cascade-swucb"
    draws = False
    paper = "Li and de Rijke 2019 (CascadeSWUCB)"
    by_horizon = "window"

    radius: float = param(0.5, "weight of the confidence radius", above=0)
    window: int = param(2146, "slates that are remembered", at_least=1, at_most=10**7)
    horizon: int | None = param(
        None,
        "steps that the window is made for, in place of it: 2 sqrt(horizon log(horizon))",
        kind=int,
        at_least=1,
        at_most=10**12,
        told="horizon",
    )

    @property
    def _length(self) -> int:
        """How many slates are remembered."""
        if self.horizon is None:
            return self.window
        return max(ceil(2.0 * sqrt(self.horizon * log(self.horizon))), 1)

    def numbers(self, k: int, features: NDArray[np.float64]) -> PlainParameters:
        return self._pack(window=self._length)

    def initial_state(self, n_items: int, n_features: int, k: int) -> WindowState:
        return WindowState(
            examined=np.zeros(n_items, np.int64),
            hits=np.zeros(n_items, np.int64),
            shown=np.full((self._length, k), -1, np.int32),
            clicked=np.zeros((self._length, k), np.uint8),
            time=np.zeros(1, np.int64),
        )

    def ranges(self, n_items: int, k: int) -> dict[str, Range]:
        return {"shown": Range(-1, n_items - 1), "clicked": BIT}

    def check_state(self, state: State, n_items: int, k: int) -> None:
        super().check_state(state, n_items, k)
        rows, clicked = state.shown[state.shown >= 0], state.clicked[state.shown >= 0]
        for name, counted in (("examined", rows), ("hits", rows[clicked == 1])):
            # They are counted down when a slate leaves the window.
            if not np.array_equal(getattr(state, name), np.bincount(counted, minlength=n_items)):
                raise InvalidInput(f"{self.name}: {name} must be what the slates of its window come to")

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        budget = numbers.radius * log(max(min(state.time[0], numbers.window), 1))
        return rank_by_radius(state.examined, state.hits, budget, catalog, request, key, slate)

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        line = state.time[0] % numbers.window
        shown, clicked = state.shown[line], state.clicked[line]
        for position in range(len(shown)):
            if shown[position] >= 0:
                state.examined[shown[position]] -= 1
                state.hits[shown[position]] -= clicked[position]
            shown[position] = -1
            clicked[position] = 0
        for position in range(examined):
            item = slate[position]
            shown[position] = item
            clicked[position] = clicks[position]
            state.examined[item] += 1
            state.hits[item] += clicks[position]
        state.time[0] += 1
