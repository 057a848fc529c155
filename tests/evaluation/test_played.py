"""Policies played in worlds fitted to a log: what they are compared with, and how sure that is."""

import numpy as np
import pytest

from firstclick import InvalidInput, simulate
from firstclick.click_models import Refits, read_sessions
from firstclick.evaluation.played import play_on_log
from firstclick.streams import stream
from firstclick.worlds import BernoulliWorld
from tests.support.memory_log import InMemoryLog

N_ITEMS, K = 8, 3
ATTRACTION = np.array([0.05, 0.1, 0.15, 0.2, 0.05, 0.4, 0.3, 0.05])
EXAMINED = np.array([1.0, 0.6, 0.3])


def position_log(n=5000, explored=0.3, seed=1):
    """Users who examine positions by chance; the list of the page is 0, 1, 2."""
    draw = stream(seed, "log")
    slates = np.tile(np.arange(K), (n, 1))
    free = draw.random(n) < explored
    slates[free] = np.argsort(draw.random((int(free.sum()), N_ITEMS)), axis=1)[:, :K]
    return log_of(slates, draw.random((n, K)) < ATTRACTION[slates] * EXAMINED)


def log_of(slates, clicks, n_items=N_ITEMS):
    """A log of which the last fifth has no report."""
    n = len(slates)
    return InMemoryLog(slates, clicks, names=range(n_items), reported=np.arange(n) < 0.8 * n)


def reported(log):
    """Slates and clicks that were reported."""
    return log.whole.items[log.whole.reported], log.whole.clicks[log.whole.reported]


def test_policy_is_compared_with_what_was_shown():
    log = position_log()
    played = play_on_log(log, ["random"], model="pbm", refits=4, steps=300, seed=2)
    assert (played.slates, played.pages, played.model) == (4000, 300, "pbm")
    logged = reported(log)[1].sum() / 4000
    # 4 standard errors of the log's own clicks per page: one false alarm in 16,000 seeds.
    assert abs(played.shown.value - logged) < 4 * np.sqrt(logged / 4000)
    random = played.policies[0]
    # Every item is as likely at every position.
    expected = ATTRACTION.mean() * EXAMINED.sum()
    assert random.value.value == pytest.approx(expected, rel=0.15)
    gained = random.value.value - played.shown.value
    assert random.difference.value == pytest.approx(gained, abs=1e-12)
    assert random.difference.low < gained < random.difference.high
    assert play_on_log(log, ["random"], model="pbm", refits=4, steps=300, seed=2) == played


def test_interval_is_that_of_one_more_refit():
    log = position_log(n=1000)
    played = play_on_log(log, ["random"], model="pbm", refits=3, steps=50)
    refits, (slates, _) = Refits(read_sessions(log), "pbm", seed=0), reported(log)
    views = np.zeros(len(slates), np.int32)
    shown = [refits.refit(resample).click_chances(slates, views).sum() / len(slates) for resample in range(3)]
    half = 4.302653 * np.std(shown, ddof=1) * np.sqrt(4 / 3)  # Student's t with 2 degrees of freedom
    mean = np.mean(shown)
    assert played.shown == pytest.approx((mean, mean - half, mean + half))


def test_refits_do_not_take_noise_of_resampling_for_items_that_differ():
    """50 equal items, each shown 60 times. Fits to each resample as to an own log have a gain of 0.12."""
    draw = stream(5, "equal")
    slates = np.argsort(draw.random((1250, 50)), axis=1)[:, :K]
    log = log_of(slates, draw.random((1250, K)) < 0.1, n_items=50)
    refits = Refits(read_sessions(log), "cm", seed=1)
    gains = []
    for resample in range(20):
        attraction = np.sort(refits.refit(resample).attraction[0])[::-1]
        gains.append((attraction[:K] - attraction.mean()).sum())
    assert refits.priors["attraction"].strength > 10_000
    assert np.mean(gains) < 0.06
    assert np.quantile(gains, 0.1) < 0.01


def test_item_that_a_resample_does_not_show_stays_in_its_world():
    slates = np.tile(np.arange(K), (50, 1))
    slates[7] = [0, 1, 5]
    refits = Refits(read_sessions(log_of(slates, np.arange(150).reshape(50, K) % 7 == 0)), "pbm", seed=1)
    looks = [refits.refit(resample).looks[0] for resample in range(8)]
    assert all(found[5] > 0 for found in looks)
    assert all(found[4] == 0 for found in looks)


def test_wrong_arguments_are_refused():
    for change, problem in (
        ({"policies": []}, "no policy"), ({"model": None}, "which model fits"), ({"refits": 1}, "refits"),
        ({"policies": ["cascade-lin-ts"]}, "needs features"),
    ):  # fmt: skip
        arguments = {"policies": ["random"], "model": "cm", "refits": 2, "steps": 10, **change}
        with pytest.raises(InvalidInput, match=problem):
            play_on_log(position_log(n=200), arguments.pop("policies"), **arguments)


@pytest.mark.long
def test_learning_policy_beats_what_was_shown_and_the_truth_is_in_the_interval():
    log = position_log(n=20_000)
    played = play_on_log(log, ["cascade-ts"], model="pbm", refits=10, seed=3)
    world = BernoulliWorld(ATTRACTION, "pbm/1/0.6/0.3")
    results = simulate(["cascade-ts"], world, k=K, steps=16_000, runs=5, seed=8)
    truth = results.optimal_reward - results["cascade-ts"].mean("expected_regret")[-1] / 16_000
    shown = (ATTRACTION[log.whole.items] * EXAMINED).sum(axis=1).mean()
    answer = played.policies[0]
    assert answer.difference.low > 0
    assert answer.difference.low < truth - shown < answer.difference.high
    assert answer.value.low < truth < answer.value.high
