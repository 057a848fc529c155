"""docs/reference/http.md, from the OpenAPI document that a server gives."""

import json
from typing import Any

from pages import NOTICE

from firstclick.serve.http.auth import in_words
from firstclick.serve.http.openapi import document
from firstclick.serve.http.routes import ROUTES, Route

# Larger bodies and answers refer to parts: they get tables of their own, at the end.
REFERENCE = "#/components/schemas/"


def http_page() -> str:
    told = document()
    schemas = told["components"]["schemas"]
    lines = [
        NOTICE,
        "# HTTP reference",
        "",
        "`GET /openapi.json` of a running server is this page for programs, and `/ui/api` shows it. Bodies are "
        "`application/json`. A refusal is "
        '`{"error": {"status": "...", "message": "one sentence"}}`. Any route may also answer 401 or 403 (key), '
        "404, 405, 413, 415, 421 (host), 422, 429 with `Retry-After`, and 500. [HTTP](../service/http.md) explains "
        "tokens and retries.",
        "",
    ]
    for route in ROUTES:
        if route.in_document:
            lines += route_section(route, told["paths"][route.path][route.method.lower()], schemas)
    lines += ["## Types", "", "Parts that several bodies and answers have.", ""]
    shown = {name_of(kind) for route in ROUTES for kind in (route.body, route.answer)}
    for name, schema in schemas.items():
        if name not in shown and "properties" in schema:
            lines += [f"### `{name}`", "", *fields_table(schema)]
    return "\n".join(lines)


def name_of(kind: Any) -> str:
    return getattr(kind, "__name__", "")


def route_section(route: Route, operation: dict[str, Any], schemas: dict[str, Any]) -> list[str]:
    """A route: who may, what to send, what comes back."""
    key = f"a key with the role {in_words(route.roles).replace(chr(39), '`')}" if route.roles else "no key"
    codes = ", ".join(map(str, route.codes))
    refused = f"; {', '.join(map(str, route.refused))} if it is not done" if route.refused else ""
    lines = [
        f"## `{route.method} {route.path}`",
        "",
        route.summary,
        "",
        f"Needs {key}. Answers {codes}{refused}.",
        "",
    ]
    if route.example is not None:
        lines += ["```json", json.dumps(route.example), "```", ""]
    if route.query:
        lines += ["| query | type | meaning |", "|---|---|---|"]
        lines += [
            f"| `{name}` | number, {one.default} | {one.summary} |" for name, one in route.query.items()
        ]
        lines += [""]
    if name_of(route.body) in schemas and schemas[name_of(route.body)].get("properties"):
        lines += ["Body:", "", *fields_table(schemas[name_of(route.body)])]
    if name_of(route.answer) in schemas and schemas[name_of(route.answer)].get("properties"):
        lines += ["Answer:", "", *fields_table(schemas[name_of(route.answer)])]
    return lines


def fields_table(schema: dict[str, Any]) -> list[str]:
    """The fields of an object: name, type, meaning."""
    required = set(schema.get("required", ()))
    lines = ["| field | type | meaning |", "|---|---|---|"]
    for name, field in schema["properties"].items():
        mark = "" if name in required else ", optional"
        lines.append(f"| `{name}` | {type_of(field)}{mark} | {meaning_of(field)} |")
    return [*lines, ""]


def meaning_of(field: dict[str, Any]) -> str:
    """What the field, or the types that it may have, say of it."""
    told = [field.get("description", ""), *(one.get("description", "") for one in field.get("anyOf", ()))]
    return "; ".join(dict.fromkeys(filter(None, told))).replace("|", "\\|")


def grouped(field: dict[str, Any]) -> str:
    """A type inside another: in brackets if it is one of several."""
    words = type_of(field)
    return f"({words})" if " or " in words else words


def type_of(field: dict[str, Any]) -> str:
    """A type in words: 'text', 'list of number', 'text or null'."""
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(type_of(one) for one in field["anyOf"]))
    if "$ref" in field:
        return f"`{field['$ref'].removeprefix(REFERENCE)}`"
    if "enum" in field:
        return " or ".join(f"`{json.dumps(one)}`" for one in field["enum"])
    kind = field.get("type")
    if kind == "array":
        inner = field.get("items")
        return f"list of {grouped(inner)}" if isinstance(inner, dict) and inner else "list"
    if kind == "object":
        inner = field.get("additionalProperties")
        return f"object of {grouped(inner)}" if isinstance(inner, dict) and inner else "object"
    words = {"integer": "whole number", "string": "text", "boolean": "true or false", "null": "null"}
    return words.get(str(kind), str(kind or "any"))
