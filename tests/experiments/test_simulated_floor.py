"""`simulate` with a baseline and a floor: the loop, made-up lists, and what is refused."""

import numpy as np
import pytest

from firstclick import Results, make_world, simulate
from firstclick.data import FeedbackScenario, synthetic_matrix
from firstclick.experiments.baseline import made_up_list
from firstclick.kernels.hashing import mix, uniform
from firstclick.online.floor import Floor
from firstclick.streams import stream_key
from firstclick.testing import Driver

LINEAR = make_world("linear:n_items=30,n_features=4").build(3)
POLICY = "cascade-ts"


def test_the_loop_shows_what_policy_baseline_and_floor_would_show_one_by_one():
    steps, seed, k, max_loss = 400, 6, 3, 0.2
    baseline = [7, 2, 11]
    results = simulate(
        [POLICY], LINEAR, k=k, steps=steps, seed=seed, points=steps, baseline=baseline, max_loss=max_loss
    )
    driver, floor = Driver(POLICY, LINEAR.features, k=k), Floor(max_loss)
    driver._key = stream_key(seed, "run", 0, "policy", driver.policy.label)
    world_key = stream_key(seed, "run", 0, "world")
    usual, best = LINEAR.expected_reward(baseline), LINEAR.expected_reward(LINEAR.optimal_slate(k))
    reward = lost = shown = stated = shares = pages = 0.0
    worst_shown = worst_stated = 1.0
    for step in range(steps):
        slate = driver.recommend(step)
        chance = LINEAR.expected_reward(slate)
        share = floor.share()
        key = np.uint64(mix(driver._key, np.uint64(step)))
        by_policy = uniform(key, np.uint64(11 << 56)) < share
        slate = slate if by_policy else baseline
        user = np.uint64(mix(world_key, np.uint64(step)))
        draws = [uniform(user, np.uint64(item)) for item in slate]
        hits = np.flatnonzero(np.array(draws) < LINEAR.attractions[slate])
        click = int(hits[0]) if len(hits) else None
        driver.learn(slate, click)
        floor.observe(share, by_policy, click is not None)
        reward += click is not None
        lost += best - LINEAR.expected_reward(slate)
        shown += chance if by_policy else usual
        stated += share * chance + (1 - share) * usual
        shares, pages = shares + share, pages + by_policy
        worst_shown = min(worst_shown, shown / ((step + 1) * usual))
        worst_stated = min(worst_stated, stated / ((step + 1) * usual))
    [result] = results.results
    assert result.reward[0, -1] == reward
    assert result.expected_regret[0, -1] == pytest.approx(lost)
    last = [float(values[0, -1]) for values in result.against]
    assert last == pytest.approx([shown, stated, steps * usual, shares, pages, worst_shown, worst_stated])
    assert 40 < pages < steps


def test_without_a_floor_the_policy_plays_as_without_a_baseline():
    usual = simulate([POLICY], LINEAR, k=3, steps=300, runs=2, seed=2)
    compared = simulate([POLICY], LINEAR, k=3, steps=300, runs=2, seed=2, baseline=0.6)
    np.testing.assert_array_equal(usual[POLICY].regret, compared[POLICY].regret)
    against = compared[POLICY].against
    assert usual[POLICY].against is None
    assert (against.policy_pages[:, -1] == 300).all()
    np.testing.assert_array_equal(against.shown, against.stated)
    assert (against.worst_shown[:, -1] < 0.9).any()


def test_the_promise_holds_and_the_policy_takes_over_where_it_is_better():
    """20 runs, each of which may break the promise with 5 %: 5 of 20 would be chance once in 400."""
    results = simulate(
        [POLICY], "linear:n_items=30,n_features=4", k=3, steps=4000, runs=20, seed=8, baseline=0.5,
        max_loss=0.1,
    )  # fmt: skip
    against = results[POLICY].against
    assert np.count_nonzero(against.worst_stated[:, -1] < 0.9 - 1e-9) < 5
    assert against.shown[:, -1].mean() > against.baseline[:, -1].mean()
    assert results.notes[-1].startswith(
        "cascade-ts: expected clicks were at least 0.9 of the baseline's at all times in "
    )


def test_results_with_a_baseline_are_kept_in_files_and_tables(tmp_path):
    scenario = FeedbackScenario(synthetic_matrix(5, n_users=301, n_items=40, n_groups=3).matrix, n_items=20)
    results, parallel = (
        simulate([POLICY], scenario, k=3, steps=300, runs=3, seed=9, jobs=jobs, baseline=0.8, max_loss=0.05)
        for jobs in (1, 2)
    )
    results.save(tmp_path / "results.json")
    against = results[POLICY].against
    for other in (parallel, Results.load(tmp_path / "results.json")):
        assert all(map(np.array_equal, against, other[POLICY].against))
    assert results.rows()[-1]["policy_pages_against_baseline"] == against.policy_pages[:, -1].mean()
    summary = results.summary()["results"][0]["against_baseline"]
    assert summary["baseline"][-1] == pytest.approx(against.baseline[:, -1].mean())


@pytest.mark.parametrize("spec", ["shop", "linear:n_items=256,n_features=8", "types"])
def test_synthetic_list_is_as_good_as_requested(spec):
    world = make_world(spec).build(4)

    def worth(slate):
        return np.mean([world.expected_reward(slate, view) for view in range(world.n_views)])

    best = made_up_list(world, 4, 1.0, 7, 0)
    if world.n_views == 1:
        np.testing.assert_array_equal(best, world.optimal_slate(4))
    for share in (0.5, 0.8):
        rows = made_up_list(world, 4, share, 7, 0)
        assert worth(rows) / worth(best) == pytest.approx(share, abs=0.02)
        assert len({*rows.tolist()}) == 4
        np.testing.assert_array_equal(rows, made_up_list(world, 4, share, 7, 0))
        assert rows.tolist() != made_up_list(world, 4, share, 8, 0).tolist()
