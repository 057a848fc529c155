"""Policies recommend the same slates with their shortcuts and without, whatever they have learned."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.first_attractive import first_attractive
from benchmarks.scanning import scanning
from firstclick import Catalog, Ranker, make_policy, make_world
from firstclick.data import FeedbackScenario, feedback_matrix, synthetic_matrix
from firstclick.data.sources import make_source
from firstclick.kernels.arrays import NO_LIMITS
from firstclick.kernels.compiling import kernel
from firstclick.kernels.hashing import mix
from firstclick.kernels.posterior import mean, observe
from firstclick.kernels.search.groups import MOST_NOTED
from firstclick.kernels.search.widths import width_of
from firstclick.testing import Driver, request
from tests.support.awkward import KINDS, kind_of_features
from tests.support.policies import OTHERS, PLAIN, policies

POLICIES = (
    "cascade-mixed", "cascade-lin-ts", "ranked-lin-ts", "cascade-lin-ucb", "cascade-ucb1", "cascade-kl-ucb",
)  # fmt: skip
COUNTING = (
    "cascade-ucb1", "cascade-kl-ucb", "cascade-ucb1:start=first", "cascade-kl-ucb:start=pessimistic",
    "cascade-ucb-v",
)  # fmt: skip
HIDE = st.sampled_from([0.0, 0.3, 0.97, 1.0])


@pytest.fixture
def small_indexes(monkeypatch):
    monkeypatch.setattr("firstclick.catalog.search_tree.FEWEST_ITEMS", 64)


def scanner_of(driver):
    """A driver that shares the state and scans all items for each slate."""
    scanner = Driver(driver.policy, driver.catalog.features, k=driver.k, labels=driver.catalog.labels)
    scanner.catalog, scanner.state = scanning(scanner.catalog), driver.state
    return scanner


def check_run(driver, world, steps):
    """Play in a world with the shortcuts, and ask for each slate without them too."""
    scanner, arrays = scanner_of(driver), world.arrays()
    if driver.policy.learns_row:
        driver.policy.learn_row(driver.state, (np.arange(world.n_items) % 7 == 0).astype(np.uint8))
    for step in range(steps):
        slate = driver.recommend(step)
        assert slate == scanner.recommend(step), step
        user, rows = np.uint64(mix(np.uint64(2), np.uint64(step))), np.array(slate, np.int64)
        click = first_attractive(arrays, user, rows, len(rows))
        driver.learn(slate, None if click < 0 else int(click))


def films(request):
    """All rated movies of MovieLens 1M, as the reproduction plays them."""
    folder = request.getfixturevalue("movielens_1m")
    return FeedbackScenario(feedback_matrix(make_source("movielens").load(folder)), rank=20).stage(1, 0)


def synthetic(request):
    matrix = synthetic_matrix(2, n_users=300, n_items=1500, n_groups=5).matrix
    return FeedbackScenario(matrix, rank=8).stage(1, 0)


def linear(request=None):
    return make_world("linear:n_items=1200,n_features=7").build(3)


def driver_in(stage, policy, k):
    """A driver for the items of a stage, and the world that answers."""
    world = getattr(stage, "world", stage)
    return Driver(policy, stage.features, n_items=world.n_items, k=k), world


@pytest.mark.parametrize("policy", ["cascade-mixed", "cascade-lin-ts"])
@pytest.mark.parametrize("stage", [synthetic, linear])
def test_every_slate_of_a_run_is_the_same(policy, stage, request):
    driver, world = driver_in(stage(request), policy, k=3)
    check_run(driver, world, 1500)


def test_every_slate_of_the_default_without_features_is_the_same():
    world = linear()
    check_run(Driver("cascade-mixed", np.empty((world.n_items, 0))), world, 4000)


@pytest.mark.long
@pytest.mark.parametrize("policy", [*POLICIES, "cascade-lin-ucb:c=theory,horizon=9000", *COUNTING[2:]])
@pytest.mark.parametrize("stage", [films, synthetic, linear])
def test_every_slate_of_a_long_run_is_the_same(policy, stage, request):
    driver, world = driver_in(stage(request), policy, k=4)
    check_run(driver, world, 20_000)


def check_slates(driver, draw, steps, hide):
    """Recommend with the shortcuts and without, under all sorts of filters, and learn now and then."""
    n_items, scanner = len(driver.catalog.rows), scanner_of(driver)
    for step in range(steps):
        hidden = np.flatnonzero(draw.random(n_items) < hide) if step % 3 == 0 else []
        candidates = draw.permutation(n_items)[:9] if step % 5 == 4 else []
        asked = request(candidates, list(hidden), n_items)
        slate = driver.recommend(step, asked)
        assert slate == scanner.recommend(step, asked), step
        for _ in range(int(draw.integers(0, 3))):
            if slate:
                click = int(draw.integers(0, len(slate) + 2))
                driver.learn(slate, click if click < len(slate) else None)


@OTHERS
@settings(max_examples=12 if PLAIN else 60)
@given(
    kind=st.sampled_from(KINDS),
    n_items=st.sampled_from([32, 40, 100, 120 if PLAIN else 300]),
    d=st.sampled_from([1, 2, 3, 7, 9 if PLAIN else 30]),
    k=st.integers(1, 6),
    seed=st.integers(0, 2**32),
    hide=HIDE,
    settings_=st.sampled_from(["", ":c=0.05", ":sigma=0.01", ":sigma=20,c=3", ":c=theory,horizon=100"]),
)
@pytest.mark.usefixtures("small_indexes")
def test_old_widths_give_the_slates_of_a_scan(kind, n_items, d, k, seed, hide, settings_):
    draw = np.random.default_rng(seed)
    features = np.ascontiguousarray(kind_of_features(kind, draw, n_items, d))
    driver = Driver(f"cascade-lin-ucb{settings_}", features, k=min(k, n_items))
    assert len(driver.catalog.widths.values) >= n_items
    check_slates(driver, draw, 25, hide)


@settings(max_examples=60)
@given(
    kind=st.sampled_from(KINDS),
    n_items=st.sampled_from([32, 100, 300]),
    d=st.sampled_from([1, 3, 7]),
    k=st.integers(1, 6),
    seed=st.integers(0, 2**32),
    hide=HIDE,
    weight=st.sampled_from([0.0, 0.3, 1.0]),
)
@pytest.mark.usefixtures("small_indexes")
def test_what_is_kept_of_items_seen_gives_the_slates_of_a_scan(kind, n_items, d, k, seed, hide, weight):
    draw = np.random.default_rng(seed)
    features = np.ascontiguousarray(kind_of_features(kind, draw, n_items, d))
    driver = Driver("cascade-mixed", features, k=min(k, n_items))
    if weight:
        # What a weighed log teaches of a part of the items, before anybody has asked for a slate.
        seen = draw.permutation(n_items)[: n_items // 3]
        driver.state.examined[seen] = weight * draw.integers(1, 40, len(seen))
        driver.state.hits[seen] = weight * np.floor(draw.random(len(seen)) * driver.state.examined[seen])
        driver.state.totals[:] = driver.state.examined.sum(), driver.state.hits.sum()
        driver.state = driver.policy.refitted(driver.state, driver.catalog)
    assert len(driver.catalog.seen.place_of) == n_items
    for _ in range(4):
        check_slates(driver, draw, 10, hide)
        # Features of a request teach nothing of the rows that they stand in for.
        slate = [int(row) for row in draw.permutation(n_items)[: driver.k]]
        own = np.ascontiguousarray(features[slate] * draw.uniform(0.5, 2.0, (len(slate), d)))
        driver.learn(slate, None, request=NO_LIMITS._replace(features=own))
    check_slates(driver, draw, 10, hide)


@OTHERS
@settings(max_examples=14 if PLAIN else 60)
@given(
    policy=st.sampled_from([*COUNTING, "cascade-mixed"]),
    weight=st.sampled_from([1.0, 0.3]),
    n_items=st.sampled_from([16, 60, 100 if PLAIN else 300]),
    k=st.integers(1, 6),
    seed=st.integers(0, 2**32),
    hide=HIDE,
    spread=st.sampled_from([1, 3, 40]),
)
def test_groups_of_equal_counts_give_the_slates_of_a_scan(policy, weight, n_items, k, seed, hide, spread):
    draw = np.random.default_rng(seed)
    policy = make_policy(policy)
    type(policy).grouped_from, before = 0, type(policy).grouped_from
    try:
        driver = Driver(policy, np.empty((n_items, 0)), k=k, labels=draw.permutation(10 * n_items)[:n_items])
    finally:
        type(policy).grouped_from = before
    assert len(driver.catalog.groups.group_of) == n_items
    driver.state.examined[:] = draw.integers(0, spread + 1, n_items)
    driver.state.hits[:] = draw.integers(0, driver.state.examined + 1)
    if driver.policy.name == "cascade-mixed":
        # Counts of a weighed log.
        driver.state.examined[:] *= weight
        driver.state.hits[:] *= weight
        driver.state.totals[:] = driver.state.examined.sum(), driver.state.hits.sum()
    driver.state.time[0] = int(draw.integers(0, 1000))
    check_slates(driver, draw, 40, hide)


@OTHERS
@pytest.mark.parametrize("policy", [*COUNTING[:2], "cascade-mixed"])
def test_groups_follow_counts_that_changed_in_other_ways(policy):
    """By more feedback than they can note, and without feedback."""
    driver = Driver(policy, np.empty((300, 0)), k=4)
    driver.recommend(0)
    for step in range(MOST_NOTED):
        driver.learn([step % 300, (7 * step + 1) % 300], 1 if step % 5 == 0 else None)
    check_slates(driver, np.random.default_rng(1), 20, 0.1)
    driver.state.examined[:] += np.arange(300)
    driver.state.time[0] += 1
    check_slates(driver, np.random.default_rng(1), 20, 0.1)


@pytest.mark.parametrize("policy", policies([*POLICIES, "cascade-ts"]))
@pytest.mark.usefixtures("small_indexes")
def test_a_ranker_that_gets_another_state_forgets_its_shortcuts(policy):
    draw = np.random.default_rng(8)
    features = kind_of_features("long tail", draw, 300, 5)
    ranker, fresh = (Ranker(Catalog(range(300), features), k=3, policy=policy, seed=4) for _ in range(2))
    for step in range(60):
        ranker.learn(ranker.recommend(), click=step % 4 if step % 4 < 3 else None)
    ranker._engine.state = ranker._engine.blank_state()
    fresh.requests = ranker.requests
    for step in range(30):
        slates = [one.recommend() for one in (ranker, fresh)]
        assert slates[0].items == slates[1].items, step
        for one, slate in zip((ranker, fresh), slates, strict=True):
            one.learn(slate, click=step % 3)


@kernel
def observe_again_and_again(state, x, sigma, times):
    for step in range(times):
        observe(state, x, step % 2 == 1, sigma, 1.0, 1.0)


@pytest.mark.long  # Two million steps, and kernels of cascade-lin-ucb.
@pytest.mark.parametrize("n_items", [40, 1500])
def test_widths_that_rounding_has_lifted_are_allowed_for(n_items):
    """A sum of two million equal terms is off by a thousandth: an item never shown looks wider than ever."""
    sigma = 0.1
    x = np.random.default_rng(0).uniform(0.2, 1, size=2)
    unseen = np.array([-x[1], x[0]]) / np.hypot(*x)
    state = make_policy("cascade-lin-ucb").initial_state(n_items, 2, 1)
    observe_again_and_again(state, x, sigma, 2_000_000)
    features = np.zeros((n_items, 2))
    features[1], features[3] = x, unseen
    width, theta = width_of(features, 3, state.factor, np.empty(2)), mean(state.moment, state.factor, sigma)
    assert width > 1.001
    # Between what the norm of the unseen item allows and what its width gives it.
    features[0] = x * (unseen @ theta + (1.0003 + width) / 2) / (x @ theta)
    driver = Driver(f"cascade-lin-ucb:sigma={sigma}", features, k=1)
    driver.state = state
    assert driver.recommend() == scanner_of(driver).recommend() == [3]


@OTHERS
@pytest.mark.parametrize("c", [1e290, 1.7e308])
def test_bounds_beyond_floating_point_give_the_slates_of_a_scan(c):
    features = np.random.default_rng(5).normal(size=(1500, 4)) * 1e30
    check_slates(Driver(f"cascade-lin-ucb:c={c}", features, k=4), np.random.default_rng(1), 5, 0.1)


@OTHERS
@pytest.mark.parametrize("policy", ["cascade-lin-ucb", *COUNTING[:2]])
@pytest.mark.usefixtures("small_indexes")
def test_a_state_that_was_turned_back_in_place_is_noticed(policy):
    features = kind_of_features("long tail", np.random.default_rng(8), 300, 5)
    driver = Driver(policy, features, k=3)
    driver.play(100)
    for array, first in zip(driver.state, driver.policy.initial_state(300, 5, 3), strict=True):
        array[:] = first
    assert driver.recommend(7) == Driver(policy, features, k=3).recommend(7)


@OTHERS
def test_widths_are_computed_for_few_items():
    """A search looks at the widths of few items: else there would be no point in keeping them."""
    driver = Driver("cascade-lin-ucb", linear().features, k=3)
    driver.play(200)
    before = driver.catalog.widths.values.copy()
    driver.play(1, first=200)
    assert 1 <= np.count_nonzero(before != driver.catalog.widths.values) <= 100


@OTHERS
@pytest.mark.parametrize(
    "policy", ["context-lin-ts:context=2", "context-lin-ts:context=3,rank=2", "segment-lin-ts:segments=3"]
)
def test_context_policies_search_and_give_the_slates_of_a_scan(policy):
    features = np.random.default_rng(6).normal(size=(2500, 5)) * (np.arange(1, 2501) ** -0.5)[:, None]
    driver = Driver(policy, features, k=4)
    assert driver.catalog.tree.covered == 2500
    check_slates(driver, np.random.default_rng(1), 30, 0.0)
    assert driver.catalog.tree.scans[0] == 0


@OTHERS
def test_widths_that_grow_as_the_past_fades_give_the_slates_of_a_scan():
    features = np.random.default_rng(2).normal(size=(1200, 4)) / 2
    driver = Driver("discounted-lin-ucb:discount=0.95,detector=3,sigma=0.3", features, k=3)
    without = Driver.of(driver)
    without.catalog = scanning(without.catalog)
    draw, restarts = np.random.default_rng(4), 0
    for step in range(250):
        slate = driver.recommend(step)
        assert slate == without.recommend(step), step
        clicks = [0] if draw.random() < (step % 80 < 50) else []
        before = driver.state.missing[0]
        for one in (driver, without):
            one.learn(slate, clicks)
        restarts += before > 2 and driver.state.missing[0] == 0
    assert restarts >= 3


@pytest.mark.usefixtures("small_indexes")
def test_rankers_of_one_catalog_have_hints_of_their_own():
    """Kernels leave Python's lock: a hint that another thread is changing could name one row twice."""
    catalog = Catalog(range(300), kind_of_features("long tail", np.random.default_rng(8), 300, 5))
    first, second = (Ranker(catalog, k=3, policy="cascade-lin-ts", seed=seed) for seed in (1, 2))
    first.recommend()
    assert (first._engine.arrays().tree.recent >= 0).any()
    assert (second._engine.arrays().tree.recent < 0).all()
    assert (catalog.kernel_rows(first._engine.scale).arrays.tree.recent < 0).all()
    assert second._engine.arrays().tree.leaves is first._engine.arrays().tree.leaves
