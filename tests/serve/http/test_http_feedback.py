"""Recommendations and feedback over HTTP: each outcome has its own status, and each is counted."""

import asyncio
import time

import httpx
import pytest

from firstclick.serve.http.messages import LoopInbox
from firstclick.serve.log.token import Token, new_nonce
from firstclick.wire.errors import StoreBroken, Unavailable
from tests.support import seam
from tests.support.serving import Exchange, a_server, a_site

FEEDBACK = "/v1/models/shop/feedback"
BATCH = "/v1/models/shop/feedback:batch"


@pytest.fixture
def site(tmp_path):
    with a_site(tmp_path) as site:
        yield site


def old_token(site, days):
    issued = int((time.time() - days * 86_400) * 1000)
    rows = (0).to_bytes(4, "little")
    return site.service.keys.sign(Token(site.service.model("shop").id, issued, new_nonce(issued), rows))


def test_a_slate_has_items_scores_a_token_and_its_place(site):
    answer = site.ask("POST", "/v1/models/shop/recommend", {})
    assert answer.status_code == 200
    told = answer.json()
    assert set(told) == {"items", "scores", "token", "seq", "reasons"}
    assert len(told["items"]) == len(told["scores"]) == 3
    assert told["reasons"] == ["policy"] * 3
    assert answer.headers["firstclick-seq"] == str(told["seq"]) == "1"
    assert "firstclick-age" not in answer.headers


def test_the_age_of_what_is_known_is_told_while_the_store_is_silent(site, monkeypatch):
    monkeypatch.setattr(site.service.maintenance, "silence", lambda: 12.34)
    answer = site.ask("POST", "/v1/models/shop/recommend", {})
    assert answer.status_code == 200
    assert answer.headers["firstclick-age"] == "12.3"


def test_every_outcome_has_its_status(site):
    token = site.recommend()["token"]
    forged = token[:-1] + ("B" if token.endswith("A") else "A")
    answers = {
        "accepted": site.ask("POST", FEEDBACK, {"token": token, "click": 1}),
        "duplicate": site.ask("POST", FEEDBACK, {"token": token, "click": 1}),
        "conflict": site.ask("POST", FEEDBACK, {"token": token, "click": None}),
        "unknown": site.ask("POST", FEEDBACK, {"token": forged, "click": 1}),
        "expired": site.ask("POST", FEEDBACK, {"token": old_token(site, 8), "click": 0}),
        "malformed": site.ask("POST", FEEDBACK, {"token": site.recommend()["token"], "click": 3}),
        "too-large": site.post_bytes(FEEDBACK, b" " * 1_000_001),
    }
    codes = {name: answer.status_code for name, answer in answers.items()}
    assert codes == {
        "accepted": 201, "duplicate": 200, "conflict": 409, "unknown": 404, "expired": 410, "malformed": 422,
        "too-large": 413,
    }  # fmt: skip
    assert answers["accepted"].json() == {"status": "accepted", "seq": 2}
    assert answers["duplicate"].json() == {"status": "duplicate", "seq": 2}
    for name, answer in answers.items():
        if answer.status_code >= 400:
            assert answer.json()["error"]["status"] == name
            assert answer.json()["error"]["message"]
    assert site.service.outcomes["shop"] == dict.fromkeys(codes, 1)
    assert seam.model(site.service, "shop").seq == 2


def test_a_store_that_cannot_write_is_unavailable_and_slates_are_still_served(site, monkeypatch):
    def append(batch, folded):
        raise Unavailable("the disk is full; send the same again later", retry_after=2.5)

    token = site.recommend()["token"]
    monkeypatch.setattr(site.service.store, "append", append)
    answer = site.ask("POST", FEEDBACK, {"token": token, "click": 0})
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "3"
    assert answer.json()["error"]["status"] == "unavailable"
    assert site.ask("POST", "/v1/models/shop/recommend", {}).status_code == 200
    assert site.service.outcomes["shop"] == {"unavailable": 1}
    monkeypatch.undo()
    assert site.ask("POST", FEEDBACK, {"token": token, "click": 0}).status_code == 201


def test_a_broken_store_ends_readiness(site, monkeypatch):
    def append(batch, folded):
        raise StoreBroken("fsync failed")

    token = site.recommend()["token"]
    assert site.ask("GET", "/health/ready").json() == {"status": "ready", "durability": "full"}
    monkeypatch.setattr(site.service.store, "append", append)
    assert site.ask("POST", FEEDBACK, {"token": token, "click": 0}).status_code == 503
    ready = site.ask("GET", "/health/ready")
    assert ready.status_code == 503
    assert "restart" in ready.json()["error"]["message"]
    assert site.ask("GET", "/health/live").status_code == 200


def test_a_batch_may_have_a_thousand_entries(site):
    entry = {"token": site.recommend()["token"], "click": 0}
    assert site.ask("POST", BATCH, {"feedback": [entry] * 1000}).status_code == 200
    answer = site.ask("POST", BATCH, {"feedback": [entry] * 1001})
    assert answer.status_code == 413
    assert "1000 entries, got 1001" in answer.json()["error"]["message"]


def test_a_client_that_leaves_in_the_middle_of_its_body_gets_nothing(site):
    exchange = site.runner.run(Exchange(site.app, [b'{"token": '], gone=True).ask("POST", FEEDBACK))
    assert exchange.sent == []
    assert site.app.site.metrics.running == 0


def test_one_token_from_many_connections_is_counted_once(tmp_path):
    async def storm(address):
        async with httpx.AsyncClient(base_url=address, timeout=30) as client:
            slate = (await client.post("/v1/models/shop/recommend", json={})).json()
            body = {"token": slate["token"], "click": 2}
            answers = await asyncio.gather(*(client.post(FEEDBACK, json=body) for _ in range(200)))
            return sorted(answer.status_code for answer in answers)

    with a_server(tmp_path) as server:
        assert asyncio.run(storm(server.address)) == [200] * 199 + [201]


def test_answers_from_another_thread_wake_the_loop_once_for_many():
    async def wait():
        loop = asyncio.get_running_loop()
        woken = []
        real = loop.call_soon_threadsafe

        def counted(call, *arguments):
            woken.append(call)
            return real(call, *arguments)

        loop.call_soon_threadsafe = counted
        inbox = LoopInbox()
        futures = [loop.create_future() for _ in range(50)]
        for number, future in enumerate(futures):
            inbox.post(future, number)
        told = await asyncio.gather(*futures)
        late = loop.create_future()
        inbox.post(late, 50)
        return [*told, await late], len(woken)

    assert asyncio.run(wait()) == (list(range(51)), 2)


def test_a_closed_loop_does_not_stop_the_one_who_answers():
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    loop.close()
    inbox = LoopInbox()
    inbox.post(future, 1)
    inbox.post(future, 2)
