"""Slates, feedback, items and models over HTTP: each outcome has its own status, and each is counted."""

import asyncio
from urllib.parse import quote

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from firstclick.wire.errors import StoreBroken, Unavailable
from tests.support.clock import Clock
from tests.support.seam import BY_HAND
from tests.support.serving import FEEDBACK, RECOMMEND, a_server


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def site(open_site, clock):
    return open_site(of_service={"clock": clock, "tuning": BY_HAND})


def outcomes(site):
    """Return how often feedback had each outcome, from the metrics."""
    families = text_string_to_metric_families(site.ask("GET", "/metrics").text)
    samples = [
        sample
        for family in families
        for sample in family.samples
        if sample.name == "firstclick_feedback_total"
    ]
    return {sample.labels["outcome"]: sample.value for sample in samples if sample.value}


def test_a_slate_has_items_scores_a_token_and_its_seq(site, clock):
    answer = site.ask("POST", RECOMMEND, {})
    assert answer.status_code == 200
    slate = answer.json()
    assert set(slate) == {"items", "scores", "token", "seq", "reasons"}
    assert len(slate["items"]) == len(slate["scores"]) == 3
    assert slate["reasons"] == ["policy"] * 3
    assert answer.headers["firstclick-seq"] == str(slate["seq"]) == "1"
    assert "firstclick-age" not in answer.headers
    # While the store is silent, the age of what is known comes with it.
    clock.move(12.34)
    assert float(site.ask("POST", RECOMMEND, {}).headers["firstclick-age"]) == pytest.approx(12.3, abs=2.1)


def test_every_outcome_has_its_status(site, clock):
    old = site.recommend()["token"]
    clock.move(8 * 86_400)
    token = site.recommend()["token"]
    answers = {
        "accepted": site.feedback(token, click=1),
        "duplicate": site.feedback(token, click=1),
        "conflict": site.feedback(token, click=None),
        "unknown": site.feedback(token[:-1] + ("B" if token.endswith("A") else "A"), click=1),
        "expired": site.feedback(old, click=0),
        "malformed": site.feedback(site.recommend()["token"], click=3),
        "too-large": site.post_bytes(FEEDBACK, b" " * 1_000_001),
    }
    codes = {name: answer.status_code for name, answer in answers.items()}
    assert codes == {
        "accepted": 201, "duplicate": 200, "conflict": 409, "unknown": 404, "expired": 410, "malformed": 422,
        "too-large": 413,
    }  # fmt: skip
    for name in ("accepted", "duplicate"):
        assert answers.pop(name).json() == {"status": name, "seq": 2}
    for name, answer in answers.items():
        assert answer.json()["error"]["status"] == name
        assert answer.json()["error"]["message"]
    assert outcomes(site) == dict.fromkeys(codes, 1)
    assert site.ask("GET", "/v1/models/shop").json()["seq"] == 2


@pytest.mark.parametrize("broken", [False, True])
def test_slates_are_served_while_the_store_cannot_write(site, monkeypatch, broken):
    def append(*batch):
        raise StoreBroken("fsync failed") if broken else Unavailable("the disk is full", retry_after=2.5)

    token = site.recommend()["token"]
    with monkeypatch.context() as patch:
        patch.setattr(site.service.store, "append", append)
        answer = site.feedback(token, click=0)
    assert answer.status_code == 503
    assert answer.json()["error"]["status"] == "unavailable"
    assert answer.headers["retry-after"] == ("1" if broken else "3")
    assert site.ask("POST", RECOMMEND, {}).status_code == 200
    assert outcomes(site) == {"unavailable": 1}
    assert site.ask("GET", "/health/live").status_code == 200
    # A broken store is not trusted again before a restart.
    ready = site.ask("GET", "/health/ready")
    assert ready.status_code == (503 if broken else 200)
    assert not broken or "restart" in ready.json()["error"]["message"]
    assert broken or site.feedback(token, click=0).status_code == 201


def test_a_client_that_leaves_in_the_middle_of_its_body_gets_nothing(site):
    assert site.raw("POST", FEEDBACK, b'{"token": ', gone=True).sent == []
    # The request that asks is the only one that runs.
    assert "firstclick_requests_running 1.0" in site.ask("GET", "/metrics").text


def test_one_token_from_many_connections_is_counted_once(tmp_path):
    async def storm(address):
        async with httpx.AsyncClient(base_url=address, timeout=30) as client:
            slate = (await client.post(RECOMMEND, json={})).json()
            body = {"token": slate["token"], "click": 2}
            answers = await asyncio.gather(*(client.post(FEEDBACK, json=body) for _ in range(200)))
            return sorted(answer.status_code for answer in answers)

    with a_server(tmp_path) as server:
        assert asyncio.run(storm(server.address)) == [200] * 199 + [201]


# Items and models

SHOP = "/v1/models/shop"
OCTETS = "application/octet-stream"


def item_ids(site, query=""):
    return [item["id"] for item in site.ask("GET", f"{SHOP}/items{query}").json()["items"]]


def report_some(site, n):
    for _ in range(n):
        assert site.feedback(site.recommend()["token"], click=0).status_code == 201


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
        # Again, as when no answer came.
        seq = site.ask("GET", SHOP).json()["seq"]
        assert [site.ask("DELETE", path).json() for _ in range(2)] == [{"seq": seq + 1}, {"seq": seq + 2}]
        assert item not in item_ids(site)
    assert site.ask("DELETE", f"{SHOP}/items/cheese").status_code == 404


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
