"""What the service answers when it does not do what was asked: a status word, an HTTP code, a sentence."""

from collections.abc import Collection
from typing import ClassVar

from firstclick.errors import FirstclickError, WorkFailed

# Why a server cannot do something now.
REASONS = {
    "full-disk": "the disk is full, or a quota is used up",
    "read-only": "the store cannot be written: the disk or the database is read-only, or rights are missing",
    "no-database": "the database, or the store's file, cannot be reached",
    "locked": "another program holds a lock of the store",
    "broken": "the store must not be written to before a restart",
    "set-back": "acknowledged events are gone from the log, and the model is loaded again",
    "behind": "the model has not learned yet what its log says",
    "not-served": "no model of the store can be served",
}


class Refused(FirstclickError):
    """A request that changed nothing; the message says what to do."""

    status: ClassVar[str]
    code: ClassVar[int]


class Malformed(Refused, ValueError):
    """The request breaks a rule, and would break it again."""

    status, code = "malformed", 422

    @classmethod
    def of(cls, error: FirstclickError) -> "Malformed":
        """What the library refused, as a refusal of the service."""
        return cls(error.problem, error.argument, error.owner)


class _Refusing:
    """See `refusing`."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, FirstclickError) and not isinstance(error, Refused):
            raise Malformed.of(error) from None


# `with refusing:` turns what the library says of wrong input into Malformed.
refusing = _Refusing()


class Unauthorised(Refused):
    """No key, or one that is not known."""

    status, code = "unauthorised", 401


class Forbidden(Refused):
    """A known key without the role that this needs."""

    status, code = "forbidden", 403


class Unknown(Refused, LookupError):
    """No such model, item or token: also a token that was not signed here, or was changed."""

    status, code = "unknown", 404


class Conflict(Refused):
    """Something else was said before under the same token or name; the first stays."""

    status, code = "conflict", 409


class Late(Refused):
    """The slate counts as one without a click, because nobody reported it in time, and its policy cannot take
    that back."""

    status, code = "late", 409


class Expired(Refused):
    """The slate was shown too long ago."""

    status, code = "expired", 410


class TooLarge(Refused):
    """More than the server takes at once."""

    status, code = "too-large", 413


class TryLater(Refused):
    """The same request may be sent again after `retry_after` seconds. `reason` is a word for programs: one of
    REASONS, or nothing."""

    def __init__(self, message: str, retry_after: float = 1.0, reason: str = "") -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.reason = reason


class Overloaded(TryLater):
    """Too much is waiting already."""

    status, code = "overloaded", 429


class Unavailable(TryLater):
    """The store cannot be reached or written now; nothing was acknowledged."""

    status, code = "unavailable", 503


class NotServed(Refused):
    """The model is in the store, and this version of firstclick cannot serve it: trying again is no use."""

    status, code = "not-served", 503


class OtherVersion(WorkFailed):
    """A model was learned by another version of its policy's arithmetic: this process will never serve it."""


class OtherHistory(Unavailable):
    """The store's log is not the one that was read before: acknowledged events are gone. The model is loaded
    again; nothing was written."""

    def __init__(self, message: str, models: Collection[int] = ()) -> None:
        super().__init__(message)
        self.models = frozenset(models)


class StoreBroken(Unavailable):
    """The disk refused to keep what was written: only a restart, which reads what is there, can go on."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="broken")
