"""Counts of impressions and clicks by item and position: all that the position-based model needs.

query,url,position,impressions,clicks
tea,sencha.example,1,1200,340
tea,sencha.example,2,310,44
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.click_models.click_fit import ClickFit
from firstclick.click_models.position_fit import fit_positions
from firstclick.click_models.sessions import MOST_CELLS
from firstclick.errors import InvalidInput
from firstclick.files.progress import Progress, silent
from firstclick.files.reading import as_path
from firstclick.files.table import LINES_NAMED, Skipped, Table, read_table
from firstclick.kernels.compiling import keep_shared_kernels
from firstclick.kernels.position_counts import CLICKED, QUIET
from firstclick.validation.quoting import quoted

# What a column may be called.
NAMES = {
    "segment": ("segment", "query"),
    "item": ("item", "url"),
    "position": ("position", "pos", "rank"),
    "impressions": ("impressions", "impression"),
    "clicks": ("clicks", "click"),
}
MOST_POSITIONS = 1000


@dataclass(frozen=True, eq=False)
class CountTable:
    """Impressions and clicks of cells (an item in a segment) by position."""

    name: str
    items: tuple[str, ...]
    segments: tuple[str, ...]  # ("",) if the file has none
    places: NDArray[np.int64]  # of each cell in the table segments x items, row by row
    impressions: NDArray[np.float64]  # cells x positions
    clicks: NDArray[np.float64]
    first_position: int  # what the file calls the first one, 0 or 1
    skipped: tuple[Skipped, ...]
    capped: tuple[Skipped, ...]  # rows that count as clicked each time

    @property
    def cell_segments(self) -> NDArray[np.int64]:
        """The segment of each cell."""
        return self.places // len(self.items)


def read_counts(path: str | os.PathLike[str], progress: Progress = silent) -> CountTable:
    """The counts in a CSV, Parquet or JSON lines file; rows of the same item and position are added up.

    Positions count from 1, or from 0 where the file has one.
    """
    table = read_table(path, progress=progress)
    name = as_path(path).name
    columns = {what: _column(table, name, what) for what in NAMES}
    numbers = {what: _numbers(columns[what]) for what in ("position", "impressions", "clicks")}
    position, impressions, clicks = numbers.values()
    wrong = {
        "without an item": np.array([cell is None for cell in columns["item"]], np.bool_),
        "without a whole position": ~(position == np.floor(position)) | (position < 0),
        "without a number of impressions": ~(impressions >= 0) | np.isinf(impressions),
        "without a number of clicks": ~(clicks >= 0) | np.isinf(clicks),
    }
    good = np.ones(len(position), np.bool_)
    left_out = list(table.skipped)
    for reason, rows in wrong.items():
        if (rows & good).any():
            left_out.append(_rows(reason, rows & good))
        good &= ~rows
    if not good.any():
        raise InvalidInput(f"{name}: no row has an item, a position, impressions and clicks")
    # An impression with two clicks is clicked: clicks and impressions are chances of one thing.
    too_many = good & (clicks > impressions)
    capped = (_rows("with more clicks than impressions", too_many),) if too_many.any() else ()
    clicks = np.minimum(clicks, impressions)
    first = 0 if (position[good] == 0).any() else 1
    rank = (position[good] - first).astype(np.int64)
    if rank.max() >= MOST_POSITIONS:
        raise InvalidInput(
            f"{name}: a position must be below {MOST_POSITIONS + first:,}, got {rank.max() + first:,}"
        )
    items, item = _numbered(columns["item"][good])
    segments, segment = _numbered(columns["segment"][good])
    if len(items) * len(segments) > MOST_CELLS:
        raise InvalidInput(
            f"{name}: {len(segments):,} segments times {len(items):,} items are more than "
            f"{MOST_CELLS:,} numbers; split the file by segment"
        )
    places, cell = np.unique(segment * len(items) + item, return_inverse=True)
    shape = len(places), int(rank.max()) + 1
    shown, clicked = np.zeros(shape), np.zeros(shape)
    np.add.at(shown, (cell, rank), impressions[good])
    np.add.at(clicked, (cell, rank), clicks[good])
    return CountTable(name, items, segments, places, shown, clicked, first, tuple(left_out), capped)


def fit_counts(table: CountTable) -> ClickFit:
    """The position-based model of a table of counts. All segments share the chances of being examined."""
    keep_shared_kernels()
    counts = np.zeros((4, *table.impressions.shape))
    counts[CLICKED], counts[QUIET] = table.clicks, table.impressions - table.clicks
    segments, n_segments = table.cell_segments, len(table.segments)
    by_segment = np.zeros((n_segments, counts.shape[2]))
    np.add.at(by_segment, segments, table.impressions)
    # A segment's slates are as many as its most shown position.
    slates = by_segment.max(axis=1)
    if not slates.sum():
        raise InvalidInput(f"{table.name}: no impressions; nothing can be fitted")
    found = fit_positions(counts, segments, n_segments, float(slates.sum()))
    shape = n_segments, len(table.items)
    attraction = np.repeat(found.attraction_prior.means[:, None], shape[1], axis=1)
    looks = np.zeros(shape)
    attraction.ravel()[table.places] = found.attraction
    looks.ravel()[table.places] = found.looks
    return ClickFit(
        model="pbm", items=table.items, segments=table.segments, shares=slates / slates.sum(),
        attraction=attraction, satisfaction=np.empty((0, 0)), chances=found.examination, looks=looks,
        k=counts.shape[2], slates=float(slates.sum()), converged=found.finished,
    )  # fmt: skip


def _rows(reason: str, rows: NDArray[np.bool_]) -> Skipped:
    """These rows, counted from 1 below the header."""
    found = np.flatnonzero(rows) + 1
    return Skipped(reason, len(found), tuple(found[:LINES_NAMED].tolist()), "row")


def _column(table: Table, file: str, what: str) -> NDArray[np.object_]:
    for place, name in enumerate(table.names):
        if name.lower() in NAMES[what]:
            return table.columns[place]
    if what == "segment":
        return np.full(len(table.columns[0]), "", object)
    raise InvalidInput(
        f"{file} needs a column {' or '.join(map(repr, NAMES[what]))}, "
        f"got the columns {', '.join(map(quoted, table.names))}"
    )


def _numbers(cells: NDArray[np.object_]) -> NDArray[np.float64]:
    """The cells as numbers, NaN where there is none."""

    def number(cell: Any) -> float:
        try:
            return float(cell)
        except (TypeError, ValueError):
            return float("nan")

    return np.array([number(cell) for cell in cells], np.float64)


def _numbered(cells: NDArray[np.object_]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The different texts in the order of their first row, and the place of each cell in them."""
    places: dict[str, int] = {}
    numbers = [places.setdefault("" if cell is None else str(cell), len(places)) for cell in cells]
    return tuple(places), np.array(numbers, np.int64)
