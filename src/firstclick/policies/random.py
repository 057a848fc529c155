"""Random."""

from typing import ClassVar

import numpy as np

from firstclick.kernels.ranking import asked, n_asked, place
from firstclick.policies._counts import CountPolicy


class Random(CountPolicy):
    """Show items in random order and learn nothing from it: the floor under every comparison.

    It counts like the others, so that its log can be handed to them.
    """

    name = "random"
    learns: ClassVar[bool] = False

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        best = np.empty(len(slate))
        n = 0
        for j in range(n_asked(catalog, request)):
            item = asked(request, j)
            if item >= 0:
                # All scores are equal: the random order of ties is the whole policy.
                n = place(slate, best, n, item, 0.0, catalog, key)
        return n
