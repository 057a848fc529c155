"""The simulator: same users for all, same bits whatever the number of processes, both regrets."""

import numpy as np
import pytest

from firstclick import InvalidInput, Results, make_world, simulate
from firstclick.data import FeedbackScenario, synthetic_matrix
from firstclick.experiments.engines import play_in_processes
from firstclick.experiments.loop import log_spaced
from firstclick.kernels.hashing import mix, user_of
from firstclick.streams import stream_key
from firstclick.testing import Driver
from firstclick.worlds import BernoulliWorld, MatrixWorld
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


def test_adding_or_reordering_policies_changes_no_other():
    few = simulate(["cascade-lin-ts"], LINEAR, k=3, steps=500, runs=2, seed=1)
    many = simulate(["random", "cascade-ts", "cascade-lin-ts"], LINEAR, k=3, steps=500, runs=2, seed=1)
    np.testing.assert_array_equal(few["cascade-lin-ts"].regret, many["cascade-lin-ts"].regret)


def test_seeds_and_runs_differ():
    first, second = (simulate(["cascade-ts"], LINEAR, k=3, steps=500, runs=2, seed=s) for s in (1, 2))
    assert not np.array_equal(first.results[0].regret, second.results[0].regret)
    assert not np.array_equal(first.results[0].reward[0], first.results[0].reward[1])


def test_all_policies_of_a_run_meet_the_same_users():
    # reward + realised regret is what the optimal slate got: the same for everyone.
    results = simulate(["cascade-ts", "random"], LINEAR, k=3, steps=800, runs=3, seed=4)
    optimum = [result.reward + result.regret for result in results.results]
    np.testing.assert_array_equal(*optimum)


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


def test_regret_against_a_greedy_cover_can_be_negative():
    # Greedy takes item 0 (8 of 12 users) and then reaches 10; items 1 and 2 together reach all 12.
    # Two random items of the three reach 10.67 on average.
    matrix = np.zeros((12, 3), np.uint8)
    matrix[2:10, 0], matrix[:6, 1], matrix[6:, 2] = 1, 1, 1
    world = MatrixWorld(matrix)
    assert world.optimal_slate(2)[0] == 0
    results = simulate(["random"], world, k=2, steps=2000, runs=2, seed=0)
    assert results.results[0].final("expected_regret")["mean"] < -50
    assert results.results[0].final("regret")["mean"] < 0


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


@OTHERS
def test_the_free_row_is_learned_and_not_counted_in_regret_or_time():
    world = BernoulliWorld([1.0, 0.0, 1.0, 0.0])
    sampled = simulate(["cascade-ucb1"], world, k=2, steps=1, runs=5, seed=1)
    # After one true look at every item, the first slate is the best one.
    assert sampled.results[0].final("regret")["mean"] == 0
    unseen = simulate(["cascade-ucb1:start=first"], world, k=2, steps=1, runs=200, seed=1)
    assert unseen.results[0].final("regret")["mean"] > 0


def test_each_run_has_its_own_split_and_features_unless_one_split():
    scenario = FeedbackScenario(SMALL.matrix, rank=4)
    first, second = scenario.stage(3, 0), scenario.stage(3, 1)
    assert (first.world.matrix != second.world.matrix).nnz > 0
    assert not np.array_equal(first.features, second.features)
    shared = FeedbackScenario(SMALL.matrix, rank=4, one_split=True)
    assert shared.stage(3, 0).world is shared.stage(3, 1).world
    assert shared.stage(3, 0).features is shared.stage(3, 1).features
    assert shared.stage(4, 0).world is not shared.stage(3, 0).world


def test_a_scenario_cuts_items_after_the_svd_and_can_have_more_features_than_items():
    scenario = FeedbackScenario(SMALL.matrix, rank=6, n_items=3, item_names=SMALL.item_names)
    stage = scenario.stage(0, 0)
    assert stage.features.shape == (3, 6)
    counts = np.asarray(SMALL.matrix.sum(axis=0), np.int64).ravel()
    popular = np.argsort(-counts, kind="stable")[:3]
    assert list(stage.item_names) == [SMALL.item_names[item] for item in popular]
    random = FeedbackScenario(SMALL.matrix, rank=6, n_items=3, pick="random")
    names = {tuple(random.stage(0, run).item_names) for run in range(6)}
    assert len(names) > 1
    results = simulate(["cascade-lin-ts"], scenario, k=2, steps=50)
    assert results.n_items == 3


def test_curves_are_log_spaced_distinct_and_end_at_the_last_step():
    for steps in (1, 2, 5, 1000, 123_457):
        record = log_spaced(steps)
        assert record[0] == 1
        assert record[-1] == steps
        assert (np.diff(record) > 0).all()
        assert len(record) <= 100


def test_progress_reaches_the_total_with_one_and_with_two_processes():
    for jobs in (1, 2):
        calls = []
        simulate(
            ["random", "cascade-ts"], LINEAR, k=3, steps=400, runs=2, jobs=jobs,
            progress=lambda done, total, calls=calls: calls.append((done, total)),
        )  # fmt: skip
        assert calls[0] == (0, 1600)
        assert calls[-1] == (1600, 1600)
        assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_a_progress_that_raises_stops_everything():
    def progress(done, total):
        if done:
            raise KeyboardInterrupt

    for jobs in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            simulate(["random"], LINEAR, k=3, steps=10**8, runs=2, jobs=jobs, progress=progress)


def test_tasks_are_made_only_as_workers_need_them():
    made = []

    def tasks():
        made.append(1)
        yield from ()

    assert list(play_in_processes(tasks(), lambda steps: None, jobs=1)) == []
    assert made == [1]


def test_results_survive_saving_and_loading(tmp_path):
    results = simulate(["cascade-ts", "random"], LINEAR, k=3, steps=300, runs=2, settings={"a": 1})
    results.save(tmp_path / "results.json")
    loaded = Results.load(tmp_path / "results.json")
    assert same(results, loaded)
    assert loaded.summary() == results.summary()
    with pytest.raises(InvalidInput, match="no such file"):
        Results.load(tmp_path / "missing.json")
    (tmp_path / "other.json").write_text('{"format": "firstclick results 2"}')
    rule = (
        r"other\.json has the format 'firstclick results 2', and this firstclick reads 'firstclick results 1'"
    )
    with pytest.raises(InvalidInput, match=rule):
        Results.load(tmp_path / "other.json")
    (tmp_path / "results.json").write_text((tmp_path / "results.json").read_text()[:-40])
    with pytest.raises(InvalidInput, match=r"not a file that Results\.save wrote"):
        Results.load(tmp_path / "results.json")


def test_results_make_a_table():
    results = simulate(["cascade-ts", "random"], LINEAR, k=3, steps=300, runs=2, points=10)
    rows = results.rows()
    assert len(rows) == 2 * len(results.step)
    assert rows[-1]["policy"] == "random"
    assert rows[-1]["step"] == 300
    assert rows[-1]["regret"] == pytest.approx(results["random"].regret[:, -1].mean())
    frame = results.frame()
    assert list(frame.columns) == list(rows[0])
    with pytest.raises(KeyError, match="no policy 'cascade'"):
        results["cascade"]


def test_a_single_run_has_no_standard_error():
    results = simulate(["random"], LINEAR, k=3, steps=10)
    assert results.summary()["results"][0]["regret"]["stderr"] is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 31}, "k must be at most the number of items, 30, got 31"),
        ({"k": 0}, "k must be at least 1, got 0"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"runs": 0}, "runs must be at least 1"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"jobs": 0}, "jobs must be at least 1"),
        ({"steps": 2.5}, "steps must be a whole number"),
        ({"policies": []}, "no policy given"),
        ({"policies": ["random", "random"]}, "policy 'random' is given twice"),
        ({"features": np.ones((29, 2))}, "one row for each of the 30 items, got 29"),
        ({"features": np.full((30, 2), np.nan)}, "features must be finite, got nan in row 0, column 0"),
        (
            {"world": BernoulliWorld([0.5] * 9), "policies": ["cascade-lin-ts"]},
            "cascade-lin-ts needs features",
        ),
    ],
)
def test_wrong_input_is_refused_before_anything_is_played(change, message):
    given = {"policies": ["random"], "world": LINEAR, "features": None, "k": 3, "steps": 10} | change
    with pytest.raises(InvalidInput, match=message):
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
def test_each_run_gets_its_own_free_row():
    # Ten items that attract half of the users: the best of the free row comes first, another in each run.
    world = BernoulliWorld([0.5] * 10)
    first = simulate(["cascade-ucb1"], world, k=5, steps=1, runs=30, seed=1)
    shares = [shown.share for shown in first.results[0].shown]
    # With one row for all runs, items that attracted in it would be in nearly every first slate.
    assert max(shares) < 0.9


def test_a_world_can_be_named_and_a_lone_policy_is_refused():
    named = simulate(["random"], "blb:n_items=8,k=2", k=2, steps=50, seed=3)
    built = simulate(["random"], make_world("blb:n_items=8,k=2"), k=2, steps=50, seed=3)
    assert same(named, built)
    with pytest.raises(InvalidInput, match="policies must be a list, got 'random' alone"):
        simulate("random", "blb", k=2, steps=50)


def test_numpy_numbers_are_taken_and_odd_settings_refused_at_the_door(tmp_path):
    results = simulate(["random"], LINEAR, k=np.int64(2), steps=np.int32(20), seed=np.int64(3))
    results.save(tmp_path / "results.json")
    with pytest.raises(InvalidInput, match="settings must be plain values"):
        simulate(["random"], LINEAR, k=2, steps=20, settings={"x": np.int64(3)})
    with pytest.raises(InvalidInput, match="measure must be one of regret, expected_regret, reward"):
        results.results[0].final("regrets")
    with pytest.raises(InvalidInput, match="cannot be written"):
        results.save(tmp_path / "missing" / "results.json")


@OTHERS
def test_a_horizon_shorter_than_the_run_is_told():
    results = simulate(["cascade-lin-ucb:c=theory,horizon=10"], LINEAR, k=2, steps=20)
    assert "it holds for 10 steps, and 20 are played" in results.notes[0]
