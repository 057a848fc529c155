"""The API against its own OpenAPI: whatever is generated, the answer is as documented and no 5xx."""

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from firstclick.serve.http.openapi import document
from tests.support.serving import a_service, add_key, serve

# Hypothesis registers NumPy's generator itself, and misjudges its references while threads of a server run.
pytestmark = pytest.mark.filterwarnings("ignore:It looks like `register_random` was passed")

CHECKS = [
    not_a_server_error,
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
]
FIT, UNFIT = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
OPERATIONS = [
    (path, method, mode)
    for path, operations in document()["paths"].items()
    for method, operation in operations.items()
    for mode in (FIT, UNFIT)
    # Without a body or a query nothing could be unfit.
    if mode is FIT or "requestBody" in operation or path.endswith("/items")
]


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    """The document with the one model there is in place of any name, and headers for its server."""
    paths = document()
    for operations in paths["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] == "model":
                    parameter["schema"] = {"enum": ["shop"]}
    # The examples would delete that model, and fork it to a policy that is compiled first.
    for path, method, example in (
        ("/v1/models/{model}", "delete", {"name": "another"}),
        ("/v1/models/{model}/fork", "post", {"policy": "cascade-ts", "name": "shop2"}),
    ):
        paths["paths"][path][method]["requestBody"]["content"]["application/json"]["example"] = example
    api = schemathesis.openapi.from_dict(paths)
    with a_service(tmp_path_factory.mktemp("server")) as service, serve(service) as server:
        api.config.update(base_url=server.address)
        yield api, server.address, {"Authorization": f"Bearer {add_key(service, 'admin')}"}


@pytest.mark.parametrize("examples", [4, pytest.param(40, marks=pytest.mark.long)])
@pytest.mark.parametrize(("path", "method", "mode"), OPERATIONS)
def test_answers_are_as_documented(api, path, method, mode, examples):
    api, address, headers = api

    @given(case=api[path][method.upper()].as_strategy(generation_mode=mode))
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def play(case):
        answer = case.call(headers=headers)
        case.validate_response(answer, checks=CHECKS)

    play()
    assert httpx.get(f"{address}/health/ready").status_code == 200
    assert httpx.get(f"{address}/v1/models/shop/audit", headers=headers).json()["equal"]
