"""The OpenAPI document, from the table of routes."""

from typing import Any

import msgspec

from firstclick import __version__
from firstclick.serve.http.auth import in_words
from firstclick.serve.http.errors import ErrorAnswer
from firstclick.serve.http.routes import ROUTES, SECTIONS, Route

REFERENCE = "#/components/schemas/{name}"
ERROR = {"$ref": REFERENCE.format(name="ErrorAnswer")}
REASONS = {
    200: "OK", 201: "Created", 401: "The key is missing or unknown",
    403: "The key's role does not allow this", 404: "Not found", 409: "Conflicts with what is there",
    410: "Too late", 413: "The body is too large", 415: "This media type is not accepted",
    421: "A server without keys was addressed by a foreign host name, or through a proxy",
    422: "The request breaks a rule", 429: "Too many requests; see Retry-After", 500: "Internal error",
    503: "Unavailable; see Retry-After",
}  # fmt: skip
PARAMETERS = {
    "model": "name of the model",
    "id": "id of the item; digits stand for an integer id if there is no such text id",
    "list": "name of the list",
    "key": "id of the key",
}


def codes(route: Route) -> list[int]:
    """Every code that the route may answer with."""
    told = {*route.codes, *route.refused, 421}
    if route.roles:
        told |= {401, 403}
    if not route.always:
        told |= {429}
    if route.body is not None:
        told |= {413, 415, 422}
    if route.query:
        told |= {422}
    return sorted(told | {500})


def document() -> dict[str, Any]:
    """OpenAPI 3.1 of all routes."""
    routes = [route for route in ROUTES if route.in_document]
    kinds = [kind for route in routes for kind in (route.body, route.answer) if kind not in (None, bytes)]
    references, schemas = msgspec.json.schema_components([*kinds, ErrorAnswer], ref_template=REFERENCE)
    schema_of = dict(zip(kinds, references, strict=False))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "firstclick",
            "version": __version__,
            "description": "Recommendations that learn from the first click. Feedback that was answered with "
            "200 or 201 is on disk and counted once, however often it is sent.",
        },
        "tags": [{"name": section} for section in SECTIONS],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key. A server without keys is open to its own machine.",
                }
            },
        },
    }


def _operation(route: Route, schema_of: dict[Any, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.handler.__name__.strip("_"),
        "tags": [route.section],
        "summary": route.title,
        "description": route.description,
        "responses": {str(code): _response(route, code, schema_of) for code in codes(route)},
    }
    if route.roles:
        operation["description"] += f"\n\nNeeds a key with the role {in_words(route.roles)}."
        operation["security"] = [{"key": []}]
    parameters = [
        {"name": name, "in": "path", "required": True, "description": PARAMETERS[name],
         "schema": {"type": "string", "minLength": 1}}
        for name in route.parameters
    ] + [
        {"name": name, "in": "query", "description": query.summary,
         "schema": {"type": "integer", "minimum": query.at_least, "maximum": query.at_most,
                    "default": query.default}}
        for name, query in route.query.items()
    ]  # fmt: skip
    if parameters:
        operation["parameters"] = parameters
    if route.body is bytes:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    elif route.body is not None:
        content = {"schema": schema_of[route.body], "example": route.example}
        operation["requestBody"] = {"required": True, "content": {"application/json": content}}
    return operation


def _response(route: Route, code: int, schema_of: dict[Any, Any]) -> dict[str, Any]:
    if code >= 400:
        return {"description": REASONS[code], "content": {"application/json": {"schema": ERROR}}}
    schema = {} if route.answer is None else {"schema": schema_of[route.answer]}
    return {"description": REASONS[code], "content": {route.answer_media: schema}}
