"""What must not shake a service: callers that fail, and two threads that find a new model at once."""

import itertools
import threading
from contextlib import suppress

import pytest

from firstclick.serve import model_set as models_module
from firstclick.serve.log.events import NewEvent
from firstclick.serve.model.audit import audit_served
from firstclick.serve.model.replay import recover
from firstclick.serve.service import open_service
from firstclick.wire.errors import Unavailable
from firstclick.wire.feedback import Receipt
from tests.support.made_log import K, made_items


@pytest.fixture
def service(tmp_path):
    with open_service(str(tmp_path / "shop.db")) as service:
        service.create("shop", policy="cascade-lin-ts", k=K, items=made_items(), seed=5)
        yield service


def test_an_answer_that_cannot_be_delivered_harms_nobody_else(service, caplog):
    tokens = [service.recommend("shop").token for _ in range(3)]
    held, told = threading.Event(), threading.Event()
    answers = []

    def fails(outcomes):
        held.wait()  # Until the two others wait together, so that one batch holds both.
        raise RuntimeError("nobody is there any more")

    def hears(outcomes):
        answers.append(outcomes)
        told.set()

    service.send_feedback("shop", [(tokens[0], 0)], fails)
    service.send_feedback("shop", [(tokens[1], 0)], fails)
    service.send_feedback("shop", [(tokens[2], 0)], hears)
    held.set()
    assert told.wait(20)
    assert answers == [[Receipt("accepted", 4)]]
    assert service.feedback("shop", service.recommend("shop").token, 1).status == "accepted"
    assert "nobody is there any more" in caplog.text


def test_a_store_that_fails_in_an_unknown_way_is_unavailable_and_the_next_is_written(service, monkeypatch):
    token = service.recommend("shop").token

    def fails(*given):
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(service.store, "append", fails)
        with pytest.raises(Unavailable, match="send the same again"):
            service.feedback("shop", token, 0)
    assert service.feedback("shop", token, 0) == Receipt("accepted", 2)


def test_a_model_that_two_threads_find_at_once_is_one(service, monkeypatch):
    """Maintenance looks into the store while `create` has just written there."""
    service.maintenance.close()
    both = threading.Barrier(2, timeout=1)

    def slow(store, stored, **how):
        with suppress(threading.BrokenBarrierError):  # The other thread waits for this one, as it should.
            both.wait()
        return recover(store, stored, **how)

    (first,) = (event for chunk in service.store.events(1, 0, 1) for event in chunk)
    stored = service.store.create("new", [NewEvent(*first[1:])])
    monkeypatch.setattr(models_module, "recover", slow)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(service.models.take_up(stored))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1] is service.model("new")


def test_what_is_acknowledged_is_learned_though_the_commit_was_not_answered(tmp_path, monkeypatch):
    """The second try of a shared store finds the events there: not new, and still to be learned."""
    # Nobody comes by to learn them later.
    with open_service(str(tmp_path / "shop.db"), poll_seconds=600.0) as service:
        service.create("shop", policy="cascade-lin-ts", k=K, items=made_items(), seed=5)
        append, calls = service.store.append, itertools.count()

        def loses_its_answer(*given):
            done = append(*given)
            if next(calls) % 2 == 0:
                raise Unavailable("the connection was lost while it committed")
            return done

        monkeypatch.setattr(service.store, "append", loses_its_answer)
        monkeypatch.setattr(type(service.store), "shared", True)
        assert service.withdraw_items("shop", ["i3"]) == 2
        assert service.recommend("shop", candidates=["i3"]).items == []
        token = service.recommend("shop").token
        assert service.feedback("shop", token, 0) == Receipt("duplicate", 3)
        assert service.model("shop").click_stats.slates == 1
        assert audit_served(service.store, service.model("shop")).equal
