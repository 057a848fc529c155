"""By which law the scores are drawn that a policy ranks items by: what probabilities of slates follow from.

The probabilities of a policy that says its law (`Policy.score_law`) are computed; of any other, slates are
drawn again and counted.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.arrays import CatalogArrays, Request

Numbers = NDArray[np.float64]


class EqualScores(NamedTuple):
    """All scores are equal: the order is that of ties, each as likely as any other."""


class BetaScores(NamedTuple):
    """The score of each row is Beta(a, b), independent of all others."""

    a: Numbers
    b: Numbers


class GaussianScores(NamedTuple):
    """The score of row i is means[i] + loads[i]'g + own[i] e_i; g, which all rows share, and e_i are standard
    normal. Equal rows tie if they have no own part: their order is then each as likely as any other.

    What is the same for all rows may be left out.
    """

    means: Numbers
    loads: Numbers  # rows x numbers in g
    own: Numbers | None = None  # None: no row has an own part


class PlaceScores(NamedTuple):
    """Each place of the slate has scores of its own, independent of the others, and takes the best row that
    is left."""

    places: tuple[GaussianScores, ...]


ScoreLaw = EqualScores | BetaScores | GaussianScores | PlaceScores


def features_of(catalog: CatalogArrays, request: Request, rows: NDArray[np.int64]) -> Numbers:
    """The features of each of these rows: those of the catalog, or what the request brought."""
    if len(request.features):
        return request.features[np.searchsorted(request.candidates, rows)]
    return catalog.features[rows]


def posterior_scores(x: Numbers, moment: Numbers, factor: Numbers, sigma: float) -> GaussianScores:
    """The scores x'theta of some rows, where theta ~ N(sigma^-2 M^-1 B, M^-1), for B and the R of R'R = M."""
    loads = solved(factor, x)
    return GaussianScores(loads @ solved(factor, moment[None, :] / sigma**2)[0], loads)


def solved(factor: Numbers, x: Numbers) -> Numbers:
    """R'^-1 x for each row x."""
    return np.ascontiguousarray(np.linalg.solve(factor.T, x.T).T)
