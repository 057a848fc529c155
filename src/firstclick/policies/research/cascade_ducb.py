"""CascadeDUCB."""

from math import log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.bounds import CountState, estimate_rates
from firstclick.parameters import param
from firstclick.policies.base import PlainParameters
from firstclick.policies.research._forgetting import ForgettingCountPolicy, rank_by_radius
from firstclick.validation.ranges import NOT_NEGATIVE, POSITIVE, Range

# When the unit has grown to this, all weights are divided by it.
LARGEST_UNIT = 1e30

# What is left of an item that was not examined for so long is nothing.
SMALLEST_WEIGHT = 1e-200


class FadingState(NamedTuple):
    """Counts in which an older slate weighs less. Weights are multiples of `unit`, that of the last slate.

    So a slate changes the items that were examined in it, and no others.
    """

    examined: NDArray[np.float64]
    hits: NDArray[np.float64]
    slates: NDArray[np.float64]  # the weight of all slates together
    unit: NDArray[np.float64]
    time: NDArray[np.int64]


class CascadeDUCB(ForgettingCountPolicy):
    """Rank items by the upper confidence bound of their click rate in slates that fade as they grow old.

    For the cascade: the first click ends the slate, and items attract independently. Tastes may change at any
    time: a slate that is s slates old counts discount^s, so that about the last 1 / (1 - discount) decide.

    U(e) = hits / examined + sqrt(radius * log(slates) / examined), all three counted with these weights;
    items never examined come first (our choice). With discount=1 it is cascade-ucb1:radius=2,start=first,
    slate by slate. Regret O(L sqrt(changes * n) log n) where the discount knows of the number of changes.

    The radius is 2 sqrt(epsilon log(slates) / examined); epsilon = 0.5, that is radius=2, is our choice.
    discount = 1 - 1 / (4 sqrt(n)) for n steps, which `horizon` sets, 0.9992 for about 100,000,
    is what Garivier and Moulines 2011 have for one change. The radius is wide for so short a memory: with
    more than a few items try radius=0.5.
    """

    name = "cascade-ducb"
    draws = False
    paper = "Li and de Rijke 2019 (CascadeDUCB)"
    by_horizon = "discount"

    radius: float = param(2.0, "weight of the confidence radius", above=0)
    discount: float = param(
        0.9992, "what a slate counts less for each that came after it", above=0, at_most=1
    )
    horizon: int | None = param(
        None,
        "steps that the discount is made for, in place of it: 1 - 1 / (4 sqrt(horizon))",
        kind=int,
        at_least=1,
        told="horizon",
    )

    def numbers(self, k: int, features: NDArray[np.float64]) -> PlainParameters:
        if self.horizon is None:
            return self._pack()
        return self._pack(discount=1.0 - 0.25 / sqrt(self.horizon))

    def initial_state(self, n_items: int, n_features: int, k: int) -> FadingState:
        return FadingState(
            np.zeros(n_items), np.zeros(n_items), np.zeros(1), np.ones(1), np.zeros(1, np.int64)
        )

    def ranges(self, n_items: int, k: int) -> dict[str, Range]:
        return {"examined": NOT_NEGATIVE, "hits": NOT_NEGATIVE, "slates": NOT_NEGATIVE, "unit": POSITIVE}

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        unit = state.unit[0]
        budget = numbers.radius * log(max(state.slates[0] / unit, 1.0))
        return rank_by_radius(state.examined, state.hits, budget * unit, catalog, request, key, slate)

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        unit = state.unit[0] / numbers.discount
        # The unit depends on the number of slates alone: so does when this happens.
        if unit > LARGEST_UNIT:
            for row in range(len(state.examined)):
                state.examined[row] /= unit
                state.hits[row] /= unit
                if state.examined[row] < SMALLEST_WEIGHT:
                    state.examined[row] = state.hits[row] = 0.0
            state.slates[0] /= unit
            unit = 1.0
        for position in range(examined):
            item = slate[position]
            state.examined[item] += unit
            if clicks[position]:
                state.hits[item] += unit
        state.slates[0] += unit
        state.unit[0] = unit
        state.time[0] += 1

    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):  # type: ignore[no-untyped-def]
        unit = state.unit[0]
        counts = CountState(state.examined / unit, state.hits / unit, state.time)
        # Before the first observation any rate is as likely as any other.
        estimate_rates(counts, rows, 1.0, 1.0, means, deviations)
