"""Logs of your own as interactions: text files, Parquet files, and frames of pandas or polars."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from firstclick.data.cut import cut
from firstclick.data.interactions import Interactions
from firstclick.data.rows_to_interactions import Column, gather, positions, threshold, wanted_columns
from firstclick.errors import InvalidInput
from firstclick.extras import needed_by
from firstclick.files.delimited import read_rows
from firstclick.files.progress import Progress, silent
from firstclick.files.reading import PARQUET, as_path, reading

_BLOCK = 1 << 16


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
    progress: Progress = silent,
) -> Interactions:
    """Every row of a CSV, TSV, `::` or Parquet file is one interaction; wrong rows raise InvalidInput.

    Columns are names, or numbers from 0 (a text of digits is a number). With a name, line 1 is a header;
    with numbers alone there is none unless `header=True`. A row attracts when its value is above `above`
    (0 if not given); without a value column every row attracts. Ids lose the blanks around them and are
    sorted, as numbers if all are integers, so the order of lines does not matter. Names and groups of an
    item ('|' separates several) are those of the first row that has any. Text ending in .gz is unpacked.
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
        blocks = _parquet_blocks(path, wanted, progress)
        return _gather_blocks(name, blocks, wanted, bound)
    named = [column for column in wanted.values() if isinstance(column, str)]
    if header is False and named:
        raise InvalidInput(f"column {named[0]!r} is a name, but header=False says that {name} has none")
    rows = read_rows(path, separator=separator, encoding=encoding, progress=progress)
    first = next(rows)
    at = positions(name, wanted, first[1])
    if not (named or header):
        rows = chain([first], rows)
    return gather(
        rows, wanted, at, bound, where=lambda line: f"{name} line {line}",
        empty=f"{name} has a header but no rows",
        hint="; if line 1 is a header, name the columns or pass `header=True`",
    )  # fmt: skip


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
) -> Interactions:
    """Every row of a pandas or polars frame is one interaction, by the rules of `read_interactions`.

    Of them those of the `top_users` most active users and of the `top_items` most met items are kept (see
    `cut`). A null raises InvalidInput with its row, counted from 0. A group cell may also be a list.

    Example, where more than three stars attract and the 500 most rated films are kept:

        interactions_from_frame(
            frame, user_column="customer", item_column="film", value_column="stars", above=3, top_items=500
        )
    """
    wanted = wanted_columns(
        user=user_column, item=item_column, value=value_column, name=name_column, group=group_column
    )
    bound = threshold(above, value_column)
    if not (hasattr(frame, "to_numpy") and hasattr(frame, "columns")):
        raise InvalidInput(f"interactions need a frame of pandas or polars, got {type(frame).__name__}")
    at = positions("the frame", wanted, [str(label) for label in frame.columns])
    by_position = getattr(frame, "iloc", frame)
    columns = [by_position[:, position].to_numpy() for position in at.values()]
    blocks = ([column[i : i + _BLOCK] for column in columns] for i in range(0, len(frame), _BLOCK))
    return cut(_gather_blocks("the frame", blocks, wanted, bound), top_users=top_users, top_items=top_items)


def _gather_blocks(
    owner: str, blocks: Iterable[Sequence[NDArray[Any]]], wanted: Mapping[str, Column], bound: float
) -> Interactions:
    # Cells as Python has them: looking up NumPy's, one by one, takes twice as long.
    rows = chain.from_iterable(zip(*(column.tolist() for column in block), strict=True) for block in blocks)
    at = {kind: place for place, kind in enumerate(wanted)}
    return gather(
        enumerate(rows), wanted, at, bound, where=lambda row: f"{owner} row {row} (from 0)",
        empty=f"{owner} has no rows",
    )  # fmt: skip


def _parquet_blocks(
    path: Path, wanted: Mapping[str, Column], progress: Progress
) -> Iterator[list[NDArray[Any]]]:
    with needed_by(f"{path.name}: reading Parquet"):
        import pyarrow
        from pyarrow.parquet import ParquetFile
    try:
        with reading(path), path.open("rb") as raw, ParquetFile(raw) as file:
            names = file.schema_arrow.names
            labels = [names[place] for place in positions(path.name, wanted, names).values()]
            total, done = file.metadata.num_rows, 0
            for batch in file.iter_batches(_BLOCK, columns=labels):
                yield [batch.column(label).to_numpy(zero_copy_only=False) for label in labels]
                done += batch.num_rows
                progress(done, total)
    except pyarrow.ArrowException as error:
        raise InvalidInput(
            f"{path.name} is no Parquet file, or is cut short or damaged ({str(error).splitlines()[0]})"
        ) from None
