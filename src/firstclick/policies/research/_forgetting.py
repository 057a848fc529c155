"""What policies share whose counts lose what is old."""

from math import inf, sqrt
from typing import ClassVar

import numpy as np

from firstclick.errors import InvalidInput
from firstclick.kernels.compiling import kernel
from firstclick.kernels.ranking import rank, rows_of
from firstclick.policies._counts import CountPolicy


class ForgettingCountPolicy(CountPolicy):
    """A policy that counts what is recent, for tastes that may change."""

    family = "changes"
    made_for: ClassVar[tuple[str, ...]] = ("switch", "drift")
    # What counts is how old a slate is, and that says the order in which they came.
    mergeable: ClassVar[bool] = False
    order_free: ClassVar[bool] = False
    # What is left of a slate depends on how many came since.
    corrects: ClassVar[bool] = False
    by_horizon: ClassVar[str] = ""  # the parameter that a `horizon` decides

    def __post_init__(self) -> None:
        super().__post_init__()
        decided, given = self.by_horizon, self.settings
        if decided and given["horizon"] is not None and given[decided] != self.defaults()[decided]:
            raise InvalidInput(
                f"is decided by the horizon; give one of them, got horizon={given['horizon']} and "
                f"{decided}={given[decided]}",
                decided,
                self.name,
            )


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
