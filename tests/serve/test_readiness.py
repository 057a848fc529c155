"""Slates and feedback are ready apart, for reasons that are true."""

from pathlib import Path

import pytest

from firstclick.wire.errors import REASONS, StoreBroken, Unavailable
from tests.support import seam
from tests.support.clock import Clock
from tests.support.serving import a_site

FOR_SLATES, FOR_FEEDBACK = "/health/ready/recommend", "/health/ready/feedback"


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def site(tmp_path, clock):
    with a_site(tmp_path, of_service={"clock": clock, "tuning": seam.BY_HAND}) as site:
        yield site


def told(site, path):
    answer = site.ask("GET", path)
    return answer.status_code, answer.json().get("error", {}).get("reason", "")


def send_feedback(site):
    token = site.recommend()["token"]
    return site.ask("POST", "/v1/models/shop/feedback", {"token": token, "click": 0}).status_code


def fail(patch, site, name, error):
    def failing(*arguments):
        raise error

    patch.setattr(site.service.store, name, failing)


def test_both_are_ready(site):
    assert told(site, FOR_SLATES) == told(site, FOR_FEEDBACK) == (200, "")
    assert site.ask("GET", FOR_FEEDBACK).json() == {"status": "ready", "age": 0.0}


def test_a_write_that_failed_ends_readiness_for_feedback_until_one_succeeds(site):
    with pytest.MonkeyPatch.context() as patch:
        fail(patch, site, "append", Unavailable("the disk is full", reason="full-disk"))
        assert send_feedback(site) == 503
    assert told(site, FOR_FEEDBACK) == (503, "full-disk")
    assert told(site, FOR_SLATES) == (200, "")
    assert told(site, "/health/ready") == (200, "")
    assert send_feedback(site) == 201
    assert told(site, FOR_FEEDBACK) == (200, "")


def test_a_write_is_tried_where_none_came_lately(site, clock, monkeypatch):
    with monkeypatch.context() as patch:
        fail(patch, site, "probe", Unavailable("the disk is full", reason="full-disk"))
        site.service.run_background()
        assert told(site, FOR_FEEDBACK) == (200, ""), "something was written a moment ago"
        clock.move(5)
        site.service.run_background()
        assert told(site, FOR_FEEDBACK) == (503, "full-disk")
    # While nothing can be written it is tried each time.
    site.service.run_background()
    assert told(site, FOR_FEEDBACK) == (200, "")


def test_a_probe_writes_to_the_store_and_changes_no_log(site, clock):
    service = site.service
    before = service.store.models()
    clock.move(5)
    service.run_background()
    assert service.store._database.rows("SELECT count(*) FROM meta WHERE key = 'probe'") == [(1,)]
    assert service.store.models() == before
    assert service.store.check() == []
    assert service.audit("shop").equal


def test_a_probe_of_a_broken_store_does_not_end_the_server(site, clock):
    service = site.service
    with pytest.MonkeyPatch.context() as patch:
        fail(patch, site, "probe", StoreBroken("the file was removed"))
        clock.move(5)
        service.run_background()
    assert service.writer.broken is None
    assert told(site, FOR_FEEDBACK) == (503, "broken")
    assert told(site, FOR_SLATES) == (200, "")


def test_without_the_database_slates_go_on_and_tell_their_age(site, clock):
    maintenance = site.service.maintenance
    clock.move(60.0)
    # It had just begun to catch up.
    maintenance._behind_since["shop"] = clock.monotonic() - 60.0
    answer = site.ask("GET", FOR_SLATES)
    assert answer.status_code == 200
    assert answer.json()["age"] == 58.0, "beyond two pauses"
    assert told(site, FOR_FEEDBACK) == (503, "no-database")


def test_a_model_behind_its_log_is_not_ready_for_slates(site):
    site.service.maintenance._behind_since["shop"] = site.service.clock.monotonic() - 60.0
    assert told(site, FOR_SLATES) == (503, "behind")
    assert told(site, FOR_FEEDBACK) == (200, ""), "feedback is kept whatever was learned"


def test_a_model_that_is_loaded_again_takes_no_feedback(site):
    site.service.model("shop").set_back = "the store was set back"
    assert told(site, FOR_FEEDBACK) == (503, "set-back")
    assert told(site, FOR_SLATES) == (200, "")


def test_a_store_that_is_broken_ends_both(site):
    site.service.writer.broken = StoreBroken("an fsync failed")
    assert told(site, FOR_SLATES) == told(site, FOR_FEEDBACK) == (503, "broken")


def test_one_model_that_cannot_be_served_takes_no_other_down(site):
    service = site.service
    service.models.broken["bar"] = "its log is damaged"
    for path in (FOR_SLATES, FOR_FEEDBACK):
        assert site.ask("GET", path).json() == {"status": "ready", "age": 0.0, "not_served": ["bar"]}
    service.models._models.clear()
    assert told(site, FOR_SLATES) == told(site, FOR_FEEDBACK) == (503, "not-served")


def test_the_docs_explain_each_reason():
    page = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    for reason, meaning in REASONS.items():
        assert f"| `{reason}` |" in page, meaning
