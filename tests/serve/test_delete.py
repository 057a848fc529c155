"""A model that is deleted: gone in every process, no trace in the store, and no other model is disturbed."""

import threading

import pytest

from firstclick.client import Client
from firstclick.errors import FirstclickError
from firstclick.serve.store import open_store
from tests.support.clock import Clock
from tests.support.refusals import check_refused
from tests.support.serving import ITEMS, a_server, a_site
from tests.support.shop import K, items
from tests.support.stores import log_of

SHOP = "/v1/models/shop"


def create(shop, name="shop", n_items=13):
    shop.service.create(name, policy="cascade-ts", k=min(K, n_items), items=items()[:n_items], seed=5)
    return shop.model(name)


def sweep(store):
    while store.sweep():
        pass


def test_over_http_the_name_is_repeated_and_then_the_model_is_gone(tmp_path):
    with a_site(tmp_path) as site:
        token = site.recommend()["token"]
        for body in ({}, {"name": "shops"}, {"name": "Shop"}):
            rejected = site.ask("DELETE", SHOP, body)
            assert rejected.status_code == 422
            assert rejected.json()["error"]["field"] == "name"
        assert site.ask("DELETE", SHOP).status_code in (415, 422)  # no body at all
        answer = site.ask("DELETE", SHOP, {"name": "shop"})
        assert (answer.status_code, answer.json()) == (200, {"name": "shop", "events": 1})
        for method, path, body in (
            ("POST", "/recommend", {}), ("POST", "/feedback", {"token": token, "click": 0}),
            ("GET", "", None), ("GET", "/view", None), ("DELETE", "", {"name": "shop"}),
        ):  # fmt: skip
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
        site.shop.delete()
        # Fewer items than the dashboard has seen of the old one.
        site.service.create("shop", policy="cascade-lin-ts", k=2, items=ITEMS[:2], seed=1)
        view = site.ask("GET", f"{SHOP}/view").json()
        assert (view["totals"]["slates"], view["feedback"]["accepted"], view["seq"]) == (0, 0, 1)
        assert {item["id"] for item in view["estimates"]} == {"espresso", "tea"}
        for slate in (shown, late):
            rejected = site.ask("POST", f"{SHOP}/feedback", {"token": slate["token"], "click": 0})
            assert (rejected.status_code, rejected.json()["error"]["field"]) == (404, "token")
        assert site.shop.audit().equal


def test_a_client_repeats_the_name_too(tmp_path):
    with a_server(tmp_path) as server, Client(server.address, model="shop") as client:
        check_refused(lambda: client.delete("other"), "name")
        assert client.delete("shop") == 1
        check_refused(lambda: client.delete("shop"), "model", "unknown")


def test_waiting_feedback_for_a_deleted_model_is_rejected_and_for_others_written(
    open_shop, store_url, monkeypatch
):
    shop = open_shop(store_url, poll_seconds=30)
    service = shop.service
    bakery, _ = create(shop, "bakery"), create(shop, "cafe")
    tokens = {name: [shop.model(name).recommend().token for _ in range(5)] for name in service.names()}
    hold, done, append = threading.Event(), threading.Semaphore(0), service.store.append

    def held(*batch):
        hold.wait()
        return append(*batch)

    monkeypatch.setattr(service.store, "append", held)
    outcomes = {name: [] for name in tokens}

    def receive(name, results):
        outcomes[name] += results
        done.release()

    for number in range(5):
        for name in tokens:
            service.send_feedback(
                name, [(tokens[name][number], 0)], lambda results, name=name: receive(name, results)
            )
    # Another process deletes two of them, and this one has not followed yet.
    for stored in service.store.models():
        if stored.name in ("shop", "cafe"):
            assert service.store.delete(stored.id)
    hold.set()
    assert all(done.acquire(timeout=10) for _ in range(15))
    statuses = {name: {outcome.status for outcome in results} for name, results in outcomes.items()}
    assert statuses == {"bakery": {"accepted"}, "shop": {"unknown"}, "cafe": {"unknown"}}
    assert (bakery.audit().equal, bakery.seq) == (True, 6)
    with pytest.raises(FirstclickError, match="it may have been deleted"):
        shop.put_items(items()[:1])


def test_other_processes_follow_a_deletion(open_shop, postgresql_url):
    clock = Clock()
    one, other = (open_shop(postgresql_url, clock=clock) for _ in range(2))
    other.recommend()
    other.snapshot()
    old = other.internals
    assert one.delete() == 1
    other.run_background()
    assert other.service.names() == []
    check_refused(other.recommend, "model", "unknown")
    # They take up one that comes after it, though it has the name.
    create(one, n_items=2)
    other.run_background()
    assert len(other.recommend().items) == 2
    # Deleted and created again between two polls.
    one.delete()
    create(one, n_items=1)
    other.run_background()
    assert other.internals.id == one.internals.id
    # A snapshot that was in work when the model was deleted does not come back.
    other.service.maintenance.snapshot(old)
    sweep(one.service.store)
    assert other.service.store.snapshots(old.id) == []
    assert log_of(one.service.store, old.id, 0, 99) == []
    assert one.service.store.check() == []


def test_a_name_is_free_before_a_process_has_followed_its_deletion(open_shop, store_url):
    shop = open_shop(store_url, clock=Clock())
    old = shop.internals.id
    assert shop.service.store.delete(old)
    create(shop)
    assert shop.internals.id > old


def test_a_model_that_cannot_be_served_can_be_deleted(open_shop):
    shop = open_shop()
    with shop.service.store._file.transaction() as connection:
        connection.execute("UPDATE event SET payload = x'00' WHERE seq = 1")
    shop.close()
    shop = open_shop(name="other")
    assert [*shop.service.models.broken] == ["shop"]
    shop.model("shop").delete()
    assert not shop.service.models.broken


@pytest.mark.parametrize("deleted_by", ["server", "store"])
def test_no_byte_of_a_deleted_model_is_in_the_file(open_shop, tmp_path, deleted_by):
    path = tmp_path / "shop.db"
    named = [
        [item._replace(name=f"{mark} {item.id}") for item in items()] for mark in ("of-a-person", "kept")
    ]
    shop = open_shop(path, items=named[0], clock=Clock())
    shop.service.create("bakery", policy="cascade-ts", k=K, items=named[1], seed=5)
    bakery = shop.model("bakery")
    for model, put in ((shop, named[0]), (bakery, named[1])):
        model.put_items(put[1:])
        for number in range(60):
            model.feedback(model.recommend(request_id=f"{number}"), click=1)
        model.snapshot()
    assert all(bytes_of(path).count(mark) > 1 for mark in (b"of-a-person", b"kept"))
    seq = bakery.seq
    if deleted_by == "server":
        shop.delete()
        for _ in range(3):
            shop.run_background()
    shop.close()
    if deleted_by == "store":
        with open_store(str(path)) as store:
            assert store.delete(store.models()[0].id)
            sweep(store)
    assert bytes_of(path).count(b"of-a-person") == 0
    bakery = open_shop(path, name="bakery")
    assert (bakery.service.names(), bakery.seq, bakery.audit().equal) == (["bakery"], seq, True)
    assert bytes_of(path).count(b"kept") > 1


def bytes_of(path):
    """The file and what lies beside it."""
    return b"".join(part.read_bytes() for part in sorted(path.parent.glob(f"{path.name}*")))
