"""ContextLinTS."""

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.arrays import CatalogArrays, Request
from firstclick.kernels.combining import combined, seen_by
from firstclick.kernels.posterior import sample
from firstclick.kernels.search.tree import rank_by_product
from firstclick.policies._context import ContextPolicy
from firstclick.policies.base import PlainParameters, State
from firstclick.policies.score_laws import GaussianScores, features_of, posterior_scores


class ContextLinTS(ContextPolicy):
    """CascadeLinTS for users who differ: draw theta from its posterior and rank items by z'theta.

    It takes clicks for those of a cascade, and attraction for linear in z, which is made of the context u and
    the features x:

    - `bilinear`: z = u kron x, so that each user has the taste B'u, one matrix B for all. Let the first
      number of u be 1, and what all users like has a part of its own. With `rank`, z = [x ; u kron x_r] of
      the first `rank` features: all share a taste, and users differ from it in these. The features of a
      truncated SVD come in the order of their importance; put yours into one.
    - `product`: z = u * x, number by number; u says how much each feature matters to this user.
    - `concatenation`: z = [x ; u]. Some users click more than others, and all like the same: the context
      keeps that out of what is learned of items, and changes the order of none by itself.

    theta ~ N(sigma^-2 M^-1 B, M^-1), of as many numbers as z has; their square is the cost of a step, so keep
    them below some hundreds. z'theta is linear in x: the search tree is used as without a context. With no
    context, or u = [1], it is cascade-lin-ts, slate by slate. The combination is Li et al. 2010, sampling
    Agrawal and Goyal 2013, feedback that of Zong et al. 2016; to put them together is our choice, as is
    `rank`.
    """

    name = "context-lin-ts"
    paper = "after Zong et al. 2016, Algorithms 1 and 3; contexts as in Agrawal and Goyal 2013"

    def noise_size(self, k: int, n_features: int) -> int:
        return self.combined_size(n_features)

    def score_law(
        self,
        numbers: PlainParameters,
        state: State,
        catalog: CatalogArrays,
        request: Request,
        rows: NDArray[np.int64],
    ) -> GaussianScores:
        # The same z as `learn` makes, of rows in place of a slate.
        asked = request._replace(features=features_of(catalog, request, rows))
        size = len(state.moment)
        z = combined(catalog, asked, rows, numbers.combine, numbers.rank, size).features
        return posterior_scores(z, state.moment, state.factor, numbers.sigma)

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        theta = sample(state.moment, state.factor, numbers.sigma, noise)
        if len(request.context) > 0:
            d = catalog.features.shape[1]
            theta = seen_by(theta, request.context, numbers.combine, numbers.rank, d)
        return rank_by_product(theta, catalog, request, key, slate)
