"""Millions of feedback events learned in one call."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.features import LARGEST_CONTEXT, LARGEST_FEATURE
from firstclick.errors import InvalidInput
from firstclick.kernels.arrays import NO_LIMITS, Request
from firstclick.kernels.clicks import UNTOLD, examined_positions
from firstclick.kernels.compiling import compiled, kernel, learn, shared_kernel
from firstclick.online.engine import PolicyEngine
from firstclick.policies.base import Policy
from firstclick.serve.log.events import FEEDBACK_HEAD, MORE, MORE_HEAD, WITH_FIELDS, read_feedback

_HEAD = FEEDBACK_HEAD.size
_MORE_HEAD = MORE_HEAD.size
SKIPPED = -2


class Shape(NamedTuple):
    """What feedback for a model must be like."""

    longest: int  # slates, in rows
    click_model: int  # what the policy takes for examined where the page does not tell
    n_context: int  # numbers in each context
    n_columns: int  # features a row, where a request may bring its own; else 0


@kernel
def _unsigned(content, at, size):  # type: ignore[no-untyped-def]
    """The number in so many bytes from this place on, little-endian."""
    number = np.uint64(0)
    for i in range(size):
        number |= np.uint64(content[at + i]) << np.uint64(8 * i)
    return number


@kernel
def _signed(content, at):  # type: ignore[no-untyped-def]
    """The 16-bit number with a sign at this place."""
    unsigned = np.int64(_unsigned(content, at, 2))
    return unsigned - 65_536 if unsigned >= 32_768 else unsigned


@kernel
def _read(content, at, end, n_rows, shape, rows, clicked, words, floats):  # type: ignore[no-untyped-def]
    """Fill `rows`, `clicked` and `floats`, whose bits are `words`: the context, then the features.

    How many rows there are, -1 if this is not of a model of this shape and with so many rows; how many
    positions were examined, or UNTOLD; and how many features a row has. Policies do not look whether a row
    exists, or a position: all is looked at here.
    """
    wrong = -1, UNTOLD, 0
    if end - at < _HEAD:
        return wrong
    click = _signed(content, at)
    at += _HEAD
    marks = at
    told, n_context, n_columns = UNTOLD, np.int64(0), np.int64(0)
    n = (end - at) // 4
    is_more = click in (MORE, WITH_FIELDS)
    if is_more:
        if end - at < _MORE_HEAD:
            return wrong
        n = np.int64(_unsigned(content, at, 2))
        told = _signed(content, at + 2)
        n_context = np.int64(_unsigned(content, at + 4, 2))
        n_columns = np.int64(_unsigned(content, at + 6, 2))
        marks = at + _MORE_HEAD
        at = marks + (n + 7) // 8
    n_floats = n_context + n * n_columns
    if n > shape.longest or n_context != shape.n_context or n_columns not in (0, shape.n_columns):
        return wrong
    size = 4 * n + 8 * n_floats
    # What the slate was drawn from may follow, and teaches nothing.
    if end - at < size or (end - at > size and click != WITH_FIELDS) or not UNTOLD <= told <= n:
        return wrong
    if is_more:
        if n % 8 and content[marks + n // 8] >> (n % 8):
            return wrong
        for position in range(n):
            clicked[position] = (content[marks + position // 8] >> (position % 8)) & 1
            if clicked[position] and told != UNTOLD and position >= told:
                return wrong
    elif not -1 <= click < n:
        return wrong
    else:
        for position in range(n):
            clicked[position] = position == click
    for position in range(n):
        rows[position] = np.int64(_unsigned(content, at + 4 * position, 4))
        if rows[position] >= n_rows:
            return wrong
    at += 4 * n
    for i in range(n_floats):
        words[i] = _unsigned(content, at + 8 * i, 8)
        if not abs(floats[i]) <= (LARGEST_CONTEXT if i < n_context else LARGEST_FEATURE):
            return wrong
    return n, told, n_columns


def fold_feedback(numbers, state, catalog, request, content, ends, shape, clicks):  # type: ignore[no-untyped-def]
    """Learn from the payloads in `content`, each of which ends at its place in `ends`, in order.

    Fills `clicks` with the first position that was clicked in each, -1 for none, and SKIPPED for what this
    model cannot have shown. That is passed over, by everybody alike: a log is never refused.
    """
    rows = np.empty(shape.longest, np.int64)
    clicked = np.empty(shape.longest, np.uint8)
    words = np.empty(shape.n_context + shape.longest * shape.n_columns, np.uint64)
    floats = words.view(np.float64)
    context = floats[: shape.n_context]
    features = floats[shape.n_context :].reshape(shape.longest, shape.n_columns)
    start = 0
    for i in range(len(ends)):
        n, told, n_columns = _read(
            content, start, ends[i], len(catalog.rows), shape, rows, clicked, words, floats
        )
        start = ends[i]
        clicks[i] = SKIPPED
        if n >= 0:
            given = features[: n if n_columns else 0]
            asked = Request(request.candidates, request.hidden, context, given, request.groups, request.caps)
            examined = examined_positions(shape.click_model, clicked, n, told)
            learn(numbers, state, catalog, asked, rows[:n], examined, clicked[:n])
            clicks[i] = -1
            for position in range(n - 1, -1, -1):
                if clicked[position]:
                    clicks[i] = position


@shared_kernel
def _count(content, ends, n_rows, shape, examined, hits, counted):  # type: ignore[no-untyped-def]
    """Add up how often each row was examined and clicked first, but in slates with features of their own;
    `counted` says in which."""
    rows = np.empty(shape.longest, np.int64)
    clicked = np.empty(shape.longest, np.uint8)
    words = np.empty(shape.n_context + shape.longest * shape.n_columns, np.uint64)
    floats = words.view(np.float64)
    start = 0
    for i in range(len(ends)):
        n, told, n_columns = _read(content, start, ends[i], n_rows, shape, rows, clicked, words, floats)
        start = ends[i]
        if n >= 0 and n_columns == 0:
            counted[i] = True
            for position in range(examined_positions(shape.click_model, clicked, n, told)):
                examined[rows[position]] += 1
                hits[rows[position]] += clicked[position]


def count_slates(
    engine: PolicyEngine,
    content: NDArray[np.uint8],
    ends: NDArray[np.int64],
    examined: NDArray[np.int64],
    hits: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Add to how often each row was examined and clicked in these payloads, one after another; which were
    counted: not those with features of their own, nor what this model cannot have shown."""
    counted = np.zeros(len(ends), np.bool_)
    _count(content, ends, len(examined), _shape(engine), examined, hits, counted)
    return counted


def _shape(engine: PolicyEngine) -> Shape:
    policy = engine.policy
    return Shape(
        engine.k,
        policy.click_model.kind,
        policy.n_context,
        engine.features.shape[1] if policy.takes_features else 0,
    )


def fold(engine: PolicyEngine, payloads: Sequence[bytes]) -> NDArray[np.int64]:
    """Learn from these payloads of feedback, in order; the first position clicked in each, -1 for none, or
    SKIPPED."""
    policy = engine.policy
    if type(policy).check_context is not Policy.check_context:
        payloads = [payload if _has_meaning(policy, payload) else b"" for payload in payloads]
    clicks = np.empty(len(payloads), np.int64)
    engine.follow_catalog()
    ends = np.cumsum(np.fromiter(map(len, payloads), np.int64, len(payloads)))
    # A copy, because a view of bytes is read-only, for which Numba would compile once more.
    content = np.frombuffer(bytearray(b"".join(payloads)), np.uint8)
    compiled(fold_feedback, type(policy))(
        engine.numbers,
        engine.state,
        engine.arrays_to_learn(),
        NO_LIMITS._replace(hidden=engine.hidden()),
        content,
        ends,
        _shape(engine),
        clicks,
    )
    return clicks


def _has_meaning(policy: Policy, payload: bytes) -> bool:
    """Whether the policy takes the context, at which its kernels do not look."""
    try:
        context = read_feedback(payload).context
        if len(context) == policy.n_context > 0:
            policy.check_context(np.array(context))
    except (InvalidInput, ValueError, struct.error):
        return False
    return True
