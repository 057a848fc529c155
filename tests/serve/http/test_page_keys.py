"""A key in a web page: slates and clicks, from allowed origins, at a limited rate; nothing else."""

import pytest

from tests.support.serving import FEEDBACK, ITEMS, RECOMMEND

ORIGIN = "https://shop.example"
LOCAL = "http://127.0.0.1:8000"
CALLS = [("recommend", {}), ("feedback", {"token": "x", "click": 0})]


@pytest.fixture
def open_page(open_site):
    """`open_page(key_model=..., **settings)`: a site whose requests have a page's key."""

    def opener(key_model=None, **settings):
        site = open_site(**{"allow_origin": (ORIGIN,), "page_requests_per_second": 1e6} | settings)
        site.service.create("secret-launch", policy="cascade-ts", k=2, items=ITEMS, seed=1)
        site.headers |= site.bearer("page", key_model)
        return site

    return opener


@pytest.fixture
def page(open_page):
    return open_page()


def ask(site, path, body, origin=ORIGIN, **more):
    return site.ask("POST", path, body, headers=more if origin is None else more | {"origin": origin})


def message_of(answer):
    return answer.json()["error"]["message"]


def test_a_page_gets_a_slate_and_reports_its_click_once(page):
    slate = ask(page, RECOMMEND, {"k": 1, "unit": "visitor-4"})
    assert slate.status_code == 200
    assert slate.json().keys() == {"items", "token"}  # not what the policy has learned
    answers = [ask(page, FEEDBACK, {"token": slate.json()["token"], "click": 0}) for _ in range(2)]
    assert [answer.json()["status"] for answer in answers] == ["accepted", "duplicate"]


def test_openapi_documents_the_slates_of_pages_and_of_others(page):
    schema = schemas(page)["Recommended"]
    assert set(schema["required"]) == ask(page, RECOMMEND, {}).json().keys()
    full = page.ask("POST", RECOMMEND, {}, headers=page.bearer("admin")).json()
    assert list(full) == ["items", "scores", "token", "seq", "reasons"]
    assert full.keys() <= schema["properties"].keys()


def schemas(site):
    document = site.ask("GET", "/openapi.json", headers=site.bearer("admin")).json()
    return document["components"]["schemas"]


def test_a_page_may_not_choose_the_items(page):
    refused = [
        ("candidates", ["a"]), ("candidates", []), ("candidates", "a-list"), ("exclude", ["a"]),
        ("exclude", "a-list"), ("pinned", {"0": "a"}), ("request_id", "view-1"), ("at_most", 1),
        ("explain", True), ("features", [[1.0]]), ("context", [1e12]),
    ]  # fmt: skip
    for field, value in refused:
        answer = ask(page, RECOMMEND, {field: value})
        assert answer.status_code == 403
        assert repr(field) in message_of(answer)
    # Every field of a request is either a page's or refused.
    fields = schemas(page)["Recommend"]["properties"].keys()
    assert fields == {field for field, _ in refused} | {"k", "unit"}


@pytest.mark.parametrize("key_model", [None, "shop", "gone"])
def test_a_page_learns_the_name_of_no_model(open_page, key_model):
    site = open_page(key_model)
    for model in ("x", "gone"):
        for path, body in CALLS:
            answer = ask(site, f"/v1/models/{model}/{path}", body)
            assert answer.status_code == (404 if key_model in (None, model) else 403)
            assert "secret" not in answer.text
            # The answer to others has it: they may list the models.
            other = ask(site, f"/v1/models/{model}/{path}", body, **site.bearer("write"))
            assert "secret-launch" in other.text


def test_a_page_key_may_be_of_one_model(open_page):
    site = open_page()
    admin = site.bearer("admin")
    created = site.ask("POST", "/v1/keys", {"name": "w", "role": "page", "model": "shop"}, headers=admin)
    assert created.status_code == 201
    assert (created.json()["role"], created.json()["model"]) == ("page", "shop")
    listed = site.ask("GET", "/v1/keys", headers=admin).json()["keys"]
    assert [key.get("model") for key in listed] == [None, None, "shop"]
    site.headers["authorization"] = f"Bearer {created.json()['key']}"
    token = ask(site, RECOMMEND, {}).json()["token"]
    assert ask(site, FEEDBACK, {"token": token, "click": 0}).status_code == 201
    # The same of a model that is there and of one that is not.
    for model in ("secret-launch", "nothing"):
        for path, body in CALLS:
            answer = ask(site, f"/v1/models/{model}/{path}", body)
            assert answer.status_code == 403
            assert message_of(answer) == f"this key is for the model 'shop' only, got '{model}'"


def test_a_page_of_another_origin_is_refused(page):
    for origin in (None, "", "null", "https://evil.example", f"{ORIGIN}.evil.example"):
        for path, body in CALLS:
            answer = ask(page, f"/v1/models/shop/{path}", body, origin)
            assert answer.status_code == 403
            assert "--allow-origin" in message_of(answer)


def test_a_page_of_the_server_itself_needs_no_allowed_origin(open_page):
    page = open_page(allow_origin=())
    own = LOCAL.partition("://")[2]
    for origin, host, code in (
        (LOCAL, own, 200),
        ("https://evil.example", "evil.example", 403),  # a stranger's name that points here
        ("http://127.0.0.1:8001", own, 403),
        (own, own, 403),
    ):
        headers = page.headers | {"origin": origin, "host": host}
        assert page.raw("POST", RECOMMEND, b"{}", **headers).code == code, origin


def codes(site, *addresses, **more):
    """The status of a request from each of these addresses, as a proxy gives them."""
    return [
        ask(site, RECOMMEND, {}, **{"x-forwarded-for": address}, **more).status_code for address in addresses
    ]


def test_visitors_are_counted_by_address_and_not_by_the_key_they_share(open_page):
    site = open_page(page_requests_per_second=0.001, behind_proxy=True)
    for address in ("198.51.100.7", "203.0.113.9", "2001:db8:1:2::1"):
        assert codes(site, *[address] * 3) == [200, 429, 429]
    # What a caller claims comes before what the proxy adds, and does not count. An address is the same in
    # every form that proxies write, and one of version 6 is its network.
    assert set(codes(site, "192.0.2.1, 198.51.100.7", "198.51.100.7:40000", "::ffff:198.51.100.7",
                     "[::ffff:198.51.100.7]:443", "2001:db8:1:2:aaaa::1", "[2001:DB8:1:2::9]:443",
                     "[2001:db8:1:2::1%eth0]:5")) == {429}  # fmt: skip
    assert codes(site, "198.51.100.8", "2001:db8:1:3::1", "::ffff:192.0.2.2", "fe80::1%eth0") == [200] * 4
    assert codes(site, "fe80::2%eth1", "::ffff:192.0.2.3") == [429, 200]
    # Whatever is not an address is one caller.
    no_addresses = ["unknown", "192.0.2.1.evil", "a:b", "_hidden", "1:2:3"]
    assert codes(site, *no_addresses) == [200] + [429] * 4
    # The limit of pages is not that of other keys.
    assert codes(site, *["198.51.100.7"] * 3, **site.bearer("write")) == [200] * 3


def test_without_a_proxy_an_address_cannot_be_forged(open_page):
    site = open_page(page_requests_per_second=0.001)
    assert codes(site, *[f"192.0.2.{number}" for number in range(4)]) == [200, 429, 429, 429]
