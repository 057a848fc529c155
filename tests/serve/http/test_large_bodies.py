"""Large bodies: cut into pieces and decoded to the same, refused with the same words, and nobody waits."""

import asyncio
import json
import threading

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstclick.serve import Tuning
from firstclick.serve.http.body_pieces import LARGEST_ENTRY, PIECE, cut, find_pieces
from firstclick.serve.http.decoding import decode, decode_large
from firstclick.wire import schemas
from firstclick.wire.errors import Malformed, TooLarge
from firstclick.wire.limits import LARGEST_BATCH, MOST_ENTRIES
from tests.support.serving import ITEMS, Exchange, a_site

CHANGES = msgspec.json.Decoder(schemas.ItemChanges)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(alphabet='a,[]{}"\\:', max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=12,
)


@pytest.fixture
def site(tmp_path):
    with a_site(tmp_path) as site:
        yield site


def put_together(rest, pieces):
    whole = json.loads(rest)
    for field, content in pieces:
        whole[field] += json.loads(content)
    return whole


@given(
    st.dictionaries(st.sampled_from(["put", 'ä"]', "c"]), VALUES, max_size=3),
    st.integers(1, 30),
    st.sampled_from([None, 1]),
)
def test_pieces_put_together_are_the_body(body, size, indent):
    text = json.dumps(body, indent=indent).encode()
    rest, pieces = cut(text, size)
    assert put_together(rest, list(pieces)) == body


def slow_pieces(text, size):
    """The reference of the kernel, for lists of plain numbers: cut at the first comma after `size`."""
    found, start = [], text.index("[") + 1
    for at, character in enumerate(text):
        if character == "]" or (character == "," and at - start >= size):
            found.append(text[start:at])
            start = at + 1
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_cut_at_the_first_comma_that_is_far_enough(size):
    text = '{"a":[10,2,333,4,55555,6]}'
    _, pieces = cut(text.encode(), size)
    assert [content.decode()[1:-1] for _, content in pieces] == slow_pieces(text, size)


def test_brackets_and_commas_in_texts_are_no_places_to_cut():
    entries = ['"x\\\\"', '"\\"],[\\""', '{"a": [1, 2]}', "3"]
    _, pieces = cut(f'{{"a":[{",".join(entries)}]}}'.encode(), 1)
    assert [content.decode()[1:-1] for _, content in pieces] == entries


@pytest.mark.parametrize("text", ["{", "[1,2", '{"a": "b', "{}}", '{"a": ["\\"]}'])
def test_what_does_not_match_is_no_json(text):
    places = np.empty((100, 4), np.int64)
    assert find_pieces(np.frombuffer(text.encode(), np.uint8), 1, places) == -1


def items(n):
    return [{"id": f"i{row}", "name": 'a, "b" ]}', "features": [row / 8, 2]} for row in range(n)]


def test_a_large_body_is_decoded_to_the_same():
    body = json.dumps({"put": items(5000), "withdraw": [f"x{row}" for row in range(20_000)]}).encode()
    assert len(body) > 4 * PIECE
    assert decode_large(CHANGES, body) == decode(CHANGES, body)


@pytest.mark.parametrize(
    ("last", "sentence"),
    [
        ('{"id": []}', "put[5000].id must be a whole number or a text, got a list of 0"),
        ('{"id": "a", "color": 1}', "put[5000].color is not a field"),
        ('{"id": "a", "id": "b"}', '"id" is given twice'),
        ('{"id": "a\\u0000"}', "NUL character"),
        ('{"id": "a"} {"id": "b"}', "cannot be read"),
        ("", "a comma with nothing beside it"),
        ("nul", "cannot be read"),
    ],
)
def test_what_is_wrong_in_a_late_piece_is_told_with_its_place(last, sentence):
    text = json.dumps({"put": items(5000)})
    # The last entry is a piece of its own.
    filler = " " * PIECE
    body = f"{text[:-2]}{filler},{last}]}}".encode()
    with pytest.raises(Malformed) as caught:
        decode_large(CHANGES, body)
    assert sentence in str(caught.value)


def test_a_large_body_without_a_long_list():
    body = b'{"withdraw": ["a"]%b}' % (b" " * 2 * PIECE)
    assert decode_large(CHANGES, body) == schemas.ItemChanges(withdraw=["a"])
    with pytest.raises(Malformed, match="the body must be an object, got a list of 1"):
        decode_large(CHANGES, b'["%b"]' % (b" " * 2 * PIECE))


def test_a_field_that_is_there_twice_is_refused_in_pieces_too():
    long = json.dumps(items(2000))
    with pytest.raises(Malformed, match='"put" is given twice'):
        decode_large(CHANGES, f'{{"put": {long}, "put": {long}}}'.encode())


@pytest.mark.parametrize(
    "body",
    [
        '{"put": [{"id": "a", "name": "%s"}]}',
        '{"put": [{"id": "a", "features": [0%s]}]}',
        '{"name%s": 1}',
    ],
)
def test_one_entry_that_could_not_be_cut_is_refused_unread(body):
    filler = ",0" * LARGEST_ENTRY if "0%s" in body else "a" * 2 * LARGEST_ENTRY
    with pytest.raises(TooLarge, match="one entry of a list may have 1000000 bytes"):
        decode_large(CHANGES, (body % filler).encode())


def test_a_batch_that_is_too_large_is_not_read(site):
    exchange = Exchange(site.app, [b"x" * 600] * 10)
    path = "/v1/models/shop/feedback:batch"
    site.runner.run(exchange.ask("POST", path, {"content-length": str(LARGEST_BATCH + 1)}))
    assert (exchange.code, exchange.n_read) == (413, 0)


def test_a_batch_of_as_many_of_the_longest_tokens_is_read(site):
    entry = {"token": "A" * 8192, "clicks": list(range(255)), "examined": 255}
    answer = site.ask("POST", "/v1/models/shop/feedback:batch", {"feedback": [entry] * MOST_ENTRIES})
    assert answer.status_code == 200
    assert len(answer.json()["results"]) == MOST_ENTRIES
    assert {result["status"] for result in answer.json()["results"]} == {"unknown"}


def test_a_large_request_is_decoded_and_answered_off_the_event_loop(site, monkeypatch):
    threads = []
    recommend = site.service.recommend

    def noting(*arguments, **asked):
        threads.append(threading.current_thread().name)
        return recommend(*arguments, **asked)

    monkeypatch.setattr(site.service, "recommend", noting)
    for exclude in (["tea"], [f"x{row}" for row in range(5000)]):
        answer = site.ask("POST", "/v1/models/shop/recommend", {"exclude": exclude})
        assert answer.status_code == 200
    assert threads[0] == "MainThread"
    assert threads[1].startswith("firstclick-slow")


def test_whoever_asks_for_a_locked_model_waits_and_nobody_else_does(site):
    site.service.create("other", policy="cascade-ts", k=1, items=ITEMS)
    locked, free = threading.Event(), threading.Event()

    def hold():
        with site.service.model("shop").lock:
            locked.set()
            free.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    locked.wait(20)

    async def ask_all():
        asked = [Exchange(site.app, [b"{}"]).ask("POST", "/v1/models/shop/recommend") for _ in range(12)]
        waiting = asyncio.gather(*asked)
        await asyncio.sleep(0)
        # It was slow a moment ago, as may be on a busy machine: that is no reason to wait for the first one.
        site.app._slow.add("other")
        other = await Exchange(site.app, [b"{}"]).ask("POST", "/v1/models/other/recommend")
        live = await Exchange(site.app).ask("GET", "/health/live")
        still = not waiting.done()
        free.set()
        return still, other.code, live.code, max(one.code for one in await waiting)

    try:
        assert site.runner.run(asyncio.wait_for(ask_all(), 20)) == (True, 200, 200, 200)
    finally:
        free.set()
        holder.join()
    # It is free again: on the event loop, from the second on.
    assert "shop" not in site.app._slow


def test_a_model_whose_last_slate_was_slow_is_asked_in_a_thread(site):
    site.service.tuning = Tuning(slow_request_seconds=-1.0)
    site.recommend()
    assert site.app._slow == {"shop"}
    site.service.tuning = Tuning(slow_request_seconds=1000.0)
    site.recommend()
    assert site.app._slow == set()


def test_a_model_whose_shortcuts_are_to_be_made_is_asked_in_a_thread(site, monkeypatch):
    threads = []
    model = site.service.model("shop")
    arrays = model.engine.arrays

    def noting():
        threads.append(threading.current_thread().name)
        return arrays()

    site.service.put_items("shop", [ITEMS[0]._replace(id="new")])
    monkeypatch.setattr(model.engine, "arrays", noting)
    site.ask("POST", "/v1/models/shop/recommend", {"k": 2})
    site.ask("POST", "/v1/models/shop/recommend", {"k": 2})
    assert threads[0].startswith("firstclick-slow")
    assert threads[1] == "MainThread"
