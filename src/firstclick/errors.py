"""What firstclick raises when a caller breaks a rule."""


class FirstclickError(Exception):
    """Any mistake that firstclick can name; the message is one sentence for people."""


class InvalidInput(FirstclickError, ValueError):
    """A value given by the caller breaks a rule."""


class UnknownName(FirstclickError, LookupError):
    """No policy, world or column has this name."""


class WorkFailed(FirstclickError, RuntimeError):
    """The request was right, but the work could not be finished."""
