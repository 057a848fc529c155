"""A log read to its end, as plain lists: slates as ids, clicked positions, and what was odd."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Read:
    slates: list[list[Any]]
    clicks: list[list[int] | None]  # None: not reported
    numbers: list[int]
    chances: list[list[float | None]]
    segments: list[str]
    odd: list[str]
    doubtful: list[str]
    notes: str


def read(log):
    found = Read([], [], [], [], [], [], [], " / ".join(log.notes))
    for batch in log.batches():
        for row in range(batch.n):
            found.slates.append([log.items[code] for code in batch.items[row] if code >= 0])
            clicked = np.flatnonzero(batch.clicks[row]).tolist()
            found.clicks.append(clicked if batch.reported[row] else None)
            if batch.propensities is not None:
                found.chances.append(plain(batch.propensities[row]))
            if batch.segments is not None:
                found.segments.append(log.segments[batch.segments[row]])
        found.numbers += batch.numbers.tolist()
    found.odd, found.doubtful = list(map(str, log.skipped)), list(map(str, log.doubtful))
    return found


def plain(chances):
    return [None if np.isnan(chance) else float(chance) for chance in chances]
