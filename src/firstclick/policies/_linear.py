"""What linear policies share: the Gaussian posterior of theta, or one per position."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.kernels.posterior import LinearState, estimate_products, linear
from firstclick.parameters import param
from firstclick.policies.base import Policy, State, drawn_share
from firstclick.validation.ranges import check_factor

SMALLEST_SIGMA, LARGEST_SIGMA = 1e-6, 1e6


def root_of_sum(*roots: NDArray[np.float64]) -> NDArray[np.float64]:
    """R, upper triangular, with R'R = the sum of A'A over these A; or one R for each of several.

    By orthogonal transformations, which never form A'A. Its Cholesky factor has half as many digits, and none
    where columns are nearly copies of one another.
    """
    upper = np.linalg.qr(np.concatenate(roots, axis=-2), mode="r")
    signs = np.where(np.diagonal(upper, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
    return np.ascontiguousarray(signs[..., None] * upper)


def root_of_evidence(factor: NDArray[np.float64]) -> NDArray[np.float64]:
    """A with A'A = R'R - I for this R: what was observed, without the prior."""
    _, stretch, axes = np.linalg.svd(factor)
    # By rounding a direction that was never observed may have less than the prior.
    root: NDArray[np.float64] = np.sqrt(np.maximum(stretch**2 - 1.0, 0.0))[..., None] * axes
    return root


class LinearPolicy(Policy):
    """A policy that estimates attraction as x'theta, with a Gaussian posterior of theta.

    >>> from firstclick import policy_classes
    >>> from firstclick.policies import LinearPolicy
    >>> issubclass(policy_classes()["cascade-lin-ts"], LinearPolicy)
    True
    """

    family = "features"
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

    def check_state(self, state: State, n_items: int, k: int) -> None:
        super().check_state(state, n_items, k)
        check_factor(self.name, "factor", state.factor)

    def merge(self, first: LinearState, second: LinearState) -> LinearState:
        prior = np.eye(first.precision.shape[-1])
        return first._replace(
            precision=first.precision + second.precision - prior,
            moment=first.moment + second.moment,
            factor=root_of_sum(first.factor, root_of_evidence(second.factor)),
            observations=first.observations + second.observations,
            time=first.time + second.time,
        )

    def tempered(self, state: State, weight: float, draw: np.random.Generator) -> State:
        """M = I + weight (M - I) and B = weight B: the prior itself is not weakened."""
        # A policy whose observations do not add up, or that keeps them in another form, has to say itself.
        if weight == 1 or not hasattr(state, "precision") or not self.mergeable:
            return super().tempered(state, weight, draw)
        prior = np.broadcast_to(np.eye(state.precision.shape[-1]), state.precision.shape)
        return state._replace(
            precision=prior + weight * (state.precision - prior),
            moment=weight * state.moment,
            factor=root_of_sum(prior, np.sqrt(weight) * root_of_evidence(state.factor)),
            observations=drawn_share(state.observations, weight, draw),
            time=drawn_share(state.time, weight, draw),
        )

    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):  # type: ignore[no-untyped-def]
        estimate_products(linear(state), catalog, request, rows, numbers.sigma, 1.0, means, deviations)
