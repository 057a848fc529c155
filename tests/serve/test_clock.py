"""Clocks that jump: they order nothing, and what they spoil is reported."""

import pytest

from tests.support.clock import Clock
from tests.support.refusals import check_refused

DAY = 86_400.0


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def shop(open_shop, clock):
    return open_shop(policy="cascade-lin-ts", clock=clock)


def answer(shop, *slates):
    for slate in slates or [shop.recommend() for _ in range(5)]:
        assert shop.feedback(slate, 1).status == "accepted"


@pytest.mark.parametrize("jump", [DAY, -DAY, 400 * DAY, 3600.5, -Clock().start + 1])
def test_work_goes_on_across_a_jump(shop, clock, jump, caplog):
    shop.run_background()
    answer(shop, *[shop.recommend() for _ in range(5)])
    assert "jumped" not in caplog.text
    for ahead in (jump, 0.0, jump, 2 * jump if jump > -2 * DAY else jump):
        clock.set(clock.start + ahead)
        answer(shop)
        shop.run_background()
        shop.snapshot()
    facts = shop.describe()
    assert (facts["seq"], facts["slates"]) == (26, 25)
    assert shop.audit().equal
    assert "the clock of this machine jumped by" in caplog.text
    clock.set(clock.start - 300 * DAY)
    digest = shop.digest()
    shop.restart()
    assert shop.digest() == digest
    answer(shop)


def test_a_slate_from_the_future_is_not_taken_for_an_old_one(shop, clock):
    """The clock was a day ahead when it was recommended, and is right now."""
    clock.set(clock.start + DAY)
    ahead = shop.recommend()
    # Clocks of several machines always differ a little.
    clock.set(clock.start + 290.0)
    little = shop.recommend()
    clock.set(clock.start)
    check_refused(lambda: shop.feedback(ahead, 0), "token", "unknown")
    answer(shop, little)


def test_a_slate_made_too_old_by_a_jump_is_refused_until_the_clock_is_right(shop, clock):
    slates = [shop.recommend() for _ in range(5)]
    clock.set(clock.start + DAY)
    shop.run_background()
    answer(shop, slates.pop())
    clock.set(clock.start + 8 * DAY)
    shop.run_background()
    for slate in slates[:2]:
        check_refused(lambda slate=slate: shop.feedback(slate, 0), "token", "expired")
    assert shop.service.outcomes["shop"]["expired"] == 2
    clock.set(clock.start)
    answer(shop, *slates)


def test_slates_expire_after_the_days_that_are_set(open_shop, clock):
    shop = open_shop(token_days=1, clock=clock)
    slate, timed_out = shop.recommend(), shop.recommend()
    shop.set_no_click_after(60)
    clock.move(0.9 * DAY)
    answer(shop, slate)
    shop.run_background()
    clock.move(0.2 * DAY)
    check_refused(lambda: shop.feedback(timed_out, 0), "token", "expired")


def test_a_jump_over_the_life_of_a_key_leaves_outstanding_slates_good(shop, clock):
    """A new key is made, and the old one is kept as long as any slate it signed may be answered."""
    slates = [shop.recommend() for _ in range(3)]
    clock.set(clock.start + 31 * DAY)
    clock.move(10)
    shop.run_background()
    assert len(shop.service.store.token_keys()) == 2
    assert shop.recommend().token[:8] != slates[0].token[:8]
    clock.set(clock.start)
    answer(shop, slates[0])
    clock.move(10)
    shop.run_background()
    answer(shop, slates[1])
    answer(shop)
