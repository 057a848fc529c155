"""Items from a CSV or Parquet file, and back: a column `id`, if wanted `name` and `group`, then features."""

import csv
import io
import os
from array import array
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.features import LARGEST_FEATURE
from firstclick.catalog.ids import ItemId
from firstclick.catalog.item import Item
from firstclick.errors import InvalidInput, UnknownName
from firstclick.extras import needed_by
from firstclick.files.delimited import WrongEncoding, read_lines, read_rows
from firstclick.files.reading import PARQUET, as_path, reading
from firstclick.files.writing import write_whole

Floats = NDArray[np.float64]

SEPARATORS = ",;\t"
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
        pyarrow, parquet = parquet_library(path, "writing")
        words = [[item.id for item in items], [item.name for item in items], [item.group for item in items]]
        packed = io.BytesIO()
        table = pyarrow.table([pyarrow.array(column) for column in (*words, *features.T)], names=header)
        parquet.write_table(table, packed)
        write_whole(path, packed.getvalue())
        return
    text = io.StringIO()
    # All texts in quotes: by itself the writer leaves them out around a carriage return.
    writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([*item[:3], *row] for item, row in zip(items, features.tolist(), strict=True))
    write_whole(path, text.getvalue().encode())


def parquet_library(path: Path, doing: str) -> tuple[Any, Any]:
    """pyarrow and its Parquet part, or how to get them."""
    with needed_by(f"{path.name}: {doing} Parquet"):
        import pyarrow
        import pyarrow.parquet as parquet
    return pyarrow, parquet


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
        with closing(read_lines(path)) as lines:
            first = next(lines, "")
        # The most frequent in the header; where there is none at all, the one column is that of ids.
        rows = read_rows(path, separator=max(SEPARATORS, key=first.count))
        words, features = _find_columns(f"{path.name} line 1", next(rows)[1])
        numbers: list[int] = []
        texts: dict[str, list[str]] = {"id": [], "name": [], "group": []}
        values = array("d")
        for number, fields in rows:
            numbers.append(number)
            for word, column in texts.items():
                column.append(fields[words[word]].strip() if word in words else "")
            written = [fields[place] for place in features.values()]
            try:
                values.extend(map(float, written))
            except ValueError:
                raise _no_number(f"{path.name} line {number}", features, written) from None
            # Python reads 1_000 as a number; who wrote the file did not mean one.
            if "_" in "".join(written):
                raise _no_number(f"{path.name} line {number}", features, written)
    except WrongEncoding as error:
        raise InvalidInput(
            f"{error.owner}: bytes that are not UTF-8; save the file as UTF-8 "
            "(spreadsheets call it 'CSV UTF-8')"
        ) from None
    table = np.frombuffer(values, np.float64) if values else np.empty(0)
    table = table.reshape(len(numbers), len(features))
    ids, names, groups = texts.values()
    return _Cells(ids, names, groups, list(features), table, lambda row: f"{path.name} line {numbers[row]}")


def _from_parquet(path: Path) -> _Cells:
    pyarrow, parquet = parquet_library(path, "reading")
    try:
        with reading(path), path.open("rb") as raw, parquet.ParquetFile(raw) as file:
            words, places = _find_columns(path.name, file.schema_arrow.names)
            table = file.read()
    except pyarrow.ArrowException as error:
        raise InvalidInput(
            f"{path.name} is no Parquet file, or is cut short or damaged ({str(error).splitlines()[0]})"
        ) from None

    def where(row: int) -> str:
        return f"{path.name} row {row} (from 0)"

    def texts(word: str) -> list[str]:
        cells = table.column(words[word]).to_pylist() if word in words else [""] * len(table)
        return ["" if cell is None else str(cell).strip() for cell in cells]

    features = np.empty((len(table), len(places)))
    for j, (name, place) in enumerate(places.items()):
        column = table.column(place)
        kind = column.type
        types = pyarrow.types
        if not any(is_kind(kind) for is_kind in (types.is_integer, types.is_floating, types.is_boolean)):
            raise InvalidInput(
                f"{path.name}: column {name!r} must hold numbers, as every column but id, name and group "
                f"is a feature, got {kind}; convert it or leave it out"
            )
        # A null becomes NaN, and is refused with all others.
        features[:, j] = column
    ids = [cell.strip() if isinstance(cell, str) else cell for cell in table.column(words["id"]).to_pylist()]
    return _Cells(ids, texts("name"), texts("group"), list(places), features, where)


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
