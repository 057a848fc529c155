"""Slates and feedback are ready apart, for reasons that are true."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import Site, a_site

from firstclick.serve import maintenance as maintenance_module
from firstclick.wire.errors import REASONS, StoreBroken, Unavailable

FOR_SLATES, FOR_FEEDBACK = "/health/ready/recommend", "/health/ready/feedback"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    # Nothing is looked after by itself.
    with a_site(tmp_path, of_service={"poll_seconds": 600.0}) as site:
        yield site


def told(site: Site, path: str) -> tuple[int, str]:
    answer = site.ask("GET", path)
    return answer.status_code, answer.json().get("error", {}).get("reason", "")


def send_feedback(site: Site) -> int:
    token = site.recommend()["token"]
    return site.ask("POST", "/v1/models/shop/feedback", {"token": token, "click": 0}).status_code


def fail(patch: pytest.MonkeyPatch, site: Site, name: str, error: Exception) -> None:
    def failing(*arguments: Any) -> None:
        raise error

    patch.setattr(site.service.store, name, failing)


def test_both_are_ready(site: Site) -> None:
    assert told(site, FOR_SLATES) == told(site, FOR_FEEDBACK) == (200, "")
    assert site.ask("GET", FOR_FEEDBACK).json() == {"status": "ready", "age": 0.0}


def test_a_write_that_failed_ends_readiness_for_feedback_until_one_succeeds(site: Site) -> None:
    with pytest.MonkeyPatch.context() as patch:
        fail(patch, site, "append", Unavailable("the disk is full", reason="full-disk"))
        assert send_feedback(site) == 503
    assert told(site, FOR_FEEDBACK) == (503, "full-disk")
    assert told(site, FOR_SLATES) == (200, "")
    assert told(site, "/health/ready") == (200, "")
    assert send_feedback(site) == 201
    assert told(site, FOR_FEEDBACK) == (200, "")


def test_a_write_is_tried_where_none_came_lately(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    maintenance, writer = site.service.maintenance, site.service.writer
    with monkeypatch.context() as patch:
        fail(patch, site, "probe", Unavailable("the disk is full", reason="full-disk"))
        maintenance._probe_if_due()
        assert told(site, FOR_FEEDBACK) == (200, ""), "something was written a moment ago"
        writer.tried -= maintenance_module.PROBE_SECONDS
        maintenance._probe_if_due()
        assert told(site, FOR_FEEDBACK) == (503, "full-disk")
    # While nothing can be written it is tried each time.
    maintenance._probe_if_due()
    assert told(site, FOR_FEEDBACK) == (200, "")


def test_a_probe_writes_to_the_store_and_changes_no_log(site: Site) -> None:
    service = site.service
    before = service.store.models()
    service.writer.tried = 0.0
    service.maintenance._probe_if_due()
    assert service.store._database.rows("SELECT count(*) FROM meta WHERE key = 'probe'") == [(1,)]
    assert service.store.models() == before
    assert service.store.check() == []
    assert service.audit("shop").equal


def test_a_probe_of_a_broken_store_does_not_end_the_server(site: Site) -> None:
    service = site.service
    with pytest.MonkeyPatch.context() as patch:
        fail(patch, site, "probe", StoreBroken("the file was removed"))
        service.writer.tried = 0.0
        service.maintenance._probe_if_due()
    assert service.writer.broken is None
    assert told(site, FOR_FEEDBACK) == (503, "broken")
    assert told(site, FOR_SLATES) == (200, "")


def test_without_the_database_slates_go_on_and_tell_their_age(site: Site) -> None:
    maintenance = site.service.maintenance
    maintenance._pause = 0.1
    maintenance._last_contact -= 60.0
    # It had just begun to catch up.
    maintenance._behind_since["shop"] = time.monotonic() - 60.0
    answer = site.ask("GET", FOR_SLATES)
    assert answer.status_code == 200
    assert answer.json()["age"] == pytest.approx(59.8, abs=0.3)
    assert told(site, FOR_FEEDBACK) == (503, "no-database")


def test_a_model_behind_its_log_is_not_ready_for_slates(site: Site) -> None:
    site.service.maintenance._behind_since["shop"] = time.monotonic() - 60.0
    assert told(site, FOR_SLATES) == (503, "behind")
    assert told(site, FOR_FEEDBACK) == (200, ""), "feedback is kept whatever was learned"


def test_a_model_that_is_loaded_again_takes_no_feedback(site: Site) -> None:
    site.service.model("shop").set_back = "the store was set back"
    assert told(site, FOR_FEEDBACK) == (503, "set-back")
    assert told(site, FOR_SLATES) == (200, "")


def test_a_store_that_is_broken_ends_both(site: Site) -> None:
    site.service.writer.broken = StoreBroken("an fsync failed")
    assert told(site, FOR_SLATES) == told(site, FOR_FEEDBACK) == (503, "broken")


def test_one_model_that_cannot_be_served_takes_no_other_down(site: Site) -> None:
    service = site.service
    service.models.broken["bar"] = "its log is damaged"
    for path in (FOR_SLATES, FOR_FEEDBACK):
        assert site.ask("GET", path).json() == {"status": "ready", "age": 0.0, "not_served": ["bar"]}
    service.models._models.clear()
    assert told(site, FOR_SLATES) == told(site, FOR_FEEDBACK) == (503, "not-served")


def test_the_docs_explain_each_reason() -> None:
    page = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    for reason, meaning in REASONS.items():
        assert f"| `{reason}` |" in page, meaning
