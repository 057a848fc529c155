"""Scenarios that share splits and features, and those that learn features of the kept items alone."""

import numpy as np
import pytest

from firstclick.data import FeedbackScenario, most_attractive, split, synthetic_matrix, truncated_svd
from firstclick.errors import InvalidInput


@pytest.fixture
def matrix():
    return synthetic_matrix(6, n_users=50, n_items=31, n_groups=3).matrix


def test_another_number_of_items_changes_nothing_but_the_cut(matrix):
    shared = FeedbackScenario(matrix, rank=4)
    for n_items in (31, 7, 12):
        small = shared.resized(n_items, 4).stage(2, 1)
        alone = FeedbackScenario(matrix, rank=4, n_items=n_items).stage(2, 1)
        assert np.array_equal(small.features, alone.features)
        assert (small.world.matrix != alone.world.matrix).nnz == 0
        assert small.item_names == alone.item_names
    assert shared.n_items == 31
    with pytest.raises(InvalidInput, match="n_items must be at most 31, the items there are, got 32"):
        shared.resized(32, 4)


def test_scenarios_that_share_do_not_mix_up_runs_and_seeds(matrix):
    shared = FeedbackScenario(matrix, rank=4)
    few, many = shared.resized(7, 4), shared.resized(20, 3)
    for seed, run in ((2, 0), (2, 1), (3, 1), (2, 0)):
        alone = FeedbackScenario(matrix, rank=4, n_items=7).stage(seed, run)
        many.stage(seed, run)
        assert np.array_equal(few.stage(seed, run).features, alone.features)


def test_cut_first_the_svd_sees_the_kept_items_alone(matrix):
    stage = FeedbackScenario(matrix, rank=4, n_items=9, cut_first=True).stage(2, 0)
    items = most_attractive(matrix, 9)
    train, test = split(matrix, 2)
    assert np.array_equal(stage.features, truncated_svd(train[:, items], 4))
    assert (stage.world.matrix != test[:, items]).nnz == 0


def test_with_replacement_is_the_split_of_that_name(matrix):
    stage = FeedbackScenario(matrix, rank=4, with_replacement=True).stage(2, 3)
    train, test = split(matrix, 2, run=3, with_replacement=True)
    order = most_attractive(matrix, 31)
    assert np.array_equal(stage.features, truncated_svd(train, 4)[order])
    assert (stage.world.matrix != test[:, order]).nnz == 0


def test_the_ranking_of_the_source_decides_which_items_are_kept(matrix):
    ranks = np.random.default_rng(1).permutation(31)
    stage = FeedbackScenario(matrix, rank=4, n_items=5, pick="source", item_ranks=ranks).stage(2, 0)
    assert stage.item_names == [f"item {item}" for item in np.argsort(ranks)[:5]]
    with pytest.raises(InvalidInput, match="pick 'source' needs item_ranks, one for each of 31 items"):
        FeedbackScenario(matrix, rank=4, pick="source")
