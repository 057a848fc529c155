"""The simulator: same users for all, same bits whatever the number of processes, both regrets."""

import numpy as np
import pytest

from firstclick import InvalidInput, Results, make_world, simulate
from firstclick.data import FeedbackScenario, synthetic_matrix
from firstclick.experiments.loop import log_spaced
from firstclick.kernels.hashing import mix, user_of
from firstclick.streams import stream_key
from firstclick.testing import Driver
from firstclick.worlds import BernoulliWorld
from tests.support.policies import OTHERS, policies

LINEAR = make_world("linear:n_items=30,n_features=4").build(3)
SMALL = synthetic_matrix(5, n_users=301, n_items=40, n_groups=3)


def same(first, second):
    """Whether all curves are equal, bit for bit."""
    return all(
        np.array_equal(getattr(a, measure), getattr(b, measure))
        for a, b in zip(first.results, second.results, strict=True)
        for measure in ("regret", "expected_regret", "reward")
    )


def test_results_do_not_depend_on_the_number_of_processes():
    scenario = FeedbackScenario(SMALL.matrix, rank=5, n_items=20)
    policies = ["cascade-lin-ts", "cascade-ts", "random"]
    alone, together = (
        simulate(policies, scenario, k=3, steps=700, runs=4, seed=9, jobs=jobs) for jobs in (1, 3)
    )
    assert same(alone, together)
    assert alone.summary()["results"][0]["shown"] == together.summary()["results"][0]["shown"]


def test_policies_meet_the_same_users_and_do_not_affect_each_other():
    few, other_seed = (
        simulate(["cascade-lin-ts"], LINEAR, k=3, steps=500, runs=2, seed=seed) for seed in (1, 2)
    )
    many = simulate(["random", "cascade-ts", "cascade-lin-ts"], LINEAR, k=3, steps=500, runs=2, seed=1)
    np.testing.assert_array_equal(few["cascade-lin-ts"].regret, many["cascade-lin-ts"].regret)
    assert not np.array_equal(few.results[0].regret, other_seed.results[0].regret)
    assert not np.array_equal(few.results[0].reward[0], few.results[0].reward[1])
    # reward + realised regret is what the optimal slate got: the same for all policies.
    optimum = [result.reward + result.regret for result in many.results]
    for other in optimum[1:]:
        np.testing.assert_array_equal(optimum[0], other)
    # Curves are recorded at few steps, the first and the last among them.
    for steps in (1, 5, 123_457):
        record = log_spaced(steps)
        assert (record[0], record[-1], len(record) <= 100) == (1, steps, True)
        assert (np.diff(record) > 0).all()


def test_both_regrets_have_the_same_mean():
    results = simulate(["random"], BernoulliWorld([0.5, 0.4, 0.1, 0.05]), k=2, steps=2000, runs=60, seed=3)
    realised, expected = results.results[0].final("regret"), results.results[0].final("expected_regret")
    # 4.5 standard errors: a false alarm once in 150,000.
    assert abs(realised["mean"] - expected["mean"]) < 4.5 * realised["stderr"]
    # Random order of 4 items, 2 shown: the mean over all 6 sets of items, exactly.
    sets = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    world = BernoulliWorld([0.5, 0.4, 0.1, 0.05])
    a_step = 0.7 - np.mean([world.expected_reward(pair) for pair in sets])
    assert abs(expected["mean"] - 2000 * a_step) < 4.5 * expected["stderr"]
    assert expected["stderr"] < realised["stderr"]


@pytest.mark.parametrize(
    "policy", policies(["cascade-lin-ts", "cascade-ts", "cascade-kl-ucb:start=first", "ranked-lin-ts"])
)
def test_the_loop_plays_what_single_calls_would_play(policy):
    steps, seed, k = 300, 6, 3
    results = simulate([policy], LINEAR, k=k, steps=steps, seed=seed, points=steps)
    driver = Driver(policy, LINEAR.features, k=k)
    driver._key = stream_key(seed, "run", 0, "policy", driver.policy.label)
    world_key = stream_key(seed, "run", 0, "world")
    best = LINEAR.expected_reward(LINEAR.optimal_slate(k))
    reward, expected = 0, 0.0
    for step in range(steps):
        slate = driver.recommend(step)
        user = np.uint64(mix(world_key, np.uint64(step)))
        draws = [((mix(user, np.uint64(item)) >> 12) + 0.5) * 2.0**-52 for item in slate]
        hits = np.flatnonzero(np.array(draws) < LINEAR.attractions[slate])
        click = int(hits[0]) if len(hits) else None
        driver.learn(slate, click)
        reward += click is not None
        expected += best - LINEAR.expected_reward(slate)
    assert results.results[0].reward[0, -1] == reward
    assert results.results[0].expected_regret[0, -1] == pytest.approx(expected)


@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_reaches_the_total_and_can_stop_everything(jobs):
    calls = []
    simulate(
        ["random", "cascade-ts"], LINEAR, k=3, steps=400, runs=2, jobs=jobs,
        progress=lambda done, total: calls.append((done, total)),
    )  # fmt: skip
    assert (calls[0], calls[-1]) == ((0, 1600), (1600, 1600))
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)

    def interrupt(done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(["random"], LINEAR, k=3, steps=10**8, runs=2, jobs=jobs, progress=interrupt)


def test_results_survive_saving_and_loading(tmp_path):
    results = simulate(["cascade-ts", "random"], LINEAR, k=3, steps=300, runs=2, settings={"a": 1})
    file, other = tmp_path / "results.json", tmp_path / "other.json"
    results.save(file)
    loaded = Results.load(file)
    assert same(results, loaded)
    assert loaded.summary() == results.summary()
    other.write_text('{"format": "firstclick results 2"}')
    file.write_text(file.read_text()[:-40])
    for path, problem in (
        (tmp_path / "missing.json", "no such file"),
        (other, "has the format 'firstclick results 2'"),
        (file, r"not a file that Results\.save wrote"),
    ):
        with pytest.raises(InvalidInput, match=problem):
            Results.load(path)
    with pytest.raises(InvalidInput, match="cannot be written"):
        results.save(tmp_path / "missing" / "results.json")


def test_results_make_a_table():
    results = simulate(["cascade-ts", "random"], LINEAR, k=3, steps=300, runs=2, points=10)
    rows = results.rows()
    assert len(rows) == 2 * len(results.step)
    assert (rows[-1]["policy"], rows[-1]["step"]) == ("random", 300)
    assert rows[-1]["regret"] == pytest.approx(results["random"].regret[:, -1].mean())
    assert list(results.frame().columns) == list(rows[0])
    with pytest.raises(KeyError, match="no policy 'cascade'"):
        results["cascade"]
    with pytest.raises(InvalidInput, match="measure"):
        results["random"].final("regrets")
    # A single run has no standard error; numbers of NumPy and names of worlds are accepted.
    spec = "blb:n_items=8,k=2"
    named = simulate(["random"], spec, k=np.int64(2), steps=np.int32(50), seed=np.int64(3))
    assert named.summary()["results"][0]["regret"]["stderr"] is None
    assert same(named, simulate(["random"], make_world(spec), k=2, steps=50, seed=3))


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"k": 31}, "k"),
        ({"k": 0}, "k"),
        ({"steps": 0}, "steps"),
        ({"runs": 0}, "runs"),
        ({"seed": -1}, "seed"),
        ({"jobs": 0}, "jobs"),
        ({"policies": []}, "no policy given"),
        ({"policies": ["random", "random"]}, "twice"),
        ({"policies": "random"}, "policies"),
        ({"features": np.ones((29, 2))}, "one row for each of the 30 items"),
        ({"features": np.full((30, 2), np.nan)}, "features"),
        ({"settings": {"x": np.int64(3)}}, "settings"),
        ({"world": BernoulliWorld([0.5] * 9), "policies": ["cascade-lin-ts"]}, "needs features"),
        ({"baseline": [1, 2]}, "baseline"),
        ({"baseline": [1, 2, 99]}, "baseline names 99"),
        ({"baseline": [1, 2, 1]}, "baseline names 1 twice"),
        ({"baseline": 1.2}, "baseline"),
        ({"baseline": "item 1"}, "baseline"),
        ({"baseline": 0.5, "max_loss": 0}, "max_loss"),
        ({"max_loss": 0.1}, "max_loss needs a baseline"),
        ({"policies": ["bubble-rank"], "baseline": 0.5}, "baseline is not for bubble-rank"),
    ],
)
def test_wrong_input_is_refused_before_anything_is_played(change, argument):
    given = {"policies": ["random"], "world": LINEAR, "features": None, "k": 3, "steps": 10**9} | change
    with pytest.raises(InvalidInput, match=rf"\b{argument}\b"):
        simulate(given.pop("policies"), given.pop("world"), given.pop("features"), **given)


def test_the_regret_of_each_run_is_against_the_cover_of_its_own_test_users():
    scenario, k, runs = FeedbackScenario(SMALL.matrix), 6, 3
    results = simulate(["random"], scenario, k=k, steps=400, runs=runs, seed=2)
    covers, best = [], []
    for run in range(runs):
        world = scenario.stage(2, run).world
        cover = world.optimal_slate(k)
        covers.append(frozenset(cover.tolist()))
        best.append(world.expected_reward(cover))
        # What the optimal slate of this run earned from the users it really met, step by step.
        key = stream_key(2, "run", run, "world")
        users = [user_of(np.uint64(mix(key, np.uint64(step))), world.n_users) for step in range(400)]
        hit = np.asarray(world.matrix[users][:, cover].sum(axis=1)).ravel() > 0
        optimum = results.results[0].reward[run] + results.results[0].regret[run]
        np.testing.assert_array_equal(optimum, np.cumsum(hit)[results.step - 1])
    assert len(set(covers)) > 1, "covers must differ for this test to see anything"
    assert results.optimal_reward == pytest.approx(np.mean(best))


@OTHERS
def test_free_row_is_learned_for_each_run_and_not_counted_in_regret():
    world = BernoulliWorld([1.0, 0.0, 1.0, 0.0])
    sampled = simulate(["cascade-ucb1"], world, k=2, steps=1, runs=5, seed=1)
    # After one true look at every item, the first slate is the best one.
    assert sampled.results[0].final("regret")["mean"] == 0
    unseen = simulate(["cascade-ucb1:start=first"], world, k=2, steps=1, runs=200, seed=1)
    assert unseen.results[0].final("regret")["mean"] > 0
    # Ten items that attract half of the users: the best of the free row comes first, another in each run.
    first = simulate(["cascade-ucb1"], BernoulliWorld([0.5] * 10), k=5, steps=1, runs=30, seed=1)
    # With one row for all runs, items that attracted in it would be in nearly every first slate.
    assert max(shown.share for shown in first.results[0].shown) < 0.9


@OTHERS
def test_a_horizon_shorter_than_the_run_is_noted():
    for steps, noted in ((20, False), (21, True)):
        (note,) = simulate(["cascade-lin-ucb:c=theory,horizon=20"], LINEAR, k=2, steps=steps).notes
        assert ("it holds for 20 steps, and 21 are played" in note) == noted
