"""Data in numbers."""

import numpy as np
import pytest

from firstclick.data import Interactions
from firstclick.data.cut import group_items
from firstclick.data.describe import ItemShare, describe
from firstclick.errors import InvalidInput, UnknownName

# Six users, of whom u5 is attracted by nothing; b is liked twice by u1, and c was only looked at by u2.
ROWS = [
    (0, 0, True), (1, 0, True), (2, 0, True),
    (0, 1, True), (1, 1, True), (1, 1, True),
    (2, 2, False), (3, 2, True),
    (4, 3, True),
    (5, 4, False),
]  # fmt: skip


def small(**changes):
    users, items, attracted = (np.array(column) for column in zip(*ROWS, strict=True))
    made = {
        "users": users, "items": items, "attracted": attracted,
        "user_ids": tuple(f"u{user}" for user in range(6)),
        "item_ids": ("10", "13", "16", "22", "40"),
        "item_names": ("a", "b", "c", "d", "e"),
        "item_groups": (("Drama",), ("Drama", "War"), ("War",), ("Drama", "Crime"), ()),
        "facts": {"ratings": 77},
    }  # fmt: skip
    return Interactions(**(made | changes))


def test_sizes_count_pairs_once_and_users_without_attraction_too():
    seen = describe(small())
    assert (seen.users, seen.items, seen.interactions, seen.attracted_pairs) == (6, 5, 10, 7)
    assert seen.density == pytest.approx(7 / 30)
    assert seen.idle_users == pytest.approx(1 / 6)
    assert seen.facts == {"ratings": 77}
    # The most attractive items come first with their share of all users.
    assert seen.most_attractive[:2] == (ItemShare("a", 0.5), ItemShare("b", pytest.approx(1 / 3)))
    assert [item.name for item in seen.most_attractive] == ["a", "b", "c", "d", "e"]
    assert [seen.quantiles[share] for share in (0.0, 0.5, 1.0)] == [0, pytest.approx(1 / 6), 0.5]
    groups = {group.name: group for group in seen.groups}
    assert list(groups) == ["Drama", "War", "Crime"]
    assert (groups["Drama"].items, groups["War"].items) == (3, 2)
    # Of a group the density is that among its own items.
    assert groups["Drama"].density == pytest.approx(6 / 18)
    assert groups["War"].density == pytest.approx(3 / 12)


def test_best_slate_covers_more_users_than_the_popular_one():
    # Three users like both of the most popular items; the two others like one item each.
    users = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 4])
    items = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5])
    made = Interactions(users, items, np.ones(14, bool), tuple("uvwxyz"), tuple("abcdef"))
    seen = describe(made)
    assert {item.name for item in seen.best_slate} >= {"a", "e", "f"}
    assert seen.best_click_probability == pytest.approx(5 / 6)
    assert seen.popular_click_probability == pytest.approx(3 / 6)


def test_unknown_group_is_refused_with_the_nearest():
    for name, problem in (("DRAMA", "nearest: 'Drama'"), ("zzz", "largest: 'Drama' .3 items., 'War'")):
        with pytest.raises(UnknownName, match=problem):
            group_items(small(), name)
    with pytest.raises(InvalidInput, match=r"no group 'War': the items of this data have no groups"):
        group_items(small(item_groups=()), "War")
