"""What a computation of propensities gives."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Propensity(NamedTuple):
    """The probability of the first 1, 2, ... items of a slate, and how sure that is."""

    chances: NDArray[np.float64]  # one a prefix, not rising
    errors: NDArray[np.float64]  # standard errors, 0 where exact
    method: str  # "exact", "quadrature", "monte carlo" or "redrawn"
    draws: int = 0
