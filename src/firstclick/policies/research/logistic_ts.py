"""LogisticTS."""

from math import sqrt
from typing import ClassVar

import numpy as np

from firstclick.kernels.logistic import (
    LogisticState,
    draw_coefficients,
    estimate_probabilities,
    observe_clicks,
)
from firstclick.kernels.search.tree import rank_by_product
from firstclick.parameters import param
from firstclick.policies.base import Policy, State
from firstclick.validation.ranges import check_factor


class LogisticTS(Policy):
    """Draw theta from an approximate posterior of a logistic model, and rank items by x'theta.

    Assumes a cascade, and attractions 1 / (1 + exp(-x'theta - b)): never outside [0, 1], unlike those of
    linear policies. theta and b have a Gaussian, at first N(0, I/prior). Each examined item moves it to the
    maximum of Gaussian times likelihood, with the curvature there as its new precision (Laplace). The authors
    do so for a batch, with a diagonal precision; we for one item at a time, with a full matrix. The intercept
    b is ours: it shifts all items alike, so no order depends on it, but without it an item of small
    features could only have an attraction near 1/2. No bound is known.
    """

    name = "logistic-ts"
    paper = "Chapelle and Li 2011, Algorithm 3"
    family = "features"
    made_for = ("logistic",)
    needs_features: ClassVar[bool] = True
    takes_features: ClassVar[bool] = True
    # The Gaussian depends on where the likelihood was approximated, hence on what was known before.
    mergeable: ClassVar[bool] = False
    order_free: ClassVar[bool] = False

    prior: float = param(1.0, "precision of each coefficient before the first click", above=0)

    def initial_state(self, n_items: int, n_features: int, k: int) -> LogisticState:
        identity = np.eye(n_features + 1)
        return LogisticState(
            precision=self.prior * identity,
            mean=np.zeros(n_features + 1),
            factor=sqrt(self.prior) * identity,
            observations=np.zeros(1, np.int64),
            time=np.zeros(1, np.int64),
        )

    def check_state(self, state: State, n_items: int, k: int) -> None:
        super().check_state(state, n_items, k)
        check_factor(self.name, "factor", state.factor)

    def noise_size(self, k: int, n_features: int) -> int:
        return n_features + 1

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        return rank_by_product(draw_coefficients(state, noise), catalog, request, key, slate)

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        observe_clicks(state, catalog, request, slate, examined, clicks)

    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):  # type: ignore[no-untyped-def]
        estimate_probabilities(state, catalog, request, rows, means, deviations)
