"""Cuts, splits and scenarios of interactions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstclick.data import (
    FeedbackScenario,
    Interactions,
    cut,
    keep_items,
    most_attractive,
    split,
    synthetic_matrix,
    truncated_svd,
)
from firstclick.errors import InvalidInput
from firstclick.streams import stream

# Rows per user: ann 1, bob 3, cyd 3, dan 1, eve 2; per item: 3 is met twice, 7 twice, 20 five times, 40 once.
ROWS = [
    ("bob", "20", True), ("bob", "3", False), ("ann", "20", True), ("cyd", "20", False), ("eve", "7", True),
    ("bob", "20", True), ("cyd", "7", True), ("dan", "40", True), ("eve", "20", True), ("cyd", "3", True),
]  # fmt: skip
USERS = ("ann", "bob", "cyd", "dan", "eve")
ITEMS = ("3", "7", "20", "40")


def interactions(**changes):
    parts = {
        "users": np.array([USERS.index(user) for user, _, _ in ROWS], dtype=np.int32),
        "items": np.array([ITEMS.index(item) for _, item, _ in ROWS], dtype=np.int32),
        "attracted": np.array([yes for _, _, yes in ROWS]),
        "user_ids": USERS,
        "item_ids": ITEMS,
        "item_names": ("Three", "Seven", "Twenty", "Forty"),
        "item_groups": (("odd",), ("odd", "prime"), (), ("round",)),
        "item_ranks": np.array([2, 3, 1, 0]),
        "facts": {"plays": 99},
    }
    return Interactions(**(parts | changes))


def rows(read):
    codes = zip(read.users, read.items, read.attracted, strict=True)
    return [(read.user_ids[user], read.item_ids[item], bool(yes)) for user, item, yes in codes]


def test_cut_keeps_names_groups_facts_and_the_order_of_ranks():
    whole = interactions()
    assert cut(whole) is whole
    kept = cut(whole, top_users=6, top_items=1000)
    assert (kept.user_ids, kept.item_ids, rows(kept)) == (USERS, ITEMS, ROWS)
    kept = cut(interactions(), top_items=3)
    assert (kept.item_ids, kept.item_names) == (("3", "7", "20"), ("Three", "Seven", "Twenty"))
    assert kept.item_groups == (("odd",), ("odd", "prime"), ())
    assert (kept.facts, kept.user_ids) == ({"plays": 99}, USERS)
    # By the source: 40, 20, 3, 7.
    assert kept.item_ranks.tolist() == [1, 2, 0]
    assert cut(interactions(), top_users=1).item_ranks.tolist() == [2, 3, 1, 0]
    bare = interactions(item_names=(), item_groups=(), item_ranks=np.empty(0, np.int64))
    kept = cut(bare, top_items=3)
    assert (kept.item_names, kept.item_groups, kept.item_ranks.size) == ((), (), 0)


def test_kept_items_touch_no_user():
    whole = interactions()
    kept = keep_items(whole, whole.groups()["odd"])
    assert (kept.user_ids, kept.item_ids, kept.item_names) == (USERS, ("3", "7"), ("Three", "Seven"))
    assert rows(kept) == [row for row in ROWS if row[1] in ("3", "7")]
    kept = keep_items(whole, [3, 0, 3])
    assert (kept.item_ids, kept.item_ranks.tolist()) == (("3", "40"), [1, 0])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cut(interactions(), top_items=0), "top_items must be at least 1, got 0"),
        (lambda: keep_items(interactions(), ["3"]), r"items must be a list .* at least one, got \['3'\]"),
        (lambda: keep_items(interactions(), [0, 4]), "items must be codes from 0 to 3, got 0 to 4"),
        (lambda: keep_items(interactions(), [-1, 2]), "items must be codes from 0 to 3, got -1 to 2"),
        (lambda: most_attractive(np.eye(4), 0), "number of items must be at least 1"),
        (lambda: most_attractive(np.eye(4), 5), "number of items must be at most 4"),
        (lambda: split(distinct_rows(1), 0), "a split needs at least 2 users, got 1"),
        (lambda: split(distinct_rows(4), 0, run=-1), "run must be at least 0, got -1"),
        (lambda: FeedbackScenario(np.eye(4), rank=2).resized(5, 2), "n_items must be at most 4, .* got 5"),
        (lambda: FeedbackScenario(np.eye(4), rank=2, pick="source"), "needs item_ranks, one for each of 4"),
    ],
)
def test_impossible_cuts_and_splits_are_refused(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()


@given(st.data())
def test_cut_equals_a_slow_count(data):
    pairs = data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.booleans()), max_size=30))
    top_users, top_items = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
    users, items, liked = (np.array([pair[i] for pair in pairs], dtype=np.int64) for i in range(3))
    whole = Interactions(users, items, liked > 0, tuple("abcd"), tuple("uvwxyz"))
    kept = cut(whole, top_users=top_users, top_items=top_items)

    def most(which, n, top):
        met = [sum(pair[which] == code for pair in pairs) for code in range(n)]
        return sorted(sorted(range(n), key=lambda code: (-met[code], code))[:top])

    best_users, best_items = most(0, 4, top_users), most(1, 6, top_items)
    assert kept.user_ids == tuple("abcd"[code] for code in best_users)
    assert kept.item_ids == tuple("uvwxyz"[code] for code in best_items)
    assert rows(kept) == [
        ("abcd"[user], "uvwxyz"[item], yes)
        for user, item, yes in pairs
        if user in best_users and item in best_items
    ]


def distinct_rows(n_users):
    """Row u is u + 1 in binary, so that every row identifies its user."""
    bits = np.arange(n_users.bit_length() + 1)
    return (np.arange(1, n_users + 1)[:, None] >> bits) & 1


def users_of(half):
    return (half.toarray().astype(int) @ (1 << np.arange(half.shape[1])) - 1).tolist()


@given(st.integers(2, 60), st.integers(0, 2**40), st.integers(0, 9))
def test_each_user_is_in_one_half_by_the_stream_of_seed_and_run(n_users, seed, run):
    train, test = split(distinct_rows(n_users), seed, run=run)
    order = stream(seed, "run", run, "split").permutation(n_users)
    # The test half has the odd one.
    assert users_of(train) == sorted(order[: n_users // 2].tolist())
    assert users_of(test) == sorted(order[n_users // 2 :].tolist())
    assert train.dtype == test.dtype == np.uint8


def test_with_replacement_users_train_twice_or_test():
    n_users = 301
    train, test = map(users_of, split(distinct_rows(n_users), 5, with_replacement=True))
    assert len(train) == n_users // 2
    assert len(set(train)) < len(train)
    assert set(train).isdisjoint(test)
    assert sorted({*train, *test}) == list(range(n_users))
    # A user is never drawn with probability (1 - 1/n)^(n/2), near exp(-1/2) = 0.607; deviation 0.02.
    assert abs(len(test) / n_users - 0.607) < 0.08


@pytest.fixture
def matrix():
    return synthetic_matrix(6, n_users=50, n_items=31, n_groups=3).matrix


def test_resized_scenarios_equal_scenarios_of_their_own(matrix):
    shared = FeedbackScenario(matrix, rank=4)
    for n_items in (31, 7, 12):
        small, other = shared.resized(n_items, 4), shared.resized(20, 3)
        for seed, run in ((2, 1), (2, 0), (3, 1), (2, 1)):
            alone = FeedbackScenario(matrix, rank=4, n_items=n_items).stage(seed, run)
            other.stage(seed, run)
            stage = small.stage(seed, run)
            assert np.array_equal(stage.features, alone.features)
            assert (stage.world.matrix != alone.world.matrix).nnz == 0
            assert stage.item_names == alone.item_names
    assert shared.n_items == 31


def test_options_of_a_scenario_decide_what_features_are_learned_from(matrix):
    order, (train, test) = most_attractive(matrix, 31), split(matrix, 2)
    stage = FeedbackScenario(matrix, rank=4, n_items=9, cut_first=True).stage(2, 0)
    assert np.array_equal(stage.features, truncated_svd(train[:, order[:9]], 4))
    assert (stage.world.matrix != test[:, order[:9]]).nnz == 0
    train, test = split(matrix, 2, run=3, with_replacement=True)
    stage = FeedbackScenario(matrix, rank=4, with_replacement=True).stage(2, 3)
    assert np.array_equal(stage.features, truncated_svd(train, 4)[order])
    assert (stage.world.matrix != test[:, order]).nnz == 0
    ranks = np.random.default_rng(1).permutation(31)
    stage = FeedbackScenario(matrix, rank=4, n_items=5, pick="source", item_ranks=ranks).stage(2, 0)
    assert stage.item_names == [f"item {item}" for item in np.argsort(ranks)[:5]]


def test_random_items_are_others_in_each_run_and_with_each_seed(matrix):
    def items(seed, run):
        return tuple(FeedbackScenario(matrix, n_items=5, pick="random").stage(seed, run).item_names)

    assert items(2, 0) == items(2, 0)
    # Two draws of 5 from 31 items are equal once in 170,000 times.
    assert len({items(seed, run) for seed in (2, 3) for run in range(3)}) == 6
