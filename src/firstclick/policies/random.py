"""Random."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.arrays import CatalogArrays, Request
from firstclick.kernels.ranking import rank, rows_of
from firstclick.policies._counts import CountPolicy
from firstclick.policies.base import PlainParameters, Policy, State
from firstclick.policies.score_laws import EqualScores


class Random(CountPolicy):
    """Show items in random order and learn nothing from it: the floor under every comparison.

    It counts like the others, so that its log can be handed to them.
    """

    name = "random"
    family = ""
    look = "grey"
    # It is what learning is measured by.
    learns: ClassVar[bool] = False

    def score_law(
        self,
        numbers: PlainParameters,
        state: State,
        catalog: CatalogArrays,
        request: Request,
        rows: NDArray[np.int64],
    ) -> EqualScores:
        return EqualScores()

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        # All scores are equal: the random order of ties is the whole policy.
        rows = rows_of(catalog, request)
        return rank(rows, np.zeros(len(rows)), catalog, request, key, slate)

    # It holds nothing for any item, whatever it counted.
    estimate = staticmethod(Policy.estimate)
