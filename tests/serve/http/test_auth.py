"""API keys, the rule for servers without any, and pages of other origins."""

import hashlib
import hmac
import logging
import re

from tests.support.serving import RECOMMEND

ORIGIN = "https://shop.example"
PREFLIGHT = {"origin": ORIGIN, "access-control-request-method": "POST"}


def bearer(key):
    return {"authorization": f"Bearer {key}"}


HERE = [
    "127.0.0.1", "127.0.0.1:8000", "127.9.8.7:1", "localhost", "LocalHost:8000", "localhost.", "[::1]",
    "[::1]:8000", "::1",
]  # fmt: skip
ELSEWHERE = [
    "evil.example", "127.0.0.1.evil.example", "evil.example:8000", "localhost.evil.example", "0.0.0.0",
    "10.0.0.1", "", "[::2]", "::", "127.0.0.1@evil.example", "2130706433", "1",
]  # fmt: skip


def test_without_keys_only_this_machine_is_answered(site):
    for host in HERE + ELSEWHERE:
        for method, path in (("GET", "/v1/models"), ("GET", "/"), ("POST", "/v1/empty")):
            code = site.raw(method, path, b"{}", host=host).code
            assert code == (200 if host in HERE else 421), (host, path)
        assert site.raw("GET", "/health/live", host=host).code == (200 if host in HERE else 421), host
    # With a key any host is answered.
    exchange = site.raw("GET", "/v1/models", host="shop.example", **site.bearer("read"))
    assert exchange.code == 200


def test_without_keys_requests_through_a_proxy_are_refused(site):
    # A proxy on this machine sends our own name as Host, and passes on all requests.
    headers = ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"]
    for header in headers:
        for method, path in (("GET", "/v1/models"), ("GET", "/health/live"), ("POST", "/v1/keys")):
            exchange = site.raw(method, path, b"{}", **{header.lower(): "203.0.113.9"})
            assert exchange.code == 421, path
            assert "firstclick keys create" in exchange.body.decode()
    key = site.bearer("read")
    for header in headers:
        assert site.ask("GET", "/v1/models", headers=key | {header: "203.0.113.9"}).status_code == 200


def test_a_server_that_others_can_reach_is_never_open(open_site):
    # As when the last key is revoked on the command line while it runs.
    site = open_site(host="0.0.0.0")
    assert site.ask("GET", "/v1/models").status_code == 401
    assert site.ask("GET", "/health/live").status_code == 200


def test_a_wrong_key_is_unauthorised(site):
    key = site.add_key("admin")
    for header in ("", "Bearer", "Bearer ", f"Basic {key}", key, f"Bearer x{key}", f"Bearer {key}x"):
        answer = site.ask("GET", "/v1/models", headers={"authorization": header})
        assert answer.status_code == 401, header
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "role 'read'" in answer.json()["error"]["message"]


def test_every_stored_key_is_compared_however_early_one_fits(site, monkeypatch):
    keys = [site.add_key("read") for _ in range(5)]
    compared = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append(a) or real(a, b))
    for key in (keys[0], keys[-1], "fc_unknown"):
        compared.clear()
        site.ask("GET", "/v1/models", headers=bearer(key))
        assert len(compared) == 5


def test_the_first_key_is_an_administrators_and_closes_the_server(site):
    refused = site.ask("POST", "/v1/keys", {"name": "shop", "role": "write"})
    assert refused.status_code == 422
    assert "'admin'" in refused.json()["error"]["message"]
    assert site.ask("GET", "/v1/keys").json() == {"keys": []}

    created = site.ask("POST", "/v1/keys", {"name": "me", "role": "admin"})
    assert created.status_code == 201
    key = created.json()["key"]
    assert re.fullmatch(r"fc_[A-Za-z0-9_-]{43}", key)
    assert site.ask("GET", "/v1/keys").status_code == 401
    listed = site.ask("GET", "/v1/keys", headers=bearer(key)).json()["keys"]
    assert [set(facts) for facts in listed] == [{"id", "name", "role", "created"}]
    # Only its hash is stored.
    assert site.service.store.api_keys()[0].hash == hashlib.sha256(key.encode()).digest()
    second = site.ask("POST", "/v1/keys", {"name": "shop", "role": "write"}, headers=bearer(key))
    assert second.status_code == 201
    assert second.json()["key"] != key
    assert site.ask("GET", "/v1/keys", headers=bearer(second.json()["key"])).status_code == 403


def test_a_revoked_key_is_refused_and_the_last_administrators_stays(site):
    admin, reader = site.bearer("admin"), site.bearer("read")
    listed = site.ask("GET", "/v1/keys", headers=admin).json()["keys"]
    paths = {key["role"]: f"/v1/keys/{key['id']}" for key in listed}
    assert site.ask("GET", "/v1/models", headers=reader).status_code == 200
    left = site.ask("DELETE", paths["read"], headers=admin)
    assert [key["role"] for key in left.json()["keys"]] == ["admin"]
    assert site.ask("GET", "/v1/models", headers=reader).status_code == 401
    assert site.ask("DELETE", paths["read"], headers=admin).status_code == 404
    assert site.ask("DELETE", "/v1/keys/nonsense", headers=admin).status_code == 404
    assert site.ask("DELETE", paths["admin"], headers=admin).status_code == 409
    assert site.ask("GET", "/v1/models", headers=admin).status_code == 200


def test_no_key_is_answered_or_logged(site, caplog, monkeypatch):
    caplog.set_level(logging.DEBUG)
    keys = [site.add_key("admin"), site.add_key("read")]
    monkeypatch.setattr(site.service.models, "all", lambda: 1 / 0)
    answers = [
        site.ask(method, path, body, headers=bearer(key)).text
        for key in (*keys, keys[1] + "x")
        for method, path, body in (
            ("GET", "/v1/models", None), ("GET", "/v1/keys", None), ("GET", "/metrics", None),
            ("GET", "/nope", None), ("POST", "/v1/empty", {"wrong": 1}),
        )
    ]  # fmt: skip
    assert "ZeroDivisionError" in caplog.text
    for secret in (key.removeprefix("fc_") for key in keys):
        assert not [text for text in (caplog.text, *answers) if secret in text]


# Pages of other origins


def test_an_allowed_origin_may_ask_first_and_read_the_answer(open_site):
    site = open_site(allow_origin=(ORIGIN,))
    preflight = site.ask("OPTIONS", RECOMMEND, headers=PREFLIGHT)
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == ORIGIN
    assert preflight.headers["access-control-allow-methods"] == "POST"
    assert preflight.headers["access-control-allow-headers"] == "authorization, content-type"
    assert site.ask("OPTIONS", "/nope", headers=PREFLIGHT).status_code == 404
    answer = site.ask("POST", RECOMMEND, {}, headers={"origin": ORIGIN})
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert "firstclick-seq" in answer.headers["access-control-expose-headers"]
    assert answer.headers["vary"] == "origin"
    refused = site.ask("GET", "/v1/models/nope", headers={"origin": ORIGIN})
    assert refused.status_code == 404
    assert refused.headers["access-control-allow-origin"] == ORIGIN


def test_another_origin_gets_no_header_of_cors(open_site):
    site = open_site(allow_origin=(ORIGIN,))
    for origin in ("https://evil.example", "null", f"{ORIGIN}.evil.example", ""):
        for method, code in (("OPTIONS", 405), ("POST", 200)):
            answer = site.ask(method, RECOMMEND, {}, headers=PREFLIGHT | {"origin": origin})
            assert answer.status_code == code
            assert not [name for name in answer.headers if name.startswith("access-control")]


def test_without_allowed_origins_there_is_no_cors_at_all(site):
    answer = site.ask("OPTIONS", RECOMMEND, headers=PREFLIGHT)
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith(("access-control", "vary"))]
