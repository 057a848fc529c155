"""What learners are timed against is the same algorithm: it learns the same from the same clicks."""

import numpy as np
import pytest

from firstclick import make_policy
from firstclick.data import FeedbackScenario, synthetic_matrix
from firstclick.studies.paper.plain_numpy import TRANSCRIBED, numpy_seconds_per_step
from firstclick.testing import Driver
from tests.support.policies import OTHERS, policies
from tests.support.reference.rounds import FEATURES, D, K, rounds


def learned(policy):
    """The NumPy version and the policy, after the same rounds."""
    numpy = TRANSCRIBED[make_policy(policy).name](FEATURES.copy(), K, make_policy(policy))
    driver = Driver(policy, FEATURES.copy(), k=K)
    for slate, click in rounds():
        numpy.learn(slate, click)
        driver.learn(slate, None if click == K else click)
    return numpy, driver.state


@pytest.mark.parametrize("policy", policies(["cascade-lin-ts:sigma=0.7", "ranked-lin-ts:sigma=0.7"]))
def test_linear_policies_end_with_the_same_posterior(policy):
    numpy, state = learned(policy)
    parts = getattr(numpy, "rankers", [numpy])
    assert np.allclose([part.M for part in parts], state.precision)
    assert np.allclose([part.B for part in parts], state.moment)


@OTHERS
def test_ucb1_ends_with_the_same_rates():
    numpy, state = learned("cascade-ucb1:start=pessimistic")
    assert np.allclose(numpy.examined, state.examined + 1)
    assert np.allclose(numpy.mean, state.hits / (state.examined + 1))


@pytest.mark.parametrize("name", TRANSCRIBED)
def test_each_learns_to_show_what_attracts_without_repetition(name):
    learner = TRANSCRIBED[name](FEATURES.copy(), K, make_policy(name))
    draw = np.random.default_rng(0)
    attractive = FEATURES[:, 0] > 0.5
    assert 2 <= attractive.sum() <= 7  # of 23: chance alone shows one in less than two thirds of the slates
    clicked = []
    for _ in range(400):
        slate = list(learner.recommend(draw))
        assert len(set(slate)) == K
        hits = np.flatnonzero(attractive[slate])
        learner.learn(slate, int(hits[0]) if len(hits) else K)
        clicked.append(len(hits) > 0)
    assert np.mean(clicked[-100:]) > 0.9


def test_step_is_timed_where_it_is_transcribed():
    stage = FeedbackScenario(synthetic_matrix(3, 90, 61, 3).matrix, rank=D).stage(0, 0)
    for policy in ("cascade-lin-ts", "cascade-lin-ucb:c=theory,horizon=50"):
        assert 1e-6 < numpy_seconds_per_step(make_policy(policy), stage, K) < 1
    assert numpy_seconds_per_step(make_policy("cascade-ts"), stage, K) is None
