"""What estimators are given: logged slates with their clicks, and how likely logger and target show them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]


class WeightedSlates(NamedTuple):
    """Slates in the order of the log, n x K. After the end of a shorter slate clicks are 0, and
    probabilities stay as they were."""

    clicks: Table
    logged: Table  # the probability of the first 1, 2, ... items under the policy that logged
    target: Table  # the same under the policy that is judged
    # The probability of each item at its position, whatever is above it; None if it is not known.
    logged_places: Table | None = None
    target_places: Table | None = None
    # What a click model predicts for each position of the logged slate, and the mean of that over the item
    # that the target would show there, after the logged items above it. None without a model.
    predicted: Table | None = None
    predicted_target: Table | None = None
