"""Rows of a log, whatever file or frame they lie in, become `Interactions`."""

import difflib
import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite, isnan, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.data.interactions import Interactions
from firstclick.data.ranking import places
from firstclick.errors import InvalidInput, UnknownName
from firstclick.validation.quoting import quoted

Column = str | int

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


def gather(
    rows: Iterable[tuple[int, Sequence[Any]]],
    wanted: Mapping[str, Column],
    at: Mapping[str, int],
    bound: float,
    *,
    where: Callable[[int], str],
    empty: str,
    hint: str = "",
) -> Interactions:
    """Every (number, cells) is one interaction; `at` places user and item, if wanted value, name and group.

    An item is called by the first name it is given, and is in the groups of the first cell that has any.
    A cell that is wrong raises InvalidInput beginning with `where` of its row; `hint` goes with row 1, and
    `empty` is what is said of a log without rows.
    """
    users, items = (_Codes(f"empty {kind} id in column {wanted[kind]}") for kind in ("user", "item"))
    user_codes, item_codes, attracted = array("i"), array("i"), bytearray()
    names: dict[int, str] = {}
    groups: dict[int, tuple[str, ...]] = {}
    user_at, item_at = at["user"], at["item"]
    value_at, name_at, group_at = at.get("value"), at.get("name"), at.get("group")
    for number, cells in rows:
        try:
            user_codes.append(users[cells[user_at]])
            item = items[cells[item_at]]
            if value_at is None:
                attracted.append(True)
            elif isnan(value := _number(cells[value_at])):
                problem = f"value {quoted(cells[value_at])} in column {wanted['value']} is not a number"
                raise InvalidInput(problem + (hint if number == 1 else ""))
            else:
                attracted.append(value > bound)
            item_codes.append(item)
            if name_at is not None and item not in names and (name := _text(cells[name_at])):
                names[item] = name
            if group_at is not None and item not in groups and (found := _groups(cells[group_at])):
                groups[item] = found
        except InvalidInput as error:
            raise error.within(where(number)) from None
        except TypeError:  # from the dictionaries: a list, say, cannot be a key
            raise InvalidInput(
                f"{where(number)}: ids must be text or numbers, got {quoted(cells[user_at])} and "
                f"{quoted(cells[item_at])}"
            ) from None
        except ValueError:  # from str: Python writes 4,300 digits at most
            raise InvalidInput(
                f"{where(number)}: ids, names and groups must be text or numbers of at most 4,300 digits"
            ) from None
    if not attracted:
        raise InvalidInput(empty)

    user_places, user_ids = _sorted(users.ids)
    item_places, item_ids = _sorted(items.ids)
    by_place = np.argsort(item_places).tolist()
    return Interactions(
        users=user_places[np.frombuffer(user_codes, dtype=np.intc)],
        items=item_places[np.frombuffer(item_codes, dtype=np.intc)],
        attracted=np.frombuffer(attracted, dtype=np.bool_).copy(),
        user_ids=user_ids,
        item_ids=item_ids,
        item_names=tuple(names.get(item, items.ids[item]) for item in by_place) if names else (),
        item_groups=tuple(groups.get(item, ()) for item in by_place) if groups else (),
        facts={"interactions": len(attracted), "users": len(user_ids), "items": len(item_ids)},
    )


class _Codes(dict[Any, int]):
    """Cell of an id -> code in order of first appearance; a new cell gets its code on the way."""

    def __init__(self, if_empty: str) -> None:
        self.ids: list[str] = []
        self.if_empty = if_empty

    def __missing__(self, cell: Any) -> int:
        name = _text(cell)
        if not name:
            raise InvalidInput(self.if_empty)
        if name not in self:
            self[name] = len(self.ids)
            self.ids.append(name)
        self[cell] = self[name]
        return self[name]


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
    """The cell as a finite number, or NaN."""
    try:
        value = float(cell)
    except (TypeError, ValueError, OverflowError):
        return nan
    # Python reads 1_000 as a number; the tool that wrote the file did not mean one.
    return value if isfinite(value) and not (isinstance(cell, str) and "_" in cell) else nan


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


def _sorted(ids: list[str]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    if all(_INTEGER.fullmatch(text) for text in ids):
        # The text itself keeps 7 and 007 in a fixed order.
        order = sorted(range(len(ids)), key=lambda code: (int(ids[code]), ids[code]))
    else:
        order = sorted(range(len(ids)), key=ids.__getitem__)
    return places(order, len(ids)), tuple(ids[code] for code in order)
