"""What an estimator is: a term for each slate, whose mean is the estimate."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from firstclick.evaluation.estimators.weighted_slates import Table, WeightedSlates

# By name: tables of quantities, one row a slate, or their means, one number a position.
Means = dict[str, Table]


class Estimator(NamedTuple):
    """An estimator of the clicks per page that the target would have had.

    `columns` gives the quantities, one row a slate, whose means over the whole log `terms` needs:
    self-normalised forms divide by mean weights. Their terms are linearised: the mean is the ratio, and
    the spread of the terms is its standard error (delta method).
    """

    name: str
    title: str
    family: str  # "cascade", "position" or "slate": whose weights, and which behaviour it is right for
    right_if: str  # one sentence
    needs: tuple[str, ...]  # fields of WeightedSlates besides clicks and the target
    terms: Callable[[WeightedSlates, Means], Table]
    columns: Callable[[WeightedSlates], Means] | None = None
    # The weights of each position, if the terms are sums of weight times click, and nothing else.
    weights: Callable[[WeightedSlates], Table] | None = None
    unbiased: bool = True

    def can_use(self, slates: WeightedSlates) -> bool:
        """Whether the slates have what it needs."""
        return all(getattr(slates, name) is not None for name in self.needs)


def linearised_ratio(numerator: Table, denominator: Table, top: Table, bottom: Table) -> Table:
    """Terms, one a slate, whose mean is the sum over columns of top / bottom, the means of numerator and
    denominator over the whole log. A column whose weights are all 0 gives 0."""
    safe = np.where(bottom > 0, bottom, 1.0)
    ratio = np.where(bottom > 0, top / safe, 0.0)
    linear = ratio + np.where(bottom > 0, (numerator - denominator * ratio) / safe, 0.0)
    return np.asarray(linear.sum(axis=1))
