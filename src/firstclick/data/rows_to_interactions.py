"""Rows of a log, whatever file or frame they lie in, become `Interactions`."""

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, isnan, nan
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from firstclick.data.interactions import Interactions
from firstclick.errors import InvalidInput, UnknownName
from firstclick.files.table import LINES_NAMED, Skipped
from firstclick.validation.quoting import quoted

Column = str | int
Rows = NDArray[np.int64]
T = TypeVar("T")

GROUP_SEPARATOR = "|"

# int() refuses longer texts than this.
_INTEGER = re.compile(r"-?[0-9]{1,4000}")


def wanted_columns(**columns: Column | None) -> dict[str, Column]:
    """The columns that are given, by what they hold; a text of digits is the number it writes."""
    return {
        kind: int(column) if isinstance(column, str) and re.fullmatch("[0-9]{1,19}", column) else column
        for kind, column in columns.items()
        if column is not None
    }


def positions(owner: str, wanted: Mapping[str, Column], names: Sequence[str]) -> dict[str, int]:
    """Where among the columns of `owner` each of those wanted is; UnknownName if there is none."""
    at = {kind: _position(owner, column, names) for kind, column in wanted.items()}
    if at["user"] == at["item"]:
        raise InvalidInput(f"{owner}: `user_column` and `item_column` are both column {wanted['user']!r}")
    return at


def threshold(above: float | None, value_column: Column | None) -> float:
    """What a value must exceed for its row to attract: `above`, or 0 if not given."""
    if above is None:
        return 0.0
    if value_column is None:
        raise InvalidInput("needs `value_column`, the column to compare with it", "above")
    try:
        bound = float(above)
    except (TypeError, ValueError, OverflowError):
        bound = nan
    if isnan(bound):
        raise InvalidInput(f"must be a number, got {quoted(above)}", "above")
    return bound


@dataclass(frozen=True)
class Log:
    """Where the rows come from: what is asked about those that are odd. Rows count from 0."""

    name: str
    # Under which numbers people find these rows, which are sorted.
    numbers: Callable[[Rows], Sequence[int]]
    # What is in the column of users, items or values in this row.
    cell: Callable[[str, int], Any]
    unit: str = "line"

    def where(self, row: int) -> str:
        """Where this row is, for people."""
        (number,) = self.numbers(np.array([row]))
        return f"{self.name} {self.unit} {number}" + " (from 0)" * (self.unit == "row")


class Coded(NamedTuple):
    """A column of ids: for every row the place of its cell among `cells`, each there once, or -1 for none."""

    codes: NDArray[np.int32]
    cells: Sequence[Any]


# What a value says.
NOT_ATTRACTED, ATTRACTED, NO_NUMBER = 0, 1, 2

# Row, cell of the item, and a cell that belongs to it; in the order of rows.
Told = Iterable[tuple[int, Any, Any]]


def gather(
    log: Log,
    wanted: Mapping[str, Column],
    users: Coded,
    items: Coded,
    values: NDArray[np.uint8] | None,
    *,
    names: Told = (),
    groups: Told = (),
    skipped: tuple[Skipped, ...] = (),
    strict: bool = False,
    columns: Sequence[str] = (),
) -> Interactions:
    """Every row is one interaction; those without a user, an item or a number are skipped and counted.

    `values` says of every row whether it attracted; without values all did. An item is called by the first
    name it is given, and is in the groups of the first cell that has any. `strict` refuses the first odd row.
    `skipped` are rows that did not even get here. The codes that are given become those of the result.
    """
    user_texts, item_texts = (_texts(log, column) for column in (users, items))
    odd = {
        "user": ("without a user", _is_empty(users, user_texts)),
        "item": ("without an item", _is_empty(items, item_texts)),
    }
    if values is not None:
        odd["value"] = ("whose value is no number", values == NO_NUMBER)
    if any(rows.any() for _, rows in odd.values()):
        if strict:
            raise _first_problem(log, wanted, {kind: rows for kind, (_, rows) in odd.items()})
        kept = np.ones(len(users.codes), np.bool_)
        for reason, rows in odd.values():
            found = np.flatnonzero(rows & kept)
            kept &= ~rows
            if found.size:
                numbers = tuple(log.numbers(found[:LINES_NAMED]))
                skipped = (*skipped, Skipped(reason, len(found), numbers, log.unit))
        users, items = (Coded(column.codes[kept], column.cells) for column in (users, items))
        values = None if values is None else values[kept]
    if not users.codes.size:
        raise InvalidInput(f"{log.name} has no row that can be used: {', '.join(map(str, skipped))}")
    user_codes, user_ids = _by_id(users.codes, user_texts)
    item_codes, item_ids = _by_id(items.codes, item_texts)
    called, member_of = _first(log, names, _text), _first(log, groups, _groups)
    return Interactions(
        users=user_codes,
        items=item_codes,
        attracted=np.ones(len(user_codes), np.bool_) if values is None else values == ATTRACTED,
        user_ids=user_ids,
        item_ids=item_ids,
        item_names=tuple(called.get(item, item) for item in item_ids) if called else (),
        item_groups=tuple(member_of.get(item, ()) for item in item_ids) if member_of else (),
        facts={"interactions": len(user_codes), "users": len(user_ids), "items": len(item_ids)},
        skipped=skipped,
        columns=tuple(name.strip() for name in columns),
    )


def _texts(log: Log, column: Coded) -> list[str]:
    """The ids in the cells, empty where there is none."""
    texts: list[str] = []
    for cell in column.cells:
        try:
            hash(cell)
            texts.append(_text(cell))
        except (TypeError, ValueError) as error:
            row = int(np.argmax(column.codes == len(texts)))
            raise _unwritable(log.where(row), error, log.cell("user", row), log.cell("item", row)) from None
    return texts


def _unwritable(where: str, error: Exception, user: Any, item: Any) -> InvalidInput:
    if isinstance(error, TypeError):
        return InvalidInput(f"{where}: ids must be text or numbers, got {quoted(user)} and {quoted(item)}")
    # From str: Python writes 4,300 digits at most.
    return InvalidInput(f"{where}: ids, names and groups must be text or numbers of at most 4,300 digits")


def _is_empty(column: Coded, texts: Sequence[str]) -> NDArray[np.bool_]:
    # One more, because -1, the code of no cell, is the last place.
    empty = np.array([*(not text for text in texts), True])
    return empty[column.codes] if empty[:-1].any() else column.codes < 0


def _by_id(codes: NDArray[np.int32], texts: Sequence[str]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """The place of every row's id among those that occur, and these ids, sorted."""
    occurs = np.bincount(codes, minlength=len(texts)).astype(np.bool_)
    # Cells that differ in blanks alone are one id.
    ids = _sorted({text for text, is_there in zip(texts, occurs.tolist(), strict=True) if is_there})
    place = dict(zip(ids, range(len(ids)), strict=True))
    places = np.array([place.get(text, -1) for text in texts], np.int32)
    # In place: with 48 million rows every copy is 192 MB.
    return np.take(places, codes, out=codes, mode="clip"), tuple(ids)


def _first_problem(
    log: Log, wanted: Mapping[str, Column], odd: Mapping[str, NDArray[np.bool_]]
) -> InvalidInput:
    row = min(int(np.argmax(rows)) for rows in odd.values() if rows.any())
    kind = next(kind for kind, rows in odd.items() if rows[row])
    if kind != "value":
        return InvalidInput(f"{log.where(row)}: empty {kind} id in column {wanted[kind]}")
    cell = log.cell("value", row)
    problem = f"value {quoted(cell)} in column {wanted['value']} is not a number"
    hint = "; if line 1 is a header, name the columns or pass `header=True`"
    is_first = log.unit == "line" and log.numbers(np.array([row]))[0] == 1
    return InvalidInput(f"{log.where(row)}: {problem}" + hint * is_first)


def _first(log: Log, told: Told, read: Callable[[Any], T]) -> dict[str, T]:
    """By its id, what the first cell says about an item that says anything."""
    found: dict[str, T] = {}
    for row, item, cell in told:
        if (text := _text(item)) not in found:
            try:
                says = read(cell)
            except ValueError as error:
                raise _unwritable(log.where(row), error, None, item) from None
            if says:
                found[text] = says
    return found


def code_cells(column: NDArray[Any]) -> Coded:
    """The cells of a column in memory, each once, and which of them every row has."""
    if column.dtype.kind in "iufb":
        cells, codes = np.unique(column, return_inverse=True)
        return Coded(codes.astype(np.int32), cells.tolist())
    known = _Codes()
    try:
        of_rows = np.fromiter(map(known.__getitem__, column.tolist()), np.int32, len(column))
    except TypeError:  # A list, say, cannot be a key: told when ids are made of the cells.
        return Coded(np.arange(len(column), dtype=np.int32), column.tolist())
    return Coded(of_rows, list(known))


class _Codes(dict[Any, int]):
    """Cell -> code in order of first appearance; a new cell gets its code on the way."""

    def __missing__(self, cell: Any) -> int:
        code = self[cell] = len(self)
        return code


def judge_values(column: NDArray[Any], bound: float) -> NDArray[np.uint8]:
    """What each cell of a column of values in memory says."""
    if column.dtype.kind in "iufb":
        values = column.astype(np.float64)
    else:
        values = np.fromiter(map(_number, column.tolist()), np.float64, len(column))
    return np.where(np.isfinite(values), values > bound, NO_NUMBER).astype(np.uint8)


def _text(cell: Any) -> str:
    """The cell as text without blanks around it; empty for what pandas, polars and Parquet call null."""
    if isinstance(cell, str):
        return cell.strip()
    if cell is None:
        return ""
    try:
        if cell != cell:
            return ""
    except (TypeError, ValueError):  # pandas' NA is neither true nor false
        return ""
    # Whole numbers become floats where a column of them had nulls once.
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()


def _groups(cell: Any) -> tuple[str, ...]:
    several = not isinstance(cell, str) and hasattr(cell, "__iter__")
    parts = cell if several else _text(cell).split(GROUP_SEPARATOR)
    return tuple(dict.fromkeys(filter(None, map(_text, parts))))


def _number(cell: Any) -> float:
    """The cell as a finite number, or NaN; 3,5 is one, as many countries write it."""
    # Python reads 1_000 as a number; the tool that wrote the file did not mean one.
    if isinstance(cell, str) and "_" in cell:
        return nan
    try:
        value = float(cell)
    except (TypeError, ValueError, OverflowError):
        if isinstance(cell, str) and cell.count(",") == 1 and "." not in cell:
            return _number(cell.replace(",", "."))
        return nan
    return value if isfinite(value) else nan


def _position(owner: str, column: Column, names: Sequence[str]) -> int:
    if isinstance(column, int):
        if not 0 <= column < len(names):
            raise InvalidInput(
                f"{owner} has no column {quoted(column)}; its columns are 0 to {len(names) - 1}"
            )
        return column
    names = [name.strip() for name in names]
    if names.count(column) > 1:
        raise InvalidInput(f"{owner} has {names.count(column)} columns {column!r}; give the number of one")
    if column not in names:
        close = difflib.get_close_matches(column, names, n=1)
        guess = f"did you mean {close[0]!r}? " if close else ""
        raise UnknownName(f"{owner} has no column {column!r}; {guess}its columns are {', '.join(names)}")
    return names.index(column)


def _sorted(ids: Collection[str]) -> list[str]:
    """As numbers if all are whole ones, else as texts."""
    if all(map(_INTEGER.fullmatch, ids)):
        # The text itself keeps 7 and 007 in a fixed order.
        return sorted(ids, key=lambda text: (int(text), text))
    return sorted(ids)
