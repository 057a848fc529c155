"""Bodies that break a rule: a 4xx, one sentence that names the field, the rule and the value."""

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import Site, a_site

from firstclick.serve.http.decoding import decode
from firstclick.serve.http.routes import ROUTES, Route
from firstclick.wire import schemas
from firstclick.wire.errors import Malformed

TOKEN = "x" * 90
FEEDBACK = "/v1/models/shop/feedback"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
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


@pytest.mark.parametrize("case", WRONG)
def test_wrong_feedback_is_refused_with_a_sentence(site: Site, case: str) -> None:
    content, sentence = WRONG[case]
    answer = site.post_bytes(FEEDBACK, content)
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error["status"] == "malformed"
    assert sentence in error["message"]
    assert len(error["message"]) < 300
    assert "\n" not in error["message"]


@pytest.mark.parametrize(
    "token", ["", "ä" * 90, "A" * 50_000, "..", "a b", "\u202e" * 90, "=" * 90, TOKEN, "' OR 1=1 --"]
)
def test_a_token_of_nobody_is_unknown(site: Site, token: str) -> None:
    answer = site.ask("POST", FEEDBACK, {"token": token, "click": 0})
    assert answer.status_code == 404
    assert "unknown token" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"k": 0}, "k must be a whole number, at least 1, got 0"),
        ({"k": 4}, "k must be at most 3"),
        ({"k": 10**30}, "k must be a whole number, at most 255"),
        ({"candidates": "espresso"}, "no list 'espresso' in model 'shop'; there are: none"),
        ({"candidates": ["nothing"]}, "no item 'nothing'"),
        ({"candidates": ["7"]}, "but there is 7"),
        ({"candidates": [1.5]}, "candidates[0] must be a whole number or a text, got 1.5"),
        ({"exclude": [True]}, "exclude[0] must be a whole number or a text, got true"),
        ({"exclude": [2**60]}, "exclude[0] must be a whole number, at most 9007199254740992"),
        ({"pinned": {"9": "tea"}}, "pinned: a position must be at most 2, got 9"),
        ({"pinned": {"-1": "tea"}}, "pinned: a position must be at least 0, got -1"),
        ({"pinned": {"first": "tea"}}, 'pinned: each name must be a position, such as "0"'),
        ({"pinned": {"0": "nothing"}}, "'nothing' is not in the catalog"),
        ({"pinned": {"0": "tea", "1": "tea"}}, "'tea' has two positions"),
        ({"request_id": ""}, "request_id must be a text of at least 1 characters"),
        ({"request_id": "x" * 300}, "request_id must be a text of at most 256 characters"),
        ({"user": [1]}, "user is not a field"),
    ],
)
def test_wrong_recommendations_are_refused_with_a_sentence(
    site: Site, body: dict[str, Any], sentence: str
) -> None:
    answer = site.ask("POST", "/v1/models/shop/recommend", body)
    assert answer.status_code == 422, answer.text
    assert sentence in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"features": [1.0]}, "must have 2 features, got 1"),
        ({"features": []}, "must have 2 features, got 0"),
        ({"features": [1.0, "a"]}, "features must be numbers, one row per item, got [[1.0, 'a']]"),
        ({"features": [0.0] * 2000}, "features must be a list of at most 1024, got a list of 2000"),
        ({"features": [1e300, 1e300]}, "features"),
        ({"features": [1, 1], "name": "x" * 2000}, "name must be a text of at most 1000 characters"),
        ({"features": [1, 1], "name": 5}, "name must be a text or null, got 5"),
    ],
)
def test_wrong_items_are_refused_with_a_sentence(site: Site, body: dict[str, Any], sentence: str) -> None:
    answer = site.ask("PUT", "/v1/models/shop/items/new", body)
    assert answer.status_code == 422, answer.text
    assert sentence in answer.json()["error"]["message"]


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"1e999", b"-1e999", b"9" * 400])
def test_features_that_are_no_numbers_are_refused(site: Site, number: bytes) -> None:
    content = b'{"put": [{"id": "new", "features": [1, ' + number + b"]}]}"
    answer = site.post_bytes("/v1/models/shop/items:bulk", content)
    assert answer.status_code == 422
    assert site.service.model("shop").catalog.row_of("new") is None


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/v1/models/shop/items:bulk", b'{"put": [{"id": %s, "features": [1, 1]}]}'),
        ("/v1/models/shop/items:bulk", b'{"withdraw": [%s]}'),
        ("/v1/models/shop/recommend", b'{"candidates": [%s]}'),
        ("/v1/models/shop/recommend", b'{"exclude": [-%s]}'),
        ("/v1/models/shop/recommend", b'{"pinned": {"0": %s}}'),
        ("/v1/models/shop/recommend", b'{"pinned": {"%s": "tea"}}'),
        ("/v1/models/shop/recommend", b'{"context": [%s]}'),
        ("/v1/models/shop/rollback", b'{"seq": %s}'),
    ],
)
@pytest.mark.parametrize("digits", [400, 5000])
def test_numbers_of_thousands_of_digits_are_refused(
    site: Site, path: str, content: bytes, digits: int
) -> None:
    answer = site.post_bytes(path, content % (b"9" * digits))
    assert answer.status_code == 422, answer.text
    assert len(answer.json()["error"]["message"]) < 300


def test_nothing_of_all_this_was_written(tmp_path: Path) -> None:
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


def test_a_colon_or_a_backslash_in_a_text_is_nothing_wrong() -> None:
    decoder = msgspec.json.Decoder(schemas.Recommend)
    for text in ("a:b:c", "\\u0000", 'k":1,"k', "x\\"):
        content = json.dumps({"request_id": text, "k": 2}).encode()
        assert decode(decoder, content).request_id == text


def test_twins_are_found_at_every_depth() -> None:
    decoder = msgspec.json.Decoder(schemas.FeedbackBatch)
    content = b'{"feedback": [{"token": "a", "click": 1}, {"token": "a", "click": 1, "token": "b"}]}'
    with pytest.raises(Malformed, match='"token" is given twice'):
        decode(decoder, content)


@pytest.mark.parametrize(
    ("kind", "content", "field", "problem"),
    [
        (schemas.FeedbackBatch, b'{"feedback": [{"token": "a"}, {"token": 5}]}', "feedback[1].token",
         "must be a text, got 5"),
        (schemas.FeedbackBatch, b'{"feedback": [{"click": 1}]}', "feedback[0].token", "is missing; give it"),
        (schemas.FeedbackBatch, b'{"feedback": [{"token": "a", "b c": 1}]}', 'feedback[0]["b c"]',
         "is not a field; see /openapi.json for those there are"),
        (schemas.Recommend, b'{"features": [[1], [1, 1e999]]}', "features[1][1]",
         "must be a number, at most 1.7976931348623157e+308, got Infinity"),
        (schemas.Recommend, b'{"at_most": {"tea": -1}}', "at_most.tea",
         "must be a whole number, at least 0, got -1"),
        (schemas.Recommend, b'{"at_most": "tea"}', "at_most",
         'must be a whole number or an object or null, got "tea"'),
        (schemas.NewKey, b'{"name": "x", "role": "king"}', "role",
         'must be one of admin, page, read, write, got "king"'),
        (schemas.Nothing, b"[]", "", "the body must be an object, got a list of 0"),
    ],
)  # fmt: skip
def test_a_refusal_knows_its_field(kind: Any, content: bytes, field: str, problem: str) -> None:
    with pytest.raises(Malformed) as refused:
        decode(msgspec.json.Decoder(kind), content)
    assert (refused.value.argument, refused.value.problem) == (field, problem)
    assert str(refused.value) == f"{field} {problem}".strip()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"k": 0}, "k"),
        ({"k": 4}, "k"),
        ({"candidates": ["tea", 1.5]}, "candidates[1]"),
        ({"pinned": {"9": "tea"}}, None),
        ({"candidates": ["nothing"]}, None),
    ],
)
def test_an_answer_names_the_field_that_it_is_about(site: Site, body: dict[str, Any], field: str) -> None:
    answer = site.post_bytes("/v1/models/shop/recommend", json.dumps(body).encode())
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"].get("field") == field


VALUES = [None, True, 0, -1, 1.5, 1e308, 10**30, "", "0", "x" * 1001, [], {}, [[]], {"a": 1}]


@given(st.sampled_from([route for route in ROUTES if route.decoder]), st.data())
def test_what_msgspec_refuses_is_found_by_the_schema(route: Route, data: st.DataObject) -> None:
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
