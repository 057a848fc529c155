"""Parquet files are written by DuckDB."""

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from firstclick.files.duck import connected, identifier, literal, path_literal
from firstclick.files.reading import as_path
from firstclick.files.writing import write_whole

# DuckDB takes memory for several of the longest lines that it is told of.
_SPARE = 1 << 20
# Rows that are in the memory before they are written: long vectors make long rows.
_ROW_GROUP = 20_480
_PIECE = 1 << 20


def write_parquet(
    path: str | os.PathLike[str], columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]
) -> None:
    """Write rows into columns of these types of DuckDB, whole or not at all; what a row lacks is null.

    >>> write_parquet("/dev/null", {"id": "VARCHAR", "price": "DOUBLE"}, [{"id": "tea", "price": 2.5}])
    """
    with tempfile.TemporaryDirectory(prefix="firstclick-") as folder:
        # On the disk, because a log may have more events than fit into the memory.
        lines, packed = Path(folder) / "rows.jsonl", Path(folder) / "rows.parquet"
        longest = 0
        with lines.open("wb") as file:
            for row in rows:
                line = json.dumps(dict(row), allow_nan=False).encode() + b"\n"
                longest = max(longest, len(line))
                file.write(line)
        types = ", ".join(f"{identifier(name)}: {literal(kind)}" for name, kind in columns.items())
        rows_of_json = (
            f"SELECT * FROM read_json({path_literal(lines)}, columns = {{{types}}}, "
            f"format = 'newline_delimited', maximum_object_size = {longest + _SPARE})"
        )
        nulls = ", ".join(f"NULL::{kind} AS {identifier(name)}" for name, kind in columns.items())
        # DuckDB takes an empty file for a broken one.
        source = rows_of_json if lines.stat().st_size else f"SELECT {nulls} WHERE false"
        with connected() as db:
            # One thread: each has rows of its own in the memory.
            db.execute("SET threads = 1")
            db.execute(
                f"COPY ({source}) TO {literal(str(packed))} (FORMAT parquet, ROW_GROUP_SIZE {_ROW_GROUP})"
            )
        with packed.open("rb") as file:
            write_whole(as_path(path), iter(partial(file.read, _PIECE), b""))
