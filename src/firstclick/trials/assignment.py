"""Who sees which arm: a unit (user or visit) has a bucket, a bucket belongs to an arm.

The bucket is a keyed hash of the unit, so that a log which keeps buckets does not tell who was there. A
change of shares moves as few buckets as possible; all others keep their arm.
"""

import hashlib
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.validation.quoting import quoted

N_BUCKETS = 10_000
MOST_ARMS = 8
LONGEST_UNIT = 256
LONGEST_NAME = 64
KEY_SIZE = 32
# 0.1 + 0.2 + 0.7 is not 1 to the last bit.
_ROUNDING = 1e-9

Unit = str | int


def bucket_of(unit: Unit, key: bytes) -> int:
    """The bucket of a unit, 0 to 9,999. The number 7 and the text "7" are the same unit.

    >>> bucket_of("user-7", bytes(32))
    7908
    """
    if len(key) != KEY_SIZE:
        raise InvalidInput(f"must have {KEY_SIZE} bytes, got {len(key)}", "key")
    digest = hashlib.blake2b(_text(unit), key=key, digest_size=8).digest()
    return int.from_bytes(digest, "little") % N_BUCKETS


def _text(unit: Unit) -> bytes:
    """The unit in UTF-8. A unit that is too long is refused before anybody reads it."""
    if isinstance(unit, bool) or not isinstance(unit, str | int):
        raise InvalidInput(f"must be text or a whole number, got {quoted(unit)}", "unit")
    if isinstance(unit, int):
        # log2(10) = 3.33 bits a digit; Python takes long to write a huge number.
        if unit.bit_length() > 3.3 * LONGEST_UNIT:
            raise InvalidInput(
                f"must have 1 to {LONGEST_UNIT} characters, got {quoted(unit)}; send an id or a hash of it",
                "unit",
            )
        unit = str(unit)
    if not 1 <= len(unit) <= LONGEST_UNIT:
        raise InvalidInput(
            f"must have 1 to {LONGEST_UNIT} characters, got {len(unit):,}; send an id or a hash of it", "unit"
        )
    try:
        return unit.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"must be text in UTF-8, got {quoted(unit)}", "unit") from None


def check_arms(names: Sequence[object], shares: Sequence[object]) -> None:
    """Names are distinct, shares at least 0 and 1 in all; InvalidInput says what is wrong.

    >>> check_arms(["policy", "baseline"], [0.9, 0.1])
    """
    if not 2 <= len(names) <= MOST_ARMS:
        raise InvalidInput(f"must be 2 to {MOST_ARMS}, got {len(names)}", "arms")
    for name in names:
        if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
            raise InvalidInput(
                f"must have names of 1 to {LONGEST_NAME} printable characters, got {quoted(name)}", "arms"
            )
        if name != name.strip():
            raise InvalidInput(f"must have names without spaces around them, got {quoted(name)}", "arms")
        if names.count(name) > 1:
            raise InvalidInput(f"must have different names, got {quoted(name)} twice", "arms")
    if len(shares) != len(names):
        raise InvalidInput(f"must be one for each of {len(names)} arms, got {len(shares)}", "shares")
    quotas(shares)


def quotas(shares: Sequence[object]) -> list[int]:
    """How many buckets each arm gets: its share of 10,000, remainders to the largest fractions.

    >>> quotas([1 / 3, 1 / 3, 1 / 3])
    [3334, 3333, 3333]
    """
    plain: list[float] = []
    for share in shares:
        if isinstance(share, bool) or not isinstance(share, int | float) or not math.isfinite(share):
            raise InvalidInput(f"must be numbers from 0 to 1, got {quoted(share)}", "shares")
        if share < 0 or 0 < share < 1 / N_BUCKETS:
            raise InvalidInput(f"must be 0 or at least {1 / N_BUCKETS:g}, got {quoted(share)}", "shares")
        plain.append(float(share))
    total = math.fsum(plain)
    if abs(total - 1) > _ROUNDING:
        raise InvalidInput(
            f"must add up to 1, got {total:.10g} ({' + '.join(f'{share:.10g}' for share in plain)})", "shares"
        )
    exact = [share * N_BUCKETS for share in plain]
    # 0.3 * 10,000 is a little below 3,000: what is that near to a whole number is that number.
    given = [math.floor(one + 1e-6) for one in exact]
    largest = sorted(range(len(exact)), key=lambda arm: (round(given[arm] - exact[arm], 6), arm))
    for arm in largest[: N_BUCKETS - sum(given)]:
        given[arm] += 1
    return given


def owners(shares: Sequence[float], before: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """The arm of each bucket. After a change of shares (`before` has the arms until then) an arm that gets
    smaller gives up its last buckets, and all others stay where they are.

    >>> first = owners([0.9, 0.1])
    >>> int((owners([0.5, 0.5], first) != first).sum())
    4000
    """
    wanted = np.array(quotas(shares))
    if before is None:
        return np.repeat(np.arange(len(wanted)), wanted).astype(np.uint8)
    if before.shape != (N_BUCKETS,):
        raise InvalidInput(f"must have {N_BUCKETS:,} buckets, got shape {before.shape}", "before")
    after = before.copy()
    held = np.bincount(before, minlength=len(wanted))
    if len(held) > len(wanted):
        raise InvalidInput(f"must keep all {len(held)} arms (an arm may have share 0)", "shares")
    freed = np.sort(
        np.concatenate([np.flatnonzero(before == arm)[wanted[arm] :] for arm in range(len(wanted))])
    )
    after[freed] = np.repeat(np.arange(len(wanted)), np.maximum(wanted - held, 0))
    return after


def arm_of_draw(draw: float, owner: NDArray[np.uint8]) -> int:
    """The arm of a request without a unit, from a uniform number in [0, 1).

    >>> arm_of_draw(0.95, owners([0.9, 0.1]))
    1
    """
    return int(owner[int(draw * N_BUCKETS)])
