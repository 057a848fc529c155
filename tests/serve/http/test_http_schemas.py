"""Bodies that break a rule: a 4xx, one sentence that names the field, the rule and the value."""

import json
from copy import deepcopy

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstclick.serve.http.decoding import decode
from firstclick.serve.http.routes import ROUTES
from firstclick.wire import schemas
from firstclick.wire.errors import Malformed
from tests.support.serving import a_site

FEEDBACK = "/v1/models/shop/feedback"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with a_site(tmp_path_factory.mktemp("site")) as site:
        yield site


WRONG = {
    "empty": (b"", "the body is empty; send a JSON object, {} at least"),
    "blank": (b" \n", "the body is empty; send a JSON object, {} at least"),
    "list": (b"[]", "the body must be an object, got a list of 0"),
    "null": (b"null", "the body must be an object, got null"),
    "cut off": (b'{"token": "a', "the body cannot be read: Input data was truncated; send one whole object"),
    "not json": (b"click=1", "the body cannot be read: JSON is malformed"),
    "more behind": (b'{"token": "a", "click": 1} {}', "JSON is malformed: trailing characters"),
    "no click": (b'{"token": "a"}', "click is missing; give it"),
    "unknown field": (b'{"token": "a", "click": 1, "klick": 2}', "klick is not a field; see"),
    "true": (b'{"token": "a", "click": true}', "click must be a whole number or null, got true"),
    "1.0": (b'{"token": "a", "click": 1.0}', "click must be a whole number or null, got 1.0"),
    "text": (b'{"token": "a", "click": "1"}', 'click must be a whole number or null, got "1"'),
    "list as click": (b'{"token": "a", "click": [1, 2]}', "or null, got a list of 2"),
    "2^60": (b'{"token": "a", "click": 1152921504606846976}', "click must be a whole number, at most 9007"),
    "huge": (b'{"token": "a", "click": ' + b"9" * 5000 + b"}", "click must be a whole number, at most 9007"),
    "nan": (b'{"token": "a", "click": NaN}', "NaN and Infinity are not JSON"),
    "infinity": (b'{"token": "a", "click": -Infinity}', "NaN and Infinity are not JSON"),
    "1e999": (b'{"token": "a", "click": 1e999}', "click"),
    "deep lists": (b'{"token": "a", "click": ' + b"[" * 100_000, "the body is nested too deeply"),
    "deep objects": (b'{"a":' * 100_000, "the body is nested too deeply"),
    "bad utf-8": (b'{"token": "\xff\xfe", "click": 1}', "the body is not UTF-8"),
    "lone surrogate": (b'{"token": "\\ud800", "click": 1}', "surrogate"),
    "nul byte": (b'{"token": "\x00", "click": 1}', "the body cannot be read: JSON is malformed"),
    "nul": (b'{"token": "a\\u0000", "click": 1}', "NUL"),
    "utf-16": ('{"token": "a", "click": 1}'.encode("utf-16"), "the body cannot be read"),
    "twice": (b'{"token": "a", "click": 1, "click": 2}', '"click" is given twice in one object'),
    "twice, escaped": (b'{"token": "a", "click": 1, "cl\\u0069ck": 2}', '"click" is given twice'),
    "number as token": (b'{"token": 5, "click": 1}', "token must be a text, got 5"),
}  # fmt: skip


def test_nothing_of_all_this_was_written(tmp_path):
    with a_site(tmp_path) as site:
        for content, _ in WRONG.values():
            site.post_bytes(FEEDBACK, content)
            site.post_bytes("/v1/models/shop/items:bulk", content)
            site.post_bytes("/v1/models", content)
            site.post_bytes("/v1/keys", content)
            site.post_bytes("/v1/models/shop/rollback", content)
            site.post_bytes("/v1/models/new/import", content, "application/octet-stream")
        assert [stored.head for stored in site.service.store.models()] == [1]
        assert site.service.store.api_keys() == []
        assert site.service.outcomes["shop"] == {"malformed": len(WRONG)}


def test_a_colon_or_a_backslash_in_a_text_is_nothing_wrong():
    decoder = msgspec.json.Decoder(schemas.Recommend)
    for text in ("a:b:c", "\\u0000", 'k":1,"k', "x\\"):
        content = json.dumps({"request_id": text, "k": 2}).encode()
        assert decode(decoder, content).request_id == text


def test_twins_are_found_at_every_depth():
    decoder = msgspec.json.Decoder(schemas.FeedbackBatch)
    content = b'{"feedback": [{"token": "a", "click": 1}, {"token": "a", "click": 1, "token": "b"}]}'
    with pytest.raises(Malformed, match='"token" is given twice'):
        decode(decoder, content)


VALUES = [None, True, 0, -1, 1.5, 1e308, 10**30, "", "0", "x" * 1001, [], {}, [[]], {"a": 1}]


@given(st.sampled_from([route for route in ROUTES if route.decoder]), st.data())
def test_what_msgspec_refuses_is_found_by_the_schema(route, data):
    place = body = deepcopy(route.example)
    while isinstance(place, dict | list) and place:
        key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], dict | list) or data.draw(st.booleans()):
            place[key] = deepcopy(data.draw(st.sampled_from(VALUES)))
            break
        place = place[key]
    content = json.dumps(body).encode()
    assert route.decoder is not None
    try:
        route.decoder.decode(content)
    except msgspec.ValidationError:
        with pytest.raises(Malformed, match=r" must be | is missing; | is not a field; "):
            decode(route.decoder, content)
