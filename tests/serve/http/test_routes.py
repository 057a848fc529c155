"""The table of routes: what is found, who may use it, what is documented."""

import json
import re

import pytest

from firstclick.serve.http.routes import ROUTES
from tests.support.serving import a_site

# Who may use a route, beside everyone for the open ones.
ROLES = {
    "open": set(), "page": {"page", "write", "admin"}, "read": {"read", "write", "admin"},
    "write": {"write", "admin"}, "admin": {"admin"},
}  # fmt: skip
MODEL = "/v1/models/{model}"
WHO_MAY = {
    "open": [
        "GET /", "GET /health/live", "GET /health/ready", "GET /health/ready/feedback",
        "GET /health/ready/recommend",
    ],
    "page": [f"POST {MODEL}/recommend", f"POST {MODEL}/feedback"],
    "read": [
        "GET /metrics", "GET /openapi.json", "GET /v1/models", f"GET {MODEL}", f"GET {MODEL}/items",
        f"GET {MODEL}/view", f"GET {MODEL}/lists", f"GET {MODEL}/baseline", f"GET {MODEL}/trial",
    ],
    "write": [
        "POST /v1/empty", f"POST {MODEL}/feedback:batch", f"PUT {MODEL}/items/{{id}}",
        f"PATCH {MODEL}/items/{{id}}", f"DELETE {MODEL}/items/{{id}}", f"POST {MODEL}/items:bulk",
        f"POST {MODEL}/items:availability", f"PUT {MODEL}/lists/{{list}}", f"DELETE {MODEL}/lists/{{list}}",
    ],
    "admin": [
        f"DELETE {MODEL}", f"PATCH {MODEL}", "POST /v1/models", f"GET {MODEL}/audit", f"GET {MODEL}/export",
        f"POST {MODEL}/import", f"POST {MODEL}/fork", f"POST {MODEL}/rollback", f"PUT {MODEL}/baseline",
        f"DELETE {MODEL}/baseline", f"POST {MODEL}/trial", f"PATCH {MODEL}/trial", f"POST {MODEL}/trial/stop",
        f"POST {MODEL}/warm-start", "GET /v1/keys", "POST /v1/keys", "DELETE /v1/keys/{key}",
    ],
}  # fmt: skip
ROLES_OF = {route: ROLES[least] for least, routes in WHO_MAY.items() for route in routes}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with a_site(tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture(scope="module")
def document(site):
    return site.ask("GET", "/openapi.json").json()


def files_of(site):
    """The paths of the dashboard's files."""
    paths = {route.path for route in ROUTES if route.path.startswith("/ui/")}
    assert {"/ui/api", "/ui/firstclick.js", "/ui/page.css"} <= paths
    return ["/", *paths]


# The last is not a role.
@pytest.mark.parametrize("role", [None, "page", "read", "write", "admin", "owner"])
def test_every_route_lets_in_its_roles_and_no_others(open_site, role):
    site = open_site(page_requests_per_second=0.0)
    site.add_key("admin")
    # The origin and the host of a page of the server itself.
    headers = {"origin": "http://127.0.0.1", "host": "127.0.0.1"} | (site.bearer(role) if role else {})
    routes = {f"{route.method} {route.path}" for route in ROUTES}
    files = {f"GET {path}" for path in files_of(site)} - ROLES_OF.keys()
    assert routes == ROLES_OF.keys() | files
    for route in routes:
        method, path = route.split()
        exchange = site.raw(method, re.sub(r"{\w+}", "none", path), b"{", **headers)
        roles = ROLES_OF.get(route)
        may = not roles or role in roles
        assert (exchange.code in (401, 403)) is not may, (route, exchange.code)
        if not may:
            assert exchange.code == (403 if role else 401), route
            assert ("www-authenticate" in exchange.headers) is (role is None)
        assert exchange.code < 500


def test_a_path_that_is_not_there_is_unknown(site):
    for path in ("/nope", "/v1", "/v1/", "/v1/models/", "/v1/models/shop/", "/v1/models/shop/nope", "//"):
        answer = site.raw("GET", path)
        assert answer.code == 404, path
        error = json.loads(answer.body)["error"]
        assert error["status"] == "unknown"
        assert "/openapi.json" in error["message"]


def test_files_are_found_by_name_and_never_by_path(site):
    for path in (
        "/ui/../page.html", "/ui/%2e%2e/page.html", "/ui/..%2fpage.html", "/ui//page.css", "//ui/page.css",
        "/ui/", "/ui/page.html", "/..", "/%2e%2e/%2e%2e/etc/passwd", "/ui/page.css/", "/ui/page.css%00",
        "/ui/\xff", "/ui/%ff", "/ui/__init__.py",
    ):  # fmt: skip
        assert site.raw("GET", path).code == 404, path


def test_the_pages_and_their_policy(site):
    page = site.ask("GET", "/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    for path in re.findall(r'(?:src|href)="(/ui/[^"]+)"', page.text):
        file = site.ask("GET", path)
        assert file.status_code == 200, path
        assert file.headers["content-type"].split(";")[0] in ("text/css", "text/javascript", "text/html")


def test_a_wrong_method_gets_the_right_ones(site):
    answer = site.ask("DELETE", "/v1/models")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")
    assert "DELETE" in answer.json()["error"]["message"]
    assert site.ask("OPTIONS", "/v1/models").status_code == 405


def test_head_is_get_without_the_body(site):
    for path in ("/v1/models", "/health/live", "/", "/nope"):
        get, head = (site.raw(method, path) for method in ("GET", "HEAD"))
        assert (head.code, head.body) == (get.code, b"")
        assert head.headers["content-length"] == str(len(get.body)) != "0"


def test_answers_are_not_kept_and_not_guessed_at(site):
    for path in ("/v1/models", "/nope", "/metrics", "/openapi.json", "/"):
        answer = site.ask("GET", path)
        assert answer.headers["cache-control"] == ("no-cache" if path == "/" else "no-store")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_files_of_the_dashboard_are_kept_by_browsers_and_asked_for_again(site):
    tags = set()
    for path in files_of(site):
        whole = site.ask("GET", path)
        assert whole.headers["cache-control"] == "no-cache"
        tag = whole.headers["etag"]
        # A proxy that compresses makes the tag weak; a cache may know several.
        for known in (tag, f"W/{tag}", f'"other", {tag}'):
            same = site.raw("GET", path, if_none_match=known)
            assert (same.code, same.body) == (304, b"")
            assert "content-length" not in same.headers
            assert (same.headers["etag"], same.headers["cache-control"]) == (tag, "no-cache")
        changed = site.ask("GET", path, headers={"If-None-Match": '"other"'})
        assert (changed.status_code, changed.content) == (200, whole.content)
        tags.add(tag)
    assert len(tags) == len(files_of(site))


def test_parameters_are_unescaped_after_the_path_is_split(site):
    put = site.ask("PUT", "/v1/models/shop/items/a%2Fb%20%E2%82%AC", {"features": [1, 1]})
    assert put.status_code == 200
    assert "a/b €" in [item["id"] for item in site.ask("GET", "/v1/models/shop/items").json()["items"]]
    assert site.raw("POST", "/v1/models/shop/feedback%3Abatch", b'{"feedback": []}').code == 200


def test_an_unexpected_failure_is_logged_and_answered_without_internals(site, monkeypatch, caplog):
    monkeypatch.setattr(site.service.models, "all", lambda: 1 / 0)
    answer = site.ask("GET", "/v1/models")
    assert (answer.status_code, answer.json()["error"]["status"]) == (500, "failed")
    assert "division" not in answer.text
    assert "ZeroDivisionError" in caplog.text


def test_openapi_documents_every_route(document):
    assert document["openapi"] == "3.1.0"
    operations = {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert operations.keys() == ROLES_OF.keys() - {"GET /"}
    sections = [tag["name"] for tag in document["tags"]]
    for route, operation in operations.items():
        codes = {int(code) for code in operation["responses"]}
        roles = ROLES_OF[route]
        assert codes >= {421, 500} | ({401, 403} if roles else set()), route
        assert ("security" in operation) is bool(roles)
        assert set(operation["tags"]) <= set(sections)
        assert len(operation["summary"]) <= 30
        needs = re.search(r"Needs a key with the role (.*)\.$", operation["description"])
        assert set(re.findall(r"\w+", needs[1])) - {"or"} == roles if needs else not roles
        assert operation["description"].endswith(".")
        in_path = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"}
        assert in_path == set(re.findall(r"{(\w+)}", route))
        assert ("requestBody" not in operation) or codes >= {413, 415, 422}, route
    names = [operation["operationId"] for operation in operations.values()]
    assert len(set(names)) == len(names)
    references = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert references <= set(document["components"]["schemas"])
    recommend = operations[f"POST {MODEL}/recommend"]
    assert (recommend["summary"], recommend["tags"]) == ("Recommend", sections[:1])
