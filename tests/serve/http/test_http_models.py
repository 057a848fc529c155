"""Items and models over HTTP, and what Prometheus and a load balancer get."""

from urllib.parse import quote

import pytest
from prometheus_client.parser import text_string_to_metric_families

from firstclick.serve import open_service
from firstclick.serve.config import Settings
from firstclick.serve.startup import open_for
from tests.support.clock import Clock
from tests.support.seam import BY_HAND
from tests.support.serving import ITEMS

SHOP = "/v1/models/shop"
OCTETS = "application/octet-stream"


def item_ids(site, query=""):
    return [item["id"] for item in site.ask("GET", f"{SHOP}/items{query}").json()["items"]]


def report_some(site, n):
    for _ in range(n):
        assert site.feedback(site.recommend()["token"], click=0).status_code == 201


def test_items_come_change_and_go(site):
    put = site.ask("PUT", f"{SHOP}/items/milk", {"name": "Milk", "features": [0.5, 0.5]})
    assert (put.status_code, put.json()) == (200, {"seq": 2})
    assert item_ids(site) == ["espresso", "tea", 7, "cake", "milk"]
    # Again, as when no answer came.
    for seq in (3, 4):
        assert site.ask("DELETE", f"{SHOP}/items/milk").json() == {"seq": seq}
    assert site.ask("DELETE", f"{SHOP}/items/cheese").status_code == 404
    put = [{"id": 100 + i, "name": f"n{i}", "group": "g", "features": [i, 1]} for i in range(50)]
    bulk = site.ask("POST", f"{SHOP}/items:bulk", {"put": put, "withdraw": ["tea", 7, "tea"]})
    assert item_ids(site) == ["espresso", "cake", *range(100, 150)]
    description = site.ask("GET", SHOP).json()
    assert (description["withdrawn"], description["seq"]) == (3, bulk.json()["seq"])


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_one_item_keeps_what_is_not_sent_and_null_clears(site, method):
    tea = {"id": "tea", "name": "Tea", "group": "leaves", "features": [0.0, 1.0], "available": True}
    for body, changed in (
        ({}, {}),
        ({"features": [0.5, 0.5]}, {"features": [0.5, 0.5]}),
        ({"name": "Green tea"}, {"name": "Green tea"}),
        ({"group": None}, {"group": ""}),
        ({"available": False}, {"available": False}),
        ({"name": None, "group": "drinks"}, {"name": "", "group": "drinks"}),
        ({"features": None}, {"features": [0.725, 0.475]}),  # the mean of all
    ):
        assert site.ask(method, f"{SHOP}/items/tea", body).status_code == 200
        _, listed, *_ = site.ask("GET", f"{SHOP}/items").json()["items"]
        tea |= changed
        assert listed == tea | {"features": pytest.approx(tea["features"])}


def test_digits_in_a_path_mean_the_number_where_only_that_is_there(site):
    assert site.ask("DELETE", f"{SHOP}/items/7").status_code == 200
    assert 7 not in item_ids(site)
    assert site.ask("PUT", f"{SHOP}/items/7", {"features": [0.6, 0.8]}).status_code == 200
    assert 7 in item_ids(site)
    # Where there is no such number it is a text, and stays one.
    for text in ("8", "07", "-7", "\u0667", "9" * 30):
        assert site.ask("PUT", f"{SHOP}/items/{quote(text)}", {"features": [1, 1]}).status_code == 200
        assert text in item_ids(site)


def test_an_id_may_be_any_text(site):
    for item in ("a/b", "..", "%2e", "ä€𝄞", "a b?c#d", "<img src=x>", "\u202eabc", "{id}"):
        path = f"{SHOP}/items/{quote(item, safe='').replace('.', '%2e')}"
        assert site.ask("PUT", path, {"features": [1, 1]}).status_code == 200
        assert item in item_ids(site)
        assert site.ask("DELETE", path).status_code == 200
        assert item not in item_ids(site)


def test_items_are_listed_some_at_a_time(site):
    site.ask("DELETE", f"{SHOP}/items/tea")
    ids, query = [], "?limit=2"
    for _ in range(2):
        page = site.ask("GET", f"{SHOP}/items{query}").json()
        ids += [item["id"] for item in page["items"]]
        query = f"?limit=2&after={page['next']}"
    assert (ids, page["next"]) == (["espresso", 7, "cake"], None)
    item = site.ask("GET", f"{SHOP}/items?limit=1").json()["items"][0]
    assert (item["name"], item["group"]) == ("Espresso", "coffee")
    assert item["features"] == pytest.approx([1.0, 0.0])  # as they were sent, not as they are learned
    assert item_ids(site, "?after=999999") == []


def test_a_model_is_created_listed_and_described(site):
    items = [{"id": 1, "name": "One"}, {"id": "two"}]
    body = {"name": "plain", "policy": "cascade-ts", "k": 1, "seed": 3, "items": items}
    created = site.ask("POST", "/v1/models", body)
    assert created.status_code == 201
    assert created.json() == {
        "name": "plain", "policy": "cascade-ts", "k": 1, "seed": 3, "explore": 0.0, "n_features": 0,
        "items": 2, "withdrawn": 0, "unavailable": 0, "seq": 1, "slates": 0, "clicks": 0, "notes": [],
        "no_click_after": 0.0, "recommended": 0, "unreported": None, "timed_out": 0,
    }  # fmt: skip
    assert site.ask("GET", "/v1/models/plain").json() == created.json()
    assert [model["name"] for model in site.ask("GET", "/v1/models").json()["models"]] == ["plain", "shop"]
    assert site.ask("POST", "/v1/models", body).status_code == 409
    assert site.ask("POST", "/v1/models/plain/recommend", {}).status_code == 200


def test_audit_export_import_and_rollback(site):
    report_some(site, 5)
    audit = site.ask("GET", f"{SHOP}/audit").json()
    assert (audit["name"], audit["seq"], audit["equal"], audit["differing"]) == ("shop", 6, True, [])
    exported = site.ask("GET", f"{SHOP}/export")
    assert exported.headers["content-type"] == OCTETS
    assert exported.headers["content-disposition"] == 'attachment; filename="shop.firstclick"'
    assert site.post_bytes("/v1/models/copy/import", exported.content, OCTETS).json()["slates"] == 5
    damaged = bytearray(exported.content)
    damaged[-1] ^= 1
    assert site.post_bytes("/v1/models/other/import", bytes(damaged), OCTETS).status_code == 422
    assert site.ask("POST", f"{SHOP}/rollback", {"seq": 1}).json() == {"seq": 7}
    assert site.ask("GET", f"{SHOP}/audit").json()["equal"] is True
    # What is served is not what the log has.
    site.shop.internals.engine.state.moment[0] += 1e-12
    audit = site.ask("GET", f"{SHOP}/audit").json()
    assert (audit["equal"], len(audit["differing"])) == (False, 1)


def test_metrics_can_be_parsed_and_count_requests(site):
    report_some(site, 3)
    site.feedback("forged", click=0)
    site.ask("GET", "/nope")
    answer = site.ask("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    values = {
        (sample.name.removeprefix("firstclick_"), *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    feedback = "/v1/models/{model}/feedback"
    expected = {
        ("requests_total", feedback, "201", "POST"): 3, ("requests_total", feedback, "404", "POST"): 1,
        ("requests_total", "404", "?", "?"): 1, ("feedback_total", "accepted", "shop"): 3,
        ("feedback_total", "shop", "unknown"): 1, ("request_seconds_count", feedback): 4,
        ("request_seconds_bucket", "+Inf", feedback): 4, ("seq", "shop"): 4, ("lag_seconds", "shop"): 0,
        ("recommended_total", "shop"): 3, ("waiting_events",): 0, ("commits_total",): 3,
        ("committed_events_total",): 3, ("items", "shop"): 4,
    }  # fmt: skip
    assert {(name, *sorted(labels)): values[name, *sorted(labels)] for name, *labels in expected} == {
        (name, *sorted(labels)): value for (name, *labels), value in expected.items()
    }
    assert 0 <= values["exploring_share", "shop"] <= 1
    assert values["process_resident_memory_bytes",] > 0
    assert ("snapshot_seq", "shop") in values


def test_ready_says_why_not(open_site):
    clock = Clock()
    of_service = {"clock": clock, "tuning": BY_HAND}
    site = open_site(of_service=of_service, durability="relaxed", max_lag=2.0)
    ready = (200, {"status": "ready", "durability": "relaxed"})
    answer = site.ask("GET", "/health/ready")
    assert (answer.status_code, answer.json()) == ready
    clock.move(9.0)
    silent = site.ask("GET", "/health/ready")
    assert silent.status_code == 503
    assert "store has not answered" in silent.json()["error"]["message"]
    site.service.run_background()
    assert site.ask("GET", "/health/ready").status_code == 200


def test_a_model_that_cannot_learn_what_its_log_has_is_not_ready(site, monkeypatch):
    """In the log, so acknowledged; but not learned, and maintenance cannot make up for it."""

    def broken(*_, **__):
        raise RuntimeError("cannot fold")

    monkeypatch.setattr(site.shop.internals, "apply", broken)
    monkeypatch.setattr("firstclick.serve.service.catch_up", broken)
    monkeypatch.setattr("firstclick.serve.maintenance.catch_up", broken)
    report_some(site, 1)
    site.service.run_background()
    site.service.maintenance._behind_since["shop"] -= 5
    answer = site.ask("GET", "/health/ready")
    assert answer.status_code == 503
    assert "behind its log" in answer.json()["error"]["message"]


def test_a_model_of_another_version_is_not_served_and_the_others_are(open_site, tmp_path, monkeypatch):
    """No restart would serve it: a server that is never ready again would take the other models down."""
    store, catalog = str(tmp_path / "shop.db"), tmp_path / "items.csv"
    with open_service(store) as service:
        service.create("counts", policy="cascade-ts", k=2, items=ITEMS)
    monkeypatch.setattr("firstclick.policies.cascade_ts.CascadeTS.version", 2)
    catalog.write_text("id\na\nb\nc\n")
    service, _, notes = open_for(
        Settings(store=store, name="counts", policy="cascade-ts", k=2, catalog=catalog)
    )
    service.close()
    assert "model 'counts' is not served: it was learned by version 1 of cascade-ts" in notes[0]
    site = open_site()
    ready = site.ask("GET", "/health/ready")
    assert (ready.status_code, ready.json()["not_served"]) == (200, ["counts"])
    assert len(site.recommend()["items"]) == 3
    refused = site.ask("POST", "/v1/models/counts/recommend", {})
    assert (refused.status_code, refused.json()["error"]["status"]) == (503, "not-served")
    assert "retry-after" not in refused.headers, "trying again does not help"
    assert "firstclick relearn counts --name NEW" in refused.json()["error"]["message"]
    site.service.run_background()
    site.shop.delete()
    unready = site.ask("GET", "/health/ready")
    assert unready.status_code == 503
    assert "model 'counts' cannot be served" in unready.json()["error"]["message"]
