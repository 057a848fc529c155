"""A key that stands in a web page: slates and clicks, from allowed origins, not too often; nothing else."""

import pytest

from firstclick.serve.http.auth import PAGE_FIELDS, check_page
from firstclick.serve.http.openapi import document
from firstclick.wire.errors import Forbidden
from firstclick.wire.schemas import Recommend
from tests.support.serving import ITEMS, Exchange, a_site

ORIGIN = "https://shop.example"
RECOMMEND = "/v1/models/shop/recommend"
FEEDBACK = "/v1/models/shop/feedback"


@pytest.fixture
def site(tmp_path):
    with a_site(tmp_path, allow_origin=(ORIGIN,), page_requests_per_second=1e6) as site:
        with_page_key(site)
        yield site


def with_page_key(site):
    site.headers["authorization"] = f"Bearer {site.add_key('page')}"


def ask(site, path, body, origin=ORIGIN, **more):
    return site.ask("POST", path, body, headers=more if origin is None else more | {"origin": origin})


def test_a_page_gets_a_slate_and_answers_its_token_once(site):
    slate = ask(site, RECOMMEND, {"k": 1, "unit": "visitor-4"})
    assert slate.status_code == 200
    assert slate.json().keys() == {"items", "token"}  # not what the policy has learned
    answers = [ask(site, FEEDBACK, {"token": slate.json()["token"], "click": 0}) for _ in range(2)]
    assert [answer.json()["status"] for answer in answers] == ["accepted", "duplicate"]


def test_openapi_is_true_of_what_a_page_gets(site):
    schema = document()["components"]["schemas"]["Recommended"]
    assert set(schema["required"]) == ask(site, RECOMMEND, {}).json().keys()
    admin = {"authorization": f"Bearer {site.add_key('admin')}"}
    full = site.ask("POST", RECOMMEND, {}, headers=admin).json()
    assert list(full) == ["items", "scores", "token", "seq", "reasons"]
    assert full.keys() <= schema["properties"].keys()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("candidates", ["a"]), ("candidates", []), ("candidates", "a-list"), ("exclude", ["a"]),
        ("exclude", "a-list"), ("pinned", {"0": "a"}), ("request_id", "view-1"), ("at_most", 1),
        ("explain", True), ("features", [[1.0]]), ("context", [1e12]),
    ],
)  # fmt: skip
def test_a_page_may_not_choose_what_is_shown(site, field, value):
    answer = ask(site, RECOMMEND, {field: value})
    assert answer.status_code == 403
    assert repr(field) in answer.json()["error"]["message"]


@pytest.mark.parametrize("of_key", [None, "shop", "gone"])
def test_a_page_learns_the_name_of_no_model(tmp_path, of_key):
    with a_site(tmp_path, allow_origin=(ORIGIN,), page_requests_per_second=1e6) as site:
        site.service.create("secret-launch", policy="cascade-ts", k=2, items=ITEMS, seed=1)
        site.headers["authorization"] = f"Bearer {site.add_key('page', of_key)}"
        for model in ("x", "gone"):
            for path, body in (("recommend", {}), ("feedback", {"token": "x", "click": 0})):
                answer = ask(site, f"/v1/models/{model}/{path}", body)
                assert answer.status_code == (404 if of_key in (None, model) else 403)
                assert "secret" not in answer.text
                # Others hear of it: they may list the models.
                write = {"authorization": f"Bearer {site.add_key('write')}"}
                assert "secret-launch" in ask(site, f"/v1/models/{model}/{path}", body, **write).text


def test_a_page_key_may_be_of_one_model(tmp_path):
    with a_site(tmp_path, allow_origin=(ORIGIN,), page_requests_per_second=1e6) as site:
        site.service.create("other", policy="cascade-ts", k=2, items=ITEMS, seed=1)
        admin = {"authorization": f"Bearer {site.add_key('admin')}"}
        made = site.ask("POST", "/v1/keys", {"name": "w", "role": "page", "model": "shop"}, headers=admin)
        assert made.status_code == 201
        assert (made.json()["role"], made.json()["model"]) == ("page", "shop")
        listed = site.ask("GET", "/v1/keys", headers=admin).json()["keys"]
        assert [one.get("model") for one in listed] == [None, "shop"]
        site.headers["authorization"] = f"Bearer {made.json()['key']}"
        slate = ask(site, RECOMMEND, {})
        assert slate.status_code == 200
        report = {"token": slate.json()["token"], "click": 0}
        assert ask(site, FEEDBACK, report).status_code == 201
        # The same of a model that is there and of one that is not.
        for model in ("other", "nothing"):
            for path, body in (("recommend", {}), ("feedback", report)):
                answer = ask(site, f"/v1/models/{model}/{path}", body)
                assert answer.status_code == 403
                message = answer.json()["error"]["message"]
                assert message == f"this key is for the model 'shop' only, got '{model}'"


@pytest.mark.parametrize(
    "body",
    [
        {"role": "write", "model": "shop"},
        {"role": "admin", "model": "shop"},
        {"role": "page", "model": "a b"},
    ],
)
def test_only_keys_of_pages_have_a_model(tmp_path, body):
    with a_site(tmp_path) as site:
        site.headers["authorization"] = f"Bearer {site.add_key('admin')}"
        assert site.ask("POST", "/v1/keys", {"name": "x"} | body).status_code == 422
        assert len(site.service.store.api_keys()) == 1


def test_every_field_of_a_request_is_either_a_pages_or_refused():
    refused = {"candidates", "context", "exclude", "pinned", "request_id", "at_most", "explain", "features"}
    assert {*PAGE_FIELDS} | refused == set(Recommend.__struct_fields__)


@pytest.mark.parametrize(
    "origin", [None, "null", "https://evil.example", "https://shop.example.evil.example"]
)
def test_a_page_of_another_origin_is_refused(site, origin):
    for path, body in ((RECOMMEND, {}), (FEEDBACK, {"token": "x", "click": 0})):
        answer = ask(site, path, body, origin)
        assert answer.status_code == 403
        assert "--allow-origin" in answer.json()["error"]["message"]


def test_a_page_of_the_server_itself_needs_no_allowed_origin():
    check_page(b"http://127.0.0.1:8000", b"127.0.0.1:8000", frozenset())
    with pytest.raises(Forbidden):  # a stranger's name that points here
        check_page(b"https://evil.example", b"evil.example", frozenset())
    for origin in (b"http://127.0.0.1:8001", b"127.0.0.1:8000", b"", None):
        with pytest.raises(Forbidden, match="got Origin"):
            check_page(origin, b"127.0.0.1:8000", frozenset())


def test_visitors_are_counted_by_their_address_and_not_by_the_key_they_share(tmp_path):
    with a_site(tmp_path, allow_origin=(ORIGIN,), page_requests_per_second=0.001, behind_proxy=True) as site:
        with_page_key(site)

        def codes(forwarded):
            more = {"x-forwarded-for": forwarded}
            return [ask(site, RECOMMEND, {}, **more).status_code for _ in range(3)]

        assert codes("198.51.100.7") == [200, 429, 429]
        assert codes("203.0.113.9") == [200, 429, 429]
        # What a caller says of itself comes before what the proxy says, and does not count.
        assert codes("192.0.2.1, 198.51.100.7") == [429, 429, 429]


def test_without_a_proxy_nobody_can_make_up_an_address(tmp_path):
    with a_site(tmp_path, allow_origin=(ORIGIN,), page_requests_per_second=0.001) as site:
        with_page_key(site)
        made_up = [{"x-forwarded-for": f"192.0.2.{number}"} for number in range(4)]
        assert [ask(site, RECOMMEND, {}, **more).status_code for more in made_up] == [200, 429, 429, 429]


def test_the_limit_of_pages_is_not_that_of_other_keys(tmp_path):
    with a_site(tmp_path, page_requests_per_second=0.001) as site:
        headers = {"authorization": f"Bearer {site.add_key('write')}"}
        codes = [site.ask("POST", RECOMMEND, {}, headers=headers).status_code for _ in range(5)]
        assert codes == [200] * 5


def test_a_page_key_is_not_the_first(tmp_path):
    with a_site(tmp_path) as site:
        assert site.ask("POST", "/v1/keys", {"name": "web", "role": "page"}).status_code == 422
        exchange = Exchange(site.app)
        site.runner.run(exchange.ask("GET", "/v1/keys"))
        assert exchange.code == 200
