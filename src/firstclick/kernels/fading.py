"""What policies without features share whose counts fade: their confidence bound."""

from math import inf, sqrt

import numpy as np

from firstclick.kernels.compiling import kernel
from firstclick.kernels.ranking import rank, rows_of


@kernel
def rank_by_radius(examined, hits, budget, catalog, request, key, slate):  # type: ignore[no-untyped-def]
    """Fill `slate` with the items of largest hits / examined + sqrt(budget / examined), looking at each, and
    before them those of which nothing is known; return how many were found."""
    rows = rows_of(catalog, request)
    scores = np.empty(len(rows))
    for j in range(len(rows)):
        weight = examined[rows[j]]
        scores[j] = hits[rows[j]] / weight + sqrt(budget / weight) if weight > 0 else inf
    return rank(rows, scores, catalog, request, key, slate)
