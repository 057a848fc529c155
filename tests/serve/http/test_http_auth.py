"""API keys, the rule for servers without any, and pages of other origins."""

import hashlib
import logging
import re

import pytest

from firstclick.serve.http.auth import host_of, is_loopback, new_key
from tests.support.serving import Exchange, a_site

ORIGIN = "https://shop.example"


@pytest.fixture
def site(tmp_path):
    with a_site(tmp_path) as site:
        yield site


def bearer(key):
    return {"authorization": f"Bearer {key}"}


def test_a_key_is_long_and_known_by_its_hash():
    text, digest = new_key()
    assert re.fullmatch(r"fc_[A-Za-z0-9_-]{43}", text)
    assert digest == hashlib.sha256(text.encode()).digest()
    assert new_key()[0] != text


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("127.0.0.1", 200), ("127.0.0.1:8000", 200), ("127.9.8.7:1", 200), ("localhost", 200),
        ("LocalHost:8000", 200), ("[::1]", 200), ("[::1]:8000", 200), ("evil.example", 421),
        ("127.0.0.1.evil.example", 421), ("evil.example:8000", 421), ("localhost.evil.example", 421),
        ("0.0.0.0", 421), ("10.0.0.1", 421), ("", 421), ("[::2]", 421), ("127.0.0.1@evil.example", 421),
        ("2130706433", 421),
    ],
)  # fmt: skip
def test_without_keys_only_this_machine_is_answered(site, host, code):
    for method, path in (("GET", "/v1/models"), ("GET", "/"), ("GET", "/health/live"), ("POST", "/v1/empty")):
        exchange = site.runner.run(Exchange(site.app, [b"{}"]).ask(method, path, {"host": host}))
        assert exchange.code == code, path


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"])
def test_without_keys_nobody_is_answered_through_a_proxy(site, header):
    # A proxy on this machine sends our own name as Host, and lets everyone in.
    sent = {header.lower(): "203.0.113.9"}
    for method, path in (("GET", "/v1/models"), ("GET", "/"), ("GET", "/health/live"), ("POST", "/v1/keys")):
        exchange = site.runner.run(Exchange(site.app, [b"{}"]).ask(method, path, sent))
        assert exchange.code == 421, path
        assert "firstclick keys create" in exchange.body.decode()
    key = site.add_key("read")
    assert site.ask("GET", "/v1/models", headers=sent | bearer(key)).status_code == 200


def test_with_keys_any_host_is_answered(site):
    key = site.add_key("read")
    exchange = Exchange(site.app)
    site.runner.run(exchange.ask("GET", "/v1/models", {"host": "shop.example"} | bearer(key)))
    assert exchange.code == 200


def test_a_server_that_others_can_reach_is_never_open(tmp_path):
    # As when the last key is revoked on the command line while it runs.
    with a_site(tmp_path, host="0.0.0.0") as site:
        assert site.ask("GET", "/v1/models").status_code == 401
        assert site.ask("GET", "/health/live").status_code == 200


@pytest.mark.parametrize(
    "sent", ["", "Bearer", "Bearer ", "Basic {key}", "{key}", "Bearer x{key}", "Bearer {key}x"]
)
def test_what_is_not_the_key_is_unauthorised(site, sent):
    headers = {"authorization": sent.format(key=site.add_key("admin"))}
    answer = site.ask("GET", "/v1/models", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "role 'read'" in answer.json()["error"]["message"]


def test_every_stored_key_is_compared_however_early_one_fits(site, monkeypatch):
    import firstclick.serve.http.auth as access

    keys = [site.add_key("read") for _ in range(5)]
    compared = []
    real = access.hmac.compare_digest
    monkeypatch.setattr(access.hmac, "compare_digest", lambda a, b: compared.append(a) or real(a, b))
    for key in (keys[0], keys[-1], "fc_unknown"):
        compared.clear()
        site.ask("GET", "/v1/models", headers=bearer(key))
        assert len(compared) == 5


def test_the_first_key_is_an_administrators_and_closes_the_server(site):
    refused = site.ask("POST", "/v1/keys", {"name": "shop", "role": "write"})
    assert refused.status_code == 422
    assert "'admin'" in refused.json()["error"]["message"]
    assert site.ask("GET", "/v1/keys").json() == {"keys": []}

    made = site.ask("POST", "/v1/keys", {"name": "me", "role": "admin"})
    assert made.status_code == 201
    key = made.json()["key"]
    assert site.ask("GET", "/v1/keys").status_code == 401
    listed = site.ask("GET", "/v1/keys", headers=bearer(key)).json()["keys"]
    assert [set(one) for one in listed] == [{"id", "name", "role", "created"}]
    assert site.service.store.api_keys()[0].hash == hashlib.sha256(key.encode()).digest()
    second = site.ask("POST", "/v1/keys", {"name": "shop", "role": "write"}, headers=bearer(key))
    assert second.status_code == 201
    assert site.ask("GET", "/v1/keys", headers=bearer(second.json()["key"])).status_code == 403


def test_a_revoked_key_is_good_no_longer_and_the_last_administrators_stays(site):
    admin, reader = site.add_key("admin"), site.add_key("read")
    ids = {key.role: key.id for key in site.service.store.api_keys()}
    headers = bearer(admin)
    assert site.ask("GET", "/v1/models", headers=bearer(reader)).status_code == 200
    left = site.ask("DELETE", f"/v1/keys/{ids['read']}", headers=headers)
    assert [key["role"] for key in left.json()["keys"]] == ["admin"]
    assert site.ask("GET", "/v1/models", headers=bearer(reader)).status_code == 401
    assert site.ask("DELETE", f"/v1/keys/{ids['read']}", headers=headers).status_code == 404
    assert site.ask("DELETE", "/v1/keys/nonsense", headers=headers).status_code == 404
    last = site.ask("DELETE", f"/v1/keys/{ids['admin']}", headers=headers)
    assert last.status_code == 409
    assert "last one" in last.json()["error"]["message"]
    assert site.ask("GET", "/v1/models", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "body", [{"name": "", "role": "read"}, {"name": "x", "role": "owner"}, {"name": "x"}, {"role": "read"}]
)
def test_a_key_needs_a_name_and_a_role(site, body):
    assert site.ask("POST", "/v1/keys", body).status_code == 422


def test_no_key_is_ever_told_or_logged(site, caplog, monkeypatch):
    caplog.set_level(logging.DEBUG)
    admin, reader = site.add_key("admin"), site.add_key("read")
    monkeypatch.setattr(site.service.models, "all", lambda: 1 / 0)
    told = [
        site.ask(method, path, body, headers=bearer(key)).text
        for key in (admin, reader, reader + "x")
        for method, path, body in (
            ("GET", "/v1/models", None),
            ("GET", "/v1/keys", None),
            ("GET", "/metrics", None),
            ("GET", "/nope", None),
            ("POST", "/v1/empty", {"wrong": 1}),
        )
    ]
    assert "ZeroDivisionError" in caplog.text
    for key in (admin, reader):
        secret = key.removeprefix("fc_")
        assert secret not in caplog.text
        assert not [text for text in told if secret in text]


def test_an_allowed_origin_may_ask_first_and_read_the_answer(tmp_path):
    with a_site(tmp_path, allow_origin=(ORIGIN,)) as site:
        asks = {"origin": ORIGIN, "access-control-request-method": "POST"}
        preflight = site.ask("OPTIONS", "/v1/models/shop/recommend", headers=asks)
        assert preflight.status_code == 204
        assert preflight.headers["access-control-allow-origin"] == ORIGIN
        assert preflight.headers["access-control-allow-methods"] == "POST"
        assert preflight.headers["access-control-allow-headers"] == "authorization, content-type"
        assert site.ask("OPTIONS", "/nope", headers=asks).status_code == 404
        answer = site.ask("POST", "/v1/models/shop/recommend", {}, headers={"origin": ORIGIN})
        assert answer.headers["access-control-allow-origin"] == ORIGIN
        assert "firstclick-seq" in answer.headers["access-control-expose-headers"]
        assert answer.headers["vary"] == "origin"
        refused = site.ask("GET", "/v1/models/nope", headers={"origin": ORIGIN})
        assert refused.status_code == 404
        assert refused.headers["access-control-allow-origin"] == ORIGIN


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "https://shop.example.evil.example", ""])
def test_another_origin_gets_no_word_of_it(tmp_path, origin):
    with a_site(tmp_path, allow_origin=(ORIGIN,)) as site:
        asks = {"origin": origin, "access-control-request-method": "POST"}
        for method in ("OPTIONS", "POST"):
            answer = site.ask(method, "/v1/models/shop/recommend", {}, headers=asks)
            assert answer.status_code == (405 if method == "OPTIONS" else 200)
            assert not [name for name in answer.headers if name.startswith("access-control")]


def test_without_allowed_origins_there_is_no_cors_at_all(site):
    asks = {"origin": ORIGIN, "access-control-request-method": "POST"}
    answer = site.ask("OPTIONS", "/v1/models/shop/recommend", headers=asks)
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith(("access-control", "vary"))]


def test_names_of_this_machine():
    assert all(map(is_loopback, ["localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost."]))
    assert not any(map(is_loopback, ["", "0.0.0.0", "::", "192.168.0.1", "localhost.example", "1"]))
    assert [host_of(text) for text in ("a:1", "a", "[::1]:5", "::1")] == ["a", "a", "[::1]", "::1"]
