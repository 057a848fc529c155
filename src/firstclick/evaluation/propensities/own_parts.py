"""The probability that Gaussian scores come in some order at the top, where each row has an own part.

As in `gaussian`: a walk finds what is likely, a Gaussian is fitted to it, and independent draws are weighed.
"""

import numpy as np
from numpy.typing import NDArray

from firstclick.evaluation.propensities.fitting import WALKED, Estimate, fitted, weighed_mean
from firstclick.evaluation.propensities.places import Places
from firstclick.evaluation.propensities.propensity import Propensity
from firstclick.kernels.own_orders import walk_below, weigh_below
from firstclick.policies.score_laws import GaussianScores
from firstclick.streams import stream_key

Numbers = NDArray[np.float64]


def own_parts_propensity(law: GaussianScores, places: Places, relative_error: float, seed: int) -> Propensity:
    """The probability of each prefix of a slate of rows that all have an own part."""
    n = len(places.chosen)
    keys = [stream_key(seed, "own parts", j) for j in range(n + 1)]
    found = [Estimate(1.0, 0.0, 0)]
    found += [_first(law, places, j, relative_error, keys[j]) for j in range(1, n + 1)]
    chances = np.minimum.accumulate([one.chance for one in found])
    errors = np.array([one.error for one in found])
    draws = sum(one.draws for one in found)
    return Propensity(places.by_prefix(chances), places.by_prefix(errors), "monte carlo", draws)


def _first(law: GaussianScores, places: Places, j: int, relative_error: float, key: np.uint64) -> Estimate:
    assert law.own is not None
    lines = np.column_stack([law.means, law.loads, law.own])
    chosen, n_shared = places.chosen[:j], law.loads.shape[1]
    below = np.ones(len(lines), bool)
    below[chosen] = False
    levels = np.minimum(places.full_at[below], j - 1)
    # Rows of one law and level are one line, and count as often as there are.
    kinds, counts = np.unique(np.column_stack([lines[below], levels]), axis=0, return_counts=True)
    first, others = lines[chosen], np.ascontiguousarray(kinds[:, :-2])
    asked = (first, others, kinds[:, -2].copy(), kinds[:, -1].astype(np.int64), counts.astype(np.float64))
    # Where g is 0, and the first rows are above all others, in their order.
    step = first[:, -1].max()
    top = max(first[:, 0].max(), others[:, 0].max(initial=-np.inf))
    own = (top + step * np.arange(j, 0, -1) - first[:, 0]) / first[:, -1]
    x = np.concatenate([np.zeros(n_shared), own])
    points = np.empty((WALKED, len(x)))
    walk_below(x, *asked, stream_key(int(key) >> 1, "walk"), WALKED, points)
    centre, root = fitted(points)

    def weigh(begin: int, weights: Numbers) -> None:
        weigh_below(centre, root, *asked, key, begin, len(weights), weights)

    one = weighed_mean(weigh, relative_error)
    return one._replace(draws=one.draws + WALKED)
