"""LogisticTS."""

from math import exp, sqrt
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.arrays import CatalogArrays, Request
from firstclick.kernels.compiling import kernel
from firstclick.kernels.posterior import add_square, solve, solve_transposed
from firstclick.kernels.ranking import features_at
from firstclick.kernels.search.tree import rank_by_product
from firstclick.parameters import param
from firstclick.policies.base import PlainParameters, Policy, State
from firstclick.policies.score_laws import GaussianScores, features_of, solved
from firstclick.validation.ranges import check_factor

# Newton's steps nearly always end after five; bisection, where they leave the bracket, after a hundred.
MOST_STEPS = 200
CLOSE = 1e-14


class LogisticState(NamedTuple):
    """theta ~ N(mean, Q^-1), intercept last. `precision` is Q, `factor` the R of R'R = Q."""

    precision: NDArray[np.float64]
    mean: NDArray[np.float64]
    factor: NDArray[np.float64]
    observations: NDArray[np.int64]
    time: NDArray[np.int64]


@kernel
def _logistic(score):  # type: ignore[no-untyped-def]
    """1 / (1 + exp(-score)), without overflow."""
    if score >= 0.0:
        return 1.0 / (1.0 + exp(-score))
    small = exp(score)
    return small / (1.0 + small)


@kernel
def _top_score(held, spread, clicked):  # type: ignore[no-untyped-def]
    """The score of an item, once held to be N(held, spread), that is likeliest after one observation of it.

    It is the root of s - held - spread (clicked - _logistic(s)), which rises in s.
    """
    low, high = held - spread * (1 - clicked), held + spread * clicked
    score = held
    for _ in range(MOST_STEPS):
        p = _logistic(score)
        surprise = _logistic(-score) if clicked else -p
        excess = score - held - spread * surprise
        if excess > 0.0:
            high = score
        else:
            low = score
        better = score - excess / (1.0 + spread * p * (1.0 - p))
        if not low <= better <= high:
            better = 0.5 * (low + high)
        if abs(better - score) <= CLOSE * (1.0 + abs(score)):
            break
        score = better
    return score


@kernel
def _product_and_spread(state, x, z):  # type: ignore[no-untyped-def]
    """z'mean and z'Q^-1 z of an item with features x; `z` becomes R'^-1 z."""
    mean = state.mean
    d = len(x)
    held = mean[d]
    for i in range(d):
        held += mean[i] * x[i]
        z[i] = x[i]
    z[d] = 1.0
    solve_transposed(state.factor, z)
    spread = 0.0
    for i in range(d + 1):
        spread += z[i] * z[i]
    return held, spread


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

    def score_law(
        self,
        numbers: PlainParameters,
        state: State,
        catalog: CatalogArrays,
        request: Request,
        rows: NDArray[np.int64],
    ) -> GaussianScores:
        x = features_of(catalog, request, rows)
        # The intercept moves no order.
        loads = solved(state.factor, np.pad(x, ((0, 0), (0, 1))))
        return GaussianScores(x @ state.mean[:-1], loads)

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        theta = noise.copy()
        solve(state.factor, theta)
        for i in range(len(theta)):
            theta[i] += state.mean[i]
        return rank_by_product(theta[: len(theta) - 1], catalog, request, key, slate)

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        mean, d = state.mean, len(state.mean) - 1
        z, v = np.empty(d + 1), np.empty(d + 1)
        for position in range(examined):
            x = features_at(catalog, request, slate[position], position)
            held, spread = _product_and_spread(state, x, z)
            score = _top_score(held, spread, clicks[position])
            p = _logistic(score)
            solve(state.factor, z)
            surprise = _logistic(-score) if clicks[position] else -p
            root = sqrt(p * _logistic(-score))
            for i in range(d + 1):
                mean[i] += surprise * z[i]
                v[i] = root * (x[i] if i < d else 1.0)
            add_square(state.precision, state.factor, state.observations, v)
        state.time[0] += 1

    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):  # type: ignore[no-untyped-def]
        """The probability of a click at the mean of theta; its deviation to first order."""
        z = np.empty(len(state.mean))
        for j in range(len(rows)):
            held, spread = _product_and_spread(state, features_at(catalog, request, rows[j], j), z)
            means[j] = _logistic(held)
            deviations[j] = _logistic(held) * _logistic(-held) * sqrt(spread)
