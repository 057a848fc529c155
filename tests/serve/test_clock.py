"""Clocks that jump: they order nothing, and what they spoil is said."""

import pytest

from firstclick.serve.model.audit import audit_served
from firstclick.wire.errors import Expired, Unknown
from tests.support import seam
from tests.support.clock import Clock
from tests.support.made_log import K, made_items

DAY = 86_400.0


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def service(tmp_path, clock):
    with seam.open_by_hand(str(tmp_path / "shop.db"), clock) as service:
        service.create("shop", policy="cascade-lin-ts", k=K, items=made_items(), seed=5)
        yield service


def answer(service, n=5):
    for _ in range(n):
        assert service.feedback("shop", service.recommend("shop").token, 1).status == "accepted"


@pytest.mark.parametrize("jump", [DAY, -DAY, 400 * DAY, 3600.5])
def test_work_goes_on_across_a_jump(service, clock, jump):
    answer(service)
    for ahead in (jump, 0.0, jump, 2 * jump):
        clock.set(clock.start + ahead)
        answer(service)
        service.run_background()
        seam.model(service, "shop").snapshot()
    model = service.model("shop")
    assert (model.seq, model.click_stats.slates) == (26, 25)
    assert audit_served(service.store, model).equal


def test_the_year_1970(service, clock):
    answer(service)
    clock.set(1.0)
    answer(service)
    service.run_background()
    model = service.model("shop")
    assert [model.seq, model.click_stats.slates] == [11, 10]
    assert audit_served(service.store, model).equal


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_a_jump_is_told(service, clock, jump, caplog):
    service.run_background()
    assert "jumped" not in caplog.text
    clock.set(clock.start + jump)
    service.run_background()
    assert "the clock of this machine jumped by" in caplog.text


def test_a_slate_is_answered_across_a_jump_of_a_day_forward(service, clock):
    token = service.recommend("shop").token
    clock.set(clock.start + DAY)
    service.run_background()
    assert service.feedback("shop", token, 0).status == "accepted"


def test_a_slate_that_comes_from_the_future_is_not_taken_for_an_old_one(service, clock):
    """The clock was a day ahead when it was recommended, and is right now: the sentence names the clock."""
    clock.set(clock.start + DAY)
    token = service.recommend("shop").token
    clock.set(clock.start + 0.0)
    with pytest.raises(Unknown, match=r"ahead of this server's clock; set the clocks of the servers right"):
        service.feedback("shop", token, 0)
    # Clocks of several machines always differ a little.
    clock.set(clock.start + 290.0)
    token = service.recommend("shop").token
    clock.set(clock.start + 0.0)
    assert service.feedback("shop", token, 0).status == "accepted"


def test_what_a_jump_makes_too_old_is_refused_and_counted_and_good_again_afterwards(service, clock):
    tokens = [service.recommend("shop").token for _ in range(4)]
    clock.set(clock.start + 8 * DAY)
    service.run_background()
    for token in tokens[:2]:
        with pytest.raises(Expired, match="8 days ago, and feedback is taken for 7 days"):
            service.feedback("shop", token, 0)
    assert service.outcomes["shop"]["expired"] == 2
    clock.set(clock.start + 0.0)
    for token in tokens:
        assert service.feedback("shop", token, 0).status == "accepted"


def test_a_jump_over_the_life_of_a_key_leaves_outstanding_slates_good(service, clock):
    """A new key is made, and the old one is kept as long as any slate it signed may be answered."""
    tokens = [service.recommend("shop").token for _ in range(3)]
    clock.set(clock.start + 31 * DAY)
    clock.move(10)
    service.run_background()
    assert len(service.store.token_keys()) >= 2
    clock.set(clock.start + 0.0)
    assert service.feedback("shop", tokens[0], 0).status == "accepted"
    clock.move(10)
    service.run_background()
    assert service.feedback("shop", tokens[1], 0).status == "accepted"
    answer(service)


def test_a_restart_with_a_clock_that_went_back(tmp_path, clock):
    place = str(tmp_path / "shop.db")
    with seam.open_by_hand(place, clock) as service:
        service.create(
            "shop", policy="cascade-ts", k=K, items=[i._replace(features=None) for i in made_items()]
        )
        answer(service)
        digest = seam.model(service, "shop").digest()
    clock.set(clock.start + -300 * DAY)
    with seam.open_by_hand(place, clock) as service:
        assert seam.model(service, "shop").digest() == digest
        answer(service)
        assert audit_served(service.store, service.model("shop")).equal
