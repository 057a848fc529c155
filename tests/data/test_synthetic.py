import re

import numpy as np
import pytest

from firstclick.data import most_attractive, synthetic_matrix
from firstclick.data import synthetic as module
from firstclick.errors import InvalidInput

SEEDS = (0, 1, 20)


@pytest.fixture(scope="module", params=SEEDS)
def feedback(request):
    return synthetic_matrix(request.param)


def attraction(feedback):
    n_users, n_items = feedback.matrix.shape
    return np.bincount(feedback.matrix.indices, minlength=n_items) / n_users


def cover(dense, items):
    return dense[:, items].any(axis=1).mean()


def greedy(dense, k):
    chosen = []
    for _ in range(k):
        left = ~dense[:, chosen].any(axis=1)
        chosen.append(int(dense[left].sum(axis=0).argmax()))
    return chosen


def test_the_matrix_is_canonical_and_of_the_asked_shape(feedback):
    assert feedback.matrix.shape == (4000, 2000)
    assert feedback.matrix.dtype == np.uint8
    assert (feedback.matrix.data == 1).all()
    assert feedback.matrix.has_canonical_format
    assert feedback.matrix.indices.dtype == feedback.matrix.indptr.dtype == np.int32


def test_density_top_and_tail_are_those_of_a_real_matrix(feedback):
    share = np.sort(attraction(feedback))[::-1]
    assert 0.02 < share.mean() < 0.05
    assert 0.45 < share[0] < 0.55
    assert np.median(share) < 0.02
    # Long-tailed: a tenth of the items has about half of all attractions.
    assert 0.4 < share[:200].sum() / share.sum() < 0.7


def test_users_differ_in_activity(feedback):
    liked = np.diff(feedback.matrix.indptr)
    low, middle, high = np.quantile(liked, [0.05, 0.5, 0.95])
    assert low < middle / 4
    assert high > middle * 4


def test_popular_items_of_one_group_go_together_beyond_popularity(feedback):
    popular = most_attractive(feedback.matrix, 100)
    correlation = np.corrcoef(feedback.matrix[:, popular].toarray().T)
    groups = feedback.item_groups[popular]
    same = groups[:, None] == groups
    pairs = ~np.eye(100, dtype=bool)
    within, between = correlation[same & pairs].mean(), correlation[~same].mean()
    assert within > between + 0.1
    assert within > 2 * between


def test_a_taste_for_one_of_two_groups_is_a_distaste_for_the_other():
    made = synthetic_matrix(0, 2000, 400, n_groups=2)
    popular = most_attractive(made.matrix, 30)
    groups = made.item_groups[popular]
    between = np.corrcoef(made.matrix[:, popular].toarray().T)[groups[:, None] != groups]
    # Activity alone would put this near 0.1; opposed tastes outweigh it.
    assert between.mean() < 0.02


def test_a_mixed_slate_covers_more_users_than_the_most_popular_items(feedback):
    dense = feedback.matrix.toarray().astype(bool)
    best = cover(dense, greedy(dense, 4))
    popular = cover(dense, most_attractive(feedback.matrix, 4))
    assert 0.75 < best < 0.9
    assert 0.015 < best - popular < 0.1


def test_column_numbers_and_group_letters_do_not_reveal_popularity():
    share = np.array([attraction(synthetic_matrix(seed, 300, 500)) for seed in range(20)])
    rank = np.arange(500) - 249.5
    slopes = (
        share
        @ rank
        / (np.linalg.norm(share - share.mean(axis=1, keepdims=True), axis=1) * np.linalg.norm(rank))
    )
    # 20 correlations of independent columns: their mean has deviation 0.01; 5 of them are no chance.
    assert abs(slopes.mean()) < 0.05
    leaders = {
        int(f.item_groups[attraction(f).argmax()]) for f in map(synthetic_matrix, range(12), [300] * 12)
    }
    assert len(leaders) > 3


def test_names_tell_number_and_group(feedback):
    assert len(feedback.item_names) == len(feedback.item_groups) == 2000
    assert feedback.item_groups.dtype == np.int64
    for item in (0, 7, 1999):
        letter = "ABCDEFGH"[feedback.item_groups[item]]
        assert feedback.item_names[item] == f"item {item:04} (group {letter})"
    assert len(synthetic_matrix(0, 1, 10_001).item_names[0]) == len("item 00000 (group A)")


def test_the_seed_decides_and_block_size_does_not(monkeypatch):
    first = synthetic_matrix(8, 130, 77, 3)
    monkeypatch.setattr(module, "_BLOCK", 500)
    second = synthetic_matrix(8, 130, 77, 3)
    other = synthetic_matrix(9, 130, 77, 3)
    assert (first.matrix != second.matrix).nnz == 0
    assert first.item_names == second.item_names
    assert (first.matrix != other.matrix).nnz > 0
    assert first.item_names != other.item_names


@pytest.mark.parametrize(("n_users", "n_items", "n_groups"), [(1, 1, 1), (5, 26, 26), (3, 40, 1), (7, 8, 8)])
def test_small_sizes_work_and_every_group_has_an_item(n_users, n_items, n_groups):
    made = synthetic_matrix(0, n_users, n_items, n_groups)
    assert made.matrix.shape == (n_users, n_items)
    assert set(made.item_groups.tolist()) == set(range(n_groups))
    assert all(re.fullmatch(r"item \d{4} \(group [A-Z]\)", name) for name in made.item_names)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"n_users": 0}, "n_users must be at least 1, got 0"),
        ({"n_items": 7}, "n_items must be at least 8, got 7"),
        ({"n_groups": 27}, "n_groups must be at most 26 (they are named A to Z), got 27"),
        ({"n_groups": 2.0}, "n_groups must be a whole number, got 2.0"),
    ],
)
def test_impossible_sizes_are_refused(sizes, message):
    with pytest.raises(InvalidInput) as caught:
        synthetic_matrix(0, **sizes)
    assert str(caught.value) == message
