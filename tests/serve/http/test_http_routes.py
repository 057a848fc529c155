"""The table of routes: what is found, who is let in, what is documented."""

import json
import re

import pytest

from firstclick.serve.http.auth import ADMINS, OPEN, PAGES, READERS, WRITERS, Role
from firstclick.serve.http.openapi import codes, document
from firstclick.serve.http.routes import HEALTH, ROUTES, Matcher, Route
from firstclick.serve.http.static import static_files
from tests.support.serving import Exchange, a_site

KEY_ROLES = {None: None, **{role.value: role for role in Role}, "owner": None}  # the last is no role
WHO_MAY = {
    "GET /": OPEN,
    "GET /health/live": OPEN,
    "GET /health/ready": OPEN,
    "GET /health/ready/feedback": OPEN,
    "GET /health/ready/recommend": OPEN,
    "GET /metrics": READERS,
    "GET /openapi.json": READERS,
    "GET /v1/models": READERS,
    "GET /v1/models/{model}": READERS,
    "DELETE /v1/models/{model}": ADMINS,
    "GET /v1/models/{model}/items": READERS,
    "GET /v1/models/{model}/view": READERS,
    "POST /v1/empty": WRITERS,
    "POST /v1/models/{model}/recommend": PAGES,
    "POST /v1/models/{model}/feedback": PAGES,
    "POST /v1/models/{model}/feedback:batch": WRITERS,
    "PUT /v1/models/{model}/items/{id}": WRITERS,
    "PATCH /v1/models/{model}/items/{id}": WRITERS,
    "DELETE /v1/models/{model}/items/{id}": WRITERS,
    "POST /v1/models/{model}/items:bulk": WRITERS,
    "POST /v1/models/{model}/items:availability": WRITERS,
    "PUT /v1/models/{model}/lists/{list}": WRITERS,
    "DELETE /v1/models/{model}/lists/{list}": WRITERS,
    "GET /v1/models/{model}/lists": READERS,
    "PUT /v1/models/{model}/baseline": ADMINS,
    "DELETE /v1/models/{model}/baseline": ADMINS,
    "GET /v1/models/{model}/baseline": READERS,
    "POST /v1/models/{model}/trial": ADMINS,
    "PATCH /v1/models/{model}/trial": ADMINS,
    "POST /v1/models/{model}/trial/stop": ADMINS,
    "GET /v1/models/{model}/trial": READERS,
    "POST /v1/models/{model}/warm-start": ADMINS,
    "PATCH /v1/models/{model}": ADMINS,
    "POST /v1/models": ADMINS,
    "GET /v1/models/{model}/audit": ADMINS,
    "GET /v1/models/{model}/export": ADMINS,
    "POST /v1/models/{model}/import": ADMINS,
    "POST /v1/models/{model}/fork": ADMINS,
    "POST /v1/models/{model}/rollback": ADMINS,
    "GET /v1/keys": ADMINS,
    "POST /v1/keys": ADMINS,
    "DELETE /v1/keys/{key}": ADMINS,
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with a_site(tmp_path_factory.mktemp("site")) as site:
        yield site


def test_the_roles_are_these_and_no_route_goes_without():
    table = {f"{route.method} {route.path}": route.roles for route in ROUTES}
    files = {name: role for name, role in table.items() if name.startswith("GET /ui/")}
    assert files
    assert set(files.values()) == {OPEN}
    assert {name: role for name, role in table.items() if name not in files} == WHO_MAY
    with pytest.raises(TypeError, match="say which roles"):
        Route("GET", "/v1/secret", None, print, HEALTH, "Forgotten", "")


@pytest.mark.parametrize("sent", KEY_ROLES, ids=str)
def test_every_route_lets_in_the_roles_it_names_and_no_others(tmp_path, sent):
    with a_site(tmp_path, page_requests_per_second=0.0) as site:
        keys = {role: site.add_key(role) for role in KEY_ROLES if role}
        # The origin and the host of a page of the server itself.
        page = {"origin": "http://127.0.0.1", "host": "127.0.0.1"}
        headers = {"authorization": f"Bearer {keys[sent]}", **page} if sent else {}
        for route in ROUTES:
            path = re.sub(r"{\w+}", "none", route.path)
            exchange = site.runner.run(Exchange(site.app, [b"{"]).ask(route.method, path, headers))
            may = route.roles == OPEN or KEY_ROLES[sent] in route.roles
            refused = exchange.code in (401, 403)
            assert refused is not may, (route.method, route.path, exchange.code)
            if refused:
                assert exchange.code == (403 if sent else 401), route.path
                assert ("www-authenticate" in exchange.headers) is (sent is None)
            assert exchange.code < 500


def test_a_path_that_is_not_there(site):
    for path in ("/nope", "/v1", "/v1/", "/v1/models/", "/v1/models/shop/", "/v1/models/shop/nope", "//"):
        answer = site.runner.run(Exchange(site.app).ask("GET", path))
        assert answer.code == 404, path
        error = json.loads(answer.body)["error"]
        assert error["status"] == "unknown"
        assert "/openapi.json" in error["message"]


@pytest.mark.parametrize(
    "path",
    [
        "/ui/../page.html", "/ui/%2e%2e/page.html", "/ui/..%2fpage.html", "/ui//page.css", "//ui/page.css",
        "/ui/", "/ui/page.html", "/..", "/%2e%2e/%2e%2e/etc/passwd", "/ui/page.css/", "/ui/page.css%00",
        "/ui/\xff", "/ui/%ff", "/ui/__init__.py",
    ],
)  # fmt: skip
def test_files_are_found_by_name_and_never_by_path(site, path):
    assert site.runner.run(Exchange(site.app).ask("GET", path)).code == 404


def test_the_pages_and_their_policy(site):
    page = site.ask("GET", "/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    for name in re.findall(r'(?:src|href)="(/ui/[^"]+)"', page.text):
        found = site.ask("GET", name)
        assert found.status_code == 200, name
        assert found.headers["content-type"].split(";")[0] in ("text/css", "text/javascript", "text/html")


def test_a_wrong_method_is_told_the_right_ones(site):
    answer = site.ask("DELETE", "/v1/models")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD, POST"
    assert "DELETE" in answer.json()["error"]["message"]
    assert site.ask("OPTIONS", "/v1/models").status_code == 405


def test_head_is_get_without_the_body(site):
    for path in ("/v1/models", "/health/live", "/", "/nope"):
        get, head = (site.runner.run(Exchange(site.app).ask(method, path)) for method in ("GET", "HEAD"))
        assert head.code == get.code
        assert head.body == b""
        assert head.headers["content-length"] == str(len(get.body)) != "0"


def test_answers_are_not_kept_and_not_guessed_at(site):
    for path in ("/v1/models", "/nope", "/metrics", "/openapi.json"):
        answer = site.ask("GET", path)
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_files_of_the_dashboard_are_kept_by_browsers_and_asked_for_again(site):
    for path in ("/", "/ui/firstclick.js"):
        whole = site.ask("GET", path)
        assert whole.headers["cache-control"] == "no-cache"
        tag = whole.headers["etag"]
        # A proxy that compresses makes the tag weak; a cache may know several.
        for known in (tag, f"W/{tag}", f'"other", {tag}'):
            same = site.runner.run(Exchange(site.app).ask("GET", path, headers={"if-none-match": known}))
            assert same.code == 304
            assert same.body == b""
            assert "content-length" not in same.headers
            assert same.headers["etag"] == tag
            assert same.headers["cache-control"] == "no-cache"
        changed = site.ask("GET", path, headers={"If-None-Match": '"other"'})
        assert changed.status_code == 200
        assert changed.content == whole.content
    tags = {site.ask("GET", path).headers["etag"] for path in static_files()}
    assert len(tags) == len(static_files())


def test_parameters_are_unescaped_after_the_path_is_split():
    route, parameters = Matcher(ROUTES).match("PUT", "/v1/models/shop/items/a%2Fb%20%E2%82%AC")
    assert route.path == "/v1/models/{model}/items/{id}"
    assert parameters == ("shop", "a/b €")
    assert Matcher(ROUTES).match("POST", "/v1/models/shop/feedback%3Abatch")[0].path.endswith(":batch")


def test_an_unexpected_failure_is_logged_and_told_without_internals(site, monkeypatch, caplog):
    monkeypatch.setattr(site.service.models, "all", lambda: 1 / 0)
    answer = site.ask("GET", "/v1/models")
    assert answer.status_code == 500
    assert answer.json()["error"]["status"] == "failed"
    assert "division" not in answer.text
    assert "ZeroDivisionError" in caplog.text


def test_openapi_lists_every_route_with_what_it_may_answer(site):
    told = site.ask("GET", "/openapi.json").json()
    assert told == json.loads(json.dumps(document()))
    assert told["openapi"] == "3.1.0"
    for route in ROUTES:
        if not route.in_document:
            continue
        operation = told["paths"][route.path][route.method.lower()]
        assert set(operation["responses"]) == {str(code) for code in codes(route)}
        assert ("security" in operation) is bool(route.roles)
        assert (route.body is None) is ("requestBody" not in operation)
        assert {one["name"] for one in operation.get("parameters", ())} == {*route.parameters, *route.query}
    names = [one["operationId"] for path in told["paths"].values() for one in path.values()]
    assert len(set(names)) == len(names)
    references = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(told)))
    assert references <= set(told["components"]["schemas"])


def test_the_examples_in_the_table_are_bodies_that_decode():
    for route in ROUTES:
        if route.decoder is not None:
            route.decoder.decode(json.dumps(route.example).encode())


def test_a_route_has_a_title_a_section_and_a_text_in_openapi():
    told = document()
    sections = [tag["name"] for tag in told["tags"]]
    operation = told["paths"]["/v1/models/{model}/recommend"]["post"]
    assert operation["summary"] == "Recommend"
    assert operation["tags"] == [sections[0]]
    assert operation["description"].startswith("Get a slate of items, best first")
    assert operation["description"].endswith("\n\nNeeds a key with the role 'page' or 'write' or 'admin'.")
    for ways in told["paths"].values():
        for one in ways.values():
            assert set(one["tags"]) <= set(sections)
            assert len(one["summary"]) <= 30
            assert one["description"].endswith(".")
