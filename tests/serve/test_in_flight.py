"""Items that change while slates with them are on screens: learned as shown, with the features of now."""

import numpy as np
import pytest

from tests.support.shop import IDS, items, new_items


def with_other_features(ids, seed):
    """These items with other features."""
    rows = np.random.default_rng(seed).normal(size=(len(IDS), 4)) / 3
    return [items()[IDS.index(id)]._replace(features=rows[IDS.index(id)]) for id in ids]


def check_same_state(one, other):
    for mine, its in zip(one.state().values(), other.state().values(), strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.fixture
def shops(open_shop, tmp_path):
    """`shops(policy)`: two equal shops."""

    def open_two(policy):
        return [open_shop(tmp_path / f"{policy} {n}.db", policy=policy) for n in range(2)]

    return open_two


@pytest.mark.parametrize(
    "change",
    [
        lambda shop, slate: shop.withdraw_items(slate.items),
        lambda shop, slate: shop.set_available(off=slate.items),
        lambda shop, slate: shop.put_items(new_items(50)),
        lambda shop, slate: shop.put_items([items()[IDS.index(slate.items[0])]._replace(name="other")]),
    ],
    ids=["withdrawn", "sold out", "many added", "renamed"],
)
def test_a_slate_is_learned_as_it_was_shown(shops, change):
    """The same as in a service where nothing changed, bit for bit."""
    shop, quiet = shops("cascade-lin-ts")
    for each in (shop, quiet):
        slate = each.recommend(request_id="a")
        if each is shop:
            change(shop, slate)
        assert each.feedback(slate, 1).status == "accepted"
    check_same_state(shop, quiet)
    assert shop.audit().equal


@pytest.mark.parametrize("policy", ["cascade-lin-ts", "cascade-mixed"])
@pytest.mark.parametrize("seeds", [[7], [3, 4, 5], [None, 7]], ids=["once", "thrice", "after a withdrawal"])
def test_a_late_click_is_learned_with_the_features_of_now(shops, policy, seeds):
    """The same as in a service that had them when the slate was shown, bit for bit."""
    late, early = shops(policy)
    slate = late.recommend()
    for shop in (late, early):
        for seed in seeds:
            if seed is None:
                shop.withdraw_items(slate.items)
            else:
                shop.put_items(with_other_features(slate.items, seed))
    assert late.feedback(slate, 1).status == "accepted"
    same = early.recommend(pinned=dict(enumerate(slate.items)))
    assert early.feedback(same, 1).status == "accepted"
    check_same_state(late, early)
    for shop in (late, early):
        assert shop.describe()["items"] == len(IDS)
        assert shop.audit().equal


def test_slates_count_after_a_rollback_that_took_their_items_away(shops):
    shop, plain = shops("cascade-ts")
    old = shop.recommend()
    shop.put_items(new_items(1))
    new = shop.recommend(pinned={0: "i100"})
    shop.roll_back(1)
    assert shop.recommend(candidates=["i100"]).items == []
    # The row of i100 is not given to another.
    shop.put_items(new_items(1, first=101))
    for slate in (old, new):
        assert shop.feedback(slate, 0).status == "accepted"
    assert shop.recommend(candidates=["i101"]).scores == plain.recommend(candidates=["i1"]).scores
    shop.put_items(new_items(1))
    # Beta(1, 1) with one click of one.
    assert shop.recommend(candidates=["i100"]).scores == pytest.approx([2 / 3])
    assert shop.audit().equal
