"""Single facts of one policy each."""

import math

import numpy as np
import pytest

from firstclick import Catalog, InvalidInput, Ranker, make_policy, make_world
from firstclick.kernels.posterior import factorise
from firstclick.online.request import read_context
from firstclick.policies._discounted import discount
from firstclick.policies.research.cascade_glr_ucb import change_evidence, remember
from firstclick.policies.research.pbm_pie import may_reach
from firstclick.streams import stream
from firstclick.testing import Driver, request, states_differ
from firstclick.testing.checks import unexamined_positions_teach_nothing
from tests.support.policies import OTHERS, PLAIN, policies
from tests.support.reference.policies import PbmPIE, Step, cuts, laplace
from tests.support.reference.policies import change_evidence as evidence

N_ITEMS, N_FEATURES, K = 11, 4, 3


# Clicks by position.
CHANCES = (0.4, 1.0, 0.7)  # not from the top down, so that places matter
ATTRACTIONS = np.array([0.1, 0.7, 0.3, 0.62, 0.2, 0.35, 0.15, 0.5, 0.05])


def features_of(n_items=N_ITEMS, n_features=N_FEATURES):
    return stream(1, "features").standard_normal((n_items, n_features)) / 2


def test_precision_and_moment_are_sums_over_what_was_examined():
    features = stream(3, "features").standard_normal((N_ITEMS, N_FEATURES))
    driver = Driver("cascade-lin-ts:sigma=0.5", features, k=K)
    driver.learn([4, 9, 2], 1)
    x4, x9 = features[4], features[9]
    np.testing.assert_allclose(driver.state.precision, np.eye(4) + 4 * (np.outer(x4, x4) + np.outer(x9, x9)))
    np.testing.assert_allclose(driver.state.moment, x9)
    assert driver.state.observations[0] == 2
    assert driver.state.time[0] == 1


@OTHERS
def test_what_was_pretended_is_not_in_the_state():
    for start in ("pessimistic", "first"):
        driver = Driver(f"cascade-ucb1:start={start}")
        driver.learn([4, 9, 2], 1)
        assert driver.state.examined.sum() == 2
        assert driver.state.hits.sum() == 1


@OTHERS
def test_unseen_items_come_first_unless_pessimistic():
    for policy in ("cascade-ucb1", "cascade-kl-ucb"):
        driver = Driver(f"{policy}:start=first", n_items=5, k=2)
        driver.learn([0, 1], None)
        driver.learn([3, 4], 1)
        assert driver.recommend(0)[0] == 2


@OTHERS
def test_unseen_items_share_the_first_places_fairly():
    # Each of 17 items is first with probability 1/17; a share of 6 standard errors is no chance.
    driver, each = Driver("cascade-ucb1:start=first"), 80
    first = np.bincount([driver.recommend(step)[0] for step in range(17 * each)], minlength=17)
    assert np.abs(first - each).max() < 6 * np.sqrt(each)


def test_beta_policy_ranks_by_posterior_draws():
    # An item with 90 of 100 beats one with 10 of 100 in every draw but one in more than 1e12.
    driver = Driver("cascade-ts", n_items=3, k=2)
    driver.state.examined[:] = 100
    driver.state.hits[:] = [10, 90, 10]
    slates = [driver.recommend(step) for step in range(500)]
    assert all(slate[0] == 1 for slate in slates)
    # The equal ones share second place: 250 each, 6 standard errors are 67.
    assert abs(sum(slate[1] == 0 for slate in slates) - 250) < 67


@OTHERS
def test_the_clip_of_lin_ucb_never_decides_by_row():
    # With a large c all bounds exceed 1: the order must still be that of the bounds.
    features = np.diag([3.0, 1.0, 4.0, 2.0, 5.0])
    driver = Driver("cascade-lin-ucb:c=50", features, k=5)
    assert driver.recommend(0) == [4, 2, 0, 3, 1]


@OTHERS
def test_theory_c_follows_the_theorem_and_features_are_rescaled_by_one_factor():
    features = stream(4, "features").standard_normal((N_ITEMS, N_FEATURES)) * 7
    driver = Driver("cascade-lin-ucb:c=theory,horizon=1000,sigma=0.5,theta_norm=2", features, k=K)
    longest = np.linalg.norm(features, axis=1).max()
    nk_over_d = 1000 * K / (N_FEATURES * 0.25)
    c = np.sqrt(N_FEATURES * np.log1p(nk_over_d) + 2 * np.log(1000 * K)) / 0.5 + 2
    assert driver.numbers.c == pytest.approx(c)
    assert driver.numbers.scale == pytest.approx(1 / longest)
    assert f"features multiplied by {1 / longest:.4g}" in driver.policy.notes(driver.numbers, 1000)[0]


@pytest.mark.parametrize(
    "policy", policies(["cascade-lin-ts:sigma=0.4", "cascade-lin-ucb:sigma=2.5", "ranked-lin-ts"])
)
def test_factor_is_that_of_the_precision_from_the_first_step_on(policy):
    driver = Driver(policy)
    for step in range(200 if PLAIN else 1500):  # compiled, past a refresh of the factor
        factor, precision = driver.state.factor, driver.state.precision
        np.testing.assert_allclose(np.swapaxes(factor, -1, -2) @ factor, precision, rtol=1e-10, atol=1e-10)
        assert (np.tril(factor, -1) == 0).all()
        driver.play(1, seed=step, first=step)


@OTHERS
def test_one_draw_decides_between_what_is_known_and_what_is_not():
    # Step 1: 0.25 + z log(2) / 5, unless the spread is the larger root, against z log(2) for the unseen item.
    driver = Driver("ts-cascade", n_items=2, k=1)
    driver.state.examined[0], driver.state.hits[0] = 4, 1
    border = 0.25 / (np.log(2) - np.sqrt(0.1875 * np.log(2) / 5))
    drawn = [Step.of(driver, step).noise[0] for step in range(200)]
    assert [driver.recommend(step) for step in range(200)] == [[int(z > border)] for z in drawn]


@OTHERS
def test_a_bound_without_a_budget_says_nothing_of_later_ones():
    driver = Driver("cascade-ucb-v", n_items=N_ITEMS, k=1)
    driver.state.examined[:] = 1
    driver.state.examined[0], driver.state.hits[0], driver.state.time[0] = 10, 9, 1
    assert driver.recommend() == [0]  # log(1) = 0: the largest rate
    driver.learn([0], 0)
    assert driver.recommend() != [0]


@OTHERS
def test_the_position_where_users_leave_satisfied_gets_the_best_item():
    driver = Driver("dcm-kl-ucb:stop=0.1/0.9/0.5", n_items=4, k=3)
    driver.state.examined[:] = 100
    driver.state.hits[:] = [80, 60, 40, 20]
    driver.state.time[:] = 400
    assert driver.recommend() == [2, 0, 1]
    assert driver.recommend(0, request(hidden=[0], n_items=4)) == [3, 1, 2]
    assert driver.recommend(0, request([3, 1])) == [3, 1]
    driver.learn([2, 0, 1], [0, 1])  # two clicks: the last position was perhaps not examined
    assert driver.state.examined.tolist() == [101, 100, 101, 100]
    assert driver.state.hits.tolist() == [81, 60, 41, 20]


@OTHERS
def test_what_faded_away_is_unseen_again():
    driver = Driver("cascade-ducb:discount=0.01", n_items=4, k=1)
    driver.learn([3], 0)
    for step in range(120):
        driver.learn([step % 3], None)
    assert driver.state.examined[3] == driver.state.hits[3] == 0
    assert driver.recommend() == [3]
    driver.learn([3], 0)
    assert driver.estimate([3])[0, 0] == pytest.approx(2 / 3)


@pytest.mark.parametrize("rate", [0.0, 0.03, 0.5, 1.0])
def test_a_history_keeps_cuts_equally_far_apart(rate):
    seen = (stream(4, "clicks").random(700) < rate).astype(int).tolist()
    history, step = np.zeros(64, np.int32), 1
    for n in range(1, len(seen) + 1):
        hits = sum(seen[:n])
        step = remember(history, step, n, hits)
        kept = [step * (i + 1) for i in range((n - 1) // step)]
        assert kept == list(cuts(n))
        assert history[: len(kept)].tolist() == [sum(seen[:cut]) for cut in kept]
        if n % 50 == 0:
            assert change_evidence(history, step, n, hits) == pytest.approx(evidence(seen[:n]), abs=1e-9)


def alarm(seen, delta):
    """After how many observations a change is found; infinity if none is."""
    history, step, hits = np.zeros(64, np.int32), 1, 0
    for n, click in enumerate(seen, 1):
        hits += click
        step = remember(history, step, n, hits)
        if change_evidence(history, step, n, hits) > math.log(3 * n * math.sqrt(n) / delta):
            return n
    return math.inf


def test_luck_is_rarely_taken_for_a_change_and_a_change_is_found():
    draw = stream(5, "clicks")
    # At the rate that is asked for, delta = 0.05, more than 20 of 100 have a chance below 1e-7; of 2,000
    # others 13 gave a false alarm.
    alarms = [alarm((draw.random(400) < 0.3).astype(int), 0.05) for _ in range(100)]
    assert sum(map(math.isfinite, alarms)) <= 20
    # Of 2,000 others half were found within 21 observations and all within 81, but for 14 alarms before the
    # change: more than 5 of 30 have a chance below 1e-6.
    found = [alarm((draw.random(400) < np.repeat([0.2, 0.7], 200)).astype(int), 0.05) for _ in range(30)]
    assert sum(200 < n <= 300 for n in found) >= 25


@OTHERS
def test_upon_a_change_all_items_are_forgotten_or_only_that_one():
    for forget, left in (("all", [0, 0, 0]), ("item", [70, 0, 70])):
        driver = Driver(f"cascade-glr-ucb:delta=0.1,explore=0,forget={forget}", n_items=3, k=3)
        for _ in range(70):  # more than there are cuts
            driver.learn([0, 1, 2], None)
        while driver.state.examined[1]:
            driver.learn([1], 0)
        assert driver.state.examined.tolist() == left
        assert driver.state.step[1] == 1
        assert driver.state.time[0] < 100


@OTHERS
def test_the_explored_item_comes_from_all_and_goes_to_the_top():
    driver = Driver("cascade-glr-ucb:explore=0.5", n_items=5, k=2)
    driver.state.examined[:] = 1000
    driver.state.hits[:] = [900, 800, 100, 100, 100]
    driver.state.time[:] = 2000
    slates = [tuple(driver.recommend(step)) for step in range(2000)]
    counts = {slate: slates.count(slate) for slate in set(slates)}
    # Half of the slates are the usual one, and a fifth of the others; 6 standard errors are 132 and 81.
    assert abs(counts.pop((0, 1)) - 1200) < 132
    assert set(counts) == {(1, 0), (2, 0), (3, 0), (4, 0)}
    assert all(abs(count - 200) < 81 for count in counts.values())


@OTHERS
def test_a_horizon_sets_what_is_forgotten():
    assert Driver("cascade-ducb:horizon=10000").numbers.discount == 1 - 1 / 400
    driver = Driver("cascade-swucb:horizon=100000")
    assert driver.numbers.window == len(driver.state.shown) == 2146
    assert Driver("cascade-swucb:horizon=1").numbers.window == 1


@OTHERS
@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("cascade-ducb:horizon=100,discount=0.9", "horizon decides the discount; give one of them"),
        ("cascade-swucb:horizon=100,window=9", "horizon decides the window; give one of them"),
        ("dcm-kl-ucb:stop=" + "/".join(["0.5"] * 17), "stop takes at most 16 chances"),
        ("dcm-kl-ucb:stop=0.5/1.5", "stop must be"),
        ("cascade-glr-ucb:delta=1", "delta must be"),
    ],
)
def test_what_cannot_be_is_refused(policy, told):
    with pytest.raises(InvalidInput, match=told):
        make_policy(policy)


@OTHERS
def test_what_the_page_tells_is_sure_whatever_the_chance_of_leaving():
    features = features_of()
    told, plain = Driver("dcm-lin-ts:stop=0.4", features, k=4), Driver("dcm-lin-ts", features, k=4)
    for driver in (told, plain):
        driver.learn([4, 9, 2, 7], [1], told=3)
        driver.learn([3, 1, 8, 0], [])
    assert states_differ(told.state, plain.state) == "going_on"  # and nothing before it
    assert told.state.observations[0] == 3 + 4
    unexamined_positions_teach_nothing(told.policy)


@OTHERS
def test_who_went_on_is_counted_where_it_can_be_told():
    driver = Driver("dcm-lin-ts:stop=learned", features_of(), k=4)
    for clicks, told, went_on, could in [
        ([1], 2, 0, 1),  # The page says that this one left,
        ([1], 3, 1, 2),  # and these looked further.
        ([1], 4, 2, 3),
        ([0, 3], 4, 3, 4),  # After the last position there is nothing to see.
        ([], None, 3, 4),
        ([], 2, 3, 4),
    ]:
        driver.learn([4, 9, 2, 7], clicks, told=told)
        assert driver.state.going_on.tolist() == [went_on, could]
    driver.learn([4, 7, 2, 9], [2])  # Left, or saw the last item and passed it by, though many clicked it.
    assert driver.state.going_on[0] == 3
    assert 4 < driver.state.going_on[1] < 5


@pytest.mark.long
@pytest.mark.parametrize("truth", [0.1, 0.5, 0.9])
def test_the_chance_of_leaving_is_found_out(truth):
    world = make_world(f"linear:n_items=32,n_features=5,best=0.2,clicks=dcm/{truth}").build(1)
    driver = Driver("dcm-lin-ts:stop=learned", world.features, k=4)
    driver.play_in(world, 20_000)
    followed, would_be = driver.state.going_on
    # Some thousand clicks, of which a fifth or so would be followed: 0.1 is four standard errors.
    assert 1 - followed / would_be == pytest.approx(truth, abs=0.1)


@OTHERS
def test_known_leaving_takes_weights_that_depend_on_order_and_is_said_to():
    plain, weighted = make_policy("dcm-lin-ucb"), make_policy("dcm-lin-ucb:stop=0.3")
    assert plain.mergeable
    assert plain.order_free
    assert not weighted.mergeable
    assert not weighted.order_free
    with pytest.raises(InvalidInput, match=r"stop must be above 0 and at most 1 or .*, got 0"):
        make_policy("dcm-lin-ts:stop=0")


def test_forgetting_keeps_its_digits_where_the_precision_has_none():
    # One direction is known 10^16 times as well as another, which R knows and R'R does not.
    factor = np.array([[1e8, 1e8], [0.0, 1.0]])
    precision, moment = factor.T @ factor, np.array([2.0, 4.0])
    assert not factorise(precision, factor.copy())
    discount(precision, moment, factor, 0.5)
    # Of 0.5 R'R + 0.5 I the last pivot is 0.5 + 0.5 + 0.5, by hand.
    np.testing.assert_allclose(factor, [[1e8 * 0.5**0.5, 1e8 * 0.5**0.5], [0, 1.5**0.5]], rtol=1e-7)
    assert moment.tolist() == [1.0, 2.0]


@OTHERS
def test_one_item_at_a_time_comes_near_the_posterior_of_all_at_once():
    # 2,000 observations of a logistic model with 5 coefficients: each lies within half of its standard
    # deviation (seen: 0.36) of where the whole log puts it; deviations agree within 10 % (seen: 7 %).
    features = features_of(200)
    draw = stream(5, "clicks")
    truth = np.array([1.5, -1.0, 0.5, 2.0])
    rows = draw.integers(0, len(features), 2000)
    clicked = draw.random(2000) < 1 / (1 + np.exp(1.0 - features[rows] @ truth))
    driver = Driver("logistic-ts", features, k=1)
    for row, click in zip(rows, clicked, strict=True):
        driver.learn([row], [0] if click else [])
    z = np.hstack([features[rows], np.ones((2000, 1))])
    top, curvature = laplace(np.zeros(5), np.eye(5), z, clicked.astype(float))
    deviations = np.sqrt(np.diag(np.linalg.inv(curvature)))
    mine = np.sqrt(np.diag(np.linalg.inv(driver.state.precision)))
    assert (np.abs(driver.state.mean - top) < 0.5 * deviations).all()
    np.testing.assert_allclose(mine, deviations, rtol=0.1)


@OTHERS
@pytest.mark.parametrize("policy", ["discounted-lin-ts", "dcm-lin-ts:stop=0.5", "vac2-ucb", "logistic-ts"])
def test_rankers_that_depend_on_order_are_not_merged(policy):
    catalog = Catalog(range(N_ITEMS), features_of())
    first, second = (Ranker(catalog, k=K, policy=policy, seed=seed) for seed in (1, 2))
    with pytest.raises(InvalidInput, match=f"^{policy} cannot merge: order matters to it"):
        first.merge(second)


@OTHERS
def test_how_many_numbers_it_wants_is_told_or_taken_from_the_world():
    for name in ("context-lin-ts", "c3-ucb"):
        assert make_policy(name).n_context == 0
        assert make_policy(name).with_context(3).n_context == 3
        assert make_policy(f"{name}:context=0").with_context(3).n_context == 0
        assert make_policy(f"{name}:context=2").with_context(3).n_context == 2
    assert make_policy("segment-lin-ts").with_context(1).segments == 10
    assert make_policy("segment-lin-ts:segments=3").with_context(1).segments == 3
    assert make_policy("segment-lin-ts").with_context(2).n_context == 0


@OTHERS
@pytest.mark.parametrize(
    ("policy", "context", "words"),
    [
        (
            "context-lin-ts:context=3,combine=product",
            None,
            "as many numbers of context as there are features, 2",
        ),
        ("c3-ucb:context=1,rank=3", None, "rank must be at most the number of features, 2"),
        ("c3-ucb:context=1,rank=1,combine=product", None, "rank only goes with combine=bilinear"),
        ("segment-lin-ts:segments=3", [1.5], "a segment, 0 to 2, got 1.5"),
        ("segment-lin-ts:segments=3", [3], "a segment, 0 to 2, got 3"),
        ("segment-lin-ts:segments=3", [-1], "a segment, 0 to 2, got -1"),
        ("segment-lin-ts:segments=3", None, "wants a context of 1 number"),
    ],
)
def test_what_makes_no_sense_is_refused(policy, context, words):
    with pytest.raises(InvalidInput, match=words):
        read_context(Ranker(Catalog(list("abc"), np.eye(3, 2)), k=2, policy=policy).policy, context)
    assert read_context(make_policy("segment-lin-ts:segments=3"), [2]) == [2.0]


@OTHERS
def test_rotations_alone_keep_the_digits_of_the_factor():
    driver = Driver("segment-lin-ts:segments=2,sigma=0.1", features_of(n_features=3), k=K)
    draw = stream(7, "clicks")  # All are of segment 1.
    for _ in range(4000):
        driver.learn(draw.permutation(N_ITEMS)[:K], None)
    merged = driver.policy.merge(driver.state, driver.policy.initial_state(N_ITEMS, 3, K))
    np.testing.assert_allclose(driver.state.shared_factor, merged.shared_factor, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(driver.state.factor, merged.factor, rtol=1e-9, atol=1e-9)


@OTHERS
def test_topics_beyond_0_and_1_are_refused_at_the_start_and_later():
    fine = np.array([[0.0, 1.0, -5.0], [0.5, 0.2, 9.0], [0.1, 0.3, 0.0]])
    with pytest.raises(
        InvalidInput, match="between 0 and 1 of what an item covers, got -5 in row 0, column 2"
    ):
        Ranker(Catalog(list("abc"), fine), k=2, policy="cascade-lsb", seed=1)
    with pytest.raises(InvalidInput, match="topics must be at most the number of features, 3"):
        Ranker(Catalog(list("abc"), fine), k=2, policy="cascade-hybrid:topics=4", seed=1)
    ranker = Ranker(Catalog(list("abc"), fine), k=2, policy="cascade-hybrid:topics=2", seed=1)
    with pytest.raises(InvalidInput, match=r"got 1\.5 in row 0, column 1"):
        ranker.add_items(["d"], [[0.0, 1.5, 0.0]])
    ranker.add_items(["d"], [[0.0, 1.0, 2.0]])
    assert len(ranker.catalog.items) == 4


@OTHERS
def test_the_first_click_alone_says_nothing_of_what_stands_below_it():
    counted = []
    for said in ({"click": 1}, {"clicks": [1]}, {"click": None}, {"click": 0, "examined": 2}):
        ranker = Ranker(Catalog(range(len(ATTRACTIONS))), k=3, policy="pbm-ucb", seed=1)
        ranker.learn(ranker.recommend(), **said)
        counted.append(ranker.state.shown.sum(axis=0).tolist())
    assert counted == [[1, 1, 0], [1, 1, 1], [1, 1, 1], [1, 1, 0]]
    ranker = Ranker(Catalog(range(len(ATTRACTIONS))), k=3, policy="pbm-ucb", seed=1)
    ranker.warm_start([{"items": [3, 1, 2], "click": 0}, {"items": [3, 1, 2], "clicks": [0]}])
    assert ranker.state.shown.sum(axis=0).tolist() == [2, 1, 1]


@OTHERS
@pytest.mark.parametrize("name", ["pbm-ucb", "pbm-pie"])
def test_positions_that_nobody_looks_at_hold_nothing_up(name):
    """The best item stands where nobody looks once the second best looks better, and must come back."""
    driver = Driver(f"{name}:examination=1/0", np.eye(4), k=2)
    attractions, draw, best = np.array([0.3, 0.9, 0.05, 0.05]), stream(1, "clicks"), 0
    # The second best was lucky and the best one was not.
    driver.state.shown[:2, 0], driver.state.hits[:2, 0] = 20, (10, 5)
    for step in range(1000):
        slate = driver.recommend(step)
        driver.learn(slate, [0] if draw.random() < attractions[slate[0]] else [])
        best += slate[0] == 1 and step >= 500
    # Found out, it is shown in all slates but those, at most half, that another one is tried in.
    assert best > 240


@OTHERS
def test_whether_a_bound_reaches_a_rate_is_told_without_computing_it():
    draw, slow, answers = stream(7, "counts"), PbmPIE(ATTRACTIONS, K, CHANCES, eps=0), []
    for trial in range(300):
        slow.t = int(draw.choice([1, 3, 1000]))
        shown = draw.integers(0, 12, K)
        hits = draw.binomial(shown, draw.random() * np.array(CHANCES if trial % 3 else CHANCES[::-1]))
        slow.n[0], slow.s[0] = shown, hits
        rate = float(draw.choice([draw.random(), 0.0, 1.0], p=[0.9, 0.05, 0.05]))
        reaches = slow.bound(0) >= rate - 1e-9 if shown.any() else True
        assert may_reach(shown, hits, np.array(CHANCES), rate, slow.budget()) == reaches, trial
        answers.append(reaches)
    assert 60 < sum(answers) < 240


@OTHERS
def test_estimates_are_free_of_the_bias_of_positions():
    # After 4,000 slates an attraction is known to within 0.02: 0.1 is five times that, a false alarm in a
    # million for each of nine items.
    driver = Driver("pbm-ucb:examination=0.4/1/0.7", np.eye(len(ATTRACTIONS)), k=K)
    draw = stream(6, "clicks")
    for _ in range(4000):
        slate = draw.permutation(len(ATTRACTIONS))[:K]
        driver.learn(slate, np.flatnonzero(draw.random(K) < ATTRACTIONS[slate] * CHANCES))
    means, deviations = driver.estimate(range(len(ATTRACTIONS)))
    assert np.abs(means - ATTRACTIONS).max() < 0.1
    assert deviations.max() < 0.02


@OTHERS
def test_chances_that_say_nothing_are_refused():
    with pytest.raises(InvalidInput, match=r"pbm-ucb: some chance of examination must be above 0, got \(0.0"):
        make_policy("pbm-ucb:examination=0/0")
