"""The slates of a log whose outcome is known, as arrays in memory: fits go over them again and again.

A slate of 10 items takes 70 bytes.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.ids import ItemId
from firstclick.click_models.slate_hash import fold_of, resample_weights
from firstclick.errors import InvalidInput
from firstclick.files.progress import Progress, silent
from firstclick.kernels.compiling import keep_shared_kernels
from firstclick.logs.ranked_log import NOT_TOLD, RankedLog, SlateBatch

# A fit has two numbers for each item of each segment: 20 million are 320 MB.
MOST_CELLS = 20_000_000


@dataclass(frozen=True, eq=False)
class Sessions:
    """Slates and clicks. A cell is an item in a segment; cells that no slate shows have no place here."""

    name: str
    items: tuple[ItemId, ...]
    segments: tuple[str, ...]
    k: int
    cells: NDArray[np.int32]  # n x K; -1 after the end of a shorter slate
    clicks: NDArray[np.uint8]  # n x K
    examined: NDArray[np.int32]  # n; NOT_TOLD
    slate_segments: NDArray[np.int32]  # n
    numbers: NDArray[np.int64]  # n
    places: NDArray[np.int64]  # of each cell in the table segments x items, row by row
    unreported: int  # slates left out because nobody knows what was clicked

    @property
    def n(self) -> int:
        """The number of slates."""
        return len(self.cells)

    @property
    def n_cells(self) -> int:
        """The number of cells that some slate shows."""
        return len(self.places)

    @property
    def cell_segments(self) -> NDArray[np.int64]:
        """The segment of each cell."""
        return self.places // len(self.items)

    def folds(self, of: int) -> NDArray[np.int64]:
        """The fold of each slate."""
        return fold_of(self.numbers, of)

    def weights(self, resample: int | None = None) -> NDArray[np.float64]:
        """How often each slate counts: once, or as often as a bootstrap resample has it."""
        return np.ones(self.n) if resample is None else resample_weights(self.numbers, resample)


def read_sessions(log: RankedLog, *, by_segment: bool = False, progress: Progress = silent) -> Sessions:
    """The slates of a log whose outcome is known; `by_segment` tells its segments apart."""
    keep_shared_kernels()
    items, segments = tuple(log.items), tuple(log.segments) if by_segment else ()
    if by_segment and not segments:
        raise InvalidInput(f"{log.name} has no segments; leave out `by_segment=True`")
    segments = segments or ("",)
    if len(items) * len(segments) > MOST_CELLS:
        raise InvalidInput(
            f"{log.name}: {len(segments):,} segments times {len(items):,} items are more than "
            f"{MOST_CELLS:,} numbers; leave out `by_segment=True`, or fit fewer segments"
        )
    parts: dict[str, list[NDArray[Any]]] = {
        name: [] for name in ("cells", "clicks", "examined", "slate_segments", "numbers")
    }
    used = np.zeros(len(items) * len(segments), np.bool_)
    unreported = 0
    for batch in log.batches(progress):
        known = batch.reported & (batch.items[:, 0] >= 0) if batch.items.shape[1] else batch.reported & False
        unreported += int(batch.n - batch.reported.sum())
        for name, part in _arrays(batch, known, len(items), by_segment).items():
            parts[name].append(part)
        cells = parts["cells"][-1]
        used[cells[cells >= 0]] = True
    if not sum(map(len, parts["numbers"])):
        raise InvalidInput(
            f"{log.name}: no slate has a known outcome"
            + (f"; {unreported:,} slates have no report of clicks" if unreported else "")
        )
    places = np.flatnonzero(used)
    compact = np.full(len(used) + 1, -1, np.int32)  # The last one for -1.
    compact[places] = np.arange(len(places), dtype=np.int32)
    # One after the other: the parts of a column go when it is whole.
    whole: dict[str, NDArray[Any]] = {}
    for name in list(parts):
        pieces = parts.pop(name)
        whole[name] = np.concatenate([compact[piece] for piece in pieces] if name == "cells" else pieces)
    return Sessions(
        name=log.name,
        items=items,
        segments=segments,
        k=log.k,
        places=places,
        unreported=unreported + log.unreported,
        **whole,
    )


def _arrays(
    batch: SlateBatch, known: NDArray[np.bool_], n_items: int, by_segment: bool
) -> dict[str, NDArray[Any]]:
    items = batch.items[known]
    segments = batch.segments[known] if by_segment and batch.segments is not None else None
    cells = items if segments is None else np.where(items < 0, items, items + segments[:, None] * n_items)
    return {
        "cells": np.ascontiguousarray(cells, np.int32),
        "clicks": np.ascontiguousarray(batch.clicks[known], np.uint8),
        "examined": np.where(batch.examined[known] < 0, NOT_TOLD, batch.examined[known]).astype(np.int32),
        "slate_segments": np.zeros(len(items), np.int32) if segments is None else segments.astype(np.int32),
        "numbers": batch.numbers[known].astype(np.int64),
    }
