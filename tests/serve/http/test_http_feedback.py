"""Recommendations and feedback over HTTP: each outcome has its own status, and each is counted."""

import asyncio

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
