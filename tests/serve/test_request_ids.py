"""A request that is sent again gets the same slate."""

import pytest

from firstclick.serve import request_table
from firstclick.serve.request_table import KEPT_SECONDS, RequestTable
from tests.support.clock import Clock
from tests.support.refusals import check_refused


def slates_of(shop, n=20):
    return [shop.recommend(request_id=str(number)) for number in range(n)]


def learn(shop, click):
    for _ in range(30):
        shop.feedback(shop.recommend(), click)


def test_the_same_slate_and_token_whatever_was_learned_in_between(open_shop):
    shop = open_shop(policy="cascade-lin-ts", clock=Clock())
    first = shop.recommend(request_id="visit 1", exclude=["i1"])
    learn(shop, 0)
    assert shop.recommend(request_id="visit 1", exclude=["i1"]) == first
    assert shop.feedback(first, 1).status == "accepted"
    assert shop.recommend(request_id="visit 1", exclude=["i1"]) == first
    assert shop.feedback(first, 1).status == "duplicate"
    shop.service.clock.move(61)
    shop.run_background()
    assert shop.describe()["recommended"] == shop.service.recommended["shop"] == 1 + 30
    shop.service.create("bakery", policy="cascade-ts", k=2, items=list(shop.items().values()), seed=5)
    assert shop.recommend(request_id="1") != shop.model("bakery").recommend(request_id="1")


def test_after_a_restart_slates_may_differ_and_the_first_feedback_counts(open_shop):
    shop = open_shop(policy="cascade-lin-ts")
    first = slates_of(shop)
    learn(shop, 2)
    shop.restart()
    pairs = zip(first, slates_of(shop), strict=True)
    before, after = next((old, new) for old, new in pairs if old.items != new.items)
    assert shop.feedback(after, 0).status == "accepted"
    check_refused(lambda: shop.feedback(before, 0), "token", "conflict")


@pytest.mark.parametrize("forgotten", ["after an hour", "beyond a number"])
def test_slates_are_forgotten_after_an_hour_or_beyond_a_number(open_shop, monkeypatch, forgotten):
    monkeypatch.setattr(request_table, "MOST_KEPT", 20 + 3)
    clock = Clock()
    shop = open_shop(policy="cascade-lin-ts", clock=clock)
    first = slates_of(shop)
    learn(shop, 2)
    clock.move(KEPT_SECONDS - 1)
    if forgotten == "after an hour":
        assert slates_of(shop) == first
        clock.move(2)
    else:
        for number in range(10):
            shop.recommend(request_id=f"more {number}")
        assert [shop.recommend(request_id=str(number)) for number in range(7, 20)] == first[7:]
    assert all(one.token != other.token for one, other in zip(slates_of(shop, 5), first, strict=False))


def test_slates_of_a_deleted_model_are_forgotten(shop):
    shop.recommend(request_id="1")
    assert shop.service._requests._known
    shop.delete()
    assert not shop.service._requests._known


def test_of_two_threads_with_one_request_id_the_first_decides(shop):
    table, first, second = RequestTable(Clock()), shop.recommend(), shop.recommend()
    assert table.keep(1, b"id", b"request", first) is first
    assert table.keep(1, b"id", b"request", second) is first
    check_refused(lambda: table.keep(1, b"id", b"other", second), "request_id", "conflict")
