"""A table in a file, CSV or Parquet or JSON lines, as columns of cells."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.files.duck import (
    Rejects,
    connected,
    identifier,
    path_literal,
    rejects,
    run,
    text_relation,
)
from firstclick.files.progress import Progress, silent
from firstclick.files.reading import PARQUET, as_path, reading
from firstclick.files.text_file import Ints, TextFile, open_lines, open_text
from firstclick.validation.quoting import quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

JSON_LINES = (".jsonl", ".ndjson")
LINES_NAMED = 3
BLANK = "blank"

Cells = NDArray[np.object_]

# What fetchnumpy gives back as Python would; other types come row by row.
_PLAIN = {
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
    "FLOAT", "DOUBLE", "VARCHAR",
}  # fmt: skip


class Skipped(NamedTuple):
    """Rows that were passed over for one reason; `first` are the numbers of the first of them."""

    reason: str
    rows: int
    first: tuple[int, ...]
    unit: str = "line"

    def __str__(self) -> str:
        """As in '12 without a user (lines 17, 203, 204, ...)'."""
        more = ", ..." if self.rows > len(self.first) else ""
        plural = "s" if self.rows > 1 else ""
        return f"{self.rows:,} {self.reason} ({self.unit}{plural} {', '.join(map(str, self.first))}{more})"


class Table(NamedTuple):
    """The columns of a file, as long as one another.

    Cells of a text file are texts without blanks around them, None where there is nothing else. Those of
    Parquet and JSON lines are what Python makes of them.
    """

    names: list[str]
    columns: list[Cells]
    where: Callable[[int], str]
    skipped: tuple[Skipped, ...]
    separator: str


def read_table(
    path: str | os.PathLike[str],
    *,
    separator: str | None = None,
    header: bool = True,
    encoding: str | None = None,
    strict: bool = False,
    progress: Progress = silent,
) -> Table:
    """The table in a CSV, TSV, `::`, Parquet (.parquet, .pq) or JSON lines (.jsonl, .ndjson) file.

    Text may be packed (.gz). Line 1 is the header, or with `header=False` columns are called 0, 1, ...
    Blank lines and rows that are not as wide as the first are skipped and counted; `strict` refuses them.
    `where(row)` says where a row is, for people: "items.csv line 17".
    """
    path = as_path(path)
    if path.suffix in PARQUET:
        return _from_parquet(path, progress)
    if path.with_suffix("" if path.suffix == ".gz" else path.suffix).suffix in JSON_LINES:
        return _from_json_lines(path, encoding, strict)
    return _from_text(path, separator, header, encoding, strict, progress)


def _from_text(
    path: Path, separator: str | None, header: bool, encoding: str | None, strict: bool, progress: Progress
) -> Table:
    with open_text(path, separator=separator, encoding=encoding, progress=progress) as file:
        query = f"SELECT * FROM {text_relation(file, header=header, count_rejects=True)}"
        with connected() as db, text_errors(file):
            fetched = run(db, lambda: db.execute(query).fetchnumpy())
            left_out = rejects(db, file)
        skipped = skipped_rows(file, left_out, header=header, strict=strict)
        columns = [_stripped(column) for column in fetched.values()]
        rows = np.arange(len(columns[0]))
        lines = None if again_readable(path) else file.line_numbers(rows, left_out.starts, header=header)[0]

    @cache
    def numbers() -> Ints:
        if lines is not None:
            return lines
        with open_text(path, separator=separator, encoding=encoding) as again:
            return again.line_numbers(rows, left_out.starts, header=header)[0]

    names = [name.strip() for name in file.first] if header else [str(place) for place in range(len(columns))]
    return Table(names, columns, lambda row: f"{path.name} line {numbers()[row]}", skipped, file.separator)


def skipped_rows(file: TextFile, left_out: Rejects, *, header: bool, strict: bool) -> tuple[Skipped, ...]:
    """The blank lines and the rows that are not as wide as the first; `strict` refuses the first of them."""
    blank = file.blank_lines() if left_out.blank_lines else []
    width = len(file.first)
    _, lines = file.line_numbers(left_out.starts[:0], left_out.starts, header=header)
    if strict and blank and (not len(lines) or blank[0] < lines[0]):
        raise InvalidInput(f"{file.name} line {blank[0]} is blank, but rows follow it")
    if strict and len(lines):
        cut = "; the file ends within this line: is it cut short?" * (left_out.last and len(lines) == 1)
        raise InvalidInput(
            f"{file.name} line {lines[0]}: expected {width} fields, got {left_out.widths[0]}{cut}"
        )
    found = ((BLANK, blank), (f"without {width} fields", lines.tolist()))
    return tuple(skipped(reason, numbers) for reason, numbers in found if numbers)


def skipped(reason: str, lines: list[int]) -> Skipped:
    """Rows in these lines, passed over for this reason."""
    return Skipped(reason, len(lines), tuple(lines[:LINES_NAMED]))


@contextmanager
def text_errors(file: TextFile) -> Iterator[None]:
    """What DuckDB cannot read in a text file becomes InvalidInput in our words."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise InvalidInput(f"{file.name} cannot be read as rows of text ({first_line(error)})") from None


@contextmanager
def parquet_errors(path: Path) -> Iterator[None]:
    """A file that is no Parquet file, or a damaged one, becomes InvalidInput."""
    import duckdb

    with reading(path), path.open("rb"):
        pass
    try:
        yield
    except duckdb.Error as error:
        raise InvalidInput(
            f"{path.name} is no Parquet file, or is cut short or damaged ({first_line(error)})"
        ) from None


def first_line(error: Exception) -> str:
    """The beginning of what DuckDB says, without its kind of error."""
    return str(error).splitlines()[0].partition(": ")[2][:200]


def again_readable(path: Path) -> bool:
    """Whether the file can be read a second time, unlike a pipe."""
    return path.is_file()


def parquet_names(db: "DuckDBPyConnection", path: Path) -> list[str]:
    """The columns as the file calls them; DuckDB gives new names where two are the same."""
    nodes = db.execute(f"SELECT name, num_children FROM parquet_schema({path_literal(path)})").fetchall()
    names: list[str] = []
    inside = 0
    for name, children in nodes[1:]:
        if inside == 0:
            names.append(name)
        inside = max(inside - 1, 0) + (children or 0)
    return names


def _from_parquet(path: Path, progress: Progress) -> Table:
    relation = f"read_parquet({path_literal(path)})"
    with connected() as db, parquet_errors(path):
        names = parquet_names(db, path)
        kinds = db.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        # NumPy takes most columns whole; those of dates, lists and other things come row by row.
        plain = {place: column for place, column in enumerate(kinds) if column[1] in _PLAIN}
        other = {place: column for place, column in enumerate(kinds) if column[1] not in _PLAIN}
        columns: dict[int, Cells] = {}
        if plain:
            query = f"SELECT {_listed(plain)} FROM {relation}"
            whole = run(db, lambda: db.execute(query).fetchnumpy(), progress, 1)
            columns |= zip(plain, map(_objects, whole.values()), strict=True)
        if other:
            by_row = f"SELECT {_listed(other)} FROM {relation}"
            rows = run(db, lambda: db.execute(by_row).fetchall(), progress, 1)
            cells = zip(*rows, strict=True) if rows else ((),) * len(other)
            columns |= zip(other, map(_as_cells, cells), strict=True)
    ordered = [columns[place] for place in range(len(kinds))]
    return Table(
        [name.strip() for name in names], ordered, lambda row: f"{path.name} row {row} (from 0)", (), ""
    )


def _listed(columns: Mapping[int, Sequence[str]]) -> str:
    return ", ".join(f"{_expression(*column[:2])} AS c{place}" for place, column in columns.items())


def _expression(name: str, kind: str) -> str:
    """The column; a time with a zone is that of UTC, because DuckDB has zones by another package alone."""
    if kind == "TIMESTAMP WITH TIME ZONE":
        return f"make_timestamp(epoch_us({identifier(name)}))"
    return identifier(name)


def _from_json_lines(path: Path, encoding: str | None, strict: bool) -> Table:
    rows: list[dict[str, Any]] = []
    numbers: list[int] = []
    blank: list[int] = []
    with open_lines(path, encoding) as lines:
        for number, line in lines:
            if not line.strip():
                blank.append(number)
                continue
            rows.append(_object(f"{path.name} line {number}", line))
            numbers.append(number)
    blank = [number for number in blank if numbers and number < numbers[-1]]
    if strict and blank:
        raise InvalidInput(f"{path.name} line {blank[0]} is blank, but rows follow it")
    if not rows:
        raise InvalidInput(f"{path.name} is empty")
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = [_as_cells([row.get(name) for row in rows]) for name in names]
    left_out = (skipped("blank", blank),) if blank else ()
    stripped = [name.strip() for name in names]
    return Table(stripped, columns, lambda row: f"{path.name} line {numbers[row]}", left_out, "")


def _object(where: str, line: str) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidInput(f"{where}: two values are called {quoted(twice)}; leave out one of them")
        return found

    try:
        found = json.loads(line, object_pairs_hook=once)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidInput(f"{where}: no JSON ({getattr(error, 'msg', 'too deep')})") from None
    except InvalidInput:
        raise
    except ValueError:  # From int(), which takes 4,300 digits at most.
        raise InvalidInput(f"{where}: a number has too many digits to be read") from None
    if not isinstance(found, dict):
        raise InvalidInput(f'{where}: expected an object such as {{"id": "tea"}}, got {quoted(found)}')
    return found


def _objects(column: NDArray[Any]) -> Cells:
    """The cells as Python has them, None where there is none."""
    cells = np.ma.getdata(column).astype(object)
    cells[np.ma.getmaskarray(column)] = None
    return cells


def _stripped(column: NDArray[Any]) -> Cells:
    # Here and not in SQL, where trim() of all that Python takes for blanks is 20 times slower.
    cells = np.ma.filled(column, "") if np.ma.isMaskedArray(column) else column
    return _as_cells([cell.strip() or None for cell in cells.tolist()])


def _as_cells(values: Sequence[Any]) -> Cells:
    cells = np.empty(len(values), object)
    cells[:] = values  # Unlike np.array(), which makes a table of equally long lists.
    return cells
