"""Probabilities of slates by drawing them again with other keys, and counting."""

import numpy as np
from numpy.typing import NDArray

from firstclick.evaluation.propensities.propensity import Propensity
from firstclick.online.engine import PolicyEngine
from firstclick.online.request import SlateRequest, with_pinned
from firstclick.streams import stream_key

# Slates drawn in one call, and in all.
AT_ONCE, MOST_REDRAWN = 400, 20_000
# Of a slate that the policy is not known to have drawn, so many draws without it are enough.
NEVER_SEEN = 2_000


def redrawn(
    engine: PolicyEngine,
    request: SlateRequest,
    rows: NDArray[np.int64],
    *,
    relative_error: float,
    seed: int,
    drew_it: bool,
) -> Propensity:
    """How often each prefix of these rows comes again; drawn until every share is known to `relative_error`,
    or MOST_REDRAWN times."""
    key = stream_key(seed, "redrawn")
    pinned = request.rows.pinned
    hits, n = np.zeros(len(rows), np.int64), 0
    while True:
        slates = engine.recommend_many(key, range(n, n + AT_ONCE), request.free, request.kernel, scored=False)
        shown = np.full((AT_ONCE, len(rows)), -1)
        for place, (slate, _) in enumerate(slates):
            whole = with_pinned(slate, pinned) if pinned else slate
            size = min(len(whole), len(rows))
            shown[place, :size] = whole[:size]
        hits += np.logical_and.accumulate(shown == rows, axis=1).sum(0)
        n += AT_ONCE
        chances, errors = shares(hits, n, drew_it=drew_it)
        known = (errors <= relative_error * chances) | ((not drew_it) & (hits == 0) & (n >= NEVER_SEEN))
        if n >= MOST_REDRAWN or known.all():
            return Propensity(chances, errors, "redrawn", n)


def shares(
    hits: NDArray[np.int64], n: int, *, drew_it: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The share of n draws that hit, and its standard error, which is above 0 even where none or all did.

    Of a slate that the policy itself drew before, that draw counts too: (hits + 1) / (n + 1). The mean of 1
    over that is (1 - (1 - p)^(n+1)) / p: weights by it are unbiased, but for slates of a probability below
    about 1 / n, which weigh too little and never too much.
    """
    smoothed = (hits + 0.5) / (n + 1)
    errors = np.sqrt(smoothed * (1 - smoothed) / n)
    return ((hits + 1) / (n + 1) if drew_it else hits / n), errors
