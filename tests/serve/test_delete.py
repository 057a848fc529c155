"""A model that is deleted: gone in every process, no trace in the store, nobody else disturbed."""

import threading
import time

import pytest

from firstclick.client import Client
from firstclick.serve.config import Settings
from firstclick.serve.http.server import Server as HttpServer
from firstclick.serve.service import open_service
from firstclick.serve.store import open_store
from firstclick.wire.errors import Refused, Unknown
from tests.support import seam
from tests.support.serving import ITEMS, a_site
from tests.support.stores import log_of

SHOP = "/v1/models/shop"


def create(service, name, **more):
    service.create(name, **({"policy": "cascade-lin-ts", "k": 3, "items": ITEMS, "seed": 1} | more))


def within_seconds(done, seconds=10.0):
    until = time.monotonic() + seconds
    while not done() and time.monotonic() < until:
        time.sleep(0.02)
    return done()


def test_over_http_the_name_is_repeated_and_then_the_model_is_gone(tmp_path):
    with a_site(tmp_path) as site:
        token = site.recommend()["token"]
        for body in ({}, {"name": "shops"}, {"name": "Shop"}):
            refused = site.ask("DELETE", SHOP, body)
            assert refused.status_code == 422
            assert site.ask("GET", SHOP).status_code == 200
        assert refused.json()["error"]["field"] == "name"
        assert "must be 'shop', the model of the path" in refused.json()["error"]["message"]
        assert site.ask("DELETE", SHOP).status_code in (415, 422)  # no body at all
        answer = site.ask("DELETE", SHOP, {"name": "shop"})
        assert (answer.status_code, answer.json()) == (200, {"name": "shop", "events": 1})
        for method, path, body in (
            ("POST", "/recommend", {}),
            ("POST", "/feedback", {"token": token, "click": 0}),
            ("GET", "", None),
            ("GET", "/view", None),
            ("DELETE", "", {"name": "shop"}),
        ):
            assert site.ask(method, SHOP + path, body).status_code == 404, path
        assert site.ask("GET", "/v1/models").json() == {"models": []}
        assert site.ask("GET", "/health/ready").status_code == 200
        assert 'model="shop"' not in site.ask("GET", "/metrics").text


def test_a_later_model_of_the_same_name_is_another(tmp_path):
    with a_site(tmp_path) as site:
        shown = site.recommend()
        assert site.ask("POST", f"{SHOP}/feedback", {"token": shown["token"], "click": 0}).status_code == 201
        before = site.ask("GET", f"{SHOP}/view").json()
        assert (before["totals"]["slates"], before["feedback"]["accepted"]) == (1, 1)
        late = site.recommend()
        site.service.delete("shop")
        # Fewer items than the dashboard has seen of the old one.
        create(site.service, "shop", items=ITEMS[:2], k=2)
        view = site.ask("GET", f"{SHOP}/view").json()
        assert (view["totals"]["slates"], view["feedback"]["accepted"], view["seq"]) == (0, 0, 1)
        assert {one["id"] for one in view["estimates"]} == {"espresso", "tea"}
        for token in (shown["token"], late["token"]):
            refused = site.ask("POST", f"{SHOP}/feedback", {"token": token, "click": 0})
            assert refused.status_code == 404
            assert "it is another model's" in refused.json()["error"]["message"]
        assert site.service.audit("shop").equal


def test_only_an_admin_may(tmp_path):
    with a_site(tmp_path) as site:
        keys = {role: site.add_key(role) for role in ("read", "write", "admin")}
        for role, code in (("read", 403), ("write", 403), ("admin", 200)):
            site.headers = {"Authorization": f"Bearer {keys[role]}"}
            assert site.ask("DELETE", SHOP, {"name": "shop"}).status_code == code


def test_the_client_deletes_once(tmp_path):
    with open_service(str(tmp_path / "shop.db")) as service, HttpServer(service, Settings(port=0)) as server:
        create(service, "shop")
        with Client(server.address, model="shop") as client:
            with pytest.raises(Refused, match="must be 'shop'"):
                client.delete("other")
            assert client.delete("shop") == 1
            with pytest.raises(Unknown):
                client.delete("shop")


def test_events_in_the_queue_of_a_deleted_model_are_refused_and_those_of_others_written(
    store_url, monkeypatch
):
    with open_service(store_url, poll_seconds=30) as service:
        for name in ("shop", "bakery", "cafe"):
            create(service, name)
        tokens = {name: [service.recommend(name).token for _ in range(5)] for name in service.names()}
        hold, append = threading.Event(), service.store.append

        def held(*arguments):
            hold.wait()
            return append(*arguments)

        monkeypatch.setattr(service.store, "append", held)
        told = {name: [] for name in tokens}
        for number in range(5):
            for name in tokens:
                service.send_feedback(name, [(tokens[name][number], 0)], told[name].extend)
        # Another process deletes two of them: this one has not heard of it.
        for stored in service.store.models():
            if stored.name in ("shop", "cafe"):
                assert service.store.delete(stored.id)
        hold.set()
        assert within_seconds(lambda: sum(map(len, told.values())) == 15)
        assert [outcome.status for outcome in told["bakery"]] == ["accepted"] * 5
        for name in ("shop", "cafe"):
            assert {type(outcome).status for outcome in told[name]} == {"unknown"}
        assert service.audit("bakery").equal
        assert seam.model(service, "bakery").seq == 6
        with pytest.raises(Unknown, match="it may have been deleted"):
            service.put_items("shop", ITEMS[:1])


def test_other_processes_drop_it_within_a_poll(postgresql_url):
    with (
        open_service(postgresql_url, poll_seconds=0.05) as one,
        open_service(postgresql_url, poll_seconds=0.05) as other,
    ):
        create(one, "shop")
        assert within_seconds(lambda: other.names() == ["shop"])
        other.recommend("shop")
        seam.model(other, "shop").snapshot()
        old = other.model("shop")
        assert one.delete("shop") == 1
        assert within_seconds(lambda: other.names() == [])
        with pytest.raises(Unknown):
            other.recommend("shop")
        # And takes up one that comes after it, though it has the name.
        create(one, "shop", items=ITEMS[:2], k=2)
        assert within_seconds(lambda: other.names() == ["shop"] and other.model("shop").id != old.id)
        assert len(other.recommend("shop").items) == 2
        # Deleted and made again between two looks.
        one.delete("shop")
        create(one, "shop", items=ITEMS[:1], k=1)
        newest = one.model("shop").id
        assert within_seconds(lambda: other.names() == ["shop"] and other.model("shop").id == newest)
        # What one had in hand when it was deleted does not come back.
        other.maintenance.snapshot(old)
        assert within_seconds(lambda: not one.store.sweep())
        assert other.store.snapshots(old.id) == []
        assert log_of(one.store, old.id, 0, 99) == []
        assert one.store.check() == []


def test_a_model_that_cannot_be_served_can_be_deleted(tmp_path):
    with open_service(str(tmp_path / "shop.db")) as service:
        create(service, "shop")
        with service.store._file.transaction() as connection:
            connection.execute("UPDATE event SET payload = x'00' WHERE seq = 1")
    with open_service(str(tmp_path / "shop.db")) as service:
        assert list(service.models.broken) == ["shop"]
        service.delete("shop")
        assert not service.models.broken


@pytest.mark.parametrize("kept_by", ["server", "store"])
def test_what_was_deleted_is_in_no_byte_of_the_file(tmp_path, kept_by):
    path = tmp_path / "shop.db"
    marks = {"shop": "of-a-person", "bakery": "of-the-bakery"}
    with open_service(str(path), poll_seconds=0.05) as service:
        for name, mark in marks.items():
            items = [item._replace(name=f"{mark} {item.id}") for item in ITEMS]
            create(service, name, items=items)
            service.put_items(name, items[1:])
            for _ in range(300):
                service.feedback(name, service.recommend(name, request_id=f"{name}{_}").token, click=1)
            seam.model(service, name).snapshot()
        assert all(bytes_of(path).count(mark.encode()) > 1 for mark in marks.values())
        if kept_by == "server":
            service.delete("shop")
            assert within_seconds(lambda: not service.store._database.rows("SELECT 1 FROM unfinished"))
            assert bytes_of(path).count(b"of-a-person") == 0
        service_seq = seam.model(service, "bakery").seq
    if kept_by == "store":
        with open_store(str(path)) as store:
            assert store.delete(store.models()[0].id)
            while store.sweep():
                pass
            assert bytes_of(path).count(b"of-a-person") == 0
    with open_service(str(path)) as service:
        assert service.names() == ["bakery"]
        assert seam.model(service, "bakery").seq == service_seq
        assert service.audit("bakery").equal
    assert bytes_of(path).count(b"of-the-bakery") > 1


def bytes_of(path):
    """The file and what lies beside it."""
    return b"".join(part.read_bytes() for part in sorted(path.parent.glob(f"{path.name}*")))


def test_a_model_made_after_a_delete_that_nobody_heard_of_is_the_new_one(store_url):
    with open_service(store_url, poll_seconds=3600) as service:
        create(service, "shop")
        old = service.model("shop")
        assert service.store.delete(old.id)
        create(service, "shop")
        assert service.model("shop").id > old.id
