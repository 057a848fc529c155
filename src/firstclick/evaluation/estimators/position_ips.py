"""Weights of single positions: IIPS and INTERPOL, for pages where what stands above does not matter.

IIPS (Li et al. 2018, the item-position model) weighs the click at position k by the chance of its item there:
sum over k of w_k y_k. INTERPOL (Buchholz et al. 2022) also uses clicks that an item had at positions nearby,
corrected by how likely a position is looked at. An item shown at position j counts for position l of the
target if |j - l| <= window, with weight

    target(item at l) e_l / sum over m with |m - l| <= window of logged(item at m) e_m.

A window of 0 is IIPS. A window of K is the position-based model, with the smallest weights, and it is right
only if `examination` is.
"""

import numpy as np

from firstclick.evaluation.estimators.estimator import Estimator, Means
from firstclick.evaluation.estimators.prefix_ips import (
    normalised_terms,
    normalising_columns,
    weighted_clicks,
)
from firstclick.evaluation.estimators.weighted_slates import Table, WeightedSlates, place_weights

NOTHING_ABOVE = "a click depends on the item and its position, not on what stands above it (PBM)"
WINDOW = 1
_PLACES = ("logged_places", "target_places")

IIPS = Estimator(
    "iips", "IIPS", "position", NOTHING_ABOVE, _PLACES, weighted_clicks(place_weights), weights=place_weights
)
SELF_NORMALISED_IIPS = Estimator(
    "sn-iips", "IIPS, self-normalised", "position", NOTHING_ABOVE, _PLACES,
    normalised_terms(place_weights), normalising_columns(place_weights), unbiased=False,
)  # fmt: skip


def interpol_weights(slates: WeightedSlates, window: int = WINDOW) -> Table:
    """The weight of each logged position, n x K."""
    assert slates.logged_at is not None
    assert slates.target_at is not None
    assert slates.examination is not None
    k = slates.clicks.shape[1]
    near = np.abs(np.arange(k)[:, None] - np.arange(k)) <= window
    # Of the item at j: how likely it is seen within the window around position l.
    seen = (slates.logged_at * slates.examination) @ near.T.astype(np.float64)
    wanted = slates.target_at * slates.examination * near
    return np.asarray(np.divide(wanted, seen, out=np.zeros_like(seen), where=seen > 0).sum(axis=2))


def _interpol_terms(slates: WeightedSlates, means: Means) -> Table:
    return np.asarray(np.einsum("nk,nk->n", interpol_weights(slates), slates.clicks))


INTERPOL = Estimator(
    "interpol", f"INTERPOL, window {WINDOW}", "position",
    "PBM with the given chances of examination, at least among positions next to one another",
    ("logged_at", "target_at", "examination"), _interpol_terms, unbiased=False,
)  # fmt: skip
