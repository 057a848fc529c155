"""DuckDB, which reads and writes tables: a connection of our own, without a network and without a word."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from firstclick.errors import InvalidInput
from firstclick.files.progress import Progress, silent
from firstclick.files.text_file import LONGEST_LINE, Ints, TextFile

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

T = TypeVar("T")

SECONDS_BETWEEN_REPORTS = 0.1
# More wrong rows than these are not counted: such a file is refused.
MOST_REJECTED = 1_000_000

# What bytes.strip() takes for blanks.
_ASCII_BLANKS = r"E' \t\n\r\x0b\x0c'"

# The kinds of wrong rows that can be passed over; after others nobody knows where a row ends.
_WRONG_WIDTH = ("MISSING COLUMNS", "TOO MANY COLUMNS")


@contextmanager
def connected() -> "Iterator[DuckDBPyConnection]":
    """A database in memory that nothing else uses; it never installs extensions, and is gone afterwards."""
    import duckdb  # Late: it takes a while to load, and most commands read no table.

    settings: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    with duckdb.connect(":memory:", config=settings) as connection:
        # The two together: how far a query is, is known, and nothing is printed. A Jupyter notebook without
        # ipywidgets refuses them: there progress is not told.
        with suppress(duckdb.InvalidInputException):
            connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
        yield connection


def run(
    connection: "DuckDBPyConnection", fetch: Callable[[], T], progress: Progress = silent, size: int = 0
) -> T:
    """What `fetch` gives; the progress of its query is told as a part of `size`. An interrupt ends it."""
    outcome: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(fetch())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=work, name="firstclick-duckdb")
    thread.start()
    try:
        while thread.is_alive():
            thread.join(SECONDS_BETWEEN_REPORTS)
            if thread.is_alive() and (share := connection.query_progress()) > 0:
                progress(int(size * share / 100), size)
    except BaseException:
        connection.interrupt()
        thread.join()
        raise
    if failure:
        raise failure[0]
    return outcome[0]


def literal(text: str) -> str:
    """The text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """The name of a column as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def path_literal(path: Path) -> str:
    """The name of this one file as SQL writes it: DuckDB takes * ? and [ in a name for a pattern."""
    return literal("".join(f"[{c}]" if c in "*?[" else c for c in str(path.absolute())))


def text_relation(file: TextFile, *, header: bool, count_rejects: bool = False) -> str:
    """For FROM: the rows of a text file in columns c0, c1, ..., without those of another width."""
    columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(file.first)))
    quote = "'\"'" if file.quoting else "''"
    rejects = f"store_rejects = true, rejects_limit = {MOST_REJECTED}"
    return (
        f"read_csv({path_literal(file.path)}, columns = {{{columns}}}, auto_detect = false, "
        f"header = {header}, delim = {literal(file.separator or chr(1))}, quote = {quote}, escape = {quote}, "
        f"max_line_size = {LONGEST_LINE}, compression = 'none', allow_quoted_nulls = false, "
        f"new_line = {literal(file.line_end)}, "
        f"{rejects if count_rejects else 'ignore_errors = true'})"
        # Where there is one column, a blank line is a row for DuckDB.
        + (f" WHERE c0 = '' OR trim(c0, {_ASCII_BLANKS}) <> ''" if len(file.first) == 1 else "")
    )


class Rejects(NamedTuple):
    """The rows that DuckDB left out, in order: their first bytes and numbers of fields."""

    starts: Ints
    widths: Ints
    blank_lines: bool  # whether there are blank lines among the rows
    last: bool  # whether the last of them is the last row of the file, and has no line end


def rejects(connection: "DuckDBPyConnection", file: TextFile) -> Rejects:
    """What the only scan with `count_rejects` left out; rows after which no other is sure are refused."""
    separator = literal(file.separator or chr(1))
    # The problem as text, because DuckDB gives enums only with pandas. Of a row that is too short every
    # missing field is told, of one that is too long every one too many.
    found = connection.execute(
        "SELECT line_byte_position - 1 AS start, max(error_type)::VARCHAR AS problem, "
        "if(max(error_type) = 'MISSING COLUMNS', min(column_idx), max(column_idx)) AS width, "
        f"first(trim(csv_line, {_ASCII_BLANKS}) = '' AND NOT contains(csv_line, {separator})) AS blank, "
        "max(line_byte_position - 1 + strlen(csv_line)) AS stop "
        f"FROM reject_errors WHERE line_byte_position <= {file.content_end} GROUP BY 1 ORDER BY 1"
    ).fetchnumpy()
    blank = found["blank"].astype(np.bool_)
    found = {name: column[~blank] for name, column in found.items()}
    starts = found["start"].astype(np.int64)
    for start, problem in zip(starts, found["problem"], strict=True):
        if problem not in _WRONG_WIDTH:
            _, lines = file.line_numbers(starts[:0], np.array([start]), header=False)
            raise InvalidInput(
                f"{file.name} line {lines[0]}: a field that is badly quoted, or longer than "
                f"{LONGEST_LINE:,} bytes; end the quote, and double quotes within quotes"
            )
    if len(starts) >= MOST_REJECTED // 2:
        raise InvalidInput(
            f"{file.name}: at least {len(starts):,} rows do not have {len(file.first)} fields like the "
            "first; is `separator` right?"
        )
    last = file.ends_open and len(starts) > 0 and int(found["stop"][-1]) >= file.content_end
    blanks = file.has_blank_lines or len(file.first) == 1 or bool(blank.any())
    return Rejects(starts, found["width"].astype(np.int64), blanks, last)
