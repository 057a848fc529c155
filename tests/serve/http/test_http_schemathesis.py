"""The API against its own OpenAPI: whatever is generated, what comes back is as documented and no 5xx."""

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

from firstclick.serve.http.auth import new_key
from firstclick.serve.http.openapi import document
from tests.support.serving import a_server

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
def server(tmp_path_factory):
    text, digest = new_key()
    with a_server(tmp_path_factory.mktemp("server")) as server:
        server._service.store.add_api_key("fuzz", "admin", digest, 0.0)
        server._service.maintenance.reload_api_keys()
        yield server, {"Authorization": f"Bearer {text}"}


def the_api(address):
    """The document, with the one model there is in place of any name."""
    told = document()
    for operations in told["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] == "model":
                    parameter["schema"] = {"enum": ["shop"]}
    # As it stands, the example deletes that model.
    deletion = told["paths"]["/v1/models/{model}"]["delete"]["requestBody"]["content"]["application/json"]
    deletion["example"] = {"name": "another"}
    api = schemathesis.openapi.from_dict(told)
    api.config.update(base_url=address)
    return api


@pytest.mark.parametrize("examples", [4, pytest.param(40, marks=pytest.mark.long)])
@pytest.mark.parametrize(("path", "method", "mode"), OPERATIONS)
def test_what_comes_back_is_as_documented(server, path, method, mode, examples):
    running, headers = server
    operation = the_api(running.address)[path][method.upper()]

    @given(case=operation.as_strategy(generation_mode=mode))
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
    assert httpx.get(f"{running.address}/health/ready").status_code == 200
    assert httpx.get(f"{running.address}/v1/models/shop/audit", headers=headers).json()["equal"]
