"""Millions of feedback events learned in one call."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.compiling import compiled, kernel, learn
from firstclick.live import LivePolicy
from firstclick.serve.events import FEEDBACK_HEAD

_HEAD = FEEDBACK_HEAD.size
SKIPPED = -2


@kernel
def _click(content, at):  # type: ignore[no-untyped-def]
    """The 16-bit number with a sign at this place."""
    unsigned = np.int64(content[at]) | np.int64(content[at + 1]) << 8
    return unsigned - 65_536 if unsigned >= 32_768 else unsigned


@kernel
def _row(content, at):  # type: ignore[no-untyped-def]
    """The 32-bit number at this place."""
    low = np.int64(content[at]) | np.int64(content[at + 1]) << 8
    return low | np.int64(content[at + 2]) << 16 | np.int64(content[at + 3]) << 24


def fold_feedback(numbers, state, catalog, content, ends, longest, clicks):  # type: ignore[no-untyped-def]
    """Learn from the payloads in `content`, each of which ends at its place in `ends`, in order.

    Fills `clicks` with the position that was clicked in each, -1 for none, and SKIPPED for what this model
    cannot have shown. That is passed over, by everybody alike: a log is never refused.
    """
    n_rows = len(catalog.rows)
    rows = np.empty(longest, np.int64)
    clicked = np.zeros(longest, np.uint8)
    start = 0
    for i in range(len(ends)):
        size = ends[i] - start - _HEAD
        n = size // 4
        # Learners do not look whether a row exists, or a position.
        right = size >= 0 and size % 4 == 0 and n <= longest
        click = np.int64(SKIPPED)
        if right:
            click = _click(content, start)
            right = -1 <= click < n
        if right:
            for j in range(n):
                rows[j] = _row(content, start + _HEAD + 4 * j)
                right = right and rows[j] < n_rows
        if right:
            examined = n
            if click >= 0:
                clicked[click] = 1
                examined = click + 1
            learn(numbers, state, catalog, rows[:n], examined, clicked[:n])
            if click >= 0:
                clicked[click] = 0
        clicks[i] = click if right else SKIPPED
        start = ends[i]


def fold(live: LivePolicy, payloads: Sequence[bytes]) -> NDArray[np.int64]:
    """Learn from these payloads of feedback, in order; the positions clicked, -1 for none, or SKIPPED."""
    clicks = np.empty(len(payloads), np.int64)
    live.follow_catalog()
    ends = np.cumsum(np.fromiter(map(len, payloads), np.int64, len(payloads)))
    # A copy, because a view of bytes is read-only, for which Numba would compile once more.
    content = np.frombuffer(bytearray(b"".join(payloads)), np.uint8)
    compiled(fold_feedback, type(live.policy))(
        live.numbers, live.state, live.arrays_to_learn(), content, ends, live.k, clicks
    )
    return clicks
