"""The table of estimators."""

from firstclick.evaluation.estimators.cascade_dr import CASCADE_DR, SELF_NORMALISED_CASCADE_DR
from firstclick.evaluation.estimators.estimator import Estimator
from firstclick.evaluation.estimators.position_ips import IIPS, SELF_NORMALISED_IIPS
from firstclick.evaluation.estimators.prefix_ips import (
    RIPS,
    SELF_NORMALISED_RIPS,
    SELF_NORMALISED_SLATE_IPS,
    SLATE_IPS,
)

ESTIMATORS: tuple[Estimator, ...] = (
    CASCADE_DR,
    RIPS,
    SELF_NORMALISED_CASCADE_DR,
    SELF_NORMALISED_RIPS,
    IIPS,
    SELF_NORMALISED_IIPS,
    SLATE_IPS,
    SELF_NORMALISED_SLATE_IPS,
)
