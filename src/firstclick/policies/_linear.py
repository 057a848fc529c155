"""What linear learners share: the Gaussian posterior of theta, or one per position."""

from typing import ClassVar

import numpy as np

from firstclick.declaration import param
from firstclick.errors import InvalidInput
from firstclick.kernels.posterior import LinearState, estimate_products, linear
from firstclick.protocol import Policy, State

SMALLEST_SIGMA, LARGEST_SIGMA = 1e-6, 1e6


class LinearPolicy(Policy):
    """A learner that holds x'theta for an item's attraction, with a Gaussian posterior of theta."""

    needs_features: ClassVar[bool] = True
    takes_features: ClassVar[bool] = True

    sigma: float = param(1.0, "standard deviation of the noise: how fast it learns", above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not SMALLEST_SIGMA <= self.sigma <= LARGEST_SIGMA:
            raise InvalidInput(
                f"{self.name}: sigma must lie between {SMALLEST_SIGMA:g} and {LARGEST_SIGMA:g}, "
                f"or floating point has no room for its square, got {self.sigma:g}"
            )

    def initial_state(self, n_items: int, n_features: int, k: int) -> LinearState:
        return self._prior((), n_features)

    def _prior(self, stack: tuple[int, ...], n_features: int) -> LinearState:
        identity = np.zeros((*stack, n_features, n_features))
        identity[..., range(n_features), range(n_features)] = 1.0
        return LinearState(
            precision=identity,
            moment=np.zeros((*stack, n_features)),
            factor=identity.copy(),
            observations=np.zeros(stack or 1, np.int64),
            time=np.zeros(1, np.int64),
        )

    def merge(self, first: LinearState, second: LinearState) -> LinearState:
        prior = np.eye(first.precision.shape[-1])
        precision = first.precision + second.precision - prior
        return first._replace(
            precision=precision,
            moment=first.moment + second.moment,
            factor=np.ascontiguousarray(np.linalg.cholesky(precision).swapaxes(-1, -2)),
            observations=first.observations + second.observations,
            time=first.time + second.time,
        )

    def tempered(self, state: State, weight: float) -> State:
        """M = I + weight (M - I) and B = weight B: the prior itself is not weakened."""
        # A learner whose observations do not add up, or that keeps them in another form, has to say itself.
        if weight == 1 or not hasattr(state, "precision") or not self.mergeable:
            return super().tempered(state, weight)
        prior = np.eye(state.precision.shape[-1])
        precision = prior + weight * (state.precision - prior)
        return state._replace(
            precision=precision,
            moment=weight * state.moment,
            factor=np.ascontiguousarray(np.linalg.cholesky(precision).swapaxes(-1, -2)),
            observations=np.rint(weight * state.observations).astype(np.int64),
            time=np.rint(weight * state.time).astype(np.int64),
        )

    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):  # type: ignore[no-untyped-def]
        estimate_products(linear(state), catalog, request, rows, numbers.sigma, 1.0, means, deviations)
