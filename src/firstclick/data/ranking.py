"""Codes ranked by a count, and where each comes among those that are kept."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def most_first(
    counts: NDArray[np.integer[Any]], ids: Sequence[str] | Sequence[bytes] | None = None
) -> NDArray[np.int64]:
    """The codes by falling count; among equals the lower id comes first, without ids the lower code."""
    codes = np.arange(len(counts), dtype=np.int64)
    if ids is not None:
        codes = np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int64)
    return codes[np.argsort(-counts[codes], kind="stable")]


def places(kept: Sequence[int] | NDArray[np.int64], n_codes: int) -> NDArray[np.int32]:
    """The place of every code in the list `kept`, -1 for those that are not there."""
    found = np.full(n_codes, -1, np.int32)
    found[kept] = np.arange(len(kept), dtype=np.int32)
    return found
