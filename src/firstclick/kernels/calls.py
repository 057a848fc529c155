"""What a live policy calls: some recommendations, one piece of feedback, some estimates.

Kernels of their own file, because they are compiled anew for every policy when it changes.
"""

import numpy as np

from firstclick.kernels.caps import recommend_within_caps
from firstclick.kernels.compiling import estimate, learn
from firstclick.kernels.hashing import fill_normal, mix
from firstclick.kernels.ranking import as_shown


def recommend_some(  # type: ignore[no-untyped-def]
    numbers, state, catalog, request, stream_key, asked, noise, slates, found, means, deviations
):
    """The recommendations of the numbers in `asked`, each of which alone decides its noise and its ties.

    One row of `slates` for each, and how many items it has in `found`. What is held for the attraction of
    each item goes into `means`, unless that is None: then `estimate` is not even compiled. Handing over a
    catalog takes as long as finding a slate in it: many are found in one call.
    """
    for i in range(len(asked)):
        key = mix(stream_key, np.uint64(asked[i]))
        fill_normal(key, noise)
        slate = slates[i]
        n = recommend_within_caps(numbers, state, catalog, request, key, noise, slate)
        found[i] = n
        if means is not None:
            shown = as_shown(request, slate[:n])
            estimate(numbers, state, catalog, shown, slate[:n], means[i, :n], deviations[:n])


def learn_once(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
    """One piece of feedback."""
    learn(numbers, state, catalog, request, slate, examined, clicks)


def estimate_once(numbers, state, catalog, request, rows, means, deviations):  # type: ignore[no-untyped-def]
    """What is held for the attraction of each row."""
    estimate(numbers, state, catalog, request, rows, means, deviations)
