"""The service in process: what is acknowledged is in the log, once, and the log is all there is."""

import itertools
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from firstclick import InvalidInput
from firstclick.serve import Item, Receipt, model_set, open_service, request_table
from firstclick.serve.log.events import NewEvent
from firstclick.serve.model.replay import recover
from firstclick.serve.request_table import KEPT_SECONDS, RequestTable
from firstclick.wire.errors import Overloaded, Unavailable
from tests.support.clock import Clock
from tests.support.refusals import check_refused
from tests.support.shop import N_FEATURES, K


@pytest.fixture
def shop(open_shop):
    return open_shop(policy="cascade-lin-ts")


def play(shop, steps):
    """Slates with feedback; every fourth has no click."""
    slates = [(shop.recommend(), None if step % 4 == 3 else step % K) for step in range(steps)]
    assert {outcome.status for outcome in shop.feedback_batch(slates)} == {"accepted"}


def test_features_may_be_whatever_becomes_numbers(shop):
    rows = [list(range(N_FEATURES)), tuple(map(str, range(N_FEATURES))), np.ma.arange(N_FEATURES)]
    shop.put_items([Item(f"x{i}", features=row) for i, row in enumerate(rows)])
    items = shop.items()
    assert items["x0"].features == items["x1"].features == items["x2"].features
    shop.service.create("other", policy="cascade-lin-ts", k=1, items=[Item("x", features=rows[1])])


def test_a_store_is_a_path_or_an_address(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="path"):
        open_service(None)
    assert list(tmp_path.iterdir()) == []


def test_a_recommendation_writes_nothing(shop, tmp_path):
    def written():
        return *(Path(tmp_path, name).read_bytes() for name in ("shop.db", "shop.db-wal")), shop.digest()

    before = written()
    for _ in range(20):
        shop.recommend(exclude=["i1"], pinned={0: "i2"}, request_id="x")
    assert written() == before


def test_many_threads_write_one_log(shop):
    slates, receipts = [shop.recommend() for _ in range(200)], []
    threads = [
        threading.Thread(target=lambda: receipts.extend(shop.feedback(slate, 1) for slate in slates))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    accepted = sorted(receipt.seq for receipt in receipts if receipt.status == "accepted")
    assert (accepted, len(receipts)) == (list(range(2, 202)), 800)
    assert shop.describe()["slates"] == 200
    assert shop.audit().equal
    assert shop.service.writer.commits < 800


def test_rolling_back_gives_the_state_of_that_event(shop):
    play(shop, 5)
    before = shop.state()
    play(shop, 5)
    assert shop.roll_back(6) == 12
    for name, array in shop.state().items():
        np.testing.assert_array_equal(array, before[name])
    assert shop.audit().equal


# Full, slow and failing


def test_a_full_queue_refuses_and_says_when_to_come_again(open_shop, monkeypatch):
    shop = open_shop(max_queue=10, max_batch=4)
    slates, answers, held = [shop.recommend() for _ in range(40)], [], threading.Event()
    append = shop.service.store.append
    monkeypatch.setattr(shop.service.store, "append", lambda *given: (held.wait(), append(*given))[1])
    for slate in slates:
        shop.service.send_feedback("shop", [(slate, None)], answers.append)
    refused = [answer[0] for answer in answers]
    assert 25 <= len(refused) <= 30
    assert all(isinstance(refusal, Overloaded) and refusal.retry_after >= 1 for refusal in refused)
    held.set()
    for slate in slates:
        while isinstance(shop.feedback_batch([(slate, None)])[0], Overloaded):
            pass
    assert shop.describe()["slates"] == 40


@pytest.mark.parametrize("error", [Unavailable("the disk is full"), ZeroDivisionError()])
def test_a_store_that_cannot_write_means_unavailable_and_nothing_learned(shop, monkeypatch, error):
    def fail(*batch):
        raise error

    slate, digest = shop.recommend(), shop.digest()
    with monkeypatch.context() as patch:
        patch.setattr(shop.service.store, "append", fail)
        with pytest.raises(Unavailable, match=r"disk is full|send the same again"):
            shop.feedback(slate, 0)
        assert shop.digest() == digest
        assert len(shop.recommend().items) == K
    assert shop.feedback(slate, 0) == Receipt("accepted", 2)


def test_an_answer_that_cannot_be_delivered_harms_no_other(shop, caplog):
    slates = [shop.recommend() for _ in range(3)]
    held, delivered, answers = threading.Event(), threading.Event(), []

    def fails(outcomes):
        held.wait()  # Until the two others wait together, so that one batch holds both.
        raise RuntimeError("gone away")

    def hears(outcomes):
        answers.append(outcomes)
        delivered.set()

    for slate, done in zip(slates, (fails, fails, hears), strict=True):
        shop.service.send_feedback("shop", [(slate, 0)], done)
    held.set()
    assert delivered.wait(20)
    assert answers == [[Receipt("accepted", 4)]]
    play(shop, 1)
    assert "gone away" in caplog.text


def test_feedback_is_learned_though_the_commit_was_not_answered(open_shop, monkeypatch):
    """The second try of a shared store finds the events there: not new, and still to be learned."""
    # Nothing follows the log later.
    shop = open_shop(policy="cascade-lin-ts", poll_seconds=600.0)
    store, calls = shop.service.store, itertools.count()
    append = store.append

    def loses_its_answer(*batch):
        appended = append(*batch)
        if next(calls) % 2 == 0:
            raise Unavailable("the connection was lost while it committed")
        return appended

    monkeypatch.setattr(store, "append", loses_its_answer)
    monkeypatch.setattr(type(store), "shared", True)
    assert shop.withdraw_items(["i4"]) == 2
    assert shop.recommend(candidates=["i4"]).items == []
    assert shop.feedback(shop.recommend(), 0) == Receipt("duplicate", 3)
    assert shop.describe()["slates"] == 1
    assert shop.audit().equal


def test_a_model_that_two_threads_find_at_once_is_one(shop, monkeypatch):
    """Maintenance looks into the store while `create` has just written there."""
    service = shop.service
    service.maintenance.close()
    both = threading.Barrier(2, timeout=1)

    def slow(store, stored, **how):
        with suppress(threading.BrokenBarrierError):  # The other thread waits for this one, as it should.
            both.wait()
        return recover(store, stored, **how)

    (first,) = (event for chunk in service.store.events(1, 0, 1) for event in chunk)
    stored = service.store.create("new", [NewEvent(*first[1:])])
    monkeypatch.setattr(model_set, "recover", slow)
    models = []
    threads = [
        threading.Thread(target=lambda: models.append(service.models.take_up(stored))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert models[0] is models[1] is service.model("new")


# Requests that are sent again


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
