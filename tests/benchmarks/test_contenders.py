"""Who is timed does what it is said to do."""

import numpy as np
import pytest

from benchmarks.bench.contenders import POLICY_KEY, Floor, LoopPlayer, NumPyPlayer, Pass
from benchmarks.bench.world import build_world
from firstclick.catalog.search_tree import catalog_arrays
from firstclick.experiments import simulate
from firstclick.kernels.hashing import fill_normal, mix
from firstclick.registry import make_policy, make_world
from firstclick.studies.paper.plain_numpy import TRANSCRIBED
from firstclick.testing import Driver
from sizes import policies

LONG = ("cascade-kl-ucb", "cascade-lin-ucb", "cascade-ucb1", "ranked-lin-ts")  # Each compiles in four ways.
OURS = (
    *policies(["cascade-ts", "random"]),
    pytest.param("cascade-lin-ts", marks=pytest.mark.plain),
    *(pytest.param(n, marks=pytest.mark.long) for n in LONG),
)
N_ITEMS, N_FEATURES, K, STEPS = 1200, 6, 3, 60  # enough items for an index


@pytest.fixture(scope="module")
def world():
    return build_world(N_ITEMS, N_FEATURES)


@pytest.fixture(scope="module")
def catalog(world):
    return catalog_arrays(world.features, N_ITEMS)


def same(first, second):
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.long
@pytest.mark.parametrize("name", OURS)
def test_the_scan_shows_the_slates_of_the_policy_and_neither_shows_what_the_loop_does_not(
    name, world, catalog
):
    policy = make_policy(name)
    player, scan = (LoopPlayer(policy, world, catalog, K, scan=scan) for scan in (False, True))
    slates, clicked = player.record(STEPS)
    recorded = player.state
    player.begin()
    player.play(0, 10)
    player.play(10, STEPS)
    assert same(player.state, recorded), "the loop of the simulator and the record part ways"
    scanned, clicks = scan.record(STEPS)
    np.testing.assert_array_equal(scanned, slates)
    np.testing.assert_array_equal(clicks, clicked)
    assert scan.catalog.tree.covered == 0
    if name == "cascade-lin-ts":
        assert player.catalog.tree.covered == N_ITEMS


@pytest.mark.parametrize("name", ["cascade-lin-ts", pytest.param("cascade-ucb1", marks=pytest.mark.long)])
def test_the_policy_begins_anew_and_from_the_free_row_that_its_policy_takes(name, world, catalog):
    player = LoopPlayer(make_policy(name), world, catalog, K)
    player.begin()
    player.play(0, STEPS)
    first = player.state
    player.begin()
    assert player.state.time[0] == 0
    if name == "cascade-ucb1":
        assert (player.state.examined == 1).all()
        assert set(np.unique(player.state.hits)) == {0, 1}
    player.play(0, STEPS)
    assert same(player.state, first)


@pytest.mark.long
@pytest.mark.parametrize("name", OURS)
def test_the_floor_ends_with_what_the_policy_has_learned(name, world, catalog):
    player = LoopPlayer(make_policy(name), world, catalog, K)
    player.begin()
    player.play(0, STEPS)
    floor = Floor(player)
    floor.begin()
    assert len(floor.slates) == STEPS
    floor.play(0, 10)
    floor.play(10, STEPS)
    # The floor has no free row to start from.
    started = player.policy.initial_state(N_ITEMS, N_FEATURES, K)
    if player.row is not None:
        player.policy.learn_row(started, player.row)
        floor.state.examined[:] += started.examined
        floor.state.hits[:] += started.hits
    assert same(floor.state, player.state)


def test_the_floor_repeats_what_was_recorded(world, catalog):
    player = LoopPlayer(make_policy("cascade-ts"), world, catalog, K)
    player.begin()
    player.play(0, 5)
    floor = Floor(player)
    floor.begin()
    floor.play(0, 15)
    assert floor.state.time[0] == 15
    np.testing.assert_array_equal(floor.state.examined, 3 * player.state.examined)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("cascade-lin-ts", marks=pytest.mark.plain),
        *(pytest.param(n, marks=pytest.mark.long) for n in ("ranked-lin-ts", "cascade-lin-ucb")),
    ],
)
def test_the_floor_draws_the_thetas_of_the_policy(name, world, catalog):
    player = LoopPlayer(make_policy(name), world, catalog, K)
    player.begin()
    player.play(0, 1)
    floor = Floor(player)
    floor.begin()
    floor.play(0, STEPS)
    state, before = floor.state, floor.checksum[0]
    M, B = state.precision.reshape(-1, N_FEATURES, N_FEATURES), state.moment.reshape(-1, N_FEATURES)
    noise = np.zeros(floor.player.noise.shape)
    if len(noise):
        fill_normal(np.uint64(mix(POLICY_KEY, np.uint64(STEPS))), noise)
    noise = noise.reshape(-1, N_FEATURES) if len(noise) else np.zeros((1, N_FEATURES))
    expected = sum(
        (np.linalg.solve(m, b) + np.linalg.solve(np.linalg.cholesky(m).T, z))[0]
        for m, b, z in zip(M, B, noise, strict=True)
    )
    floor.play(STEPS, STEPS + 1)
    assert floor.checksum[0] - before == pytest.approx(expected)


def test_a_pass_adds_up_every_feature(world):
    contender = Pass(world)
    contender.begin()
    contender.play(3, 5)
    assert contender.checksum == pytest.approx(2 * world.features.sum())


def test_numpy_learns_in_the_same_world(world):
    contender = NumPyPlayer(TRANSCRIBED["cascade-lin-ts"], make_policy("cascade-lin-ts"), world, K)
    contender.begin()
    contender.play(0, 300)
    learned = np.linalg.solve(contender.numpy.M, contender.numpy.B)
    assert learned @ world.theta > 0.5 * np.linalg.norm(learned) * np.linalg.norm(world.theta)
    contender.begin()
    np.testing.assert_array_equal(contender.numpy.B, 0)


def test_the_long_tail_looks_as_it_is_said_to():
    spec = "long-tail:n_items=4000,n_features=9,best=0.4,fading=0.7,tail=0.45"
    world = make_world(spec).build(3)
    norms = np.sort(np.linalg.norm(world.features, axis=1))[::-1]
    np.testing.assert_allclose(norms, np.arange(1, 4001) ** -0.45)
    assert not np.array_equal(np.linalg.norm(world.features, axis=1), norms), "items are shuffled"
    assert (world.features[:, 0] >= 0).all()
    sizes = np.sqrt(np.mean((world.features / np.linalg.norm(world.features, axis=1)[:, None]) ** 2, axis=0))
    assert sizes[2:] / sizes[1:-1] == pytest.approx(0.7, abs=0.08)
    np.testing.assert_array_equal(world.attractions, np.maximum(world.features @ world.theta, 0))
    assert world.attractions.max() == pytest.approx(0.4)
    assert (world.attractions == 0).any()
    again = make_world(spec).build(3)
    np.testing.assert_array_equal(again.features, world.features)
    assert not np.array_equal(make_world(spec).build(4).features, world.features)


def test_a_policy_finds_its_way_in_the_long_tail():
    results = simulate(["cascade-lin-ts", "random"], "long-tail:n_items=200", k=4, steps=500, runs=2, seed=1)
    lin_ts, random = (results[name].final("expected_regret")["mean"] for name in ("cascade-lin-ts", "random"))
    assert lin_ts < 0.7 * random


def test_a_tiny_long_tail_has_its_best_item_too():
    for seed in range(8):
        # With one feature, which is never negative, theta may point away from all items.
        world = make_world("long-tail:n_items=3,n_features=1").build(seed)
        assert world.attractions.max() == pytest.approx(0.5)


@pytest.mark.long
def test_the_driver_of_one_call_at_a_time_plays_the_recorded_steps(world, catalog):
    """The record against code that shares neither its loop nor its catalog."""
    slates, clicked = LoopPlayer(make_policy("cascade-lin-ucb"), world, catalog, K).record(20)
    driver = Driver("cascade-lin-ucb", world.features, k=K)
    for slate, click in zip(slates, clicked, strict=True):
        # Ties alone depend on the key, and are settled once there are clicks.
        if driver.state.moment.any():
            assert driver.recommend() == slate.tolist()
        driver.learn(slate.tolist(), None if click < 0 else int(click))
    assert driver.state.moment.any()
