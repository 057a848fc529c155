"""Yandex sessions (the relevance prediction data): tab-separated lines of queries and clicks, no header.

session  time  Q  query  region  url url ...       a page: its urls, best first
session  time  C  url                              a click on one of them
"""

import re
from pathlib import Path

from firstclick.files.duck import literal, path_literal
from firstclick.files.progress import Progress, silent
from firstclick.files.text_file import LONGEST_LINE
from firstclick.logs.duck_log import DuckLog, SlateQuery
from firstclick.logs.table_source import empty_source

_FIRST_LINE = re.compile(rb"\d+\t\d+\tQ\t\d+\t\d+(\t\d+)+\s*$")


def is_yandex(path: Path) -> bool:
    """Whether the file begins with a query."""
    if path.suffix in (".parquet", ".pq", ".npz"):
        return False
    with path.open("rb") as file:
        return bool(_FIRST_LINE.match(file.readline(1 << 16)))


def yandex_log(path: Path, progress: Progress = silent) -> DuckLog:
    """Each query as a slate, with the clicks that follow it; the query is the segment.

    A click belongs to the last page of its session that has its url.
    """
    source = empty_source(path.name)
    try:
        # One column, because lines have as many fields as they like: its separator is in none of them.
        lines = (
            f"SELECT row_number() OVER () - 1 AS number, string_split(line, {literal(chr(9))}) AS f FROM "
            f"read_csv({path_literal(path)}, columns = {{'line': 'VARCHAR'}}, auto_detect = false, "
            f"header = false, delim = '\\x01', quote = '', escape = '', max_line_size = {LONGEST_LINE})"
        )
        rows = source.keep(lines, progress)
        pages = (
            "SELECT number, f[1] AS session, f[4] AS segment, f[6:]::BIGINT[] AS items "
            f"FROM ({rows}) WHERE f[3] = 'Q'"
        )
        clicks = f"SELECT number, f[1] AS session, f[4]::BIGINT AS url FROM ({rows}) WHERE f[3] = 'C'"
        placed = (
            "SELECT max(p.number) AS page, "
            "arg_max(list_position(p.items, c.url) - 1, p.number)::BIGINT AS place "
            f"FROM ({clicks}) c JOIN ({pages}) p ON p.session = c.session AND p.number < c.number AND "
            "list_contains(p.items, c.url) GROUP BY c.number"
        )
        sql = source.keep(
            f"SELECT p.number, p.items, p.segment, coalesce(k.places, []) AS clicks FROM ({pages}) p "
            f"LEFT JOIN (SELECT page, list(DISTINCT place) AS places FROM ({placed}) GROUP BY page) k "
            "ON k.page = p.number ORDER BY p.number",
            progress,
        )
        columns = frozenset({"number", "items", "segment", "clicks"})
        notes = ("Yandex sessions: a click belongs to the last page of its session that has its url",)
        return DuckLog(
            SlateQuery(path.name, sql, columns, notes), source.connection, source.resources, progress
        )
    except BaseException:
        source.resources.close()
        raise
