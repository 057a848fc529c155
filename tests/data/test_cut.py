import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstclick.data import Interactions, cut, feedback_matrix, keep_items
from firstclick.errors import InvalidInput

# Rows per user: ann 1, bob 3, cyd 3, dan 1, eve 2; per item: 3 is met twice, 7 twice, 20 five times, 40 once.
ROWS = [
    ("bob", "20", True),
    ("bob", "3", False),
    ("ann", "20", True),
    ("cyd", "20", False),
    ("eve", "7", True),
    ("bob", "20", True),
    ("cyd", "7", True),
    ("dan", "40", True),
    ("eve", "20", True),
    ("cyd", "3", True),
]
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


def rows(interactions):
    return [
        (interactions.user_ids[user], interactions.item_ids[item], bool(yes))
        for user, item, yes in zip(
            interactions.users, interactions.items, interactions.attracted, strict=True
        )
    ]


def test_the_most_active_users_and_the_most_met_items_stay_in_the_order_of_their_ids():
    kept = cut(interactions(), top_users=3, top_items=2)
    assert kept.user_ids == ("bob", "cyd", "eve")
    # 3 and 7 are met twice each: the first in order stays.
    assert kept.item_ids == ("3", "20")
    assert rows(kept) == [row for row in ROWS if row[0] in kept.user_ids and row[1] in kept.item_ids]


def test_names_groups_and_facts_are_carried_over():
    kept = cut(interactions(), top_items=3)
    assert kept.item_ids == ("3", "7", "20")
    assert kept.item_names == ("Three", "Seven", "Twenty")
    assert kept.item_groups == (("odd",), ("odd", "prime"), ())
    assert kept.facts == {"plays": 99}
    bare = cut(interactions(item_names=(), item_groups=()), top_items=3)
    assert (bare.item_names, bare.item_groups) == ((), ())


def test_users_and_items_are_counted_over_all_rows_not_over_what_the_other_cut_leaves():
    # cyd is second with three rows, of which one is left between her and 20; eve has as many there.
    kept = cut(interactions(), top_users=2, top_items=1)
    assert kept.user_ids == ("bob", "cyd")
    # dan's only item is 40, the least met: he is kept, and has no row left.
    kept = cut(interactions(), top_users=5, top_items=1)
    assert kept.user_ids == USERS
    assert feedback_matrix(kept).shape == (5, 1)
    assert "dan" not in {user for user, _, _ in rows(kept)}


def test_ranks_of_the_source_are_carried_over_with_their_gaps_closed():
    # By the source: 40, 20, 3, 7.
    assert cut(interactions(), top_items=3).item_ranks.tolist() == [1, 2, 0]
    assert keep_items(interactions(), [0, 1, 3]).item_ranks.tolist() == [1, 2, 0]
    assert cut(interactions(), top_users=1).item_ranks.tolist() == [2, 3, 1, 0]
    unranked = interactions(item_ranks=np.empty(0, np.int64))
    assert keep_items(unranked, [0, 3]).item_ranks.size == 0


def test_only_users_or_only_items_may_be_cut_and_nothing_too():
    assert cut(interactions(), top_users=1).item_ids == ITEMS
    assert cut(interactions(), top_items=1).user_ids == USERS
    whole = interactions()
    assert cut(whole) is whole
    assert rows(cut(whole, top_users=5, top_items=4)) == ROWS


def test_where_there_are_fewer_than_asked_for_all_are_taken():
    kept = cut(interactions(), top_users=6, top_items=1000)
    assert (kept.user_ids, kept.item_ids, rows(kept)) == (USERS, ITEMS, ROWS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_items": 0}, "top_items must be at least 1, got 0"),
        ({"top_users": 2.5}, "top_users must be a whole number, got 2.5"),
    ],
)
def test_a_cut_that_cannot_be_is_refused(options, message):
    with pytest.raises(InvalidInput) as caught:
        cut(interactions(), **options)
    assert str(caught.value) == message


def test_keeping_items_touches_no_user():
    whole = interactions()
    kept = keep_items(whole, whole.groups()["odd"])
    assert (kept.user_ids, kept.item_ids) == (USERS, ("3", "7"))
    assert kept.item_names == ("Three", "Seven")
    assert rows(kept) == [row for row in ROWS if row[1] in ("3", "7")]
    assert keep_items(whole, [3, 0, 3]).item_ids == ("3", "40")


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], "items must be a list of item codes, at least one, got []"),
        (["3"], "items must be a list of item codes, at least one, got ['3']"),
        ([0, 4], "items must be codes from 0 to 3, got 0 to 4"),
        ([-1, 2], "items must be codes from 0 to 3, got -1 to 2"),
    ],
)
def test_items_that_are_none_are_refused(items, message):
    with pytest.raises(InvalidInput) as caught:
        keep_items(interactions(), items)
    assert str(caught.value) == message


def test_without_rows_the_first_ids_stay():
    empty = interactions(
        users=np.zeros(0, np.int32), items=np.zeros(0, np.int32), attracted=np.zeros(0, bool)
    )
    kept = cut(empty, top_users=2, top_items=1)
    assert (kept.user_ids, kept.item_ids, len(kept.users)) == (("ann", "bob"), ("3",), 0)


@given(st.data())
def test_a_cut_is_what_a_slow_count_says(data):
    n_users, n_items = 4, 6
    pairs = data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.booleans()), max_size=30))
    top_users, top_items = data.draw(st.integers(1, n_users)), data.draw(st.integers(1, n_items))
    users, items, liked = (np.array([pair[i] for pair in pairs], dtype=np.int64) for i in range(3))
    whole = Interactions(users, items, liked > 0, tuple("abcd"), tuple("uvwxyz"))
    kept = cut(whole, top_users=top_users, top_items=top_items)

    def most(which, n, top):
        met = [sum(pair[which] == code for pair in pairs) for code in range(n)]
        return sorted(sorted(range(n), key=lambda code: (-met[code], code))[:top])

    best_users, best_items = most(0, n_users, top_users), most(1, n_items, top_items)
    assert kept.user_ids == tuple("abcd"[code] for code in best_users)
    assert kept.item_ids == tuple("uvwxyz"[code] for code in best_items)
    assert rows(kept) == [
        ("abcd"[user], "uvwxyz"[item], yes)
        for user, item, yes in pairs
        if user in best_users and item in best_items
    ]
