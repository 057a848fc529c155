"""A log with a matrix beside it: the probability of each item at each position, whatever stands above it."""

import os
from collections.abc import Iterator

import numpy as np

from firstclick.errors import InvalidInput
from firstclick.files.progress import Progress, silent
from firstclick.files.table import LINES_NAMED, Skipped, Table, read_table
from firstclick.logs.ranked_log import RankedLog, SlateBatch

_LONG = {
    "item": ("item", "item_id", "id"),
    "position": ("position", "pos", "rank"),
    "propensity": ("propensity", "probability"),
}


class LogWithPlaces(RankedLog):
    """The slates of another log, with `logged_places` from a matrix."""

    def __init__(self, log: RankedLog, path: str | os.PathLike[str]) -> None:
        """`path` is a table: item, position, propensity; or item and a column for each position."""
        self._log = log
        self.name, self.items, self.segments, self.k = log.name, log.items, log.segments, log.k
        self.timed_out, self.unreported, self.has_fold = log.timed_out, log.unreported, log.has_fold
        self._chances = np.full((len(log.items) + 1, log.k), np.nan)
        table = read_table(path)
        rows = _long(table) if "position" in {name.casefold() for name in table.names} else _wide(table)
        codes = {str(item): code for code, item in enumerate(log.items)}
        unknown = 0
        wrong: list[int] = []
        for row, item, position, chance in rows:
            if not 0 <= chance <= 1:
                wrong.append(row)
            elif item not in codes:
                unknown += 1
            elif position < log.k:
                # An item that is never there has no slate to be divided by it.
                self._chances[codes[item], position] = chance or np.nan
        if np.isnan(self._chances).all():
            raise InvalidInput(f"{path}: no probability is of an item and position of {log.name}")
        self._wrong: tuple[Skipped, ...] = ()
        if wrong:
            reason = "of the matrix that are not from 0 to 1; taken as not known"
            self._wrong = (Skipped(reason, len(wrong), tuple(wrong[:LINES_NAMED]), "row"),)
        self.notes = (*log.notes, "a matrix has the probability of each item at each position")
        if unknown:
            self.notes = (*self.notes, f"{unknown:,} cells of the matrix are of items that the log never has")

    def batches(self, progress: Progress = silent) -> Iterator[SlateBatch]:
        """The slates in the order of the log."""
        for batch in self._log.batches(progress):
            # NO_ITEM is the last row, which is empty.
            yield batch._replace(logged_places=self._chances[batch.items, np.arange(self.k)])
        self.skipped = self._log.skipped
        self.doubtful = (*self._log.doubtful, *self._wrong)


def _long(table: Table) -> Iterator[tuple[int, str, int, float]]:
    names = [name.casefold() for name in table.names]
    at = {}
    for role, words in _LONG.items():
        found = next((word for word in words if word in names), None)
        if found is None:
            raise InvalidInput(
                f"the matrix has no column {role!r}; it has: {', '.join(table.names)}. Say item, position "
                "and propensity, or item and a column for each position"
            )
        at[role] = table.columns[names.index(found)]
    positions = np.array([_number(cell, table, row) for row, cell in enumerate(at["position"])])
    first = 1 if len(positions) and positions.min() >= 1 else 0
    for row, (item, position, cell) in enumerate(zip(at["item"], positions, at["propensity"], strict=True)):
        yield row, str(item), int(position) - first, _number(cell, table, row)


def _wide(table: Table) -> Iterator[tuple[int, str, int, float]]:
    for row in range(len(table.columns[0])):
        for position, column in enumerate(table.columns[1:]):
            yield row, str(table.columns[0][row]), position, _number(column[row], table, row)


def _number(cell: object, table: Table, row: int) -> float:
    try:
        return float(str(cell))
    except ValueError:
        raise InvalidInput(f"{table.where(row)}: expected a number, got {cell!r}") from None
