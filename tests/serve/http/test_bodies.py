"""Bodies: limits, forms, pieces of large ones, and files that are sent and taken in pieces."""

import asyncio
import json
import re
import socket
import threading
from contextlib import closing
from copy import deepcopy

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import validator_for

from firstclick.serve import Service, Tuning
from firstclick.serve.http.auth import MOST_CALLERS, RateLimit
from firstclick.serve.http.body_pieces import cut
from firstclick.serve.store.store import Base
from firstclick.wire.errors import Overloaded
from tests.support import seam
from tests.support.serving import FEEDBACK, ITEMS, RECOMMEND, Exchange, a_server, a_site, comes_to

# Limits: of a body while it is read, of requests at once, of requests per second

BULK = "/v1/models/shop/items:bulk"
WITHDRAW = b'{"withdraw": ["tea"]}'


def test_a_body_is_read_up_to_its_limit(open_site):
    site = open_site(max_body=1000, max_bulk_body=5000)
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


# Large bodies: decoded as small ones; other requests do not wait for them

# Bytes that are decoded at once, and that one entry may have.
PIECE, LARGEST_ENTRY = 65_536, 1_000_000
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(alphabet='a,[]{}"\\:', max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=12,
)


@given(
    st.dictionaries(st.sampled_from(["put", 'ä"]', "c"]), VALUES, max_size=3),
    st.integers(1, 30),
    st.sampled_from([None, 1]),
)
def test_pieces_put_together_are_the_body(body, size, indent):
    rest, pieces = cut(json.dumps(body, indent=indent).encode(), size)
    whole = json.loads(rest)
    for field, content in pieces:
        whole[field] += json.loads(content)
    assert whole == body


def large_items(n):
    return [{"id": f"i{row}", "name": 'a, "b" ]}', "features": [row / 8, 2]} for row in range(n)]


def test_a_large_body_is_decoded_to_the_same(site):
    put, gone = large_items(3000), [f"i{row}" for row in range(0, 3000, 2)]
    body = json.dumps({"put": put}).encode()
    assert len(body) > 2 * PIECE
    assert site.post_bytes(BULK, body).status_code == 200
    # Large, without a long list.
    assert site.post_bytes(BULK, json.dumps({"withdraw": gone}).encode().ljust(2 * PIECE)).status_code == 200
    listed = seam.model(site.service).items()
    assert list(listed)[len(ITEMS) :] == [item["id"] for item in put[1::2]]
    for item in put[1::2]:
        assert listed[item["id"]].name == item["name"]
        assert listed[item["id"]].features == pytest.approx(item["features"])


LATE = [
    ('{"id": []}', "put[3000].id must be a whole number or a text, got a list of 0"),
    ('{"id": "a", "color": 1}', "put[3000].color is not a field"), ('{"id": "a", "id": "b"}', "given twice"),
    ('{"id": "a\\u0000"}', "NUL character"), ('{"id": "a"} {"id": "b"}', "cannot be read"),
    ("", "a comma with nothing beside it"), ("nul", "cannot be read"),
]  # fmt: skip


def test_wrong_parts_of_a_large_body_are_named_with_their_path(site):
    put = json.dumps(large_items(3000))
    # The last entry is a piece of its own.
    bodies = [(f'{{"put": {put[:-1]}{" " * PIECE},{last}]}}', 422, words) for last, words in LATE]
    bodies += [
        (f'["{" " * 2 * PIECE}"]', 422, "the body must be an object, got a list of 1"),
        (f'{{"put": {put}, "put": {put}}}', 422, "given twice"),
        ('{"put": ["a"' + " " * 2 * LARGEST_ENTRY, 422, "brackets or quotes do not match"),
    ]
    # One entry that could not be cut is refused unread.
    for body, filler in (
        ('{"put": [{"id": "a", "name": "%s"}]}', "a" * 2 * LARGEST_ENTRY),
        ('{"put": [{"id": "a", "features": [0%s]}]}', ",0" * LARGEST_ENTRY),
        ('{"name%s": 1}', "a" * 2 * LARGEST_ENTRY),
    ):
        bodies.append((body % filler, 413, "one entry of a list may have 1000000 bytes"))
    for body, code, words in bodies:
        answer = site.post_bytes(BULK, body.encode())
        assert answer.status_code == code, words
        assert words in answer.json()["error"]["message"]
    assert site.ask("GET", "/v1/models/shop").json()["seq"] == 1


def test_slow_recommendations_are_made_off_the_event_loop(site, monkeypatch):
    threads = []
    recommend = site.service.recommend

    def noting(*arguments, **request):
        threads.append(threading.current_thread().name)
        return recommend(*arguments, **request)

    monkeypatch.setattr(site.service, "recommend", noting)

    def is_on_the_loop(**request):
        assert site.ask("POST", RECOMMEND, request).status_code == 200
        name = threads.pop()
        assert name == "MainThread" or name.startswith("firstclick-slow")
        return name == "MainThread"

    site.service.tuning = Tuning(slow_request_seconds=1000.0)
    is_on_the_loop()
    assert is_on_the_loop(exclude=["tea"])
    assert not is_on_the_loop(exclude=[f"x{row}" for row in range(5000)])
    assert is_on_the_loop()
    # The last slate was slow.
    site.service.tuning = Tuning(slow_request_seconds=-1.0)
    assert is_on_the_loop()
    site.service.tuning = Tuning(slow_request_seconds=1000.0)
    assert not is_on_the_loop()
    assert is_on_the_loop()
    # After a change the model has work to do for its next slate.
    site.shop.put_items([ITEMS[0]._replace(id="new")])
    assert not is_on_the_loop(k=2)
    assert is_on_the_loop(k=2)


def test_a_locked_model_is_waited_for_by_its_own_requests_alone(site):
    site.service.create("other", policy="cascade-ts", k=1, items=ITEMS)
    locked, free = threading.Event(), threading.Event()

    def hold():
        with site.shop.internals.lock:
            locked.set()
            free.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    locked.wait(20)

    async def ask_all():
        requests = [Exchange(site.app, [b"{}"]).ask("POST", RECOMMEND) for _ in range(12)]
        waiting = asyncio.gather(*requests)
        await asyncio.sleep(0)
        # It was slow a moment ago, as may be on a busy machine: it must not wait for the first one.
        site.app._slow.add("other")
        other = await Exchange(site.app, [b"{}"]).ask("POST", "/v1/models/other/recommend")
        live = await Exchange(site.app).ask("GET", "/health/live")
        still = not waiting.done()
        free.set()
        return still, other.code, live.code, max(exchange.code for exchange in await waiting)

    try:
        assert site.runner.run(asyncio.wait_for(ask_all(), 20)) == (True, 200, 200, 200)
    finally:
        free.set()
        holder.join()
    # It is free again: on the event loop, from the second on.
    assert "shop" not in site.app._slow


# Files: off the event loop, no faster than the other side

EXPORT, IMPORT = "/v1/models/shop/export", "/v1/models/new/import"
OCTETS = "application/octet-stream"


class Pieces:
    """A file of 100 pieces in place of an export, and the threads that asked for them."""

    def __init__(self, monkeypatch, *, size=40_000, broken_at=None):
        monkeypatch.setattr(Service, "export", lambda service, name: self.export())
        self.made = 0
        self.closed = False
        self.threads = set()
        self._piece, self._broken_at = b"x" * size, broken_at

    def export(self):
        try:
            while self.made < 100:
                if self.made == self._broken_at:
                    raise OSError("no more")
                self.made += 1
                self.threads.add(threading.current_thread().name)
                yield self._piece
        finally:
            self.closed = True


def test_an_export_is_made_in_threads_and_sent_in_pieces(site, monkeypatch):
    pieces = Pieces(monkeypatch)
    answer = site.ask("GET", EXPORT)
    assert (answer.status_code, len(answer.content)) == (200, 100 * 40_000)
    assert "content-length" not in answer.headers
    assert all(name.startswith("firstclick-http") for name in pieces.threads)
    assert pieces.closed
    head = site.ask("HEAD", EXPORT)
    assert (head.status_code, head.content) == (200, b"")


def test_the_next_piece_is_made_when_the_last_is_taken(site, monkeypatch):
    monkeypatch.setattr("firstclick.serve.http.streams.TAKEN_WITHIN", 0.3)
    pieces = Pieces(monkeypatch)

    class TakesThree(Exchange):
        async def _receive(self):
            await asyncio.Event().wait()

        async def _send(self, message):
            await super()._send(message)
            if len(self.sent) == 1 + 3:
                await asyncio.Event().wait()

    exchange = site.runner.run(TakesThree(site.app).ask("GET", EXPORT))
    assert (pieces.made, len(exchange.sent), pieces.closed) == (3, 4, True)


@pytest.mark.parametrize("leaves", [True, False])
def test_no_more_is_made_than_is_taken(tmp_path, monkeypatch, leaves):
    monkeypatch.setattr("firstclick.serve.http.streams.TAKEN_WITHIN", 3600 if leaves else 0.3)
    pieces = Pieces(monkeypatch, size=1_000_000)
    with a_server(tmp_path) as server, closing(socket.socket()) as connection:
        connection.connect(("127.0.0.1", int(server.address.rpartition(":")[2])))
        connection.sendall(b"GET %b HTTP/1.1\r\nhost: localhost\r\n\r\n" % EXPORT.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        if leaves:
            connection.close()
        comes_to(lambda: pieces.closed, True)
    # The buffers of both sides have some megabytes.
    assert pieces.made < 50


def test_a_file_that_cannot_be_made_to_its_end_has_none(tmp_path, monkeypatch, caplog):
    with a_server(tmp_path) as server:
        Pieces(monkeypatch, broken_at=50)
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(server.address + EXPORT)
        assert "a file could not be sent to its end" in caplog.text
        assert httpx.get(server.address + "/health/live").status_code == 200


def test_a_log_with_archived_events_is_not_exported(site):
    for _ in range(4):
        site.feedback(site.recommend()["token"], click=0)
    model = site.shop.internals
    site.service.store.set_base(model.id, Base(3, 0, model.snapshot()[1]), 1)
    refused = site.ask("GET", EXPORT)
    assert refused.status_code == 409
    assert "events 2 to 2 of model 'shop' are archived" in refused.json()["error"]["message"]


def test_an_import_may_be_larger_than_other_bodies_but_has_a_limit_of_its_own(open_site):
    site = open_site(max_body=1000, max_bulk_body=1000, max_import=20_000)
    for _ in range(60):
        site.feedback(site.recommend()["token"], click=0)
    content = site.ask("GET", EXPORT).content
    assert 20_000 > len(content) > 1000
    assert site.post_bytes("/v1/models/copy/import", content, OCTETS).status_code == 201
    for headers, n_read in (({}, 5), ({"content_length": "20001"}, 0)):
        exchange = site.raw("POST", IMPORT, *[b"x" * 5000] * 10, content_type=OCTETS, **headers)
        assert (exchange.code, exchange.n_read) == (413, n_read)
        assert b"20000 bytes (--max-import)" in exchange.body
    # A client that leaves in the middle is forgotten.
    assert site.raw("POST", IMPORT, *[b"x" * 5000] * 2, gone=True, content_type=OCTETS).sent == []
    assert site.service.names() == ["copy", "shop"]


# Bodies that are read, and bodies that break a rule


def test_colons_and_backslashes_in_a_text_are_allowed(site):
    for text in ("a:b:c", "\\u0000", 'k":1,"k', "x\\"):
        assert site.ask("POST", RECOMMEND, {"request_id": text, "k": 2}).status_code == 200
    twins = b'{"feedback": [{"token": "a", "click": 1}, {"token": "a", "click": 1, "token": "b"}]}'
    answer = site.post_bytes(f"{FEEDBACK}:batch", twins)
    assert answer.status_code == 422
    assert '"token" is given twice' in answer.text.replace("\\", "")


ODD_VALUES = [None, True, 0, -1, 1.5, 1e308, 10**30, "", "0", "x" * 1001, [], {}, [[]], {"a": 1}]


def examples_of(site):
    """The path, the method, the example and the schema of every route that has a body of JSON."""
    examples, document = [], site.ask("GET", "/openapi.json").json()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            # Of a model that is not there nothing can be changed.
            if content and (path, method) != ("/v1/models/{model}", "delete"):
                path_of_none = re.sub(r"{\w+}", "none", path)
                schema = validator_for(content["schema"] | {"components": document["components"]})
                examples.append((path_of_none, method.upper(), content["example"], schema))
    return examples


def test_the_examples_of_openapi_can_be_read(open_site):
    site = open_site()
    site.headers |= site.bearer("admin")
    codes = {
        path: site.ask(method, path, example).status_code for path, method, example, _ in examples_of(site)
    }
    # The name of the example is taken.
    wanted = {"/v1/models": 409, "/v1/keys": 201, "/v1/empty": 200}
    assert codes == dict.fromkeys(codes, 404) | wanted


@pytest.fixture(scope="module")
def site_of_one_model(tmp_path_factory):
    with a_site(tmp_path_factory.mktemp("site")) as site:
        yield site


@given(st.data())
def test_what_is_wrong_in_a_body_that_can_be_read_is_named(site_of_one_model, data):
    site = site_of_one_model
    of_models = [example for example in examples_of(site) if "none" in example[0]]
    path, method, example, schema = data.draw(st.sampled_from(of_models))
    node = body = deepcopy(example)
    while isinstance(node, dict | list) and node:
        key = data.draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))
        if not isinstance(node[key], dict | list) or data.draw(st.booleans()):
            node[key] = deepcopy(data.draw(st.sampled_from(ODD_VALUES)))
            break
        node = node[key]
    answer = site.ask(method, path, content=json.dumps(body), headers={"content-type": "application/json"})
    error = answer.json()["error"]
    # The model is not there; there are rules that no schema contains.
    assert answer.status_code == 422 or (answer.status_code == 404 and schema.is_valid(body))
    if answer.status_code == 422:
        assert error["field"]
        assert "cannot be read" not in error["message"]
