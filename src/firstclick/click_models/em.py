"""EM with longer steps: SQUAREM (Varadhan and Roland 2008, scheme S3), which never lowers the likelihood.

A step is plain EM. Two of them show where EM is going; a long step goes there at once. If that makes the
objective worse, the two plain steps are taken.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
# From parameters to those of the next EM step, and the objective of the ones given.
Step = Callable[[Numbers], tuple[Numbers, float]]

# Stop where two plain steps gain less than this, per unit of weight (a session).
TOLERANCE = 1e-7
MOST_STEPS = 600
_INSIDE = 1e-9


class Converged(NamedTuple):
    """Where EM ended, how many E-steps it took, and whether it stopped by itself."""

    parameters: Numbers
    steps: int
    finished: bool


def maximise(step: Step, start: Numbers, weight: float, *, most_steps: int = MOST_STEPS) -> Converged:
    """Raise the objective from `start`, parameters between 0 and 1, until little is gained."""
    here, steps = start, 0
    enough = TOLERANCE * max(weight, 1.0)
    while True:
        first, at_here = step(here)
        second, at_first = step(first)
        steps += 2
        if at_first - at_here < enough or steps >= most_steps:
            return Converged(second, steps, at_first - at_here < enough)
        here, extra = _long_step(step, here, first, second, at_first)
        steps += extra


def _long_step(
    step: Step, here: Numbers, first: Numbers, second: Numbers, at_first: float
) -> tuple[Numbers, int]:
    change, bend = first - here, (second - first) - (first - here)
    size = float(np.sqrt((change**2).sum() / max((bend**2).sum(), 1e-300)))
    if size <= 1.0:
        return second, 0
    far = np.clip(here + 2.0 * size * change + size * size * bend, _INSIDE, 1.0 - _INSIDE)
    # One more plain step settles what the long one has overshot, and tells the objective there.
    settled, at_far = step(far)
    return (settled, 1) if at_far >= at_first else (second, 1)
