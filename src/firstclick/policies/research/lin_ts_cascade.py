"""LinTS-Cascade."""

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.arrays import CatalogArrays, Request
from firstclick.kernels.compiling import kernel
from firstclick.kernels.posterior import sample
from firstclick.kernels.search.tree import rank_by_product
from firstclick.parameters import param
from firstclick.policies.base import PlainParameters, State
from firstclick.policies.cascade_lin_ts import CascadeLinTS
from firstclick.policies.score_laws import GaussianScores, features_of, posterior_scores


@kernel
def _spread(numbers, time):  # type: ignore[no-untyped-def]
    """s, by which the noise is multiplied: fixed, or lambda v sqrt(K)."""
    if numbers.spread == 0.0:  # It is not fixed.
        return numbers.bound * sqrt(log(time[0] + 1))
    return numbers.spread


class LinTSCascade(CascadeLinTS):
    """CascadeLinTS with draws as wide as a proof of its regret needs them, times `boldness`.

    Assumes a cascade, and attractions linear in the features, of norm at most 1. At the t-th slate theta is
    mean + s M^-1/2 z with z ~ N(0, I), s = lambda v sqrt(K) and v = 3 R sqrt(d log t); the first slate is
    pure chance, as s = 0. Regret O(min(sqrt(d), sqrt(log L)) K d sqrt(n)) but for logarithms, at lambda = 1,
    R = 1/2 (the authors' code has 1/4), which explores far too much in practice: lambda, here `boldness`, is
    there to be tuned; its default is ours. `spread` fixes s: spread=1 is CascadeLinTS.
    """

    name = "lin-ts-cascade"
    paper = "Zhong et al. 2021, LinTS-Cascade(lambda)"
    derived = ("bound",)
    boldness: float = param(0.01, "lambda of the paper, 1 for its theorem", above=0)
    noise: float = param(0.5, "R: clicks are R-sub-Gaussian", above=0)
    spread: float | None = param(None, "s at all times, in place of lambda v sqrt(K)", kind=float, above=0)

    def numbers(self, k: int, features: NDArray[np.float64]) -> PlainParameters:
        return self._pack(bound=3.0 * self.boldness * self.noise * sqrt(features.shape[1] * k))

    def score_law(
        self,
        numbers: PlainParameters,
        state: State,
        catalog: CatalogArrays,
        request: Request,
        rows: NDArray[np.int64],
    ) -> GaussianScores:
        x = features_of(catalog, request, rows)
        law = posterior_scores(x, state.moment, state.factor, numbers.sigma)
        return law._replace(loads=_spread(numbers, state.time) * law.loads)

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        theta = sample(state.moment, state.factor, numbers.sigma, _spread(numbers, state.time) * noise)
        return rank_by_product(theta, catalog, request, key, slate)
