"""SegmentLinTS."""

from dataclasses import replace
from math import sqrt
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.kernels.arrays import CatalogArrays, Request
from firstclick.kernels.compiling import kernel
from firstclick.kernels.posterior import LinearState, estimate_products, observe, sample, solve_transposed
from firstclick.kernels.ranking import features_at, with_features
from firstclick.kernels.search.tree import rank_by_product
from firstclick.parameters import param
from firstclick.policies._linear import LinearPolicy, root_of_sum
from firstclick.policies.base import PlainParameters, State
from firstclick.policies.score_laws import GaussianScores, features_of, posterior_scores
from firstclick.validation.ranges import check_factor

# For a world that tells the segments of its users and not how many there are.
USUAL_SEGMENTS = 10


class SegmentState(NamedTuple):
    """The posterior of all tastes. With the shared one last, R of R'R = M has no more than two blocks for
    each segment, its own and the one that ties it to the shared taste, and one block for that."""

    sums: NDArray[np.float64]  # segments x d x d: sigma^-2 times the sum of x x'
    moment: NDArray[np.float64]  # segments x d
    shared_moment: NDArray[np.float64]
    factor: NDArray[np.float64]  # segments x d x 2d
    shared_factor: NDArray[np.float64]  # d x d
    time: NDArray[np.int64]


@kernel
def _segment_of(state, request):  # type: ignore[no-untyped-def]
    return np.int64(request.context[0]) if len(request.context) > 0 else 0


@kernel
def _factor_of(state, segment):  # type: ignore[no-untyped-def]
    """R of the joint posterior of the segment's own part and the shared one, in this order."""
    d = len(state.shared_moment)
    factor = np.zeros((2 * d, 2 * d))
    for i in range(d):
        for j in range(2 * d):
            factor[i, j] = state.factor[segment, i, j]
        for j in range(d):
            factor[d + i, d + j] = state.shared_factor[i, j]
    return factor


@kernel
def _moment_of(state, segment):  # type: ignore[no-untyped-def]
    """The moment that goes with `_factor_of`: what the other segments tell of the shared part is in it."""
    d = len(state.shared_moment)
    moment = np.empty(2 * d)
    for i in range(d):
        moment[i], moment[d + i] = state.moment[segment, i], state.shared_moment[i]
    for other in range(len(state.moment)):
        if other != segment:
            factor, y = state.factor[other], state.moment[other].copy()
            solve_transposed(factor, y)
            for i in range(d):
                for j in range(d):
                    moment[d + j] -= factor[i, d + j] * y[i]
    return moment


@kernel
def _split(x, share, z):  # type: ignore[no-untyped-def]
    """Set `z` to the features of an item for the segment's own part, and for the shared one."""
    d, own, shared = len(x), sqrt(1.0 - share), sqrt(share)
    for i in range(d):
        z[i], z[d + i] = own * x[i], shared * x[i]


class SegmentLinTS(LinearPolicy):
    """A CascadeLinTS for each segment of users, which all lean on what they have in common.

    It takes clicks for those of a cascade, and attraction for x'theta_s, where s is the segment of the user:
    the context is its number, from 0. Before the first click

        theta_s = sqrt(share) shared + sqrt(1 - share) own_s,    each ~ N(0, I), as in cascade-lin-ts,

    so that the tastes of two segments correlate by `share`. The posterior of all of them is exact; a draw of
    theta_s from it ranks the items by x'theta_s, with the search tree. share=1 makes all segments one, and is
    cascade-lin-ts, slate by slate, as it is without segments; with share=0 none learns from another.

    A step costs O(S d^2) for S segments: of the factor only the blocks that are not 0 are kept. Rotations
    update it, and it is never made anew. The model is the usual one of random effects; to learn it from a
    cascade is our choice, and so is the default of share.
    """

    name = "segment-lin-ts"
    paper = "after Zong et al. 2016, Algorithms 1 and 3; tastes as in Lindley and Smith 1972"
    family = "users"
    made_for = ("types",)
    segments: int | None = param(
        None,
        f"how many there are; {USUAL_SEGMENTS} where a world tells one number of its users, else one for all",
        kind=int,
        at_least=1,
        told="segments",
    )
    share: float = param(0.5, "how much of a taste all segments have in common", at_least=0, at_most=1)

    @property
    def n_context(self) -> int:
        return 0 if self.segments is None else 1

    def with_context(self, n_context: int) -> Self:
        return replace(self, segments=USUAL_SEGMENTS) if self.segments is None and n_context == 1 else self

    def check_context(self, context: NDArray[np.float64]) -> None:
        segment = context[0]
        assert self.segments is not None
        if not 0 <= segment < self.segments or segment != int(segment):
            raise InvalidInput(
                f"must be the number of a segment of {self.label}, 0 to {self.segments - 1}, got {segment:g}",
                "context",
            )

    def numbers(self, k: int, features: NDArray[np.float64]) -> PlainParameters:
        return self._pack(share=1.0 if self.segments is None else self.share)

    def initial_state(self, n_items: int, n_features: int, k: int) -> State:
        n, d = self.segments or 1, n_features
        return SegmentState(
            sums=np.zeros((n, d, d)),
            moment=np.zeros((n, d)),
            shared_moment=np.zeros(d),
            factor=np.tile(np.eye(d, 2 * d), (n, 1, 1)),
            shared_factor=np.eye(d),
            time=np.zeros(1, np.int64),
        )

    def check_state(self, state: State, n_items: int, k: int) -> None:
        super().check_state(state, n_items, k)  # One factor's diagonal, the other is below.
        check_factor(self.name, "shared_factor", state.shared_factor)

    def noise_size(self, k: int, n_features: int) -> int:
        return 2 * n_features

    def merge(self, first: State, second: State) -> State:
        share = 1.0 if self.segments is None else self.share
        sums = first.sums + second.sums
        n, d = sums.shape[:2]
        # The root of what each segment has seen; rounding may leave less than nothing in a direction.
        seen, axes = np.linalg.eigh(sums)
        root = np.sqrt(np.maximum(seen, 0.0))[..., None] * axes.swapaxes(-1, -2)
        prior = np.tile(np.eye(d, 2 * d), (n, 1, 1))
        joint = root_of_sum(prior, np.concatenate([sqrt(1.0 - share) * root, sqrt(share) * root], axis=-1))
        # What is left for the shared part, once each segment has its own, adds up.
        left = joint[:, d:, d:].reshape(n * d, d)
        return SegmentState(
            sums=sums,
            moment=first.moment + second.moment,
            shared_moment=first.shared_moment + second.shared_moment,
            factor=np.ascontiguousarray(joint[:, :d]),
            shared_factor=root_of_sum(np.eye(d), left),
            time=first.time + second.time,
        )

    def score_law(
        self,
        numbers: PlainParameters,
        state: State,
        catalog: CatalogArrays,
        request: Request,
        rows: NDArray[np.int64],
    ) -> GaussianScores:
        x, segment = features_of(catalog, request, rows), _segment_of(state, request)
        z = np.hstack([sqrt(1.0 - numbers.share) * x, sqrt(numbers.share) * x])
        moment, factor = _moment_of(state, segment), _factor_of(state, segment)
        return posterior_scores(z, moment, factor, numbers.sigma)

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        d, segment = len(state.shared_moment), _segment_of(state, request)
        mixed, theta = np.empty(2 * d), np.empty(d)
        for i in range(d):
            # The shared part takes the numbers that cascade-lin-ts would.
            mixed[i], mixed[d + i] = noise[d + i], noise[i]
        drawn = sample(_moment_of(state, segment), _factor_of(state, segment), numbers.sigma, mixed)
        own, shared = sqrt(1.0 - numbers.share), sqrt(numbers.share)
        for i in range(d):
            theta[i] = own * drawn[i] + shared * drawn[d + i]
        return rank_by_product(theta, catalog, request, key, slate)

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        d, segment = len(state.shared_moment), _segment_of(state, request)
        factor, moment, z = _factor_of(state, segment), np.zeros(2 * d), np.empty(2 * d)
        # `observe` wants a precision too; what is needed of it is in `sums`.
        observations = np.zeros(1, np.int64)
        joint = LinearState(np.zeros((2 * d, 2 * d)), moment, factor, observations, state.time)
        for position in range(examined):
            x = features_at(catalog, request, slate[position], position)
            _split(x, numbers.share, z)
            observations[0] = 0
            observe(joint, z, clicks[position], numbers.sigma, 1.0, 1.0)
            for i in range(d):
                for j in range(d):
                    state.sums[segment, i, j] += x[i] / numbers.sigma * (x[j] / numbers.sigma)
        for i in range(d):
            state.moment[segment, i] += moment[i]
            state.shared_moment[i] += moment[d + i]
            for j in range(2 * d):
                state.factor[segment, i, j] = factor[i, j]
            for j in range(d):
                state.shared_factor[i, j] = factor[d + i, d + j]
        state.time[0] += 1

    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):  # type: ignore[no-untyped-def]
        segment = _segment_of(state, request)
        features = np.empty((len(rows), 2 * len(state.shared_moment)))
        for j in range(len(rows)):
            _split(features_at(catalog, request, rows[j], j), numbers.share, features[j])
        asked = with_features(request, features)
        factor = _factor_of(state, segment)
        joint = LinearState(factor, _moment_of(state, segment), factor, state.time, state.time)
        estimate_products(joint, catalog, asked, rows, numbers.sigma, 1.0, means, deviations)
