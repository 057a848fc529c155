"""The door to ranked logs: a file of any known format becomes a RankedLog."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from firstclick.errors import InvalidInput
from firstclick.files.progress import Progress, silent
from firstclick.files.reading import as_path, reading
from firstclick.logs.click_columns import ClickRules
from firstclick.logs.columns import IMPRESSION_COLUMNS, SLATE_COLUMNS
from firstclick.logs.duck_log import DuckLog, SlateQuery
from firstclick.logs.finn import FinnLog
from firstclick.logs.impression_rows import (
    ImpressionOptions,
    is_table_of_impressions,
    slates_of_impressions,
)
from firstclick.logs.open_bandit import is_open_bandit, slates_of_open_bandit
from firstclick.logs.place_matrix import LogWithPlaces
from firstclick.logs.ranked_log import RankedLog
from firstclick.logs.slate_rows import SlateOptions, is_table_of_slates, slates_of_rows
from firstclick.logs.table_source import TableSource, open_table
from firstclick.logs.yandex import is_yandex, yandex_log

FORMATS = ("slates", "impressions", "open-bandit", "finn", "yandex")


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
    gaps: str | None = None,
    places: str | os.PathLike[str] | None = None,
    progress: Progress = silent,
) -> RankedLog:
    """The log in a file: Parquet (.parquet, .pq), JSON lines (.jsonl, .ndjson), or else CSV or TSV; text may
    be packed (.gz).

    `format` is one of FORMATS; without it, the columns tell. `columns` names columns that are not called as
    expected: `{"items": "ranking", "click": "pos"}`. How clicks are written is found out and told in
    `notes` of the log; `clicks_as` ("positions", "marks", "items"), `positions_from` (0 or 1), `empty_click`
    ("no-click", "not-reported") and `propensity_of` ("prefix", "place", "slate") say so instead. With
    `gaps="close"` the items of a view move up where positions are missing; else such a view is left out.
    `places` is a table with the probability of each item at each position.

    >>> from pathlib import Path
    >>> _ = Path("clicks.csv").write_text("items,click\\ntea|milk,0\\nmilk|tea,\\nmilk|jam,1\\n")
    >>> log = open_ranked_log("clicks.csv")
    >>> log.items, log.k
    (['jam', 'milk', 'tea'], 2)
    >>> [batch.clicks.tolist() for batch in log.batches()]
    [[[1, 0], [0, 0], [0, 1]]]
    """
    path = as_path(source)
    if format not in (None, *FORMATS):
        raise InvalidInput(f"must be one of {', '.join(FORMATS)}, got {format!r}", "format")
    with reading(path), path.open("rb"):
        pass
    how = _How(
        format, dict(columns or {}), item_separator, ClickRules(clicks_as, positions_from, empty_click),
        propensity_of, gaps,
    )  # fmt: skip
    log: RankedLog
    if format == "finn" or (format is None and path.suffix == ".npz"):
        log = FinnLog(path, progress)
    elif format == "yandex" or (format is None and is_yandex(path)):
        log = yandex_log(path, progress)
    else:
        log = _log_of(open_table(path, separator=separator, encoding=encoding), how, progress)
    return log if places is None else LogWithPlaces(log, places)


class _How(NamedTuple):
    """How a table is read."""

    format: str | None
    columns: dict[str, str]
    item_separator: str | None
    rules: ClickRules
    propensity_of: str | None
    gaps: str | None


def _log_of(table: TableSource, how: _How, progress: Progress) -> RankedLog:
    try:
        return DuckLog(_query(table, how, progress), table.connection, table.resources, progress)
    except BaseException:
        table.resources.close()
        raise


def _query(table: TableSource, how: _How, progress: Progress) -> SlateQuery:
    if how.format == "slates" or (how.format is None and is_table_of_slates(table, how.columns)):
        return slates_of_rows(table, SlateOptions(how.columns, how.item_separator, how.rules), progress)
    if how.format == "impressions" or (how.format is None and is_table_of_impressions(table, how.columns)):
        options = ImpressionOptions(how.columns, how.rules.positions_from, how.propensity_of, how.gaps)
        return slates_of_impressions(table, options, progress)
    if is_open_bandit(table):
        return slates_of_open_bandit(table)
    raise InvalidInput(
        f"{table.name} has neither a column of slates ({', '.join(SLATE_COLUMNS['items'])}) nor columns of "
        f"views and items ({', '.join(IMPRESSION_COLUMNS['view'][:3])}, ...; "
        f"{', '.join(IMPRESSION_COLUMNS['item'][:2])}, ...); it has: {', '.join(table.types)}; name them by "
        "`columns`"
    )
