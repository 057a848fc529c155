"""Weights of single positions (IIPS), for slates where a click does not depend on the items above it.

IIPS (Li et al. 2018, the item-position model) weighs the click at position k by the probability of its item
at that position: sum over k of w_k y_k.
"""

from firstclick.evaluation.estimators.estimator import Estimator
from firstclick.evaluation.estimators.prefix_ips import (
    normalised_terms,
    normalising_columns,
    weighted_clicks,
)
from firstclick.evaluation.estimators.weighted_slates import place_weights

NOTHING_ABOVE = "a click depends on the item and its position, not on what stands above it (PBM)"
_PLACES = ("logged_places", "target_places")

IIPS = Estimator(
    "iips", "IIPS", "position", NOTHING_ABOVE, _PLACES, weighted_clicks(place_weights), weights=place_weights
)
SELF_NORMALISED_IIPS = Estimator(
    "sn-iips", "IIPS, self-normalised", "position", NOTHING_ABOVE, _PLACES,
    normalised_terms(place_weights), normalising_columns(place_weights), unbiased=False,
)  # fmt: skip
