"""Trouble with one model, or with the store's past, stays where it is and is reported."""

import shutil
import time

import pytest

from firstclick.serve.log.events import Kind
from firstclick.serve.log.token import KeyRing, Token
from firstclick.serve.model import audit
from firstclick.serve.service import open_service
from firstclick.serve.store.store import TokenKey
from firstclick.wire.errors import Unavailable, Unknown
from tests.support.made_log import K, made_items
from tests.support.stores import sql

TOKEN = Token(1, 0, bytes(16), bytes(4))


def shop(service, name="shop"):
    service.create(name, policy="cascade-lin-ts", k=K, items=made_items(), seed=5)


def test_token_from_after_the_backup_is_unknown(tmp_path):
    place, copy = tmp_path / "shop.db", tmp_path / "copy.db"
    with open_service(str(place)) as service:
        shop(service)
    shutil.copy(place, copy)
    with open_service(str(place)) as service:
        service.put_items("shop", made_items(1, first=40))
        late = service.recommend("shop", candidates=["i40"]).token
    with open_service(str(copy)) as service:
        with pytest.raises(Unknown, match="a backup was restored"):
            service.feedback("shop", late, 0)
        assert service.feedback("shop", service.recommend("shop").token, 0).seq == 2
        assert service.audit("shop").equal


def test_model_with_a_broken_log_stops_no_other(tmp_path):
    place = str(tmp_path / "shop.db")
    with open_service(place) as service:
        shop(service, "good")
        shop(service, "bad")
        service.put_items("bad", made_items(1, first=40))
    sql(place, "UPDATE event SET payload = X'93' WHERE kind = ? AND model = 2", int(Kind.ITEMS_CHANGED))
    with open_service(place, poll_seconds=0.01) as service:
        assert service.names() == ["good"]
        assert service.feedback("good", service.recommend("good").token, 0).seq == 2
        with pytest.raises(Unavailable, match="cannot be served"):
            service.recommend("bad")
        assert list(service.models.broken) == ["bad"]


def test_change_that_was_not_followed_is_not_acknowledged(tmp_path, monkeypatch):
    with open_service(str(tmp_path / "shop.db"), poll_seconds=600.0) as service:
        shop(service)
        with monkeypatch.context() as patch:
            patch.setattr(service.model("shop"), "apply", lambda *events, **how: 1 / 0)
            with pytest.raises(Unavailable, match="has not followed yet"):
                service.withdraw_items("shop", ["i3"])
        monkeypatch.setattr(audit, "BEHIND_AT_MOST", 0.1)
        behind = service.audit("shop")
        assert not behind.equal
        assert "event 1, its log at event 2" in behind.differing[0]
        service.run_background()
        assert service.audit("shop").equal
        assert not service.model("shop").items.is_shown("i3")


def test_key_ring_follows_the_store():
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
