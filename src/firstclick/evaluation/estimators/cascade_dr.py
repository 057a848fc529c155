"""Cascade-DR (Kiyohara et al. 2022): RIPS with a click model as control variate.

The sum over k of w_{1:k} (y_k - q_k) + w_{1:k-1} E_target[q_k]: `predicted` is q_k, what a model expects of
position k for the item shown there, and `predicted_target` its mean over the item that the target would show
there after the same items. It is unbiased where RIPS is, whatever the model says; the better the model, the
smaller the spread. q may also stand for position k *and all below* (the paper and obp): the same formula.
"""

import numpy as np

from firstclick.evaluation.estimators.estimator import Estimator, Means, linearised_ratio
from firstclick.evaluation.estimators.prefix_ips import FROM_THE_TOP
from firstclick.evaluation.estimators.weighted_slates import Table, WeightedSlates, prefix_weights


def weights_above(weights: Table) -> Table:
    """w_{1:k-1} at position k; 1 at the first."""
    above = np.ones_like(weights)
    above[:, 1:] = weights[:, :-1]
    return above


def _parts(slates: WeightedSlates) -> tuple[Table, Table, Table, Table]:
    assert slates.predicted is not None
    assert slates.predicted_target is not None
    weights = prefix_weights(slates)
    above = weights_above(weights)
    return weights * (slates.clicks - slates.predicted), weights, above * slates.predicted_target, above


def _terms(slates: WeightedSlates, means: Means) -> Table:
    residual, _, model, _ = _parts(slates)
    return np.asarray((residual + model).sum(axis=1))


def _normalised_terms(slates: WeightedSlates, means: Means) -> Table:
    residual, weights, model, above = _parts(slates)
    return linearised_ratio(residual, weights, means["residual"], means["weights"]) + linearised_ratio(
        model, above, means["model"], means["above"]
    )


def _columns(slates: WeightedSlates) -> Means:
    return dict(zip(("residual", "weights", "model", "above"), _parts(slates), strict=True))


_NEEDS = ("logged", "predicted", "predicted_target")
CASCADE_DR = Estimator("cascade-dr", "Cascade-DR", "cascade", FROM_THE_TOP, _NEEDS, _terms)
SELF_NORMALISED_CASCADE_DR = Estimator(
    "sn-cascade-dr", "Cascade-DR, self-normalised", "cascade", FROM_THE_TOP, _NEEDS,
    _normalised_terms, _columns, unbiased=False,
)  # fmt: skip
