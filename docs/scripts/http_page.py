"""docs/reference/http.md, from the OpenAPI document that a server gives."""

import json
from typing import Any

from pages import NOTICE

from firstclick.serve.http.auth import Role
from firstclick.serve.http.openapi import document
from firstclick.serve.http.routes import ROUTES, SECTIONS, Route

# Larger bodies and answers refer to parts: they get tables of their own, at the end.
REFERENCE = "#/components/schemas/"
INTRODUCTION = """\
`/ui/api` of a running server shows this page with commands to copy, and `/openapi.json` has it for programs.
[HTTP](../service/http.md) explains tokens and retries.

Bodies and answers are JSON unless a route says otherwise. An error is
`{"error": {"status": "...", "message": "one sentence"}}`. Any route may also answer 401 or 403 (API key), 404, 405,
413, 415, 421 (host name), 422 (the request breaks a rule), 429 with `Retry-After`, and 500.

In the tables:

| type | means |
|---|---|
| id | an integer or a string |
| value | a cell of a table: a number, a string, a boolean, a list of numbers, or null |
| features | a list of values, or an object of values by column name |
| `Name` | an object described under [Types](#types) |
"""


def http_page() -> str:
    told = document()
    schemas = told["components"]["schemas"]
    routes = [route for route in ROUTES if route.in_document]
    lines = [NOTICE, "# HTTP reference", "", INTRODUCTION]
    for section in SECTIONS:
        lines += [f"## {section}", ""]
        for route in routes:
            if route.section == section:
                lines += route_section(route, told["paths"][route.path][route.method.lower()], schemas)
    lines += ["## Types", "", "Objects in the bodies and answers above.", ""]
    operations = [told["paths"][route.path][route.method.lower()] for route in routes]
    shown = {name for one in operations for name in (body_of(one), answer_of(one))}
    bodies = names_in([one.get("requestBody") for one in operations], schemas)
    for name, schema in schemas.items():
        if name not in shown and "properties" in schema:
            lines += [f"### `{short(name)}`", "", described(schema), ""]
            lines += fields_table(schema, in_body=name in bodies)
    return "\n".join(lines)


def body_of(operation: dict[str, Any]) -> str:
    """The name of the schema of what is sent; empty if it has none."""
    content = operation.get("requestBody", {}).get("content", {})
    return ref_in(content)


def answer_of(operation: dict[str, Any]) -> str:
    """The name of the schema of a good answer; empty if it has none."""
    good = next(answer for code, answer in operation["responses"].items() if code < "400")
    return ref_in(good["content"])


def ref_in(content: dict[str, Any]) -> str:
    schema = content.get("application/json", {}).get("schema", {})
    return str(schema.get("$ref", "")).removeprefix(REFERENCE)


def described(schema: dict[str, Any]) -> str:
    """What the docstring of a struct says, in one paragraph."""
    return " ".join(schema.get("description", "").split())


def short(name: str) -> str:
    """Two structs of one name are told apart by their modules, which readers need not see."""
    return name.rpartition(".")[2]


def names_in(found: Any, schemas: dict[str, Any], seen: frozenset[str] = frozenset()) -> set[str]:
    """The schemas that these refer to, directly or not."""
    if isinstance(found, dict) and "$ref" in found:
        name = found["$ref"].removeprefix(REFERENCE)
        return set() if name in seen else {name} | names_in(schemas[name], schemas, seen | {name})
    inner = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    return {name for one in inner for name in names_in(one, schemas, seen)}


def route_section(route: Route, operation: dict[str, Any], schemas: dict[str, Any]) -> list[str]:
    """A route: what it does, who may call it, what to send, what comes back."""
    roles = [f"`{role.value}`" for role in Role if role in route.roles]
    key = f"API key with the role {listed(roles)}" if roles else "no API key"
    errors = f"; errors {', '.join(map(str, route.refused))}" if route.refused else ""
    lines = [
        f"### {route.title}",
        "",
        f"`{route.method} {route.path}`",
        "",
        route.description,
        "",
        f"Needs: {key}. Status: {listed([*map(str, route.codes)])}{errors}.",
        "",
    ]
    if route.example is not None:
        lines += ["```json", json.dumps(route.example), "```", ""]
    if route.query:
        lines += ["| query parameter | type | meaning |", "|---|---|---|"]
        lines += [
            f"| `{name}` | integer from {one.at_least} | {one.summary}; {one.default} by default |"
            for name, one in route.query.items()
        ]
        lines += [""]
    body, answer = body_of(operation), answer_of(operation)
    if schemas.get(body, {}).get("properties"):
        lines += [f"Body: {described(schemas[body])}", "", *fields_table(schemas[body], in_body=True)]
    if schemas.get(answer, {}).get("properties"):
        lines += [f"Answer: {described(schemas[answer])}", "", *fields_table(schemas[answer], in_body=False)]
    return lines


def listed(words: list[str]) -> str:
    """'a, b or c'."""
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def fields_table(schema: dict[str, Any], *, in_body: bool) -> list[str]:
    """The fields of an object: name, type, meaning. Of a body those are marked that must be sent, of an answer
    those that may be absent."""
    required = set(schema.get("required", ()))
    lines = ["| field | type | meaning |", "|---|---|---|"]
    for name, field in schema["properties"].items():
        mark = "; **required**" if in_body and name in required else ""
        mark = mark or ("; may be absent" if not in_body and name not in required else "")
        lines.append(f"| `{name}` | {type_of(without_default_null(field))}{mark} | {meaning_of(field)} |")
    return [*lines, ""]


def without_default_null(field: dict[str, Any]) -> dict[str, Any]:
    """Where null says the same as leaving the field out, it is not worth a word."""
    if "default" not in field or field["default"] is not None or "anyOf" not in field:
        return field
    left = [one for one in field["anyOf"] if one.get("type") != "null"]
    return left[0] if len(left) == 1 else {**field, "anyOf": left}


def meaning_of(field: dict[str, Any]) -> str:
    """What the field, or the types that it may have, say of it, and its default."""
    told = [field.get("description", ""), *(one.get("description", "") for one in field.get("anyOf", ()))]
    default = field.get("default")
    if default not in (None, [], (), {}, "", False):
        told.append(f"{json.dumps(default)} by default".replace('"', "`"))
    return "; ".join(dict.fromkeys(filter(None, told))).replace("|", "\\|")


PLURAL = {"features": "features", "list": "lists", "object": "objects"}


def several(field: dict[str, Any]) -> str:
    """The type of the entries of a list or object: 'ids', 'numbers or null'."""
    first, *rest = type_of(field).replace(" or null", " or nulls").split(" ", 1)
    if first.startswith("`"):
        return " ".join([first, *rest])
    return " ".join([PLURAL.get(first, f"{first}s"), *rest])


def kinds_in(field: dict[str, Any]) -> set[str]:
    return {str(one.get("type")) for one in field["anyOf"]}


def type_of(field: dict[str, Any]) -> str:
    """A type in words: 'string', 'list of numbers', 'id or null'."""
    if "anyOf" in field:
        kinds = kinds_in(field)
        if {"integer", "string", "boolean"} <= kinds:
            return "value"
        if kinds == {"integer", "string"}:
            return "id"
        if kinds == {"integer", "string", "null"}:
            return "id or null"
        words = list(dict.fromkeys(type_of(one) for one in field["anyOf"]))
        if words[:2] == ["list of values", "object of values"]:
            words[:2] = ["features"]
        return listed(words)
    if "$ref" in field:
        return f"`{short(field['$ref'].removeprefix(REFERENCE))}`"
    if "enum" in field:
        return listed([f"`{json.dumps(one)}`" for one in field["enum"]])
    kind = field.get("type")
    if kind == "array":
        inner = field.get("items")
        return f"list of {several(inner)}" if isinstance(inner, dict) and inner else "list"
    if kind == "object":
        inner = field.get("additionalProperties")
        return f"object of {several(inner)}" if isinstance(inner, dict) and inner else "object"
    return str(kind or "anything")
