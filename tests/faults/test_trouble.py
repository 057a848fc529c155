"""Trouble with one model, or with the store's past, stays where it is and is told."""

import shutil
import sqlite3
import time

import pytest

from firstclick.serve.log.events import Kind, NewEvent
from firstclick.serve.log.token import KeyRing, Token
from firstclick.serve.model import audit
from firstclick.serve.service import open_service
from firstclick.serve.store.store import TokenKey
from firstclick.wire.errors import Unavailable, Unknown
from tests.support import seam
from tests.support.made_log import K, made_items

TOKEN = Token(1, 0, bytes(16), bytes(4))


def wait_for(true):
    """Until it is so, or for ten seconds: what never comes is the test's failure, not a hanging one."""
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def shop(service, name="shop"):
    service.create(name, policy="cascade-lin-ts", k=K, items=made_items(), seed=5)


def ask(place, sql, *values):
    connection = sqlite3.connect(place)
    connection.execute(sql, values)
    connection.commit()
    connection.close()


def test_a_token_from_after_the_backup_is_unknown_and_the_model_lives_on(tmp_path):
    place, copy = tmp_path / "shop.db", tmp_path / "copy.db"
    with open_service(str(place)) as service:
        shop(service)
    shutil.copy(place, copy)
    with open_service(str(place)) as service:
        service.put_items("shop", made_items(1, first=40))
        late = service.recommend("shop", candidates=["i40"]).token
    with open_service(str(copy)) as service:
        with pytest.raises(Unknown, match="a backup was restored; drop it"):
            service.feedback("shop", late, 0)
        assert service.feedback("shop", service.recommend("shop").token, 0).seq == 2
        assert service.audit("shop").equal


def test_a_model_whose_log_cannot_be_folded_takes_no_other_down(tmp_path):
    place = tmp_path / "shop.db"
    with open_service(str(place)) as service:
        shop(service, "good")
        shop(service, "bad")
        service.put_items("bad", made_items(1, first=40))
    ask(place, "UPDATE event SET payload = X'93' WHERE kind = ? AND model = 2", int(Kind.ITEMS_CHANGED))
    with open_service(str(place), poll_seconds=0.01) as service:
        assert service.names() == ["good"]
        assert service.feedback("good", service.recommend("good").token, 0).seq == 2
        with pytest.raises(Unavailable, match="model 'bad' cannot be served"):
            service.recommend("bad")
        assert list(service.models.broken) == ["bad"]


def test_a_change_that_is_in_the_log_but_not_followed_is_not_acknowledged(tmp_path, monkeypatch):
    with open_service(str(tmp_path / "shop.db"), poll_seconds=600.0) as service:
        shop(service)
        with monkeypatch.context() as patch:
            patch.setattr(service.model("shop"), "apply", lambda *events, **how: 1 / 0)
            with pytest.raises(Unavailable, match="has not followed yet"):
                service.withdraw_items("shop", ["i3"])
        monkeypatch.setattr(audit, "BEHIND_AT_MOST", 0.1)
        told = service.audit("shop")
        assert not told.equal
        assert "stands at event 1, its log at event 2" in told.differing[0]
        service.run_background()
        assert service.audit("shop").equal
        assert not service.model("shop").items.is_shown("i3")


@pytest.mark.parametrize("restarted", [False, True])
def test_a_log_that_was_set_back_is_noticed_and_its_lost_events_are_not_served(tmp_path, restarted, caplog):
    place = tmp_path / "shop.db"
    service = open_service(str(place), poll_seconds=600.0)
    shop(service)
    for _ in range(4):
        service.feedback("shop", service.recommend("shop").token, 0)
    seam.model(service, "shop").snapshot()
    ask(place, "DELETE FROM event WHERE seq > 3")
    ask(place, "UPDATE model SET head = 3")
    if restarted:
        # Meanwhile somebody else went on from there, past the snapshot.
        lost = seam.model(service, "shop").digest()
        service.close()
        ask(place, "DELETE FROM snapshot")
        with open_service(str(place)) as other:
            for _ in range(2):
                other.feedback("shop", other.recommend("shop").token, None)
        service = open_service(str(place))
        assert seam.model(service, "shop").digest() != lost
    else:
        service.run_background()
        wait_for(lambda: not service.model("shop").set_back)
        assert "the store was set back" in caplog.text
    assert seam.model(service, "shop").seq == (5 if restarted else 3)
    assert service.audit("shop").equal
    service.close()


def test_a_snapshot_of_lost_events_is_not_used(tmp_path, caplog):
    place = tmp_path / "shop.db"
    with open_service(str(place)) as service:
        shop(service)
        for _ in range(4):
            service.feedback("shop", service.recommend("shop").token, 0)
        _, lost = service.model("shop").snapshot()
    ask(place, "DELETE FROM event WHERE seq > 3")
    ask(place, "UPDATE model SET head = 3")
    with open_service(str(place)) as service:
        for _ in range(2):
            service.feedback("shop", service.recommend("shop").token, None)
        service.store.save_snapshot(1, 5, lost)
    with open_service(str(place)) as service:
        assert "another event in the place of its last one" in caplog.text
        assert service.audit("shop").equal


def test_a_ring_of_keys_follows_the_store():
    old, new = TokenKey(1, b"o" * 32, 0.0), TokenKey(2, b"n" * 32, 0.0)
    ring = KeyRing([old], lambda: [old, new])
    ring.follow([old, new])
    assert ring.newest == 2
    ring.follow([new])
    assert ring.newest == 2
    # A store that was set back has given the number to another key since.
    other = TokenKey(2, b"x" * 32, 0.0)
    ring.follow([other])
    assert KeyRing([other], list).sign(TOKEN) == ring.sign(TOKEN) != KeyRing([new], list).sign(TOKEN)


def test_all_processes_sign_with_a_new_key_soon(tmp_path):
    """Another process made a key; this one never sees a token of it, and must sign with it all the same."""
    with open_service(str(tmp_path / "shop.db"), poll_seconds=600.0) as service:
        shop(service)
        before = service.keys.newest
        service.store.add_token_key(b"n" * 32, time.time())
        service.run_background()
        assert service.keys.newest == before + 1


def test_a_model_that_another_process_made_is_taken_up_beside_the_others(tmp_path):
    with open_service(str(tmp_path / "shop.db"), poll_seconds=600.0) as service:
        shop(service)
        (first,) = (event for chunk in service.store.events(1, 0, 1) for event in chunk)
        service.store.create("new", [NewEvent(*first._replace(nonce=b"x" * 16)[1:])])
        service.run_background()
        wait_for(lambda: "new" in service.names())
        assert service.recommend("new").items
