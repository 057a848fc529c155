"""Policies played in worlds fitted to a log: what they are compared with, and how sure that is."""

import numpy as np
import pytest

from firstclick import InvalidInput
from firstclick.click_models import Refits, read_sessions
from firstclick.evaluation.played import play_on_log
from firstclick.files.progress import silent
from firstclick.logs.ranked_log import RankedLog, SlateBatch
from firstclick.streams import stream

N_ITEMS, K = 8, 3
ATTRACTION = np.array([0.05, 0.1, 0.15, 0.2, 0.05, 0.4, 0.3, 0.05])
EXAMINED = np.array([1.0, 0.6, 0.3])


class ArrayLog(RankedLog):
    """Slates and clicks as a log; the last fifth without a report."""

    name = "page.csv"

    def __init__(self, items, clicks, segments=None):
        self.items = [f"tea {item}" for item in range(N_ITEMS)]
        self.segments = () if segments is None else ("desk", "phone")
        self.k = items.shape[1]
        n = len(items)
        self.batch = SlateBatch(
            items=items.astype(np.int32),
            clicks=clicks.astype(np.uint8),
            examined=np.full(n, -1, np.int32),
            reported=np.arange(n) < 0.8 * n,
            numbers=np.arange(n),
            segments=segments,
        )

    def batches(self, progress=silent):
        yield self.batch


def position_log(n=5000, explored=0.3, seed=1):
    """Users who look at positions by chance; the list of the page is 0, 1, 2."""
    draw = stream(seed, "log")
    slates = np.tile(np.arange(K), (n, 1))
    free = draw.random(n) < explored
    slates[free] = np.argsort(draw.random((int(free.sum()), N_ITEMS)), axis=1)[:, :K]
    return ArrayLog(slates, draw.random((n, K)) < ATTRACTION[slates] * EXAMINED)


def test_what_was_shown_gets_the_clicks_of_the_log_and_a_policy_is_compared_with_it():
    log = position_log()
    played = play_on_log(log, ["random"], model="pbm", refits=4, steps=300, seed=2)
    known = log.batch.reported
    assert (played.slates, played.pages, played.model) == (4000, 300, "pbm")
    logged = log.batch.clicks[known].sum() / 4000
    # 4 standard errors of the log's own clicks per page: one false alarm in 16,000 seeds.
    assert abs(played.shown.value - logged) < 4 * np.sqrt(logged / 4000)
    random = played.policies[0]
    # Every item is as likely at every place.
    expected = ATTRACTION.mean() * EXAMINED.sum()
    assert random.value.value == pytest.approx(expected, rel=0.15)
    gained = random.value.value - played.shown.value
    assert random.difference.value == pytest.approx(gained, abs=1e-12)
    assert random.difference.low < gained < random.difference.high
    again = play_on_log(log, ["random"], model="pbm", refits=4, steps=300, seed=2)
    assert again == played


def test_the_interval_is_that_of_one_more_refit():
    log = position_log(n=1000)
    played = play_on_log(log, ["random"], model="pbm", refits=3, steps=50)
    shown = []
    refits = Refits(read_sessions(log), "pbm", seed=0)
    for resample in range(3):
        found = refits.refit(resample)
        known = log.batch.items[log.batch.reported]
        shown.append(found.click_chances(known, np.zeros(len(known), np.int32)).sum() / len(known))
    half = 4.302653 * np.std(shown, ddof=1) * np.sqrt(4 / 3)  # Student's t with 2 degrees of freedom
    mean = np.mean(shown)
    assert played.shown == pytest.approx((mean, mean - half, mean + half))


def test_refits_do_not_take_the_chance_of_resampling_for_items_that_differ():
    """50 equal items, 60 looks each. A fit to each resample as to a log of its own finds a gain of 0.12."""
    draw = stream(5, "equal")
    slates = np.argsort(draw.random((1250, 50)), axis=1)[:, :K]
    log = ArrayLog(slates, draw.random((1250, K)) < 0.1)
    log.items = list(range(50))
    refits = Refits(read_sessions(log), "cm", seed=1)
    gains = []
    for resample in range(20):
        attraction = np.sort(refits.refit(resample).attraction[0])[::-1]
        gains.append((attraction[:K] - attraction.mean()).sum())
    assert refits.priors["attraction"].strength > 10_000
    assert np.mean(gains) < 0.06
    assert np.quantile(gains, 0.1) < 0.01


def test_an_item_that_a_resample_does_not_show_stays_in_its_world():
    slates = np.tile(np.arange(K), (50, 1))
    slates[7] = [0, 1, 5]
    refits = Refits(read_sessions(ArrayLog(slates, np.arange(150).reshape(50, K) % 7 == 0)), "pbm", seed=1)
    looks = [refits.refit(resample).looks[0] for resample in range(8)]
    assert all(found[5] > 0 for found in looks)
    assert all(found[4] == 0 for found in looks)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"policies": []}, "no policy given"),
        ({"model": "ubm"}, "model must be one of cm, dcm, sdbn, pbm, dbn, got 'ubm'"),
        ({"refits": 1}, "refits must be at least 2, got 1"),
        ({"policies": ["cascade-lin-ts"]}, "cascade-lin-ts needs features"),
    ],
)
def test_what_cannot_be_played_is_refused_with_a_reason(asked, said):
    arguments = {"policies": ["random"], "model": "cm", "refits": 2, "steps": 10, **asked}
    with pytest.raises(InvalidInput, match=said):
        play_on_log(position_log(n=200), arguments.pop("policies"), **arguments)


def test_with_too_few_clicks_the_click_model_must_be_named():
    with pytest.raises(InvalidInput, match="Cannot say which model fits"):
        play_on_log(position_log(n=200), ["random"], refits=2, steps=10)


@pytest.mark.long
def test_a_policy_that_learns_gets_more_than_what_was_shown_and_the_truth_is_in_the_interval():
    from firstclick import simulate
    from firstclick.worlds import BernoulliWorld

    log = position_log(n=20_000)
    played = play_on_log(log, ["cascade-ts"], model="pbm", refits=10, seed=3)
    world = BernoulliWorld(ATTRACTION, "pbm/1/0.6/0.3")
    results = simulate(["cascade-ts"], world, k=K, steps=16_000, runs=5, seed=8)
    truth = results.optimal_reward - results["cascade-ts"].mean("expected_regret")[-1] / 16_000
    shown = (ATTRACTION[log.batch.items] * EXAMINED).sum(axis=1).mean()
    answer = played.policies[0]
    assert answer.difference.low > 0
    assert answer.difference.low < truth - shown < answer.difference.high
    assert answer.value.low < truth < answer.value.high
