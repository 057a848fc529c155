"""What only HTTP refuses, beside the kinds of `wire.errors`; and every refusal as an answer."""

import math

import msgspec

from firstclick.serve.http.messages import Answer, Headers
from firstclick.wire.errors import Refused


class WrongMethod(Refused):
    """The path is there, for other methods."""

    status, code = "wrong-method", 405

    def __init__(self, message: str, allowed: str) -> None:
        super().__init__(message)
        self.allowed = allowed


class UnsupportedMedia(Refused):
    """A body that is not in the one form this route takes."""

    status, code = "unsupported-media", 415


class Misdirected(Refused):
    """A server without keys was asked under a name that is not this machine's own, or through a proxy."""

    status, code = "misdirected", 421


class Failed(Refused):
    """Our mistake, told in the log; the caller hears that it is ours and nothing else."""

    status, code = "failed", 500


class Error(msgspec.Struct, omit_defaults=True):
    """Why nothing was done: a status word for programs, a sentence for people; the field it is about, or what
    is wrong with the server: see REASONS in `wire/errors.py`."""

    status: str
    message: str
    field: str = ""
    reason: str = ""


class ErrorAnswer(msgspec.Struct):
    """What every refused request gets."""

    error: Error


def as_answer(refusal: Refused) -> Answer:
    """The refusal in JSON, with its code and headers."""
    field = "" if refusal.owner else refusal.argument
    # They may quote half a character that came in a path; JSON has no way to write it.
    message, field = (text.encode("utf-8", "backslashreplace").decode() for text in (str(refusal), field))
    headers: Headers = []
    if isinstance(refusal, WrongMethod):
        headers.append((b"allow", refusal.allowed.encode()))
    elif refusal.code == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if (wait := getattr(refusal, "retry_after", None)) is not None:
        headers.append((b"retry-after", b"%d" % max(1, math.ceil(wait))))
    content = msgspec.json.encode(
        ErrorAnswer(Error(refusal.status, message, field, getattr(refusal, "reason", "")))
    )
    return Answer(content, refusal.code, headers)
