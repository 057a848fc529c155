"""Items and models over HTTP, and what the dashboard, Prometheus and a load balancer are told."""

import json
from urllib.parse import quote

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from firstclick.policies.cascade_ts import CascadeTS
from firstclick.serve.config import Settings
from firstclick.serve.dashboard.data import OUTCOMES, compared
from firstclick.serve.http.app import App
from firstclick.serve.http.handlers import ready
from firstclick.serve.http.messages import Asked
from firstclick.serve.model.click_stats import DAY, FIRST_SLATES, ClickStats
from firstclick.serve.service import open_service
from firstclick.serve.startup import open_for
from firstclick.wire.errors import Unavailable
from tests.support import seam
from tests.support.serving import ITEMS, a_site

SHOP = "/v1/models/shop"


@pytest.fixture
def site(tmp_path):
    with a_site(tmp_path) as site:
        yield site


def listed(site, query=""):
    return [item["id"] for item in site.ask("GET", f"{SHOP}/items{query}").json()["items"]]


def answer_some(site, n, click=0):
    for _ in range(n):
        body = {"token": site.recommend()["token"], "click": click}
        assert site.ask("POST", f"{SHOP}/feedback", body).status_code == 201


def test_items_come_change_and_go(site):
    put = site.ask("PUT", f"{SHOP}/items/milk", {"name": "Milk", "features": [0.5, 0.5]})
    assert (put.status_code, put.json()) == (200, {"seq": 2})
    assert listed(site) == ["espresso", "tea", 7, "cake", "milk"]
    assert site.ask("DELETE", f"{SHOP}/items/milk").json() == {"seq": 3}
    assert listed(site) == ["espresso", "tea", 7, "cake"]
    assert site.ask("DELETE", f"{SHOP}/items/milk").status_code == 200  # as when no answer was heard
    never = site.ask("DELETE", f"{SHOP}/items/cheese")
    assert never.status_code == 404
    assert "'cheese'" in never.json()["error"]["message"]
    assert site.ask("GET", SHOP).json()["withdrawn"] == 1


def test_digits_in_a_path_mean_the_number_where_only_that_is_there(site):
    assert site.ask("DELETE", f"{SHOP}/items/7").status_code == 200
    assert 7 not in listed(site)
    assert site.ask("PUT", f"{SHOP}/items/7", {"features": [0.6, 0.8]}).status_code == 200
    assert 7 in listed(site)
    # What no number stands for is a text, and stays one.
    for text in ("8", "07", "-7", "\u0667", "9" * 30):
        assert site.ask("PUT", f"{SHOP}/items/{quote(text)}", {"features": [1, 1]}).status_code == 200
        assert text in listed(site)


@pytest.mark.parametrize("item", ["a/b", "..", "%2e", "ä€𝄞", "a b?c#d", "<img src=x>", "\u202eabc", "{id}"])
def test_an_id_may_be_any_text(site, item):
    path = f"{SHOP}/items/{quote(item, safe='').replace('.', '%2e')}"
    assert site.ask("PUT", path, {"features": [1, 1]}).status_code == 200
    assert item in listed(site)
    assert site.ask("DELETE", path).status_code == 200


def test_changes_in_bulk(site):
    put = [{"id": 100 + i, "name": f"n{i}", "group": "g", "features": [i, 1]} for i in range(50)]
    answer = site.ask("POST", f"{SHOP}/items:bulk", {"put": put, "withdraw": ["tea", 7, "tea"]})
    assert answer.status_code == 200
    assert answer.json()["seq"] == seam.model(site.service, "shop").seq
    assert listed(site) == ["espresso", "cake", *range(100, 150)]


def test_items_are_listed_some_at_a_time(site):
    site.ask("DELETE", f"{SHOP}/items/tea")
    found = []
    query = "?limit=2"
    for _ in range(5):
        page = site.ask("GET", f"{SHOP}/items{query}").json()
        found += [item["id"] for item in page["items"]]
        if page["next"] is None:
            break
        query = f"?limit=2&after={page['next']}"
    assert found == ["espresso", 7, "cake"]
    item = site.ask("GET", f"{SHOP}/items?limit=1").json()["items"][0]
    assert item["name"] == "Espresso"
    assert item["group"] == "coffee"
    assert item["features"] == pytest.approx([1.0, 0.0])  # as they were sent, not as they are learned
    assert listed(site, "?after=999999") == []


def test_a_model_is_created_listed_and_described(site):
    items = [{"id": 1, "name": "One"}, {"id": "two"}]
    body = {"name": "plain", "policy": "cascade-ts", "k": 1, "seed": 3, "items": items}
    made = site.ask("POST", "/v1/models", body)
    assert made.status_code == 201
    facts = {
        "name": "plain", "policy": "cascade-ts", "k": 1, "seed": 3, "explore": 0.0, "n_features": 0,
        "items": 2, "withdrawn": 0, "unavailable": 0, "seq": 1, "slates": 0, "clicks": 0, "notes": [],
        "no_click_after": 0.0, "recommended": 0, "unreported": None, "timed_out": 0,
    }  # fmt: skip
    assert made.json() == facts
    assert site.ask("GET", "/v1/models/plain").json() == facts
    assert [one["name"] for one in site.ask("GET", "/v1/models").json()["models"]] == ["plain", "shop"]
    assert site.ask("POST", "/v1/models", body).status_code == 409
    assert site.ask("POST", "/v1/models/plain/recommend", {}).status_code == 200


def test_audit_export_import_and_rollback(site):
    answer_some(site, 5)
    audit = site.ask("GET", f"{SHOP}/audit").json()
    assert (audit["name"], audit["seq"], audit["equal"], audit["differing"]) == ("shop", 6, True, [])
    exported = site.ask("GET", f"{SHOP}/export")
    assert exported.headers["content-type"] == "application/octet-stream"
    assert exported.headers["content-disposition"] == 'attachment; filename="shop.firstclick"'
    imported = site.post_bytes("/v1/models/copy/import", exported.content, "application/octet-stream")
    assert imported.status_code == 201
    assert imported.json()["slates"] == 5
    again = site.post_bytes("/v1/models/copy/import", exported.content, "application/octet-stream")
    assert again.status_code == 409
    spoilt = bytearray(exported.content)
    spoilt[-1] ^= 1
    refused = site.post_bytes("/v1/models/other/import", bytes(spoilt), "application/octet-stream")
    assert refused.status_code == 422
    assert site.ask("POST", f"{SHOP}/rollback", {"seq": 1}).json() == {"seq": 7}
    assert site.ask("GET", f"{SHOP}/audit").json()["equal"] is True
    assert site.ask("POST", f"{SHOP}/rollback", {"seq": 99}).status_code == 422


def test_a_model_is_forked_while_it_is_served(site):
    answer_some(site, 5)
    out = site.ask("POST", f"{SHOP}/recommend", {}).json()["token"]
    forked = site.ask("POST", f"{SHOP}/fork", {"policy": "cascade-ts", "name": "shop2"})
    assert forked.status_code == 201
    told = forked.json()
    assert (told["name"], told["policy"], told["slates"], told["seq"]) == ("shop2", "cascade-ts", 5, 6)
    assert told["notes"] == ["events up to 6 are those of shop (cascade-lin-ts)"]
    assert site.ask("POST", "/v1/models/shop2/feedback", {"token": out, "click": 0}).status_code == 404
    assert site.ask("POST", f"{SHOP}/feedback", {"token": out, "click": 0}).status_code == 201
    assert site.ask("GET", "/v1/models/shop2/audit").json()["equal"] is True
    for body, code, sentence in (
        ({"policy": "cascade-ts", "name": "shop2"}, 409, "name 'shop2' is taken by another model"),
        ({"policy": "bubble-rank", "name": "new"}, 422, "learns from slates that it has shuffled itself"),
        ({"policy": "cascade-tts", "name": "new"}, 422, "cascade-tts"),
        ({"policy": "cascade-ts"}, 422, "name"),
    ):
        refused = site.ask("POST", f"{SHOP}/fork", body)
        assert refused.status_code == code
        assert sentence in refused.json()["error"]["message"]
    refused = site.ask("POST", "/v1/models/shoe/fork", {"policy": "cascade-ts", "name": "new"})
    assert refused.status_code == 404


def test_an_audit_tells_when_what_is_served_is_not_what_the_log_says(site):
    answer_some(site, 2)
    site.service.model("shop").engine.state.moment[0] += 1e-12
    audit = site.ask("GET", f"{SHOP}/audit").json()
    assert audit["equal"] is False
    assert len(audit["differing"]) == 1


def test_the_view_is_what_the_dashboard_expects(site):
    empty = site.ask("GET", f"{SHOP}/view").json()
    assert (empty["since"], empty["start"], empty["lately"], empty["exploring"]) == (None, None, None, None)
    assert (empty["clickthrough"], empty["recent"], empty["positions"]) == ([], [], [0, 0, 0])

    answer_some(site, 9, click=1)
    answer_some(site, 1, click=None)
    site.ask("POST", f"{SHOP}/feedback", {"token": "forged", "click": 0})
    view = site.ask("GET", f"{SHOP}/view").json()
    assert set(view) == {
        "model", "policy", "k", "seq", "now", "items", "since", "totals", "clickthrough", "start", "lately",
        "positions", "best", "recent", "estimates", "exploring", "feedback", "process", "replicas",
        "outcomes", "deciders", "against_list", "trial",
    }  # fmt: skip
    assert view["totals"] == {"slates": 10, "clicks": 9}
    assert view["items"] == {"shown": 4, "withdrawn": 0, "unavailable": 0}
    assert view["positions"] == [0, 9, 0]
    assert sum(span["slates"] for span in view["clickthrough"]) == 10
    assert len(view["recent"]) == 8
    assert view["recent"][0]["click"] is None
    assert view["recent"][1]["click"] == 1
    assert set(view["recent"][0]["items"]) <= {"Espresso", "Tea", "Seven", "<b>Cake</b>"}
    assert set(view["feedback"]) == set(OUTCOMES)
    assert view["feedback"]["accepted"] == 10
    assert view["feedback"]["unknown"] == 1
    means = [one["mean"] for one in view["estimates"]]
    assert len(means) == 4
    assert means == sorted(means, reverse=True)
    assert [one["id"] for one in view["best"]["items"]] == [one["id"] for one in view["estimates"][:3]]
    assert view["exploring"]["of"] == 3  # of ten slates the first, the fifth and the ninth
    assert view["process"]["recommended"] == 10
    assert view["process"]["store"] == "sqlite"
    assert view["process"]["durability"] == "full"
    assert [replica["self"] for replica in view["replicas"]] == [True]


def test_a_policy_that_holds_nothing_has_no_best_slate_and_no_numbers(site):
    body = {"name": "chance", "policy": "random", "k": 2, "items": [{"id": "a"}, {"id": "b"}, {"id": "c"}]}
    assert site.ask("POST", "/v1/models", body).status_code == 201
    view = site.ask("GET", "/v1/models/chance/view").json()
    assert view["best"] == {"items": []}
    assert [(one["id"], one["mean"], one["deviation"]) for one in view["estimates"]] == [
        ("a", None, None), ("b", None, None), ("c", None, None),
    ]  # fmt: skip


def test_a_withdrawn_item_leaves_the_view_at_once(site):
    site.ask("GET", f"{SHOP}/view")
    site.ask("DELETE", f"{SHOP}/items/cake")
    view = site.ask("GET", f"{SHOP}/view").json()
    assert "cake" not in [one["id"] for one in view["estimates"]]
    assert view["items"] == {"shown": 3, "withdrawn": 1, "unavailable": 0}


def test_the_start_is_compared_with_lately_by_slates_and_later_by_days():
    def after(history, now):
        start, lately = compared(history, history.buckets(now, 240), now)
        return [start and start.label, lately and lately.label]

    history, first = ClickStats(), f"first {FIRST_SLATES:,} slates"
    history.add(np.full(FIRST_SLATES - 1, 1e9), np.zeros(FIRST_SLATES - 1, np.int64))
    assert after(history, 1e9 + 1) == [None, None]
    history.add(np.full(50, 1e9 + 5), np.full(50, -1))
    assert after(history, 1e9 + 6) == [first, None]
    history.add(np.full(70, 1e9 + 9), np.full(70, -1))
    start, lately = compared(history, history.buckets(1e9 + 10, 240), 1e9 + 10)
    assert start is not None
    assert lately is not None
    assert (start.slates, start.clicks) == (FIRST_SLATES, FIRST_SLATES - 1)
    assert (lately.label, lately.slates, lately.clicks) == ("last 120 slates", 120, 0)
    # Three quiet days later there is nothing of the last day to compare with.
    later = 1e9 + 3 * DAY
    assert after(history, later)[0] == first
    history.add(np.full(200, later - 50), np.zeros(200, np.int64))
    assert after(history, later) == ["first day", "last 24 hours"]


def test_metrics_can_be_parsed_and_tell_what_happened(site):
    answer_some(site, 3)
    site.ask("POST", f"{SHOP}/feedback", {"token": "forged", "click": 0})
    site.ask("GET", "/nope")
    answer = site.ask("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }

    def value(name, **labels):
        return samples[name, *sorted(labels.items())]

    feedback = "/v1/models/{model}/feedback"
    assert value("firstclick_requests_total", method="POST", route=feedback, code="201") == 3
    assert value("firstclick_requests_total", method="POST", route=feedback, code="404") == 1
    assert value("firstclick_requests_total", method="?", route="?", code="404") == 1
    assert value("firstclick_feedback_total", model="shop", outcome="accepted") == 3
    assert value("firstclick_feedback_total", model="shop", outcome="unknown") == 1
    assert value("firstclick_request_seconds_count", route=feedback) == 4
    assert value("firstclick_request_seconds_bucket", route=feedback, le="+Inf") == 4
    assert value("firstclick_seq", model="shop") == 4
    assert value("firstclick_lag_seconds", model="shop") == 0
    assert value("firstclick_recommended_total", model="shop") == 3
    assert value("firstclick_waiting_events") == 0
    assert value("firstclick_commits_total") == 3
    assert value("firstclick_committed_events_total") == 3
    assert value("firstclick_items", model="shop") == 4
    assert 0 <= value("firstclick_exploring_share", model="shop") <= 1
    assert value("process_resident_memory_bytes") > 0
    assert ("firstclick_snapshot_seq", ("model", "shop")) in samples


def test_ready_says_why_not(tmp_path, monkeypatch):
    with a_site(tmp_path, durability="relaxed", max_lag=2.0) as site:
        assert site.ask("GET", "/health/ready").json() == {"status": "ready", "durability": "relaxed"}
        assert ready(Asked(site.app.site, ())).status == "ready"
        maintenance = site.service.maintenance
        with monkeypatch.context() as patch:
            patch.setattr(maintenance, "lag", lambda name: 2.5)
            late = site.ask("GET", "/health/ready")
        assert late.status_code == 503
        assert "'shop' is 2.5 s behind its log" in late.json()["error"]["message"]
        with monkeypatch.context() as patch:
            patch.setattr(maintenance, "silence", lambda: 7.0)
            silent = site.ask("GET", "/health/ready")
        assert silent.status_code == 503
        assert "not answered for 7.0 s" in silent.json()["error"]["message"]
        assert site.ask("GET", "/health/ready").status_code == 200


def test_a_model_that_cannot_learn_what_its_log_has_is_not_ready(site, monkeypatch):
    """In the log, so acknowledged; but not learned, and maintenance cannot make up for it."""
    from firstclick.serve import maintenance, service

    def broken(*_, **__):
        raise RuntimeError("cannot fold")

    monkeypatch.setattr(site.service.model("shop"), "apply", broken)
    monkeypatch.setattr(service, "catch_up", broken)
    monkeypatch.setattr(maintenance, "catch_up", broken)
    body = {"token": site.recommend()["token"], "click": 0}
    assert site.ask("POST", f"{SHOP}/feedback", body).status_code == 201
    site.service.run_background()
    site.service.maintenance._behind_since["shop"] -= 5
    answer = site.ask("GET", "/health/ready")
    assert answer.status_code == 503
    assert "behind its log" in answer.json()["error"]["message"]


def test_the_empty_endpoint_answers_nothing(site):
    assert site.ask("POST", "/v1/empty", {}).json() == {}
    assert site.ask("POST", "/v1/empty", {"a": 1}).status_code == 422
    assert json.loads(site.post_bytes("/v1/empty", b"[]").content)["error"]["status"] == "malformed"


def test_a_model_of_another_version_is_told_and_the_others_are_served(tmp_path, monkeypatch):
    """No restart would serve it: a server that is never ready again would take the other models down."""
    store, catalog = str(tmp_path / "shop.db"), tmp_path / "items.csv"
    with open_service(store) as service:
        service.create("counts", policy="cascade-ts", k=2, items=ITEMS)
    monkeypatch.setattr(CascadeTS, "version", 2)
    catalog.write_text("id\na\nb\nc\n")
    settings = Settings(store=store, name="counts", policy="cascade-ts", k=2, catalog=catalog)
    service, _, notes = open_for(settings)
    service.close()
    assert "model 'counts' is not served: it was learned by version 1 of cascade-ts" in notes[0]
    with open_service(store) as service:
        # Where nothing else is served, nothing may be sent.
        app = App(service, Settings())
        with pytest.raises(Unavailable, match="model 'counts' cannot be served"):
            ready(Asked(app.site, ()))
        app.close()
    with a_site(tmp_path) as site:
        told = site.ask("GET", "/health/ready")
        assert (told.status_code, told.json()["not_served"]) == (200, ["counts"])
        assert len(site.recommend()["items"]) > 0
        refused = site.ask("POST", "/v1/models/counts/recommend", {})
        assert (refused.status_code, refused.json()["error"]["status"]) == (503, "not-served")
        assert "retry-after" not in refused.headers, "trying again is no use"
        assert "firstclick relearn counts --name NEW" in refused.json()["error"]["message"]
        site.service.run_background()
