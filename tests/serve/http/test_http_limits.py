"""Limits: of a body while it is read, of requests at once, of requests per second."""

import asyncio
import threading

import pytest

from firstclick.serve.http.auth import MOST_CALLERS, RateLimit
from firstclick.wire.errors import Overloaded
from tests.support.serving import FEEDBACK, RECOMMEND, Exchange

BULK = "/v1/models/shop/items:bulk"
WITHDRAW = b'{"withdraw": ["tea"]}'


@pytest.fixture
def site(open_site):
    return open_site(max_body=1000, max_bulk_body=5000)


def test_a_body_is_read_up_to_its_limit(site):
    pieces = [b"x" * 600] * 10
    announced = site.raw("POST", RECOMMEND, *pieces, content_length="1001")
    assert (announced.code, announced.n_read) == (413, 0)
    assert b"1000 bytes" in announced.body
    silent = site.raw("POST", RECOMMEND, *pieces)
    assert (silent.code, silent.n_read) == (413, 2)
    whole = b'{"request_id": "visit"}' + b" " * 977
    assert len(whole) == 1000
    assert site.raw("POST", RECOMMEND, *(whole[i : i + 7] for i in range(0, 1000, 7))).code == 200
    # Bulk routes take more.
    for size, code in ((4900, 200), (5001, 413)):
        assert site.raw("POST", BULK, WITHDRAW.ljust(size)).code == code


def test_a_batch_has_limits_of_its_own(open_site):
    site = open_site()
    path = f"{FEEDBACK}:batch"
    exchange = site.raw("POST", path, *[b"x" * 600] * 10, content_length="64000001")
    assert (exchange.code, exchange.n_read) == (413, 0)
    # As many of the longest tokens as a batch may have.
    entries = [{"token": "A" * 8192, "clicks": list(range(255)), "examined": 255}] * 1000
    answer = site.ask("POST", path, {"feedback": entries})
    assert answer.status_code == 200
    assert [result["status"] for result in answer.json()["results"]] == ["unknown"] * 1000
    refused = site.ask("POST", path, {"feedback": [*entries, {"token": "A", "click": 0}]})
    assert refused.status_code == 413
    assert "1000 entries, got 1001" in refused.json()["error"]["message"]


FORMS = [
    ({}, 200), ({"content-type": "application/json; charset=utf-8"}, 200),
    ({"content-type": 'Application/JSON;charset="UTF-8"'}, 200), ({"content-encoding": "identity"}, 200),
    ({"content-type": "text/plain"}, 415), ({"content-type": ""}, 415),
    ({"content-type": "application/jsonx"}, 415),
    ({"content-type": "application/json; charset=latin-1"}, 415),
    ({"content-type": "application/x-www-form-urlencoded"}, 415),
    ({"content-type": "multipart/form-data; boundary=x"}, 415), ({"content-encoding": "gzip"}, 415),
    ({"content-encoding": "br, identity"}, 415),
]  # fmt: skip


def test_a_body_has_one_form(site):
    for headers, code in FORMS:
        exchange = site.raw("POST", RECOMMEND, b"{}", **headers)
        assert (exchange.code, exchange.n_read) == (code, code == 200), headers
    path = "/v1/models/new/import"
    assert site.post_bytes(path, b"{}").status_code == 415
    answer = site.post_bytes(path, b"{}", "application/octet-stream")
    assert answer.status_code == 422
    assert "not an exported model" in answer.json()["error"]["message"]


def test_more_requests_at_once_are_refused_and_health_is_not(open_site, monkeypatch):
    site = open_site(max_requests=2)
    writing, release = threading.Semaphore(0), threading.Event()
    real = site.service.store.append

    def append(*batch):
        writing.release()
        release.wait(20)
        return real(*batch)

    monkeypatch.setattr(site.service.store, "append", append)

    async def many():
        waiting = [asyncio.create_task(Exchange(site.app, [WITHDRAW]).ask("POST", BULK)) for _ in range(2)]
        await asyncio.to_thread(writing.acquire)
        third = await Exchange(site.app, [b"{}"]).ask("POST", RECOMMEND)
        live = await Exchange(site.app).ask("GET", "/health/live")
        release.set()
        await asyncio.gather(*waiting)
        after = await Exchange(site.app, [b"{}"]).ask("POST", RECOMMEND)
        return third.code, third.headers["retry-after"], live.code, after.code

    assert site.runner.run(many()) == (429, "1", 200, 200)


def test_requests_of_one_key_are_limited_and_another_is_not_touched(open_site):
    site = open_site(requests_per_second=0.001)
    keys = [site.bearer("admin") for _ in range(2)]
    first = [site.ask("GET", "/v1/models", headers=keys[0]) for _ in range(2)]
    assert [answer.status_code for answer in first] == [200, 429]
    assert 990 <= int(first[1].headers["retry-after"]) <= 1000
    assert site.ask("GET", "/v1/models", headers=keys[1]).status_code == 200
    # Those without a good key share their address's, so that guessing is slow too.
    wrong = {"authorization": "Bearer fc_wrong"}
    assert site.ask("GET", "/v1/models", headers=wrong).status_code == 401
    assert site.ask("GET", "/v1/models").status_code == 429
    assert site.ask("GET", "/health/ready").status_code == 200


def test_a_limit_allows_a_second_of_requests_at_once_and_fills_again():
    now = 0.0
    limit = RateLimit(2.0, lambda: now)

    def takes(caller, n):
        for _ in range(n):
            limit.take(caller)
        with pytest.raises(Overloaded) as refused:
            limit.take(caller)
        assert refused.value.retry_after == pytest.approx(0.5)

    takes("a", 2)
    takes("b", 2)
    now = 0.5
    takes("a", 1)
    now = 1000.0
    takes("a", 2)
    # Memory does not grow with the callers.
    for number in range(MOST_CALLERS + 500):
        limit.take(number)
    assert len(limit) == MOST_CALLERS
