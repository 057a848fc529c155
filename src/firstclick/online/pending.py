"""Slates that wait for their feedback: what was shown, to whom, and how it was described."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Waiting(NamedTuple):
    """What has to be known of a slate to learn from it later."""

    rows: NDArray[np.int64]
    context: NDArray[np.float64]
    features: NDArray[np.float64]  # one row a position; none where they are those of the catalog


def for_a_file(
    pending: dict[str, Waiting], n_context: int, n_features: int
) -> tuple[list[Any], dict[str, NDArray[np.float64]]]:
    """The slates as a list for a page of JSON, and their contexts and features, slate after slate."""
    entries = [
        [slate, waiting.rows.tolist(), bool(len(waiting.features))] for slate, waiting in pending.items()
    ]
    contexts = [waiting.context for waiting in pending.values()]
    given = [waiting.features for waiting in pending.values() if len(waiting.features)]
    return entries, {
        "pending.contexts": np.array(contexts).reshape(len(entries), n_context),
        "pending.features": np.concatenate(given) if given else np.empty((0, n_features)),
    }


def from_a_file(
    entries: Sequence[Any],
    contexts: NDArray[np.float64],
    features: NDArray[np.float64],
    *,
    n_rows: int,
    n_context: int,
    n_features: int,
    k: int,
) -> dict[str, Waiting]:
    """The slates that `for_a_file` wrote; ValueError when the parts do not fit, because kernels do not look
    whether a row exists."""
    pending = {}
    start = 0
    if contexts.shape != (len(entries), n_context) or features.shape[1:] != (n_features,):
        raise ValueError("pending")
    for (slate, shown, has_features), context in zip(entries, contexts, strict=True):
        rows = np.array(shown, np.int64)
        if rows.ndim != 1 or len(rows) > k or not ((rows >= 0) & (rows < n_rows)).all():
            raise ValueError("pending")
        size = len(rows) if has_features else 0
        own = features[start : start + size].astype(np.float64) if size else np.empty((0, 0))
        if len(own) != size:
            raise ValueError("pending")
        pending[str(slate)] = Waiting(rows, context.astype(np.float64), own)
        start += size
    if start != len(features) or not (np.isfinite(contexts).all() and np.isfinite(features).all()):
        raise ValueError("pending")
    return pending
