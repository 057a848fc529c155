"""Limits: of a body while it is read, of requests at once, of requests a second."""

import asyncio
import threading

import pytest

from firstclick.serve.http.auth import MOST_CALLERS, RateLimit, caller_of
from firstclick.wire.errors import Overloaded
from tests.support.serving import Exchange, a_site

RECOMMEND = "/v1/models/shop/recommend"
BULK = "/v1/models/shop/items:bulk"


@pytest.fixture
def site(tmp_path):
    with a_site(tmp_path, max_body=1000, max_bulk_body=5000) as site:
        yield site


def test_a_body_that_says_it_is_too_large_is_not_read(site):
    exchange = Exchange(site.app, [b"x" * 600] * 10)
    site.runner.run(exchange.ask("POST", RECOMMEND, {"content-length": "1001"}))
    assert exchange.code == 413
    assert exchange.n_read == 0
    assert b"1000 bytes" in exchange.body


def test_a_body_that_does_not_say_so_is_read_no_further_than_the_limit(site):
    exchange = Exchange(site.app, [b"x" * 600] * 10)
    site.runner.run(exchange.ask("POST", RECOMMEND))
    assert exchange.code == 413
    assert exchange.n_read == 2


def test_a_body_in_pieces_is_put_together(site):
    whole = b'{"request_id": "visit"}' + b" " * 977
    assert len(whole) == 1000
    exchange = Exchange(site.app, [whole[i : i + 7] for i in range(0, 1000, 7)])
    site.runner.run(exchange.ask("POST", RECOMMEND))
    assert exchange.code == 200


def test_bulk_routes_take_more(site):
    for size, code in ((4900, 200), (5001, 413)):
        body = b'{"withdraw": ["tea"]}'
        exchange = Exchange(site.app, [body + b" " * (size - len(body))])
        site.runner.run(exchange.ask("POST", BULK))
        assert exchange.code == code


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, 200),
        ({"content-type": "application/json; charset=utf-8"}, 200),
        ({"content-type": 'Application/JSON;charset="UTF-8"'}, 200),
        ({"content-encoding": "identity"}, 200),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": ""}, 415),
        ({"content-type": "application/jsonx"}, 415),
        ({"content-type": "application/json; charset=latin-1"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "multipart/form-data; boundary=x"}, 415),
        ({"content-encoding": "gzip"}, 415),
        ({"content-encoding": "br, identity"}, 415),
    ],
)
def test_a_body_has_one_form(site, headers, code):
    exchange = site.runner.run(Exchange(site.app, [b"{}"]).ask("POST", RECOMMEND, headers))
    assert exchange.code == code
    assert exchange.n_read == (1 if code == 200 else 0)


def test_an_import_takes_a_file_and_nothing_else(site):
    path = "/v1/models/new/import"
    assert site.post_bytes(path, b"{}").status_code == 415
    answer = site.post_bytes(path, b"{}", "application/octet-stream")
    assert answer.status_code == 422
    assert "not an exported model" in answer.json()["error"]["message"]


def test_more_requests_at_once_are_refused_and_health_is_not(tmp_path, monkeypatch):
    with a_site(tmp_path, max_requests=2) as site:
        release = threading.Event()
        real = site.service.store.append
        monkeypatch.setattr(site.service.store, "append", lambda *given: (release.wait(), real(*given))[1])

        async def crowd():
            body = b'{"withdraw": ["tea"]}'
            waiting = [asyncio.create_task(Exchange(site.app, [body]).ask("POST", BULK)) for _ in range(2)]
            while site.app.site.metrics.running < 2:
                await asyncio.sleep(0)
            third = await Exchange(site.app, [b"{}"]).ask("POST", RECOMMEND)
            live = await Exchange(site.app).ask("GET", "/health/live")
            release.set()
            await asyncio.gather(*waiting)
            after = await Exchange(site.app, [b"{}"]).ask("POST", RECOMMEND)
            return third.code, third.headers, live.code, after.code

        code, headers, live, after = site.runner.run(crowd())
        assert (code, headers["retry-after"], live, after) == (429, "1", 200, 200)


def test_one_key_may_ask_so_often_and_another_is_not_touched(tmp_path):
    with a_site(tmp_path, requests_per_second=0.001) as site:
        keys = [{"authorization": f"Bearer {site.add_key('admin')}"} for _ in range(2)]
        first = [site.ask("GET", "/v1/models", headers=keys[0]) for _ in range(2)]
        assert [answer.status_code for answer in first] == [200, 429]
        assert 990 <= int(first[1].headers["retry-after"]) <= 1000
        assert site.ask("GET", "/v1/models", headers=keys[1]).status_code == 200
        # Those without a good key share their address's, so that guessing is slow too.
        wrong = {"authorization": "Bearer fc_wrong"}
        assert site.ask("GET", "/v1/models", headers=wrong).status_code == 401
        assert site.ask("GET", "/v1/models").status_code == 429
        assert site.ask("GET", "/health/ready").status_code == 200


def test_a_bucket_fills_again():
    now = [0.0]
    limit = RateLimit(2.0, lambda: now[0])
    limit.take("a")
    limit.take("a")
    with pytest.raises(Overloaded) as refused:
        limit.take("a")
    assert refused.value.retry_after == pytest.approx(0.5)
    limit.take("b")
    now[0] = 0.5
    limit.take("a")
    with pytest.raises(Overloaded):
        limit.take("a")
    now[0] = 1000.0
    limit.take("a")
    limit.take("a")
    with pytest.raises(Overloaded):
        limit.take("a")


def test_callers_without_number_take_no_memory_without_bound():
    limit = RateLimit(1.0)
    for number in range(MOST_CALLERS + 500):
        limit.take(number)
    assert len(limit) == MOST_CALLERS


def test_an_address_of_version_6_is_its_network():
    assert caller_of("2001:db8:1:2:aaaa::1") == caller_of("2001:db8:1:2:bbbb::9")
    assert caller_of("2001:db8:1:3::1") != caller_of("2001:db8:1:2::1")
    assert caller_of("fe80::1%eth0") == "fe80::/64"
    assert caller_of("192.0.2.1") != caller_of("192.0.2.2")
    assert caller_of(None) == "?"


def test_an_address_is_the_same_in_every_form_that_proxies_write():
    for text in ("192.0.2.1:40000", "::ffff:192.0.2.1", "[::ffff:192.0.2.1]:443", " 192.0.2.1"):
        assert caller_of(text) == caller_of("192.0.2.1")
    for text in ("[2001:db8::1]", "[2001:db8::1]:40000", "[2001:db8::1%eth0]:5", "2001:DB8::1"):
        assert caller_of(text) == caller_of("2001:db8::1")
    # Visitors of version 4 are told apart in either form.
    assert caller_of("::ffff:192.0.2.1") != caller_of("::ffff:192.0.2.2")


@pytest.mark.parametrize("text", ["", "unknown", "192.0.2.1.evil", "a:b", "_hidden", "1:2:3"])
def test_what_is_no_address_is_one_caller(text):
    assert caller_of(text) == caller_of("another")
