"""Who met what, and was attracted: the form every source of logs is brought into."""

import difflib
import os
import re
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from math import isfinite, isnan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.data.delimited import read_rows
from firstclick.errors import InvalidInput, UnknownName

Column = str | int

# int() refuses longer texts than this.
_INTEGER = re.compile(r"-?[0-9]{1,4000}")


@dataclass(frozen=True, eq=False)
class Interactions:
    """One entry per row of a log: user code, item code, and whether the item attracted the user.

    `users`, `items` and `attracted` have one length; a code is the position of its id in `user_ids`
    or `item_ids`. An id may have no attracted entry at all, or many for the same pair. `item_names` is
    what people call the items (their ids if empty), `item_groups` the groups each is in (empty if
    unknown), `facts` what the source counted before it kept a part, by name.
    """

    users: NDArray[np.integer[Any]]
    items: NDArray[np.integer[Any]]
    attracted: NDArray[np.bool_]
    user_ids: tuple[str, ...]
    item_ids: tuple[str, ...]
    item_names: tuple[str, ...] = ()
    item_groups: tuple[tuple[str, ...], ...] = ()
    facts: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shapes = [column.shape for column in (self.users, self.items, self.attracted)]
        if len(shapes[0]) != 1 or shapes.count(shapes[0]) != 3:
            raise InvalidInput(
                "interactions: users, items and attracted must have one length, "
                f"got shapes {shapes[0]}, {shapes[1]} and {shapes[2]}"
            )
        if self.attracted.dtype != np.bool_:
            raise InvalidInput(f"interactions: attracted must be bool, got {self.attracted.dtype}")
        for kind, codes, ids in (("user", self.users, self.user_ids), ("item", self.items, self.item_ids)):
            if codes.dtype.kind not in "iu":
                raise InvalidInput(f"interactions: {kind} codes must be integers, got {codes.dtype}")
            if codes.size and not 0 <= codes.min() <= codes.max() < len(ids):
                raise InvalidInput(
                    f"interactions: {kind} codes must be from 0 to {len(ids) - 1} ({len(ids)} ids), "
                    f"got {codes.min()} to {codes.max()}"
                )
            if len(set(ids)) != len(ids):
                raise InvalidInput(f"interactions: {kind} ids must be distinct")
        for name, given in (("item_names", self.item_names), ("item_groups", self.item_groups)):
            if given and len(given) != len(self.item_ids):
                raise InvalidInput(
                    f"interactions: {name} must be one per item ({len(self.item_ids)}), got {len(given)}"
                )

    @property
    def names(self) -> tuple[str, ...]:
        """What to call each item: its name, or its id where there are no names."""
        return self.item_names or self.item_ids

    def groups(self) -> dict[str, NDArray[np.int64]]:
        """The items of each group, by its name, largest group first."""
        members: dict[str, list[int]] = {}
        for item, groups in enumerate(self.item_groups):
            for group in groups:
                members.setdefault(group, []).append(item)
        ordered = sorted(members.items(), key=lambda entry: (-len(entry[1]), entry[0]))
        return {group: np.array(items, np.int64) for group, items in ordered}


def read_interactions(
    path: str | os.PathLike[str],
    *,
    user_column: Column = 0,
    item_column: Column = 1,
    value_column: Column | None = None,
    above: float | None = None,
    separator: str | None = None,
    header: bool | None = None,
    encoding: str = "utf-8-sig",
) -> Interactions:
    """Every row of a CSV, TSV or `::`-separated file is one interaction; wrong lines raise InvalidInput.

    Columns are names, or numbers from 0 (a text of digits is a number). With a name, line 1 is a header;
    with numbers alone there is none unless `header=True`. A row attracts when its value is above `above`
    (0 if not given); without a value column every row attracts. Ids lose the blanks around them and are
    sorted, as numbers if all are integers, so the order of lines does not matter.
    """
    name = Path(path).name
    wanted = {"user": _column(user_column), "item": _column(item_column)}
    if value_column is not None:
        wanted["value"] = _column(value_column)
    elif above is not None:
        raise InvalidInput(f"above={above:g} needs a value_column to compare with")
    bound = 0.0 if above is None else float(above)
    if isnan(bound):
        raise InvalidInput("above must be a number, got nan")
    named = [column for column in wanted.values() if isinstance(column, str)]
    if header is False and named:
        raise InvalidInput(f"column {named[0]!r} is a name, but header=False says that {name} has none")

    rows = read_rows(path, separator=separator, encoding=encoding)
    first = next(rows)
    at = {kind: _position(name, column, first[1]) for kind, column in wanted.items()}
    if at["user"] == at["item"]:
        raise InvalidInput(f"{name}: user_column and item_column are both column {user_column!r}")
    if not (named or header):
        rows = chain([first], rows)

    users, items = _Codes(), _Codes()
    user_codes, item_codes, attracted = array("i"), array("i"), bytearray()
    user_at, item_at, value_at = at["user"], at["item"], at.get("value")
    for number, fields in rows:
        try:
            user_codes.append(users[fields[user_at]])
            item_codes.append(items[fields[item_at]])
            attracted.append(value_at is None or _number(fields[value_at]) > bound)
        except _EmptyId:
            kind, column = ("item", item_column) if fields[user_at].strip() else ("user", user_column)
            raise InvalidInput(f"{name} line {number}: empty {kind} id in column {column}") from None
        except _NotANumber as error:
            hint = "; if line 1 is a header, name the columns or pass header=True" if number == 1 else ""
            raise InvalidInput(
                f"{name} line {number}: value {str(error)!r} in column {value_column} is not a number{hint}"
            ) from None
    if not attracted:
        raise InvalidInput(f"{name} has a header but no rows")

    user_ranks, user_ids = _sorted(users.ids)
    item_ranks, item_ids = _sorted(items.ids)
    return Interactions(
        users=user_ranks[np.frombuffer(user_codes, dtype=np.intc)],
        items=item_ranks[np.frombuffer(item_codes, dtype=np.intc)],
        attracted=np.frombuffer(attracted, dtype=np.bool_).copy(),
        user_ids=user_ids,
        item_ids=item_ids,
    )


class _EmptyId(Exception):
    pass


class _NotANumber(Exception):
    pass


class _Codes(dict[str, int]):
    """Text of an id -> code in order of first appearance; a new text gets its code on the way."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def __missing__(self, text: str) -> int:
        name = text.strip()
        if not name:
            raise _EmptyId
        if name in self:
            code = self[name]
        else:
            code = self[name] = len(self.ids)
            self.ids.append(name)
        self[text] = code
        return code


def _column(column: Column) -> Column:
    if isinstance(column, str):
        return int(column) if column.isascii() and column.isdigit() else column
    return column


def _position(name: str, column: Column, first: list[str]) -> int:
    if isinstance(column, int):
        if not 0 <= column < len(first):
            raise InvalidInput(f"{name} has no column {column}; its columns are 0 to {len(first) - 1}")
        return column
    names = [field.strip() for field in first]
    if names.count(column) > 1:
        raise InvalidInput(f"{name} has {names.count(column)} columns {column!r}; give the number of one")
    if column not in names:
        close = difflib.get_close_matches(column, names, n=1)
        guess = f"did you mean {close[0]!r}? " if close else ""
        raise UnknownName(f"{name} has no column {column!r}; {guess}its columns are {', '.join(names)}")
    return names.index(column)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise _NotANumber(text) from None
    # Python reads 1_000 as a number; the tool that wrote the file did not mean one.
    if not isfinite(value) or "_" in text:
        raise _NotANumber(text)
    return value


def _sorted(ids: list[str]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    if all(_INTEGER.fullmatch(text) for text in ids):
        # The text itself keeps 7 and 007 in a fixed order.
        order = sorted(range(len(ids)), key=lambda code: (int(ids[code]), ids[code]))
    else:
        order = sorted(range(len(ids)), key=ids.__getitem__)
    ranks = np.empty(len(ids), dtype=np.int32)
    ranks[order] = np.arange(len(ids), dtype=np.int32)
    return ranks, tuple(ids[code] for code in order)
