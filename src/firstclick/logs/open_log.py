"""The door to ranked logs: a file or frame of any known format becomes a RankedLog."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from firstclick.errors import InvalidInput
from firstclick.files.progress import Progress, silent
from firstclick.files.reading import as_path, reading
from firstclick.logs.click_columns import ClickRules
from firstclick.logs.columns import IMPRESSION_COLUMNS, SLATE_COLUMNS
from firstclick.logs.duck_log import DuckLog, SlateQuery
from firstclick.logs.impression_rows import (
    ImpressionOptions,
    is_table_of_impressions,
    slates_of_impressions,
)
from firstclick.logs.ranked_log import RankedLog
from firstclick.logs.slate_rows import SlateOptions, is_table_of_slates, slates_of_rows
from firstclick.logs.table_source import TableSource, open_table, table_of_frame

FORMATS = ("slates", "impressions")


def open_ranked_log(
    source: str | os.PathLike[str],
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    separator: str | None = None,
    item_separator: str | None = None,
    encoding: str | None = None,
    clicks_as: str | None = None,
    positions_from: int | None = None,
    empty_click: str | None = None,
    propensity_of: str | None = None,
    progress: Progress = silent,
) -> RankedLog:
    """The log in a file: Parquet (.parquet, .pq), JSON lines (.jsonl, .ndjson), or else CSV or TSV; text may
    be packed (.gz).

    `format` is one of FORMATS; without it, the columns tell. `columns` names columns that are not called as
    expected: `{"items": "ranking", "click": "pos"}`. How clicks are written is found out and told in
    `notes` of the log; `clicks_as` ("positions", "marks", "items"), `positions_from` (0 or 1), `empty_click`
    ("no-click", "not-reported") and `propensity_of` ("prefix", "place", "slate") say so instead.

    >>> from pathlib import Path
    >>> _ = Path("clicks.csv").write_text("items,click\\ntea|milk,0\\nmilk|tea,\\nmilk|jam,1\\n")
    >>> log = open_ranked_log("clicks.csv")
    >>> log.items, log.k
    (['jam', 'milk', 'tea'], 2)
    >>> [batch.clicks.tolist() for batch in log.batches()]
    [[[1, 0], [0, 0], [0, 1]]]
    """
    path = as_path(source)
    _check_format(format)
    with reading(path), path.open("rb"):
        pass
    rules = ClickRules(clicks_as, positions_from, empty_click)
    table = open_table(path, separator=separator, encoding=encoding)
    return _log_of(table, path, format, dict(columns or {}), item_separator, rules, propensity_of, progress)


def ranked_log_from_frame(
    frame: Any,
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    item_separator: str | None = None,
    clicks_as: str | None = None,
    positions_from: int | None = None,
    empty_click: str | None = None,
    propensity_of: str | None = None,
) -> RankedLog:
    """The log in a frame of pandas or polars, by the rules of `open_ranked_log`.

    >>> import pandas
    >>> frame = pandas.DataFrame({"items": [["tea", "jam"], ["jam"]], "clicks": [[1], []]})
    >>> log = ranked_log_from_frame(frame)
    >>> log.items, log.k
    (['jam', 'tea'], 2)
    """
    _check_format(format)
    rules = ClickRules(clicks_as, positions_from, empty_click)
    table = table_of_frame(frame)
    return _log_of(table, None, format, dict(columns or {}), item_separator, rules, propensity_of, silent)


def _check_format(format: str | None) -> None:
    if format not in (None, *FORMATS):
        raise InvalidInput(f"must be one of {', '.join(FORMATS)}, got {format!r}", "format")


def _log_of(
    table: TableSource,
    path: Path | None,
    format: str | None,
    columns: dict[str, str],
    item_separator: str | None,
    rules: ClickRules,
    propensity_of: str | None,
    progress: Progress,
) -> RankedLog:
    try:
        query = _query(table, format, columns, item_separator, rules, propensity_of, progress)
        return DuckLog(query, table.connection, table.resources, progress)
    except BaseException:
        table.resources.close()
        raise


def _query(
    table: TableSource,
    format: str | None,
    columns: dict[str, str],
    item_separator: str | None,
    rules: ClickRules,
    propensity_of: str | None,
    progress: Progress,
) -> SlateQuery:
    if format == "slates" or (format is None and is_table_of_slates(table, columns)):
        return slates_of_rows(table, SlateOptions(columns, item_separator, rules), progress)
    if format == "impressions" or is_table_of_impressions(table, columns):
        options = ImpressionOptions(columns, rules.positions_from, propensity_of)
        return slates_of_impressions(table, options, progress)
    raise InvalidInput(
        f"{table.name} has neither a column of slates ({', '.join(SLATE_COLUMNS['items'])}) nor columns of "
        f"views and items ({', '.join(IMPRESSION_COLUMNS['view'][:3])}, ...; "
        f"{', '.join(IMPRESSION_COLUMNS['item'][:2])}, ...); it has: {', '.join(table.types)}; name them by "
        "`columns`"
    )
