"""From the bytes of a body to its Struct. What is wrong with a body is found by its JSON schema."""

import json
import re
from collections import Counter
from functools import cache
from sys import float_info
from typing import Any, TypeVar

import msgspec

from firstclick.in_pieces import drop
from firstclick.serve.http.body_pieces import PIECE, cut
from firstclick.wire.errors import Malformed

T = TypeVar("T")
Schema = dict[str, Any]

# An escaped NUL, not an escaped backslash before the letters u0000.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
LONGEST_QUOTE = 60
# Of a longer number this much is read: no limit is that large, and Python reads 4,300 digits at most.
MOST_DIGITS = 400

# The types of a schema in a sentence, and in Python; and its limits.
TYPES: dict[str, tuple[str, tuple[type, ...]]] = {
    "integer": ("a whole number", (int,)), "number": ("a number", (int, float)), "string": ("a text", (str,)),
    "null": ("null", (type(None),)), "array": ("a list", (list,)), "object": ("an object", (dict,)),
    "boolean": ("true or false", (bool,)),
}  # fmt: skip
LIMITS = {
    "minimum": "{}, at least {}", "exclusiveMinimum": "{}, above {}",
    "minLength": "{} of at least {} characters",
    "maximum": "{}, at most {}", "maxLength": "{} of at most {} characters", "maxItems": "{} of at most {}",
}  # fmt: skip
FINITE = {"minimum": -float_info.max, "maximum": float_info.max}


def decode(decoder: "msgspec.json.Decoder[T]", body: bytes) -> T:
    """The body, or Malformed: what, by which rule, and what was found."""
    try:
        decoded = decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _refusal(decoder.type, body, error) from None
    # As many colons as different names: none is there twice.
    if (colons := body.count(b":")) > 1 and colons != _count_names(msgspec.json.decode(body)):
        _parsed(body)
    if b"\\u0000" in body and _NUL.search(body):
        raise Malformed("the body holds a NUL character (\\u0000) in a text; leave it out")
    return decoded


def decode_large(decoder: "msgspec.json.Decoder[T]", body: bytes) -> T:
    """As `decode`, for a body of any size, and without keeping others waiting: long lists come in pieces."""
    if len(body) <= PIECE:
        return decode(decoder, body)
    kind: Any = decoder.type
    rest, pieces = cut(body)
    decoded = decode(decoder, rest)
    for field, content in pieces:
        entries: list[Any] = getattr(decoded, field)
        try:
            entries += decode(_list_decoder(kind, field), content)
        except Malformed as error:
            path, problem = _moved(error.argument, field, len(entries)), error.problem
            if problem.startswith("the body must be "):  # the list itself breaks a rule
                path, problem = field, problem.removeprefix("the body ")
            drop(entries)
            raise Malformed(problem, path, error.owner) from None
    return decoded


@cache
def _list_decoder(kind: Any, field: str) -> "msgspec.json.Decoder[Any]":
    (found,) = (one for one in msgspec.structs.fields(kind) if one.encode_name == field)
    return msgspec.json.Decoder(found.type)


def _moved(path: str, field: str, n_before: int) -> str:
    """The path within a piece as it is in the whole body."""
    found = re.match(r"\[(\d+)\]", path)
    return f"{field}[{int(found[1]) + n_before}]{path[found.end() :]}" if found else path


def _count_names(value: Any) -> int:
    names, parts = (len(value), value.values()) if type(value) is dict else (0, value)
    for part in parts:
        if type(part) is dict or type(part) is list:
            names += _count_names(part)
    return names


def _parsed(body: bytes) -> Any:
    """The body without its type; Malformed for a name that is given twice, as one value would be lost."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        for name, times in Counter(name for name, _ in pairs).items():
            if times > 1:
                raise Malformed(f"{_quoted(name)} is given twice in one object; give it once")
        return dict(pairs)

    return json.loads(
        body.decode(), object_pairs_hook=once, parse_int=lambda digits: int(digits[:MOST_DIGITS])
    )


@cache
def _schema(kind: Any) -> tuple[tuple[Schema, ...], dict[str, Schema]]:
    return msgspec.json.schema_components([kind], ref_template="{name}")


def _refusal(kind: Any, body: bytes, error: Exception) -> Malformed:
    """What is wrong with the body, and at which path."""
    try:
        if isinstance(error, msgspec.ValidationError):
            (schema,), parts = _schema(kind)
            _check(_parsed(body), schema, parts)
    except Malformed as found:
        return found
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as other:
        error = other
    if not body.strip():
        return Malformed("the body is empty; send a JSON object, {} at least")
    if isinstance(error, UnicodeDecodeError):
        return Malformed("the body is not UTF-8; send JSON in UTF-8")
    if isinstance(error, RecursionError):
        return Malformed("the body is nested too deeply; send what /openapi.json describes")
    return Malformed(
        f"the body cannot be read: {error}; send one whole object (NaN and Infinity are not JSON)"
    )


def _check(value: Any, schema: Schema, parts: dict[str, Schema], path: str = "") -> None:
    """Malformed if the value at this path breaks a rule of the schema."""
    # Of an enum, words alone, the schema tells no type.
    rules = [
        {"type": "string"} | parts.get(one.get("$ref", ""), one) for one in schema.get("anyOf", [schema])
    ]
    rule = next((one for one in rules if type(value) in TYPES[one["type"]][1]), None)
    wanted = _broken_limit(rule, value) if rule else " or ".join(TYPES[one["type"]][0] for one in rules)
    if rule is None or wanted:
        raise Malformed(f"{'' if path else 'the body '}must be {wanted}, got {_quoted(value)}", path)
    if isinstance(value, list):
        for place, part in enumerate(value):
            _check(part, rule["items"], parts, f"{path}[{place}]")
    elif isinstance(value, dict):
        for name in dict.fromkeys((*value, *rule.get("required", ()))):
            inner = _joined(path, name)
            below = rule.get("properties", {}).get(name) or rule["additionalProperties"]
            if not below:
                raise Malformed("is not a field; see /openapi.json for those there are", inner)
            if name not in value:
                raise Malformed("is missing; give it", inner)
            if not re.search(rule.get("propertyNames", {}).get("pattern", ""), name):
                raise Malformed(f'must have names like "0", for positions, got {_quoted(name)}', path)
            _check(value[name], below, parts, inner)


def _joined(path: str, name: str) -> str:
    if not name.isidentifier() or len(name) > LONGEST_QUOTE:
        return f"{path}[{_quoted(name)}]"
    return f"{path}.{name}" if path else name


def _broken_limit(rule: Schema, value: Any) -> str:
    """What the value must be, if it is too small or too large, or no word of an enum."""
    size = len(value) if isinstance(value, str | list) else value
    for key, limit in (FINITE | rule if rule.get("type") == "number" else rule).items():
        if key in LIMITS and _breaks(key, size, limit):
            return LIMITS[key].format(TYPES[rule["type"]][0], limit)
    return "" if value in rule.get("enum", [value]) else f"one of {', '.join(rule['enum'])}"


def _breaks(rule: str, size: float, limit: float) -> bool:
    if rule == "exclusiveMinimum":
        return size <= limit
    return size < limit if rule.startswith("min") else size > limit


def _quoted(value: object) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = "an object" if isinstance(value, dict) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}..."
