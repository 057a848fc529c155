"""Slates and feedback are ready separately, for reasons that are true."""

from pathlib import Path

import pytest

from firstclick.serve import open_service
from firstclick.serve.config import Settings
from firstclick.serve.startup import open_for
from firstclick.wire.errors import REASONS, StoreBroken, Unavailable
from tests.support import seam
from tests.support.clock import Clock
from tests.support.serving import ITEMS, a_site

FOR_SLATES, FOR_FEEDBACK = "/health/ready/recommend", "/health/ready/feedback"
READY = (200, "")


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def site(tmp_path, clock):
    with a_site(tmp_path, of_service={"clock": clock, "tuning": seam.BY_HAND}) as site:
        yield site


def readiness(site):
    """The status and the reason for slates, and for feedback."""
    answers = [site.ask("GET", path) for path in (FOR_SLATES, FOR_FEEDBACK)]
    return [(answer.status_code, answer.json().get("error", {}).get("reason", "")) for answer in answers]


def send_feedback(site):
    token = site.recommend()["token"]
    return site.ask("POST", "/v1/models/shop/feedback", {"token": token, "click": 0}).status_code


def fail(patch, site, name, error):
    def failing(*arguments):
        raise error

    patch.setattr(site.service.store, name, failing)


def test_a_failed_write_ends_readiness_for_feedback_until_one_succeeds(site, monkeypatch):
    assert readiness(site) == [READY, READY]
    assert site.ask("GET", FOR_FEEDBACK).json() == {"status": "ready", "age": 0.0}
    with monkeypatch.context() as patch:
        fail(patch, site, "append", Unavailable("the disk is full", reason="full-disk"))
        assert send_feedback(site) == 503
    assert readiness(site) == [READY, (503, "full-disk")]
    assert site.ask("GET", "/health/ready").status_code == 200
    assert send_feedback(site) == 201
    assert readiness(site) == [READY, READY]


def test_a_write_is_tried_where_none_came_lately(site, clock, monkeypatch):
    with monkeypatch.context() as patch:
        fail(patch, site, "probe", Unavailable("the disk is full", reason="full-disk"))
        site.service.run_background()
        assert readiness(site)[1] == READY, "something was written a moment ago"
        clock.move(5)
        site.service.run_background()
        assert readiness(site)[1] == (503, "full-disk")
        fail(patch, site, "probe", StoreBroken("the file was removed"))
        site.service.run_background()
        assert readiness(site) == [READY, (503, "broken")]
    # While nothing can be written it is tried each time.
    site.service.run_background()
    assert readiness(site)[1] == READY


def test_a_probe_writes_to_the_store_and_changes_no_log(site, clock):
    store = site.service.store
    before = store.models()
    clock.move(5)
    site.service.run_background()
    assert store._database.rows("SELECT count(*) FROM meta WHERE key = 'probe'") == [(1,)]
    assert store.models() == before
    assert store.check() == []
    assert site.shop.audit().equal


def test_without_the_database_slates_go_on_and_tell_their_age(site, clock):
    clock.move(60.0)
    # It had just begun to catch up.
    site.service.maintenance._behind_since["shop"] = clock.monotonic() - 60.0
    assert site.ask("GET", FOR_SLATES).json()["age"] == 58.0, "beyond two pauses"
    assert readiness(site) == [READY, (503, "no-database")]


@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        # Feedback is kept although the model has not learned all of its log.
        (lambda service, long_ago: service.maintenance._behind_since.update(shop=long_ago),
         [(503, "behind"), READY]),
        (lambda service, _: setattr(seam.model(service).internals, "set_back", "the store was set back"),
         [READY, (503, "set-back")]),
        (lambda service, _: setattr(service.writer, "broken", StoreBroken("an fsync failed")),
         [(503, "broken")] * 2),
    ],
    ids=["behind", "history diverged", "store broken"],
)  # fmt: skip
def test_trouble_ends_readiness_for_what_it_affects(site, clock, trouble, expected):
    trouble(site.service, clock.monotonic() - 60.0)
    assert readiness(site) == expected


def test_one_model_that_cannot_be_served_takes_no_other_down(site):
    models = site.service.models
    models.broken["bar"] = "its log is damaged"
    for path in (FOR_SLATES, FOR_FEEDBACK):
        assert site.ask("GET", path).json() == {"status": "ready", "age": 0.0, "not_served": ["bar"]}
    models._models.clear()
    assert readiness(site) == [(503, "not-served")] * 2


def test_a_store_that_does_not_answer_ends_readiness(tmp_path, clock):
    of_service = {"clock": clock, "tuning": seam.BY_HAND}
    with a_site(tmp_path, of_service=of_service, durability="relaxed", max_lag=2.0) as site:
        answer = site.ask("GET", "/health/ready")
        assert (answer.status_code, answer.json()) == (200, {"status": "ready", "durability": "relaxed"})
        clock.move(9.0)
        assert site.ask("GET", "/health/ready").status_code == 503
        site.service.run_background()
        assert site.ask("GET", "/health/ready").status_code == 200


def test_a_model_that_cannot_learn_what_its_log_has_is_not_ready(site, monkeypatch):
    """In the log, so acknowledged; but not learned, and maintenance cannot make up for it."""

    def broken(*_, **__):
        raise RuntimeError("cannot fold")

    monkeypatch.setattr(site.shop.internals, "apply", broken)
    monkeypatch.setattr("firstclick.serve.service.catch_up", broken)
    monkeypatch.setattr("firstclick.serve.maintenance.catch_up", broken)
    assert send_feedback(site) == 201
    site.service.run_background()
    site.service.maintenance._behind_since["shop"] -= 5
    answer = site.ask("GET", "/health/ready")
    assert answer.status_code == 503
    assert "behind its log" in answer.json()["error"]["message"]


def test_a_model_of_another_version_is_not_served_and_the_others_are(tmp_path, monkeypatch):
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
    with a_site(tmp_path) as site:
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


def test_the_docs_explain_each_reason():
    page = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    for reason, meaning in REASONS.items():
        assert f"| `{reason}` |" in page, meaning
