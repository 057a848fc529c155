"""Every estimator is right where it says so, and wrong elsewhere: exact expectations over small worlds."""

import numpy as np
import pytest

from firstclick.evaluation.estimators.all_estimators import ESTIMATORS
from tests.support.reference import small_worlds as small

LOGGER = small.plackett_luce(np.array([1.0, 2.0, 0.5, 1.5]))
TARGET = small.plackett_luce(np.array([4.0, 1.0, 1.0, 0.3]))
ALWAYS = np.eye(len(small.SLATES))[17]
CASCADE_LIKE = (small.cascade, small.dbn)
MODELS = (*CASCADE_LIKE, small.pbm, small.both_ways)


def is_right(family, model):
    """Whether the behaviour is the one that the family assumes."""
    if family == "slate":
        return True
    return model is small.pbm if family == "position" else model is not small.both_ways


@pytest.mark.parametrize("model", MODELS)
def test_outcomes_of_a_small_world_have_probabilities_that_add_up(model):
    for slate in small.SLATES:
        assert sum(model(slate, outcome) for outcome in small.OUTCOMES) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("target", [TARGET, ALWAYS], ids=["random", "one list"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: one.name)
def test_the_expectation_is_the_value_where_the_behaviour_is_as_assumed(estimator, model, target):
    slates, chances = small.enumerated(model, LOGGER, target)
    # Self-normalised forms divide by exact means: what they come to with a log without end.
    columns = {} if estimator.columns is None else estimator.columns(slates)
    means = {key: chances @ column for key, column in columns.items()}
    expectation = float(chances @ estimator.terms(slates, means))
    truth = small.value(model, target)
    if is_right(estimator.family, model):
        assert expectation == pytest.approx(truth, abs=1e-12)
    else:
        assert abs(expectation - truth) > 1e-3
