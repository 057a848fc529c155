"""Durations as people write them: 90s, 30m, 2h."""

import math
import re
from contextlib import suppress
from datetime import timedelta
from numbers import Real

from firstclick.errors import InvalidInput
from firstclick.validation.quoting import quoted

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
# How long a page may take to report a slate.
SHORTEST_WAIT, LONGEST_WAIT = 1, 30 * UNITS["d"]
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])", re.ASCII)


def seconds_in(value: object, argument: str) -> float:
    """The seconds of a duration: a number of them, a timedelta, or a text such as 90s, 30m, 2h or 1h30m.

    >>> seconds_in("1h30m", "older_than")
    5400.0
    """
    seconds = math.nan
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, str):
        text = value.strip().lower()
        parts = _PART.findall(text)
        if parts and not _PART.sub("", text).strip():
            seconds = sum(float(number) * UNITS[unit] for number, unit in parts)
        elif _NUMBER.fullmatch(text):
            seconds = float(text)
    elif isinstance(value, Real) and not isinstance(value, bool):
        with suppress(OverflowError):
            seconds = float(value)
    if not math.isfinite(seconds):
        raise InvalidInput(
            f"must be a number of seconds, or a duration such as 90s, 30m or 2h, got {quoted(value)}",
            argument,
        )
    return seconds


def check_wait(value: object, argument: str = "no_click_after", owner: str = "") -> float:
    """Seconds after which a slate that nobody reported had no click, 0 for never; or InvalidInput."""
    try:
        found = seconds_in(value, argument)
    except InvalidInput as error:
        raise InvalidInput(error.problem, argument, owner) from None
    if not (found == 0 or SHORTEST_WAIT <= found <= LONGEST_WAIT):
        raise InvalidInput(
            f"must be 0, or a time from {SHORTEST_WAIT} s to {LONGEST_WAIT // UNITS['d']} days, such as 30m, "
            f"got {quoted(value)}",
            argument,
            owner,
        )
    return found
