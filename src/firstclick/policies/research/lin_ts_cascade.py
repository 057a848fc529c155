"""LinTS-Cascade."""

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.posterior import sample
from firstclick.kernels.search.tree import rank_by_product
from firstclick.parameters import param
from firstclick.policies.base import PlainParameters
from firstclick.policies.cascade_lin_ts import CascadeLinTS


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

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        spread = numbers.spread
        if spread == 0.0:  # It is not fixed.
            spread = numbers.bound * sqrt(log(state.time[0] + 1))
        theta = sample(state.moment, state.factor, numbers.sigma, spread * noise)
        return rank_by_product(theta, catalog, request, key, slate)
