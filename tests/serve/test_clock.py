"""Clocks that jump: they order nothing, and what they spoil is said."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_log import K, made_items

from firstclick.serve.model.audit import audit_served
from firstclick.serve.service import Service, open_service
from firstclick.wire.errors import Expired, Unknown

DAY = 86_400.0


class Clock:
    """The clock on the wall, set at will; the one that measures durations goes on as it does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._real = time.time
        self.ahead = 0.0
        monkeypatch.setattr(time, "time", lambda: self._real() + self.ahead)

    def set(self, now: float) -> None:
        self.ahead = now - self._real()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def service(tmp_path: Path, clock: Clock) -> Iterator[Service]:
    with open_service(str(tmp_path / "shop.db")) as service:
        service.create("shop", policy="cascade-lin-ts", k=K, items=made_items(), seed=5)
        yield service


def answer(service: Service, n: int = 5) -> None:
    for _ in range(n):
        assert service.feedback("shop", service.recommend("shop").token, 1).status == "accepted"


@pytest.mark.parametrize("jump", [DAY, -DAY, 400 * DAY, 3600.5])
def test_work_goes_on_across_a_jump(service: Service, clock: Clock, jump: float) -> None:
    answer(service)
    for ahead in (jump, 0.0, jump, 2 * jump):
        clock.ahead = ahead
        answer(service)
        service.maintenance.look()
        service.maintenance.snapshot(service.model("shop"))
    model = service.model("shop")
    assert (model.seq, model.click_stats.slates) == (26, 25)
    assert audit_served(service.store, model).equal


def test_the_year_1970(service: Service, clock: Clock) -> None:
    answer(service)
    clock.set(1.0)
    answer(service)
    service.maintenance.look()
    model = service.model("shop")
    assert [model.seq, model.click_stats.slates] == [11, 10]
    assert audit_served(service.store, model).equal


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_a_jump_is_told(
    service: Service, clock: Clock, jump: float, caplog: pytest.LogCaptureFixture
) -> None:
    service.maintenance.look()
    assert "jumped" not in caplog.text
    clock.ahead = jump
    service.maintenance.look()
    assert "the clock of this machine jumped by" in caplog.text


def test_a_slate_is_answered_across_a_jump_of_a_day_forward(service: Service, clock: Clock) -> None:
    token = service.recommend("shop").token
    clock.ahead = DAY
    service.maintenance.look()
    assert service.feedback("shop", token, 0).status == "accepted"


def test_a_slate_that_comes_from_the_future_is_not_taken_for_an_old_one(
    service: Service, clock: Clock
) -> None:
    """The clock was a day ahead when it was recommended, and is right now: the sentence names the clock."""
    clock.ahead = DAY
    token = service.recommend("shop").token
    clock.ahead = 0.0
    with pytest.raises(Unknown, match=r"ahead of this server's clock; set the clocks of the servers right"):
        service.feedback("shop", token, 0)
    # Clocks of several machines always differ a little.
    clock.ahead = 290.0
    token = service.recommend("shop").token
    clock.ahead = 0.0
    assert service.feedback("shop", token, 0).status == "accepted"


def test_what_a_jump_makes_too_old_is_refused_and_counted_and_good_again_afterwards(
    service: Service, clock: Clock
) -> None:
    tokens = [service.recommend("shop").token for _ in range(4)]
    clock.ahead = 8 * DAY
    service.maintenance.look()
    for token in tokens[:2]:
        with pytest.raises(Expired, match="8 days ago, and feedback is taken for 7 days"):
            service.feedback("shop", token, 0)
    assert service.outcomes["shop"]["expired"] == 2
    clock.ahead = 0.0
    for token in tokens:
        assert service.feedback("shop", token, 0).status == "accepted"


def test_a_jump_over_the_life_of_a_key_leaves_outstanding_slates_good(service: Service, clock: Clock) -> None:
    """A new key is made, and the old one is kept as long as any slate it signed may be answered."""
    tokens = [service.recommend("shop").token for _ in range(3)]
    clock.ahead = 31 * DAY
    service.maintenance._heard = -10.0
    service.maintenance.look()
    assert len(service.store.token_keys()) >= 2
    clock.ahead = 0.0
    assert service.feedback("shop", tokens[0], 0).status == "accepted"
    service.maintenance._heard = -10.0
    service.maintenance.look()
    assert service.feedback("shop", tokens[1], 0).status == "accepted"
    answer(service)


def test_a_restart_with_a_clock_that_went_back(tmp_path: Path, clock: Clock) -> None:
    place = str(tmp_path / "shop.db")
    with open_service(place) as service:
        service.create(
            "shop", policy="cascade-ts", k=K, items=[i._replace(features=None) for i in made_items()]
        )
        answer(service)
        digest = service.model("shop").digest()
    clock.ahead = -300 * DAY
    with open_service(place) as service:
        assert service.model("shop").digest() == digest
        answer(service)
        assert audit_served(service.store, service.model("shop")).equal
