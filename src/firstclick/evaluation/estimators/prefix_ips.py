"""Weights of prefixes: RIPS, slate IPS, and their self-normalised forms.

RIPS (McInerney et al. 2020, reward interaction) weighs the click at position k by the chance of the first k
items: sum over k of w_{1:k} y_k. It is unbiased if a click depends on the items above it and its own, which
holds in every click model that reads from the top, PBM included. Slate IPS weighs all clicks by the whole
slate. It needs no such assumption, and its weights are the largest.
"""

from collections.abc import Callable

import numpy as np

from firstclick.evaluation.estimators.estimator import Estimator, Means, linearised_ratio
from firstclick.evaluation.estimators.weighted_slates import Table, WeightedSlates, prefix_weights


def slate_weights(slates: WeightedSlates) -> Table:
    """The weight of the whole slate, at every position."""
    whole = prefix_weights(slates)[:, -1:]
    return np.broadcast_to(whole, slates.clicks.shape)


Weights = Callable[[WeightedSlates], Table]


def weighted_clicks(weights: Weights) -> Callable[[WeightedSlates, Means], Table]:
    """The terms of an estimator that sums weight times click."""

    def terms(slates: WeightedSlates, means: Means) -> Table:
        return np.asarray(np.einsum("nk,nk->n", weights(slates), slates.clicks))

    return terms


def normalised_terms(weights: Weights) -> Callable[[WeightedSlates, Means], Table]:
    """The same, where the weights of each position are divided by their mean."""

    def terms(slates: WeightedSlates, means: Means) -> Table:
        found = weights(slates)
        return linearised_ratio(found * slates.clicks, found, means["clicks"], means["weights"])

    return terms


def normalising_columns(weights: Weights) -> Callable[[WeightedSlates], Means]:
    """What the self-normalised form needs the means of."""

    def columns(slates: WeightedSlates) -> Means:
        found = weights(slates)
        return {"weights": found, "clicks": found * slates.clicks}

    return columns


FROM_THE_TOP = "a click depends on the item and on what stands above it"
ANY_BEHAVIOUR = "always: nothing is assumed about how users read the page"
_PREFIXES = ("logged",)

RIPS = Estimator(
    "rips", "RIPS", "cascade", FROM_THE_TOP, _PREFIXES,
    weighted_clicks(prefix_weights), weights=prefix_weights,
)  # fmt: skip
SELF_NORMALISED_RIPS = Estimator(
    "sn-rips", "RIPS, self-normalised", "cascade", FROM_THE_TOP, _PREFIXES,
    normalised_terms(prefix_weights), normalising_columns(prefix_weights), unbiased=False,
)  # fmt: skip
SLATE_IPS = Estimator(
    "slate-ips", "slate IPS", "slate", ANY_BEHAVIOUR, _PREFIXES,
    weighted_clicks(slate_weights), weights=slate_weights,
)  # fmt: skip
SELF_NORMALISED_SLATE_IPS = Estimator(
    "sn-slate-ips", "slate IPS, self-normalised", "slate", ANY_BEHAVIOUR, _PREFIXES,
    normalised_terms(slate_weights), normalising_columns(slate_weights), unbiased=False,
)  # fmt: skip
