"""Bodies that are read, and bodies that break a rule. All sentences are in `tests/doors/messages`."""

import json
import re
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import validator_for

from tests.support.serving import FEEDBACK, RECOMMEND, a_site

VALUES = [None, True, 0, -1, 1.5, 1e308, 10**30, "", "0", "x" * 1001, [], {}, [[]], {"a": 1}]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with a_site(tmp_path_factory.mktemp("site")) as site:
        yield site


def test_colons_and_backslashes_in_a_text_are_allowed(site):
    for text in ("a:b:c", "\\u0000", 'k":1,"k', "x\\"):
        assert site.ask("POST", RECOMMEND, {"request_id": text, "k": 2}).status_code == 200
    twins = b'{"feedback": [{"token": "a", "click": 1}, {"token": "a", "click": 1, "token": "b"}]}'
    answer = site.post_bytes(f"{FEEDBACK}:batch", twins)
    assert answer.status_code == 422
    assert '"token" is given twice' in answer.text.replace("\\", "")


@pytest.fixture(scope="module")
def examples(site):
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


def test_the_examples_of_openapi_can_be_read(open_site, examples):
    site = open_site()
    site.headers |= site.bearer("admin")
    codes = {path: site.ask(method, path, example).status_code for path, method, example, _ in examples}
    assert {path for path, code in codes.items() if code != 404} == {"/v1/models", "/v1/keys", "/v1/empty"}
    # The name of the example is taken.
    assert [codes[path] for path in ("/v1/models", "/v1/keys", "/v1/empty")] == [409, 201, 200]


@given(st.data())
def test_what_is_wrong_in_a_body_that_can_be_read_is_named(site, examples, data):
    of_models = [example for example in examples if "none" in example[0]]
    path, method, example, schema = data.draw(st.sampled_from(of_models))
    node = body = deepcopy(example)
    while isinstance(node, dict | list) and node:
        key = data.draw(st.sampled_from(list(node) if isinstance(node, dict) else range(len(node))))
        if not isinstance(node[key], dict | list) or data.draw(st.booleans()):
            node[key] = deepcopy(data.draw(st.sampled_from(VALUES)))
            break
        node = node[key]
    answer = site.ask(method, path, content=json.dumps(body), headers={"content-type": "application/json"})
    error = answer.json()["error"]
    # The model is not there; there are rules that no schema contains.
    assert answer.status_code == 422 or (answer.status_code == 404 and schema.is_valid(body))
    if answer.status_code == 422:
        assert error["field"]
        assert "cannot be read" not in error["message"]
