"""Worlds: who clicks, how likely, and what the best slate is."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from benchmarks.first_attractive import first_attractive
from firstclick import InvalidInput, make_world
from firstclick.kernels.clicks import expected_reward, new_memo
from firstclick.streams import stream, stream_key
from firstclick.worlds import BernoulliWorld, LinearWorld, MatrixWorld
from tests.support.reference import matrices


def play_clicks(world, slate, steps):
    """The clicked position of the slate, step by step, -1 for none."""
    arrays, rows = world.arrays(), np.array(slate, np.int64)
    return np.array([first_attractive(arrays, stream_key(1, step), rows, len(rows)) for step in range(steps)])


def test_clicks_have_the_probabilities_of_the_cascade_model():
    world = BernoulliWorld([0.3, 0.0, 1.0, 0.5])
    clicks = play_clicks(world, [1, 0, 3], 20_000)
    expected = {-1: 0.7 * 0.5, 0: 0.0, 1: 0.3, 2: 0.7 * 0.5}
    for position, probability in expected.items():
        # 5 standard errors: one false alarm in 1.7 million for each position.
        error = np.sqrt(probability * (1 - probability) / 20_000)
        assert abs(np.mean(clicks == position) - probability) <= 5 * error
    assert world.expected_reward([1, 0, 3]) == pytest.approx(1 - 0.35)
    assert (play_clicks(world, [1, 2], 100) == 1).all()


def test_the_same_item_attracts_the_same_user_wherever_it_is_shown():
    world = BernoulliWorld([0.3, 0.6])
    first, second = play_clicks(world, [0, 1], 500), play_clicks(world, [1, 0], 500)
    assert ((first >= 0) == (second >= 0)).all()


def test_a_matrix_world_draws_its_rows_uniformly_and_keeps_their_correlation():
    # Items 0 and 1 attract the same users, item 2 the others, and one user in four nobody.
    matrix = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0]], np.uint8)
    world = MatrixWorld(matrix)
    clicks = play_clicks(world, [0, 1, 2], 20_000)
    assert (clicks != 1).all()
    for position, probability in {0: 0.5, 2: 0.25, -1: 0.25}.items():
        assert abs(np.mean(clicks == position) - probability) < 5 * np.sqrt(0.25 / 20_000)


def test_blb_has_k_attractive_items_and_the_rest_below_by_the_gap():
    world = make_world("blb:n_items=5,k=2,p=0.6,gap=0.5").build(0)
    np.testing.assert_allclose(world.attractions, [0.6, 0.6, 0.1, 0.1, 0.1])
    assert sorted(world.optimal_slate(2).tolist()) == [0, 1]
    assert world.expected_reward(world.optimal_slate(2)) == pytest.approx(1 - 0.4**2)


def test_the_optimal_slate_of_independent_items_has_the_k_best():
    attractions = [0.1, 0.5, 0.3, 0.5, 0.2]
    assert BernoulliWorld(attractions).optimal_slate(3).tolist() == [1, 3, 2]


def test_the_optimal_slate_of_a_matrix_covers_different_users():
    # The two most popular items attract the same users; the cover takes one of them and the third.
    matrix = np.zeros((10, 4), np.uint8)
    matrix[:6, 0], matrix[:5, 1], matrix[6:9, 2], matrix[9:, 3] = 1, 1, 1, 1
    world = MatrixWorld(sparse.csr_matrix(matrix))
    assert world.optimal_slate(2).tolist() == [0, 2]
    assert world.expected_reward([0, 2]) == pytest.approx(0.9)
    assert world.expected_reward([0, 1]) == pytest.approx(0.6)


def test_the_cover_goes_on_with_popular_items_when_everybody_is_covered():
    matrix = np.array([[1, 0, 1, 0], [1, 0, 1, 1], [1, 1, 0, 1], [1, 0, 0, 0], [1, 0, 0, 1]], np.uint8)
    assert MatrixWorld(matrix).optimal_slate(4).tolist() == [0, 3, 2, 1]


def test_the_cover_equals_the_reference_on_random_matrices():
    for seed in range(20):
        draw = stream(seed, "cover")
        matrix = (draw.random((60, 8)) < 0.2).astype(np.uint8)
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


def test_a_linear_world_refuses_what_would_need_clipping():
    with pytest.raises(InvalidInput, match=r"norm at most 1, got 1\.41421; divide all features"):
        LinearWorld([[1.0, 1.0]], [0.1, 0.1])
    with pytest.raises(InvalidInput, match=r"attractions must lie in \[0, 1\], got -0\.5 for item 1"):
        LinearWorld([[0.5, 0.0], [0.0, 1.0]], [0.2, -0.5])
    with pytest.raises(InvalidInput, match="theta must have one number for each of 2 features"):
        LinearWorld([[0.5, 0.0]], [0.2])


def test_bernoulli_refuses_what_is_no_probability():
    with pytest.raises(InvalidInput, match=r"attractions must lie in \[0, 1\], got 1\.5 for item 1"):
        BernoulliWorld([0.5, 1.5])
    with pytest.raises(InvalidInput, match="got nan for item 0"):
        BernoulliWorld([np.nan])
    with pytest.raises(InvalidInput, match="at least one probability"):
        BernoulliWorld([])
    with pytest.raises(InvalidInput, match=r"blb: gap must be at most p, got gap=0\.5, p=0\.2"):
        make_world("blb:p=0.2,gap=0.5")
    with pytest.raises(InvalidInput, match="blb: k must be at most n_items"):
        make_world("blb:n_items=3,k=4")


def test_what_is_remembered_of_a_slate_is_that_of_the_slate():
    # One entry for all slates: every slate overwrites the one before, none may be mistaken.
    matrix = (stream(3, "memo").random((200, 6)) < 0.3).astype(np.uint8)
    arrays, memo = MatrixWorld(matrix).arrays(), new_memo(2, entries=1)
    covered = np.empty(4, np.uint64)
    for slate in ([0, 1], [1, 0], [0, 1], [2, 5], [2, 5], [0, 1]):
        value = expected_reward(arrays, 0, np.array(slate), 2, memo, covered)
        assert value == pytest.approx(matrices.share_of_users(matrix, slate))


def test_a_matrix_world_is_sent_without_what_it_can_make_again():
    world = MatrixWorld(np.eye(3, dtype=int))
    before = len(pickle.dumps(world))
    arrays = world.arrays()
    assert world.arrays() is arrays
    assert len(pickle.dumps(world)) == before
    again = pickle.loads(pickle.dumps(world)).arrays()
    assert all(np.array_equal(a, b) for a, b in zip(arrays, again, strict=True))
