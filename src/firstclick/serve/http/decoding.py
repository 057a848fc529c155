"""From the bytes of a body to its Struct, and from what is wrong with them to a sentence."""

import json
import re
from typing import Any, TypeVar

import msgspec

from firstclick.wire.errors import Malformed

T = TypeVar("T")

# An escaped NUL, not an escaped backslash before the letters u0000.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_PATH_STEP = re.compile(r"\.([^.\[`]+)|\[(\d+|\.\.\.)\]")
_AT = re.compile(r" - at (?:`key` in )?`\$(.*)`$")
_FIELD = re.compile(r"Object (missing required|contains unknown) field `(.*)`")
_WANTED = re.compile(r"Expected `([^`]*)`(?: of length)?(?: (>=|<=) (\d+|-\d+))?(?:, got `[^`]*`)?$")

IN_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}
LONGEST_QUOTE = 60


def decode(decoder: "msgspec.json.Decoder[T]", body: bytes, required: int = 0) -> T:
    """The body, or Malformed: what, by which rule, and what was found.

    `required` is the number of fields that an object of this kind must have.
    """
    try:
        decoded = decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Malformed(_in_words(str(error), body)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(_not_json(error, body)) from None
    # As many colons as fields that are needed, or a single one: nothing can be there twice.
    if body.count(b":") > max(1, required):
        _refuse_twins(body)
    if b"\\u0000" in body and _NUL.search(body):
        raise Malformed("the body holds a NUL character (\\u0000) in a text; leave it out")
    return decoded


def _refuse_twins(body: bytes) -> None:
    """Of two values for one name one would be lost without a word."""

    def pairs(found: list[tuple[str, Any]]) -> None:
        if len(found) > 1:
            names = {name for name, _ in found}
            if len(names) < len(found):
                twice = next(name for name, _ in found if [n for n, _ in found].count(name) > 1)
                raise Malformed(f"{_quoted(twice)} is given twice in one object; give it once")

    json.loads(body, object_pairs_hook=pairs)


def _not_json(error: Exception, body: bytes) -> str:
    if not body.strip():
        return "the body is empty; send a JSON object, {} at least"
    if isinstance(error, UnicodeDecodeError):
        return "the body is not UTF-8; send JSON in UTF-8"
    if isinstance(error, RecursionError):
        return "the body is nested too deeply; send what /openapi.json describes"
    if "truncated" in str(error):
        return "the body ends in the middle of its JSON; send all of it"
    reason = str(error).removeprefix("JSON is malformed: ")
    return f"the body is not JSON: {reason}; NaN and Infinity are not JSON either"


def _in_words(message: str, body: bytes) -> str:
    """msgspec's message as a sentence of ours."""
    at = _AT.search(message)
    path = at[1] if at else ""
    rest = message[: at.start()] if at else message
    place = path.removeprefix(".") or "the body"
    if field := _FIELD.fullmatch(rest):
        inside = f" in {place}" if path else ""
        if field[1] == "missing required":
            return f"{field[2]} is missing{inside}; give it"
        return f"there is no field {_quoted(field[2])}{inside}; see /openapi.json for what there is"
    if " - at `key` in " in message:
        return f'{place}: each name must be a position, such as "0"; see /openapi.json'
    got = _found(path, body)
    if "out of range" in rest:
        return f"{place} is out of range{got}; no number may be that large"
    if rest.startswith("Invalid enum value"):
        return f"{place} must be one of the words that /openapi.json lists{got}"
    if wanted := _WANTED.match(rest):
        return f"{place} must be {_rule(*wanted.groups())}{got}"
    return f"{place}: {rest}{got}"


def _rule(kind: str, bound: str | None, limit: str | None) -> str:
    words = " or ".join(IN_WORDS.get(one, one) for one in kind.split(" | "))
    if bound is None:
        return words
    most = f"at {'least' if bound == '>=' else 'most'} {limit}"
    if kind == "str":
        return f"a text of {most} characters"
    return f"a list of {most}" if kind == "array" else f"{words}, {most}"


def _found(path: str, body: bytes) -> str:
    """What stands at that path, for the end of a sentence; empty where it cannot be told."""
    try:
        value = json.loads(body)
        for name, index in _PATH_STEP.findall(path):
            value = value[int(index) if index else name]
        if isinstance(value, list):
            return f", got a list of {len(value)}"
        return ", got an object" if isinstance(value, dict) else f", got {_quoted(value)}"
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""


def _quoted(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}..."
