"""The Open Bandit files (obp, ZOZOTOWN): one row is one place of a page, and the page is not told.

The rows cannot be put together to slates: no column says which of them were shown at once. So each row is a
slate of one place, its propensity that of the item at this place, and the position its segment.
"""

from firstclick.files.duck import identifier
from firstclick.logs.duck_log import SlateQuery
from firstclick.logs.slate_rows import chance, seconds
from firstclick.logs.table_source import TableSource

COLUMNS = ("item_id", "position", "click", "propensity_score")


def is_open_bandit(source: TableSource) -> bool:
    """Whether the table has the columns of these files, and none that tells views apart."""
    return set(COLUMNS) <= set(source.types)


def slates_of_open_bandit(source: TableSource) -> SlateQuery:
    """Each row as a slate of one place."""
    item, position, click, _ = map(identifier, COLUMNS)
    marked = f"coalesce(try_cast({click} AS DOUBLE), try_cast({click} AS BOOLEAN)::DOUBLE)"
    wanted = {
        "items": f"[nullif(trim({item}::VARCHAR), '')]",
        "clicks": f"if({marked} IS NULL, NULL, if({marked} > 0, [0::BIGINT], []::BIGINT[]))",
        "prefixes": f"[{chance('propensity_score')}]",
        "segment": f"'position ' || coalesce({position}::VARCHAR, '')",
    }
    if "timestamp" in source.types:
        wanted["seconds"] = seconds("timestamp", source.types["timestamp"])
    sql = f"SELECT {', '.join(f'{cell} AS {name}' for name, cell in wanted.items())} FROM ({source.counted})"
    if not source.kept:
        sql = source.keep(sql)
    notes = (
        "an Open Bandit file: each row is a slate of one place, because nothing tells which rows were one "
        "page; the position is the segment",
    )
    return SlateQuery(source.name, sql, frozenset(wanted), notes, skipped=source.skipped)
