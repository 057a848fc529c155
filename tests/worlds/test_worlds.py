"""Worlds: features, attractions and the best slates."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from firstclick import make_world
from firstclick.kernels.clicks import expected_reward, new_memo
from firstclick.streams import stream
from firstclick.worlds import BernoulliWorld, MatrixWorld
from tests.support.reference import matrices


def test_blb_has_k_attractive_items_and_the_rest_below_by_the_gap():
    world = make_world("blb:n_items=5,k=2,p=0.6,gap=0.5").build(0)
    np.testing.assert_allclose(world.attractions, [0.6, 0.6, 0.1, 0.1, 0.1])
    assert sorted(world.optimal_slate(2).tolist()) == [0, 1]
    assert world.expected_reward(world.optimal_slate(2)) == pytest.approx(1 - 0.4**2)
    # Of equal items the first comes first.
    assert BernoulliWorld([0.1, 0.5, 0.3, 0.5, 0.2]).optimal_slate(3).tolist() == [1, 3, 2]


def test_optimal_slate_of_a_matrix_covers_different_users():
    # The two most popular items attract the same users; the cover takes one of them and the third.
    matrix = np.zeros((10, 4), np.uint8)
    matrix[:6, 0], matrix[:5, 1], matrix[6:9, 2], matrix[9:, 3] = 1, 1, 1, 1
    world = MatrixWorld(sparse.csr_matrix(matrix))
    assert world.optimal_slate(2).tolist() == [0, 2]
    assert world.expected_reward([0, 2]) == pytest.approx(0.9)
    assert world.expected_reward([0, 1]) == pytest.approx(0.6)
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


def test_a_matrix_world_is_sent_without_what_it_can_make_again():
    world = MatrixWorld(np.eye(3, dtype=int))
    before = len(pickle.dumps(world))
    arrays = world.arrays()
    assert world.arrays() is arrays
    assert len(pickle.dumps(world)) == before
    again = pickle.loads(pickle.dumps(world)).arrays()
    assert all(np.array_equal(a, b) for a, b in zip(arrays, again, strict=True))
