"""Logs of your own as interactions: text files, Parquet files, and frames of pandas or polars."""

import os
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from firstclick.data.cut import cut
from firstclick.data.interactions import Interactions
from firstclick.data.rows_to_interactions import (
    ATTRACTED,
    NO_NUMBER,
    NOT_ATTRACTED,
    Coded,
    Column,
    Log,
    Told,
    code_cells,
    gather,
    judge_values,
    positions,
    threshold,
    wanted_columns,
)
from firstclick.errors import InvalidInput
from firstclick.files.duck import connected, identifier, path_literal, rejects, run, text_relation
from firstclick.files.progress import Progress, silent
from firstclick.files.reading import PARQUET, as_path
from firstclick.files.table import Skipped, parquet_errors, parquet_names, skipped_rows, text_errors
from firstclick.files.text_file import open_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Types of Parquet columns that are numbers.
_NUMBERS = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER",
    "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL",
)  # fmt: skip
# How much of the time goes by until the bytes of a text are looked at, and until the ids are known.
_LOOKED, _IDS = 0.1, 0.5


def read_interactions(
    path: str | os.PathLike[str],
    *,
    user_column: Column = 0,
    item_column: Column = 1,
    value_column: Column | None = None,
    above: float | None = None,
    name_column: Column | None = None,
    group_column: Column | None = None,
    separator: str | None = None,
    header: bool | None = None,
    encoding: str = "utf-8-sig",
    strict: bool = False,
    progress: Progress = silent,
) -> Interactions:
    """Read a log of who met what from a CSV, TSV, `::`-separated or Parquet file.

    >>> from pathlib import Path
    >>> _ = Path("stars.csv").write_text("user,film,stars\\nann,Alien,5\\nbob,Alien,2\\n")
    >>> columns = {"user_column": "user", "item_column": "film", "value_column": "stars"}
    >>> stars = read_interactions("stars.csv", **columns, above=3)
    >>> stars.attracted.tolist()
    [True, False]

    Ids are stripped and sorted, as numbers if all are integers, so the order of lines does not matter. Values
    may have a decimal comma. Files that end in `.gz` are unpacked. An item's name and groups are those of the
    first row that has any.

    Blank lines, rows with too few or too many fields, and rows without a user, an item or a number are
    skipped. `skipped` of the result counts them.

    Args:
        path: The file.
        user_column: The column of users: a name, or a number from 0.
        item_column: The column of items.
        value_column: A column of numbers, such as ratings. By default every row counts as attracted.
        above: A row counts as attracted if its value is above this; 0 by default.
        name_column: The column of item names, for people.
        group_column: The column of item groups; `|` separates several.
        separator: The separator of a text file; found automatically by default.
        header: Whether line 1 names the columns. By default it does if a column is given by name.
        encoding: The encoding of a text file.
        strict: Raise an error at the first row that cannot be used, instead of skipping it.
        progress: Called as `progress(done, total)` with bytes.

    Raises:
        InvalidInput: The file cannot be read, or a column does not exist.
    """
    path = as_path(path)
    name = path.name
    wanted = wanted_columns(
        user=user_column, item=item_column, value=value_column, name=name_column, group=group_column
    )
    bound = threshold(above, value_column)
    if path.suffix in PARQUET:
        if separator is not None or header is not None:
            raise InvalidInput(f"{name} is a Parquet file: it has no separator and no header line")
        return _from_parquet(path, wanted, bound, strict, progress)
    named = [column for column in wanted.values() if isinstance(column, str)]
    if header is False and named:
        raise InvalidInput(f"column {named[0]!r} is a name, but header=False says that {name} has none")
    with_header = bool(named or header)
    with open_text(
        path, separator=separator, encoding=encoding, progress=_part(progress, 0, _LOOKED)
    ) as file:
        if not file.separator:
            where = f"{name} line {file.lines_before + 1}"
            raise InvalidInput(f"{where}: no '::', tab, comma or semicolon; pass `separator`")
        at = positions(name, wanted, file.first)
        columns = {kind: f"c{place}" for kind, place in at.items()}
        with connected() as db, text_errors(file):
            counted, plain = (
                f"SELECT * FROM {text_relation(file, header=with_header, count_rejects=counts)}"
                for counts in (True, False)
            )
            size = path.stat().st_size
            users, items = _ids(db, counted, columns, _part(progress, _LOOKED, _IDS), size)
            left_out = rejects(db, file)
            skipped = skipped_rows(file, left_out, header=with_header, strict=strict)
            if not users and not items and not skipped:
                raise InvalidInput(f"{name} has a header but no rows")
            value = None if "value" not in columns else _judged_text(columns["value"])
            log = Log(
                name,
                lambda rows: file.line_numbers(rows, left_out.starts, header=with_header)[0].tolist(),
                lambda kind, row: _cell(db, plain, columns[kind], row) or "",
            )
            read = _gathered(
                db, plain, columns, wanted, value, bound, log, users, items, skipped, strict,
                _part(progress, _IDS, 1), size, file.first if with_header else (),
            )  # fmt: skip
    progress(size, size)
    return read


def interactions_from_frame(
    frame: Any,
    *,
    user_column: Column,
    item_column: Column,
    value_column: Column | None = None,
    above: float | None = None,
    name_column: Column | None = None,
    group_column: Column | None = None,
    top_users: int | None = None,
    top_items: int | None = None,
    strict: bool = False,
) -> Interactions:
    """Read a log of who met what from a pandas or polars frame, as `read_interactions` does from a file.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"user": ["ann", "bob"], "film": ["Alien", "Alien"], "stars": [5, 2]})
    >>> columns = {"user_column": "user", "item_column": "film", "value_column": "stars"}
    >>> interactions_from_frame(frame, **columns, above=3).attracted.tolist()
    [True, False]

    Args:
        frame: One row per interaction.
        user_column: The column of users: a name, or a number from 0.
        item_column: The column of items.
        value_column: A column of numbers, such as ratings. By default every row counts as attracted.
        above: A row counts as attracted if its value is above this; 0 by default.
        name_column: The column of item names, for people.
        group_column: The column of item groups; `|` separates several, or a cell is a list.
        top_users: Keep this many of the most active users; all by default. See `cut`.
        top_items: Keep this many of the most frequent items; all by default.
        strict: Raise an error at the first row that cannot be used, instead of skipping it.
    """
    wanted = wanted_columns(
        user=user_column, item=item_column, value=value_column, name=name_column, group=group_column
    )
    bound = threshold(above, value_column)
    if not (hasattr(frame, "to_numpy") and hasattr(frame, "columns")):
        raise InvalidInput(f"interactions need a frame of pandas or polars, got {type(frame).__name__}")
    labels = [str(label) for label in frame.columns]
    at = positions("the frame", wanted, labels)
    by_position = getattr(frame, "iloc", frame)
    columns = {kind: by_position[:, position].to_numpy() for kind, position in at.items()}
    if not len(frame):
        raise InvalidInput("the frame has no rows")

    def told(kind: str) -> Told:
        rows = columns.get(kind)
        return () if rows is None else zip(count(), columns["item"].tolist(), rows.tolist(), strict=False)

    read = gather(
        Log("the frame", np.ndarray.tolist, lambda kind, row: columns[kind][row], unit="row"),
        wanted, code_cells(columns["user"]), code_cells(columns["item"]),
        judge_values(columns["value"], bound) if "value" in columns else None,
        names=told("name"), groups=told("group"), strict=strict, columns=labels,
    )  # fmt: skip
    return cut(read, top_users=top_users, top_items=top_items)


def _from_parquet(
    path: Path, wanted: Mapping[str, Column], bound: float, strict: bool, progress: Progress
) -> Interactions:
    with connected() as db, parquet_errors(path):
        relation = f"SELECT * FROM read_parquet({path_literal(path)})"
        names = parquet_names(db, path)
        at = positions(path.name, wanted, names)
        kinds = db.execute(f"DESCRIBE {relation}").fetchall()
        columns = {kind: identifier(kinds[place][0]) for kind, place in at.items()}
        size = path.stat().st_size
        users, items = _ids(db, relation, columns, _part(progress, 0, _IDS), size)
        value = None
        if "value" in columns:
            a_number = kinds[at["value"]][1].startswith(_NUMBERS) and "[" not in kinds[at["value"]][1]
            value = (_judged_number if a_number else _judged_text)(columns["value"])
        log = Log(
            path.name, np.ndarray.tolist, lambda kind, row: _cell(db, relation, columns[kind], row), "row"
        )
        read = _gathered(
            db, relation, columns, wanted, value, bound, log, users, items, (), strict,
            _part(progress, _IDS, 1), size, names,
        )  # fmt: skip
    progress(size, size)
    return read


def _ids(
    db: "DuckDBPyConnection", relation: str, columns: Mapping[str, str], progress: Progress, size: int
) -> tuple[list[Any], list[Any]]:
    """The cells of users and items, each once, in the order of their codes in the tables `users`, `items`."""
    # Both in one go through the file.
    user, item = columns["user"], columns["item"]
    both = (
        f"CREATE TEMP TABLE ids AS SELECT {user} AS user_cell, {item} AS item_cell "
        f"FROM ({relation}) GROUP BY GROUPING SETS (({user}), ({item}))"
    )
    run(db, lambda: db.execute(both), progress, size)
    found = []
    for kind in ("user", "item"):
        db.execute(
            f"CREATE TEMP TABLE {kind}s AS SELECT {kind}_cell AS cell, (row_number() OVER () - 1)::INTEGER "
            f"AS code FROM ids WHERE {kind}_cell IS NOT NULL"
        )
        cells = db.execute(f"SELECT cell FROM {kind}s ORDER BY code").fetchall()
        found.append([cell for (cell,) in cells])
    db.execute("DROP TABLE ids")
    return found[0], found[1]


def _gathered(
    db: "DuckDBPyConnection",
    relation: str,
    columns: Mapping[str, str],
    wanted: Mapping[str, Column],
    value: str | None,
    bound: float,
    log: Log,
    users: list[Any],
    items: list[Any],
    skipped: tuple[Skipped, ...],
    strict: bool,
    progress: Progress,
    size: int,
    labels: Sequence[str],
) -> Interactions:
    # Joins give rows back in any order: each has its number with it. The smaller side is the table of ids,
    # whatever DuckDB estimates.
    db.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
    numbered = f"SELECT *, (row_number() OVER () - 1)::INTEGER AS firstclick_row FROM ({relation})"
    coded = (
        "CREATE TEMP TABLE coded AS SELECT firstclick_row AS place, coalesce(users.code, -1) AS user_code, "
        f"coalesce(items.code, -1) AS item_code{'' if value is None else f', {value} AS judged'} "
        f"FROM ({numbered}) AS log "
        f"LEFT JOIN users ON log.{columns['user']} = users.cell "
        f"LEFT JOIN items ON log.{columns['item']} = items.cell"
    )
    run(db, lambda: db.execute(coded, [bound] if value else []), progress, size)
    place = _fetched(db, "place", np.int32)

    user_codes, item_codes = (_fetched(db, column, np.int32, place) for column in ("user_code", "item_code"))
    values = None if value is None else _fetched(db, "judged", np.uint8, place)
    del place
    db.execute("DROP TABLE coded")
    if not len(user_codes) and not skipped:
        raise InvalidInput(f"{log.name} has no rows")

    def told(kind: str) -> Told:
        if kind not in columns:
            return ()
        item, cell = columns["item"], columns[kind]
        says = f"regexp_matches({cell}::VARCHAR, '[^\\s|\\[\\],]')"
        query = (
            f"SELECT min(firstclick_row), {item}, arg_min({cell}, firstclick_row) FROM ({numbered}) "
            f"WHERE {item} IS NOT NULL AND {cell} IS NOT NULL AND {says} GROUP BY {item} ORDER BY 1"
        )
        return run(db, lambda: db.execute(query).fetchall())

    return gather(
        log, wanted, Coded(user_codes, users), Coded(item_codes, items), values,
        names=told("name"), groups=told("group"), skipped=skipped, strict=strict, columns=labels,
    )  # fmt: skip


def _fetched(
    db: "DuckDBPyConnection", column: str, kind: type[Any], place: NDArray[np.int32] | None = None
) -> NDArray[Any]:
    """One column of the coded rows; in the order of the file, given the places."""
    found = db.execute(f"SELECT {column} FROM coded").fetchnumpy()[column].astype(kind, copy=False)
    if place is None:
        return np.asarray(found)
    ordered = np.empty(len(found), kind)
    ordered[place] = found
    return ordered


def _judged_number(cell: str) -> str:
    return (
        f"(CASE WHEN {cell} IS NULL OR NOT isfinite({cell}::DOUBLE) THEN {NO_NUMBER} "
        f"WHEN {cell}::DOUBLE > $1 THEN {ATTRACTED} ELSE {NOT_ATTRACTED} END)::UTINYINT"
    )


def _judged_text(cell: str) -> str:
    """What a value in text says; 3,5 is a number, and 1_000 is none, as in `rows_to_interactions`."""
    text = f"{cell}::VARCHAR"
    with_comma = (
        f"CASE WHEN contains({text}, ',') AND NOT contains({text}, '.') THEN replace({text}, ',', '.') END"
    )
    number = f"coalesce(try_cast({text} AS DOUBLE), try_cast({with_comma} AS DOUBLE))"
    return (
        f"(CASE WHEN coalesce(isfinite({number}) AND NOT contains({text}, '_'), false) THEN "
        f"if({number} > $1, {ATTRACTED}, {NOT_ATTRACTED}) ELSE {NO_NUMBER} END)::UTINYINT"
    )


def _cell(db: "DuckDBPyConnection", relation: str, column: str, row: int) -> Any:
    found = db.execute(f"SELECT {column} FROM ({relation}) LIMIT 1 OFFSET {row}").fetchone()
    return None if found is None else found[0]


def _part(progress: Progress, start: float, stop: float) -> Progress:
    """Progress from one share of the whole to another."""
    return lambda done, total: progress(int(total * start + done * (stop - start)), total)
