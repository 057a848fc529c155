"""A file or frame as a relation of DuckDB: its columns by name and type."""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from firstclick.errors import InvalidInput
from firstclick.files.duck import connected, identifier, literal, path_literal, rejects, run, text_relation
from firstclick.files.progress import Progress, silent
from firstclick.files.reading import PARQUET, reading
from firstclick.files.table import JSON_LINES, Skipped, first_line, parquet_errors, skipped_rows
from firstclick.files.text_file import open_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# What DuckDB may hold; what does not fit goes to a temporary file. The arrays of a batch come on top.
MEMORY = "600MB"
# An object of JSON lines may be as long as DuckDB's longest row of text.
_LONGEST_OBJECT = 1 << 24


@dataclass
class TableSource:
    """A table that DuckDB reads. One that is `kept` can be read again and again at little cost.

    `counted` reads it once and counts the rows that DuckDB leaves out; `keep` then puts them into `skipped`.
    """

    name: str
    connection: "DuckDBPyConnection"
    resources: ExitStack
    sql: str
    types: dict[str, str]  # by column
    folder: Path  # for temporary files
    kept: bool
    counted: str = ""
    left_out: Callable[[], tuple[Skipped, ...]] = tuple
    skipped: tuple[Skipped, ...] = ()

    def keep(self, sql: str, progress: Progress = silent) -> str:
        """The rows of a query in a temporary Parquet file: the query that reads them."""
        path = self.folder / f"rows-{len(list(self.folder.glob('rows-*')))}.parquet"
        copy = f"COPY ({sql}) TO {literal(str(path))} (FORMAT parquet, COMPRESSION lz4)"
        run(self.connection, lambda: self.connection.execute(copy), progress, 1)
        self.skipped, self.left_out = (*self.skipped, *self.left_out()), tuple
        return f"SELECT * FROM read_parquet({path_literal(path)})"


def open_table(path: Path, *, separator: str | None = None, encoding: str | None = None) -> TableSource:
    """A Parquet, JSON lines, or CSV file."""
    with ExitStack() as stack:
        source = _begin(path.name, stack)
        plain = path.with_suffix("") if path.suffix == ".gz" else path
        if path.suffix in PARQUET:
            with parquet_errors(path):
                source.kept = True
                _describe(source, f"SELECT * FROM read_parquet({path_literal(path)})")
        elif plain.suffix in (*JSON_LINES, ".json"):
            _open_json(source, path)
        else:
            _open_text(source, path, stack, separator, encoding)
        source.resources = stack.pop_all()
    return source


def empty_source(name: str) -> TableSource:
    """A connection with room for temporary files, for a format that has no table of its own."""
    with ExitStack() as stack:
        source = _begin(name, stack)
        source.resources = stack.pop_all()
    return source


def _begin(name: str, stack: ExitStack) -> TableSource:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="firstclick-")))
    connection = stack.enter_context(connected())
    connection.execute(
        f"SET memory_limit = '{MEMORY}'; SET temp_directory = {literal(str(folder / 'spill'))}"
    )
    return TableSource(name, connection, stack, "", {}, folder, kept=False)


def _describe(source: TableSource, sql: str) -> None:
    source.sql = source.counted = sql
    rows = source.connection.execute(f"DESCRIBE {sql}").fetchall()
    source.types = {str(row[0]): str(row[1]) for row in rows}


def _open_text(
    source: TableSource,
    path: Path,
    stack: ExitStack,
    separator: str | None,
    encoding: str | None,
) -> None:
    file = stack.enter_context(open_text(path, separator=separator, encoding=encoding))
    names = [name.strip() or f"column {place}" for place, name in enumerate(file.first)]
    if len({name.casefold() for name in names}) < len(names):
        names = [f"{name} ({place})" if name in names[:place] else name for place, name in enumerate(names)]
    columns = ", ".join(f"c{place} AS {identifier(name)}" for place, name in enumerate(names))
    source.sql, source.counted = (
        f"SELECT {columns} FROM {text_relation(file, header=True, count_rejects=counts)}"
        for counts in (False, True)
    )
    source.left_out = lambda: skipped_rows(file, rejects(source.connection, file), header=True, strict=False)
    source.types = dict.fromkeys(names, "VARCHAR")


def _open_json(source: TableSource, path: Path) -> None:
    import duckdb

    with reading(path), path.open("rb") as file:
        if not file.read(1):
            raise InvalidInput(f"{path.name} is empty")
    how = (
        f"read_json({path_literal(path)}, format = 'newline_delimited', ignore_errors = true, "
        f"maximum_object_size = {_LONGEST_OBJECT}"
    )
    try:
        _describe(source, f"SELECT * FROM {how})")
        if "json" in source.types and len(source.types) == 1:
            raise InvalidInput(f'{path.name} has no line with an object such as {{"items": ["tea", "milk"]}}')
        # What a cell is, is decided later and cell by cell: the first rows must not speak for the others.
        types = {name: _json_type(kind) for name, kind in source.types.items()}
        listed = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in types.items())
        _describe(source, f"SELECT * FROM {how}, columns = {{{listed}}})")
    except duckdb.Error as error:
        raise InvalidInput(f"{path.name} cannot be read as JSON lines ({first_line(error)})") from None


def _json_type(detected: str) -> str:
    if not detected.endswith("[]"):
        return "VARCHAR"
    return detected if detected in ("BIGINT[]", "DOUBLE[]") else "VARCHAR[]"
