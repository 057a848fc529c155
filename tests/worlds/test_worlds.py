"""Worlds: rewards, clicks and optimal slates, against users played out one by one."""

from itertools import permutations, product

import numpy as np
import pytest

from firstclick import InvalidInput, make_world, simulate
from firstclick.click_models import make_click_model
from firstclick.errors import UnknownName
from firstclick.kernels.clicks import UNTOLD, answer, click_chance, expected_reward, new_memo
from firstclick.kernels.hashing import user_of
from firstclick.streams import stream, stream_key
from firstclick.worlds import BernoulliWorld, LinearWorld, MatrixWorld, TopicsWorld, ViewsWorld
from tests.support.reference import matrices

# Chances that neither rise nor fall, so that no position can be mistaken for another.
CLICKS = ["cascade", "dcm/0.2/0.9/0.5", "pbm/0.4/1/0.7", "scroll/0.9/0.5"]
SLATE = [3, 0, 4]
K = len(SLATE)


@pytest.fixture(scope="module", autouse=True)
def _kernels_are_taken_from_the_cache():
    # Kernels called by themselves are compiled anew, unless a simulation has set where they are kept.
    simulate(["random"], "blb", k=2, steps=1)


def made(kind, clicks):
    draw = stream(5, "world", kind)
    if kind == "independent":
        return BernoulliWorld(draw.random(6), clicks)
    if kind == "matrix":
        return MatrixWorld((draw.random((40, 6)) < 0.4).astype(np.uint8), clicks)
    if kind == "topics":
        topics = draw.random((6, 3))
        return TopicsWorld(topics, [0.2, 0.15, 0.1], 0.3 * draw.random(6), clicks=clicks)
    contexts = {"contexts": np.eye(2)} if kind == "users" else {"period": 7}
    return ViewsWorld(draw.random((2, 6)), **contexts, clicks=clicks)


KINDS = ["independent", "matrix", "topics", "users", "periods"]


def answers_of(clicks, attracted, lucky):
    """What a user does whom these positions attract, told as a story: clicks, what the page knows, reward.

    `lucky` is what chance says at each position, of the kind that the click model has.
    """
    model = make_click_model(clicks)
    clicked, reward = [0] * len(attracted), 0
    for position in range(len(attracted)):
        if model.name == "pbm" and not lucky[position]:
            continue
        if attracted[position]:
            clicked[position] = 1
            if model.name == "cascade" or (model.name == "dcm" and lucky[position]):
                return tuple(clicked), UNTOLD, 1
            reward += model.name != "dcm"
        if model.name == "scroll" and not lucky[position]:
            return tuple(clicked), position + 1, reward
    return tuple(clicked), len(attracted) if model.name == "scroll" else UNTOLD, reward


def attractions_of(world, slate, view):
    """By position; of a matrix, one row for each user."""
    if isinstance(world, MatrixWorld):
        return world.matrix.toarray()[:, slate].astype(float)
    if isinstance(world, TopicsWorld):
        found = []
        for position, item in enumerate(slate):
            chance = world.relevance[item]
            for topic, interest in enumerate(world.interest):
                left = 1.0
                for above in slate[:position]:
                    left *= 1 - world.topics[above, topic]
                chance += interest * left * world.topics[item, topic]
            found.append(chance)
        return np.array([found])
    table = np.atleast_2d(world.attractions)
    return table[view : view + 1, slate]


def exactly(world, clicks, slate, view=0):
    """The probability of every answer and the expected reward, by adding up all that can happen."""
    chances = make_click_model(clicks).chances or (1.0,)
    chances = [chances[min(position, len(chances) - 1)] for position in range(len(slate))]
    users = attractions_of(world, slate, view)
    outcomes, worth = {}, 0.0
    for attraction in users:
        for attracted in product([0, 1], repeat=len(slate)):
            for lucky in product([0, 1], repeat=len(slate)):
                probability = 1 / len(users)
                for hit, p in [*zip(attracted, attraction, strict=True), *zip(lucky, chances, strict=True)]:
                    probability *= p if hit else 1 - p
                clicked, told, reward = answers_of(clicks, attracted, lucky)
                outcomes[clicked, told] = outcomes.get((clicked, told), 0.0) + probability
                worth += probability * reward
    return outcomes, worth


@pytest.mark.parametrize("clicks", CLICKS)
@pytest.mark.parametrize("kind", KINDS)
def test_rewards_and_clicks_are_those_of_users_played_out(kind, clicks):
    world = made(kind, clicks)
    arrays, rows, seen = world.arrays(), np.array(SLATE), np.empty(K, np.uint8)
    bits = np.empty((arrays.n_users + 63) // 64, np.uint64)
    for view in range(world.n_views):
        outcomes, worth = exactly(world, clicks, SLATE, view)
        assert world.expected_reward(SLATE, view) == pytest.approx(worth, abs=1e-12)
        # A memory of its own: of a matrix it keeps what slates are worth.
        assert expected_reward(arrays, view, rows, K, new_memo(K), bits) == pytest.approx(worth, abs=1e-12)
        clicked = sum(chance for (seen_clicks, _), chance in outcomes.items() if any(seen_clicks))
        assert click_chance(arrays, view, rows, K, new_memo(K), bits) == pytest.approx(clicked, abs=1e-12)
        counted, steps = {}, 4000
        for step in range(steps):
            key = stream_key(1, step)
            user = user_of(key, arrays.n_users)
            reward, told = answer(arrays, key, user, view, rows, K, seen)
            answered = tuple(seen.tolist()), told
            counted[answered] = counted.get(answered, 0) + 1
            if clicks != CLICKS[1]:  # Who left satisfied, the page does not see.
                assert reward == sum(answered[0])
        assert set(counted) <= {outcome for outcome, chance in outcomes.items() if chance > 0}
        for outcome, chance in outcomes.items():
            # 5 standard errors, 28 worlds and views with at most 20 outcomes: one false alarm in 3,000 seeds.
            error = 5 * np.sqrt(chance * (1 - chance) / steps) + 1e-9
            assert abs(counted.get(outcome, 0) / steps - chance) <= error, outcome


@pytest.mark.parametrize("clicks", CLICKS)
@pytest.mark.parametrize("kind", ["independent", "users", "periods"])
def test_no_slate_of_independent_items_is_better_than_the_optimal_one(kind, clicks):
    world = made(kind, clicks)
    for view in range(world.n_views):
        best = max(world.expected_reward(slate, view) for slate in permutations(range(6), K))
        assert world.expected_reward(world.optimal_slate(K, view), view) == pytest.approx(best)
    slates = world.optimal_slates(K)
    assert slates.tolist() == [world.optimal_slate(K, view).tolist() for view in range(world.n_views)]
    worth = [world.expected_reward(slate, view) for view, slate in enumerate(slates)]
    assert world.optimal_reward(K) == pytest.approx(np.mean(worth))


@pytest.mark.parametrize("clicks", [CLICKS[2], CLICKS[3]])
def test_where_clicks_add_up_the_slate_of_a_matrix_is_optimal_too(clicks):
    world = made("matrix", clicks)
    best = max(world.expected_reward(slate) for slate in permutations(range(6), K))
    assert world.expected_reward(world.optimal_slate(K)) == pytest.approx(best)


def greedy(world, k, order):
    """Fill the positions in this order, each with the item that raises the expected reward most."""
    slate, users = {}, world.matrix.toarray()
    chances = [world.click_model.chances[min(p, len(world.click_model.chances) - 1)] for p in range(k)]
    for position in order:
        gains = {}
        for item in set(range(world.n_items)) - set(slate.values()):
            # Items of the positions still to come attract nobody.
            missed = np.ones(world.n_users)
            for at, shown in (slate | {position: item}).items():
                missed *= 1 - chances[at] * users[:, shown]
            gains[item] = 1 - missed.mean()
        slate[position] = max(gains, key=lambda item: (round(gains[item], 12), -item))
    return [slate[position] for position in range(k)]


def test_the_slate_of_a_matrix_with_dependent_clicks_is_the_greedy_one():
    for seed in range(10):
        matrix = (stream(seed, "greedy").random((50, 7)) < 0.35).astype(np.uint8)
        world = MatrixWorld(matrix, "dcm/0.3/0.9/0.5")
        assert world.optimal_slate(3).tolist() == greedy(world, 3, [1, 2, 0])


def test_the_slate_of_topics_is_the_greedy_one_and_takes_variety():
    for seed in range(10):
        world = make_world("topics:n_items=12,topics=3,relevance=2").build(seed)
        slate = []
        for _ in range(4):
            rest = [item for item in range(12) if item not in slate]
            slate.append(max(rest, key=lambda item: attractions_of(world, [*slate, item], 0)[0, -1]))
        assert world.optimal_slate(4).tolist() == slate
        np.testing.assert_allclose(
            world.gains(slate) @ world.interest + world.relevance[slate], attractions_of(world, slate, 0)[0]
        )
    twins = TopicsWorld([[0.9, 0.0], [0.8, 0.0], [0.0, 0.5]], [0.5, 0.5])
    assert twins.optimal_slate(2).tolist() == [0, 2]


def test_periods_come_one_after_the_other_and_again():
    # All items attract for sure in every other period: rewards tell which one was played.
    world = ViewsWorld([[0.0, 0.0], [1.0, 1.0]], period=3)
    played = simulate(["random"], world, k=1, steps=10, runs=1)
    rewards = np.cumsum([0, 0, 0, 1, 1, 1, 0, 0, 0, 1])
    assert len(played.step) > 5
    assert played.results[0].reward[0].tolist() == rewards[played.step - 1].tolist()
    assert played.results[0].regret[0, -1] == 0


def test_users_come_at_random_and_each_has_a_view():
    world = ViewsWorld([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]], contexts=np.eye(4))
    played = simulate(["random"], world, k=1, steps=2000, runs=1)
    # One user in four clicks; 5 standard errors: one false alarm in 1.7 million seeds.
    assert abs(played.results[0].reward[0, -1] / 2000 - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 2000)
    assert played.optimal_reward == pytest.approx(0.25)


@pytest.mark.parametrize(
    "spec", ["switch:period=50,thetas=3", "drift:period=50,thetas=3", "types", "vectors"]
)
def test_views_differ_and_reach_the_best_attraction(spec):
    world = make_world(f"{spec},best=0.4" if ":" in spec else f"{spec}:best=0.4").build(3)
    most = world.attractions.max(axis=1)
    assert (most <= 0.4).all()
    assert most == pytest.approx(0.4)
    assert len({tuple(view) for view in world.attractions}) == world.n_views
    assert not np.array_equal(make_world(spec).build(4).features, world.features)


def test_types_have_contexts_by_place_or_by_number():
    places, number = (make_world(f"types:types=3,told={told}").build(1) for told in ("places", "number"))
    assert places.contexts.tolist() == np.eye(3).tolist()
    assert number.contexts.tolist() == [[0.0], [1.0], [2.0]]
    with pytest.raises(InvalidInput, match="wants 2 numbers of context"):
        simulate(["context-lin-ts:context=2"], "types", k=2, steps=5)


def test_drift_goes_in_small_steps_and_comes_back():
    world = make_world("drift:period=200,thetas=4").build(2)
    assert world.n_views * world.period == 4 * 200
    step = np.abs(np.diff(world.attractions, axis=0, append=world.attractions[:1])).max(axis=1)
    assert step.max() < 0.1
    assert make_world("drift:period=1").build(2).n_views == 4


def test_a_logistic_world_has_its_best_item_where_it_was_asked_for():
    world = make_world("logistic:n_items=50,n_features=4,best=0.3,spread=6").build(1)
    assert world.attractions.max() == pytest.approx(0.3)
    assert (world.features[:, 0] == 1).all()
    odds = np.log(world.attractions / (1 - world.attractions))
    np.testing.assert_allclose(odds, world.features @ world.theta)
    assert np.linalg.norm(world.theta[1:]) == pytest.approx(6)


def test_features_of_a_partly_explained_world_explain_their_share():
    explained = []
    for own in (0, 0.5, 1):
        world = make_world(f"partly:n_items=5000,n_features=3,best=0.4,own={own}").build(1)
        assert world.attractions.max() == pytest.approx(0.4)
        table = np.column_stack([world.features, np.ones(5000)])
        left = world.attractions - table @ np.linalg.lstsq(table, world.attractions)[0]
        explained.append(1 - left.var() / world.attractions.var())
    # Parts that have nothing in common correlate by chance, r = 1 / sqrt(5000) or so: features explain
    # (1 + r) / 2 of a half, here within five standard deviations, and 3 / 5000 or so of nothing.
    assert explained == [pytest.approx(1), pytest.approx(0.5, abs=0.036), pytest.approx(0, abs=0.005)]


@pytest.mark.parametrize(
    ("clicks", "bits", "told", "examined"),
    [
        ("cascade", [0, 1, 0, 1], None, 2),
        ("dcm", [0, 1, 1, 0], None, 3),
        ("pbm", [1, 0, 0, 0], None, 4),
        ("scroll", [1, 0, 0, 0], 2, 2),
        ("dcm", [0, 0, 0, 0], 0, 0),
    ],
)
def test_what_counts_as_examined(clicks, bits, told, examined):
    assert make_click_model(clicks).examined(bits, told) == examined


def test_a_click_model_is_written_as_it_is_read():
    for text in ("cascade", "dcm", "dcm/0.2/0.9", "pbm/1/0.5", "scroll/0.7"):
        assert make_click_model(text).label == text
        assert make_click_model(make_click_model(text).label) == make_click_model(text)
    assert make_click_model("dcm/0.5") == make_click_model("dcm") != make_click_model("dcm/0.4")


TWO = [[0.5, 0.1], [0.2, 0.3]]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (lambda: BernoulliWorld([0.5, 1.5]), r"attractions .* for item 1"),
        (lambda: BernoulliWorld([np.nan]), "attractions .* for item 0"),
        (lambda: BernoulliWorld([10**5000]), "attractions"),
        (lambda: BernoulliWorld([0.1, 0.9], features=[[1, 2, 3]]), "one row for each of the 2 items"),
        (lambda: LinearWorld([[1.0, 1.0]], [0.1, 0.1]), "norm at most 1"),
        (lambda: LinearWorld([[0.5, 0.0], [0.0, 1.0]], [0.2, -0.5]), "attractions .* for item 1"),
        (lambda: LinearWorld([[0.5, 0.0]], [0.2]), "theta must have one number for each of 2"),
        (lambda: ViewsWorld([0.5, 0.1], period=3), "attractions must be a table"),
        (lambda: ViewsWorld([[0.5, 1.5]], period=3), "for item 1 in view 0"),
        (lambda: ViewsWorld(TWO), "contexts"),
        (lambda: ViewsWorld(TWO, contexts=np.eye(2), period=3), "not both"),
        (lambda: ViewsWorld(TWO, contexts=np.eye(3)), "contexts"),
        (lambda: ViewsWorld(TWO, contexts=[[np.inf], [0]]), "contexts"),
        (lambda: ViewsWorld(TWO, period=0.5), "period"),
        (lambda: ViewsWorld(TWO, period=3, features=[[1.0]]), "one row for each of the 2 items"),
        (lambda: TopicsWorld([[0.5, 1.2]], [0.1, 0.1]), "topics"),
        (lambda: TopicsWorld([[0.5]], [-0.1]), "interest"),
        (lambda: TopicsWorld([[0.5]], [0.1], [0.1, 0.2]), "relevance"),
        (lambda: TopicsWorld([[1.0]], [0.8], [0.3]), r"1\.1"),
        (lambda: TopicsWorld([[0.5]], [0.1], more_features=[[1.0], [2.0]]), "each of the 1 items"),
        (lambda: make_click_model("dcm/1.5"), "click model dcm: chances"),
        (lambda: make_click_model("pbm/nan"), "chances"),
        (lambda: make_click_model("cascade/0.5"), "click model cascade has no"),
        (lambda: make_world("linear:clicks=cascad"), "did you mean 'cascade'"),
        (lambda: make_world("linear").build(10**5000), "seed"),
        (lambda: make_world("blb:p=0.2,gap=0.5"), "blb: gap"),
        (lambda: make_world("blb:n_items=3,k=4"), "blb: k"),
        # A lower position must not be worth more, unless it is the only one.
        (lambda: simulate(["random"], "topics:clicks=pbm/0.2/1", k=2, steps=1), "clicks=pbm"),
    ],
)
def test_what_makes_no_world_is_refused_in_one_sentence(wrong, problem):
    with pytest.raises((InvalidInput, UnknownName), match=problem) as refused:
        wrong()
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


def test_blb_has_k_attractive_items_and_the_rest_below_by_the_gap():
    world = make_world("blb:n_items=5,k=2,p=0.6,gap=0.5").build(0)
    np.testing.assert_allclose(world.attractions, [0.6, 0.6, 0.1, 0.1, 0.1])
    assert BernoulliWorld([0.1, 0.9], features=[[1, 2], [4, 5]]).features.tolist() == [[1, 2], [4, 5]]
    # Of equal items the first comes first.
    assert BernoulliWorld([0.1, 0.5, 0.3, 0.5, 0.2]).optimal_slate(3).tolist() == [1, 3, 2]


def test_optimal_slate_of_a_matrix_covers_different_users():
    # It goes on with popular items when all users are covered.
    matrix = np.array([[1, 0, 1, 0], [1, 0, 1, 1], [1, 1, 0, 1], [1, 0, 0, 0], [1, 0, 0, 1]], np.uint8)
    assert MatrixWorld(matrix).optimal_slate(4).tolist() == [0, 3, 2, 1]
    for seed in range(20):
        matrix = (stream(seed, "cover").random((60, 8)) < 0.2).astype(np.uint8)
        assert MatrixWorld(matrix).optimal_slate(5).tolist() == matrices.greedy_cover(matrix, 5)


@pytest.mark.parametrize("spec", ["linear", "linear:n_items=300,n_features=7,best=1", "linear:n_features=1"])
def test_a_linear_world_keeps_the_assumptions_of_theorem_1(spec):
    for seed in range(5):
        world = make_world(spec).build(seed)
        assert np.linalg.norm(world.features, axis=1).max() <= 1 + 1e-12
        np.testing.assert_allclose(world.features @ world.theta, world.attractions)
        assert world.attractions.min() >= 0
        assert world.attractions.max() <= 1
    assert not np.array_equal(make_world(spec).build(1).theta, make_world(spec).build(2).theta)


def test_what_is_remembered_of_a_slate_is_that_of_the_slate():
    # One entry for all slates: every slate overwrites the one before, none may be mistaken.
    matrix = (stream(3, "memo").random((200, 6)) < 0.3).astype(np.uint8)
    arrays, memo = MatrixWorld(matrix).arrays(), new_memo(2, entries=1)
    covered = np.empty(4, np.uint64)
    for slate in ([0, 1], [1, 0], [0, 1], [2, 5], [2, 5], [0, 1]):
        value = expected_reward(arrays, 0, np.array(slate), 2, memo, covered)
        assert value == pytest.approx(matrices.share_of_users(matrix, slate))


def test_norms_fade_as_declared():
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
    np.testing.assert_array_equal(make_world(spec).build(3).features, world.features)


@pytest.mark.parametrize("seed", range(8))
def test_tiny_world_has_its_best_item(seed):
    # With one feature, which is never negative, theta may point away from all items.
    world = make_world("long-tail:n_items=3,n_features=1").build(seed)
    assert world.attractions.max() == pytest.approx(0.5)
