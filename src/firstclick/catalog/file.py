"""Items from a CSV or Parquet file, and back: a column `id`, if wanted `name` and `group`, then features."""

import csv
import io
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.features import LARGEST_FEATURE
from firstclick.catalog.ids import ItemId
from firstclick.catalog.item import Item
from firstclick.errors import InvalidInput, UnknownName
from firstclick.files.parquet import write_parquet
from firstclick.files.reading import PARQUET, as_path
from firstclick.files.table import read_table
from firstclick.files.text_file import WrongEncoding
from firstclick.files.writing import write_whole

Floats = NDArray[np.float64]

# What pandas calls the column of its own row names in a Parquet file.
PANDAS_INDEX = "__index_level_"
COLUMNS_SHOWN = 12


class CatalogFile(NamedTuple):
    """The items of a file, with features as they are written, and the names of the feature columns."""

    items: list[Item]
    feature_names: tuple[str, ...]


class _Cells(NamedTuple):
    """A file's content, whatever its format; `where` says where a row is, for people."""

    ids: list[Any]  # those of Parquet may be anything until they are checked
    names: list[str]
    groups: list[str]
    feature_names: list[str]
    features: Floats
    where: Callable[[int], str]


def read_catalog(path: str | os.PathLike[str]) -> CatalogFile:
    """The items of a CSV or Parquet file; what is wrong with it is InvalidInput with its line.

    Column `id` is needed, `name` and `group` may be there, and all others are features. Text has a header
    line, comma, semicolon or tab between columns, and is UTF-8; its ids are texts (007 stays 007), those of
    Parquet may be whole numbers.
    """
    path = as_path(path)
    cells = _from_parquet(path) if path.suffix in PARQUET else _from_text(path)
    if not cells.ids:
        raise InvalidInput(f"{path.name} has columns but no items; add a row for each item")
    _check_ids(cells)
    _check_sizes(cells)
    rows = cells.features if cells.feature_names else [None] * len(cells.ids)
    items = list(map(Item, cells.ids, cells.names, cells.groups, rows))
    return CatalogFile(items, tuple(cells.feature_names))


def write_catalog(path: str | os.PathLike[str], items: Sequence[Item], feature_names: Sequence[str]) -> None:
    """A file that `read_catalog` reads, CSV or Parquet by its name; features are written as they are."""
    path = as_path(path)
    header = ["id", "name", "group", *feature_names]
    features = np.array([item.features for item in items], np.float64).reshape(len(items), -1)
    if path.suffix in PARQUET:
        whole = all(type(item.id) is int for item in items)
        kinds = {"id": "BIGINT" if whole else "VARCHAR", "name": "VARCHAR", "group": "VARCHAR"}
        rows = (dict(zip(header, (*item[:3], *row), strict=True)) for item, row in
                zip(items, features.tolist(), strict=True))  # fmt: skip
        write_parquet(path, kinds | dict.fromkeys(feature_names, "DOUBLE"), rows)
        return
    text = io.StringIO()
    # All texts in quotes: by itself the writer leaves them out around a carriage return.
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([*item[:3], *row] for item, row in zip(items, features.tolist(), strict=True))
    write_whole(path, text.getvalue().encode())


def _find_columns(file: str, header: Sequence[str]) -> tuple[dict[str, int], dict[str, int]]:
    """The places of id, name and group, and those of the features."""
    names = [name.strip() for name in header]
    words: dict[str, int] = {}
    features: dict[str, int] = {}
    for place, name in enumerate(names):
        if not name or name.startswith(PANDAS_INDEX):
            raise InvalidInput(
                f"{file}: column {place + 1} has no name; name it, or leave it out "
                "(pandas writes such a column of row numbers unless told index=False)"
            )
        known = words if name.casefold() in ("id", "name", "group") else features
        key = name.casefold() if known is words else name
        if key in known:
            raise InvalidInput(f"{file}: two columns are called {name!r}; rename or leave out one of them")
        known[key] = place
    if "id" not in words:
        shown = ", ".join(names[:COLUMNS_SHOWN]) + (", ..." if len(names) > COLUMNS_SHOWN else "")
        raise UnknownName(f"{file} has no column 'id'; call the column of item ids so (columns: {shown})")
    return words, features


def _from_text(path: Path) -> _Cells:
    try:
        table = read_table(path, strict=True)
    except WrongEncoding as error:
        raise InvalidInput(
            f"{error.owner}: bytes that are not UTF-8; save the file as UTF-8 "
            "(spreadsheets call it 'CSV UTF-8')"
        ) from None
    words, places = _find_columns(f"{path.name} line 1", table.names)
    n_items = len(table.columns[0])
    columns = {word: table.columns[place].tolist() for word, place in words.items()}
    ids, names, groups = (
        [cell or "" for cell in columns.get(word, [""] * n_items)] for word in ("id", "name", "group")
    )
    features = np.empty((n_items, len(places)))
    for row in range(n_items):
        written = [table.columns[place][row] or "" for place in places.values()]
        if not all(map(_is_number, written)):
            raise _no_number(table.where(row), places, written)
        features[row] = [float(text) for text in written]
    return _Cells(ids, names, groups, list(places), features, table.where)


def _from_parquet(path: Path) -> _Cells:
    table = read_table(path)
    words, places = _find_columns(path.name, table.names)
    n_items = len(table.columns[0])

    def texts(word: str) -> list[str]:
        cells = table.columns[words[word]].tolist() if word in words else [None] * n_items
        return ["" if cell is None else str(cell).strip() for cell in cells]

    features = np.empty((n_items, len(places)))
    for j, (name, place) in enumerate(places.items()):
        column = table.columns[place].tolist()
        wrong = next((cell for cell in column if not isinstance(cell, int | float | None)), None)
        if wrong is not None:
            raise InvalidInput(
                f"{path.name}: column {name!r} must hold numbers, as every column but id, name and group "
                f"is a feature, got {wrong!r}; convert it or leave it out"
            )
        # A null becomes NaN, and is refused with all others.
        features[:, j] = [np.nan if cell is None else cell for cell in column]
    ids = [cell.strip() if isinstance(cell, str) else cell for cell in table.columns[words["id"]].tolist()]
    return _Cells(ids, texts("name"), texts("group"), list(places), features, table.where)


def _no_number(where: str, names: Iterable[str], written: Sequence[str]) -> InvalidInput:
    """The error for the first feature of a row that is no number."""
    name, text = next(pair for pair in zip(names, written, strict=True) if not _is_number(pair[1]))
    decimal_comma = text.count(",") == 1 and _is_number(text.replace(",", "."))
    way_out = "write a point for the decimal comma" if decimal_comma else "mend it, or leave the column out"
    return InvalidInput(
        f"{where}: {name} must be a number, as every column but id, name and group is a feature, "
        f"got {text!r}; {way_out}"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _check_ids(cells: _Cells) -> None:
    if len(set(cells.ids)) == len(cells.ids) and all(type(item) is str and item for item in cells.ids):
        return
    rows: dict[ItemId, int] = {}
    for row, item in enumerate(cells.ids):
        if item is None or item == "":
            raise InvalidInput(f"{cells.where(row)}: the id is empty; every item needs one of its own")
        if type(item) not in (str, int):
            raise InvalidInput(f"{cells.where(row)}: an id must be text or a whole number, got {item!r}")
        if item in rows:
            raise InvalidInput(
                f"{cells.where(row)}: id {item!r} is there twice, first in {cells.where(rows[item])}; "
                "every item needs one of its own"
            )
        rows[item] = row


def _check_sizes(cells: _Cells) -> None:
    # Said this way round, NaN is wrong too.
    wrong = ~(np.abs(cells.features) <= LARGEST_FEATURE)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise InvalidInput(
            f"{cells.where(row)}: {cells.feature_names[column]} must be a finite number, at most "
            f"{LARGEST_FEATURE:g} in size, got {cells.features[row, column]:g}"
        )
