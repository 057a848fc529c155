"""What learners are timed against is the same algorithm: it learns the same from the same clicks."""

import numpy as np
import pytest

from firstclick import make_policy
from firstclick.data import FeedbackScenario, synthetic_matrix
from firstclick.studies.paper.plain_numpy import TRANSCRIBED, numpy_seconds_per_step
from firstclick.testing import Driver
from tests.support.policies import OTHERS, policies
from tests.support.reference.rounds import FEATURES, D, K, rounds


@pytest.fixture
def features():
    return FEATURES.copy()


@pytest.mark.parametrize("policy", policies(["cascade-lin-ts:sigma=0.7", "ranked-lin-ts:sigma=0.7"]))
def test_linear_learners_end_with_the_same_posterior(policy, features):
    learner = TRANSCRIBED[make_policy(policy).name](features, K, make_policy(policy))
    driver = Driver(policy, features, k=K)
    for slate, click in rounds():
        learner.learn(slate, click)
        driver.learn(slate, None if click == K else click)
    parts = getattr(learner, "rankers", [learner])
    assert np.allclose([part.M for part in parts], driver.state.precision)
    assert np.allclose([part.B for part in parts], driver.state.moment)


@OTHERS
def test_ucb1_ends_with_the_same_rates(features):
    learner = TRANSCRIBED["cascade-ucb1"](features, K, make_policy("cascade-ucb1:start=pessimistic"))
    driver = Driver("cascade-ucb1:start=pessimistic", features, k=K)
    for slate, click in rounds():
        learner.learn(slate, click)
        driver.learn(slate, None if click == K else click)
    assert np.allclose(learner.examined, driver.state.examined + 1)
    assert np.allclose(learner.mean, driver.state.hits / (driver.state.examined + 1))


@pytest.mark.parametrize("name", TRANSCRIBED)
def test_each_learns_to_show_what_attracts_without_repetition(name, features):
    learner = TRANSCRIBED[name](features, K, make_policy(name))
    draw = np.random.default_rng(0)
    attractive = features[:, 0] > 0.5
    assert 2 <= attractive.sum() <= 7  # of 23: chance alone shows one in less than two thirds of the slates
    clicked = []
    for _ in range(400):
        slate = list(learner.recommend(draw))
        assert len(set(slate)) == K
        hits = np.flatnonzero(attractive[slate])
        learner.learn(slate, int(hits[0]) if len(hits) else K)
        clicked.append(len(hits) > 0)
    assert np.mean(clicked[-100:]) > 0.9


def test_a_step_takes_time_where_it_is_transcribed():
    stage = FeedbackScenario(synthetic_matrix(3, 90, 61, 3).matrix, rank=D).stage(0, 0)
    assert 1e-6 < numpy_seconds_per_step(make_policy("cascade-lin-ts"), stage, K) < 1
    assert numpy_seconds_per_step(make_policy("cascade-ts"), stage, K) is None
    theory = make_policy("cascade-lin-ucb:c=theory,horizon=50")
    assert 1e-6 < numpy_seconds_per_step(theory, stage, K) < 1
