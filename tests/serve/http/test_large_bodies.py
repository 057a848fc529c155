"""Large bodies: decoded as small ones, refused with the same words; other requests do not wait for them."""

import asyncio
import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstclick.serve import Tuning
from firstclick.serve.http.body_pieces import cut
from tests.support import seam
from tests.support.serving import ITEMS, RECOMMEND, Exchange

BULK = "/v1/models/shop/items:bulk"
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


def items(n):
    return [{"id": f"i{row}", "name": 'a, "b" ]}', "features": [row / 8, 2]} for row in range(n)]


def test_a_large_body_is_decoded_to_the_same(site):
    put, gone = items(3000), [f"i{row}" for row in range(0, 3000, 2)]
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
    put = json.dumps(items(3000))
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
