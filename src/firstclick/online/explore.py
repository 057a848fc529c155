"""Exploration that is logged: a share of slates is drawn uniformly among all items that may be shown.

Uniformly, and not by exchanging some items of the policy's slate: so the probability of every slate is known
exactly whatever the policy is, and every slate has one, so that a log can answer for any other policy.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.kernels.arrays import Request
from firstclick.kernels.hashing import uniform
from firstclick.policies.base import Policy
from firstclick.streams import stream_key
from firstclick.validation.quoting import quoted


class Explored(NamedTuple):
    """Of one slate: the share of slates that are drawn uniformly, whether this one was, and among how many
    items each of its places was drawn, or would have been. A pinned place has 1."""

    share: float
    drawn: bool
    among: tuple[int, ...]

    def propensities(self) -> list[float]:
        """The probability of each prefix of the slate in a uniform draw."""
        return np.cumprod(1.0 / np.array(self.among)).tolist() if self.among else []


class Explorer(NamedTuple):
    """Which slates are drawn uniformly, and how: the key and the number of a request decide."""

    key: np.uint64
    share: float

    @classmethod
    def of(cls, key: np.uint64, share: float) -> "Explorer":
        """That of a ranker or model with this key."""
        return cls(stream_key(int(key), "explore"), share)

    def draws(self, number: int) -> bool:
        """Whether the slate of this number is drawn uniformly."""
        return self.share > 0 and bool(uniform(self.key, np.uint64(number)) < self.share)


def check_share(share: object, policy: Policy) -> float:
    """The share of slates to explore, or InvalidInput."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise InvalidInput(
            f"must be a share of slates from 0 to 1, such as 0.05, got {quoted(share)}", "explore"
        )
    if share and not policy.learns_from_others:
        raise InvalidInput(
            f"must be 0 for {policy.label}, which learns from slates that it has shuffled itself, got "
            f"{quoted(share)}",
            "explore",
        )
    return float(share)


def places_among(
    request: Request, n_rows: int, rows: NDArray[np.int64], pinned: Mapping[int, int]
) -> tuple[int, ...]:
    """Among how many of the rows of a catalog each place of this slate would be drawn uniformly."""
    allowed = request.candidates if len(request.candidates) else None
    groups, left = request.groups, request.caps.copy()
    if len(groups):
        allowed = np.arange(n_rows) if allowed is None else allowed
        allowed = allowed[left[groups[allowed]] > 0]
    if len(request.hidden):
        shown = request.hidden == 0 if allowed is None else request.hidden[allowed] == 0
        n = int(np.count_nonzero(shown))
        allowed = allowed if allowed is None else allowed[shown]
    else:
        n = n_rows if allowed is None else len(allowed)
    waiting = np.bincount(groups[allowed], minlength=len(left)) if len(groups) else left
    fixed = set(pinned.values())
    among = []
    for row in rows.tolist():
        if row in fixed:
            among.append(1)
            continue
        among.append(n)
        n -= 1
        if len(groups):
            group = groups[row]
            left[group] -= 1
            waiting[group] -= 1
            if not left[group]:
                n -= int(waiting[group])
    return tuple(among)
