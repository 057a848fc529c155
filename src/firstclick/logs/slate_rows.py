"""Tables with one row a slate."""

from dataclasses import dataclass, field
from typing import Any

from firstclick.errors import InvalidInput
from firstclick.files.duck import identifier, literal
from firstclick.files.progress import Progress, silent
from firstclick.logs.click_columns import ClickRules, read_clicks
from firstclick.logs.columns import SLATE_COLUMNS, find_columns
from firstclick.logs.duck_log import SlateQuery
from firstclick.logs.table_source import TableSource

# Between the items of a slate in one cell of text; the first that occurs is taken.
ITEM_SEPARATORS = ("|", ";", ",", "\t", " ")
WHOLE_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_ROWS_SEEN = 1000


@dataclass(frozen=True)
class SlateOptions:
    """How to read a table of slates; None: found out, and told in the notes of the log."""

    columns: dict[str, str]
    item_separator: str | None = None
    clicks: ClickRules = field(default_factory=ClickRules)


def is_table_of_slates(source: TableSource, columns: dict[str, str]) -> bool:
    """Whether the table has a column of slates."""
    return "items" in columns or "items" in find_columns(
        source.name, list(source.types), SLATE_COLUMNS, columns
    )


def slates_of_rows(source: TableSource, options: SlateOptions, progress: Progress = silent) -> SlateQuery:
    """The slates of a table with one row each."""
    found = find_columns(source.name, list(source.types), SLATE_COLUMNS, options.columns)
    kinds = {role: source.types[name] for role, name in found.items()}
    separator = options.item_separator or _separator(source, found, kinds)
    wanted = [f"{_list_of_ids(found['items'], kinds['items'], separator)} AS items"]
    has = {"items"}
    if "candidates" in found:
        wanted.append(f"{_list_of_ids(found['candidates'], kinds['candidates'], separator)} AS candidates")
        has.add("candidates")
    lists = [role for role in ("clicks", "click") if role in found]
    wanted += [f"{_list_of_clicks(found[role], kinds[role], separator)} AS {role}" for role in lists]
    if "reported" in found:
        wanted.append(f"try_cast({identifier(found['reported'])} AS BOOLEAN) AS reported")
    if "examined" in found:
        wanted.append(f"try_cast({identifier(found['examined'])} AS BIGINT) AS examined")
        has.add("examined")
    if "segment" in found:
        wanted.append(f"coalesce({identifier(found['segment'])}::VARCHAR, '') AS segment")
        has.add("segment")
    if "time" in found:
        wanted.append(f"{seconds(found['time'], kinds['time'])} AS seconds")
        has.add("seconds")
    if "propensity" in found:
        wanted.append(f"{chance(found['propensity'])} AS chance")
        has.add("chance")
    if "propensities" in found:
        wanted.append(
            f"{_list_of_chances(found['propensities'], kinds['propensities'], separator)} AS prefixes"
        )
        has.add("prefixes")
    sql = f"SELECT {', '.join(wanted)} FROM ({source.counted})"
    if not source.kept:
        sql = source.keep(sql, progress)
    _same_kind_of_ids(source, sql, has)
    present = [*lists, *(["reported"] if "reported" in found else [])]
    one_cell: list[str] = [role for role in lists if not kinds[role].endswith("[]")]
    clicks, notes = read_clicks(source, sql, present, one_cell, found, options.clicks)
    if clicks is not None:
        has.add("clicks")
    listed = ", ".join([*sorted(has - {"clicks"}), *([f"{clicks} AS clicks"] if clicks is not None else [])])
    return SlateQuery(
        source.name, f"SELECT {listed} FROM ({sql})", frozenset(has), notes, skipped=source.skipped
    )


def _separator(source: TableSource, found: dict[str, str], kinds: dict[str, str]) -> str:
    """What stands between the items, where they are one text."""
    if kinds["items"].endswith("[]"):
        return ITEM_SEPARATORS[0]
    column = identifier(found["items"])
    query = f"SELECT {column}::VARCHAR FROM ({source.sql}) WHERE {column} IS NOT NULL LIMIT {_ROWS_SEEN}"
    cells = [str(cell) for (cell,) in source.connection.execute(query).fetchall()]
    if any(cell.lstrip().startswith("[") for cell in cells):
        return ITEM_SEPARATORS[0]
    return next((one for one in ITEM_SEPARATORS if any(one in cell for cell in cells)), ITEM_SEPARATORS[0])


def _list_of_ids(name: str, kind: str, separator: str) -> str:
    cell = identifier(name)
    if kind.endswith("[]") and kind.count("[") == 1:
        return f"{cell}::{'BIGINT[]' if kind[:-2] in WHOLE_NUMBERS else 'VARCHAR[]'}"
    if "[" in kind and kind.count("[") == 1 and kind.endswith("]"):  # An array of a fixed length.
        return f"{cell}::VARCHAR[]"
    if kind.count("["):
        raise InvalidInput(f"must be a list of ids, got the type {kind}", name)
    return _split(cell, separator, "lambda one: nullif(trim(one), '')")


def _list_of_clicks(name: str, kind: str, separator: str) -> str:
    """A list of texts or of whole numbers; null where the cell says nothing."""
    cell = identifier(name)
    if kind.endswith("[]"):
        if kind.startswith(("DOUBLE", "FLOAT")):
            return f"{cell}::DOUBLE[]"
        return f"{cell}::{'VARCHAR[]' if kind.startswith('VARCHAR') else 'BIGINT[]'}"
    if kind == "VARCHAR":
        return f"nullif({_split(cell, separator, 'lambda one: trim(one)')}, [''])"
    if kind in ("FLOAT", "DOUBLE"):  # As pandas has whole numbers with gaps.
        return f"if({cell} IS NULL OR isnan({cell}), NULL, [{cell}::BIGINT])"
    return f"if({cell} IS NULL, NULL, [{cell}::BIGINT])"


def _list_of_chances(name: str, kind: str, separator: str) -> str:
    cell = identifier(name)
    if kind.endswith("[]"):
        return f"try_cast({cell} AS DOUBLE[])"
    return f"try_cast({_split(cell, separator, 'lambda one: trim(one)')} AS DOUBLE[])"


def _split(cell: str, separator: str, clean: str) -> str:
    """The parts of a text, each as `clean` has it; a text such as [1, 2] is a list.

    Most cells need no cleaning, and a function for each part takes several times as long as to split it.
    """
    text, mark = f"{cell}::VARCHAR", literal(separator)
    parts = f"string_split(trim({text}), {mark})"
    blank = "false" if separator == " " else f"contains({text}, ' ')"
    unclean = (
        f"{blank} OR contains({text}, {literal(2 * separator)}) OR starts_with({text}, {mark}) "
        f"OR ends_with({text}, {mark})"
    )
    return (
        f"CASE WHEN {text} IS NULL THEN NULL "
        f"WHEN starts_with(ltrim({text}), '[') THEN list_transform(try_cast({text} AS VARCHAR[]), {clean}) "
        f"WHEN {unclean} THEN list_transform({parts}, {clean}) ELSE string_split({text}, {mark}) END"
    )


def _same_kind_of_ids(source: TableSource, sql: str, has: set[str]) -> None:
    if "candidates" not in has:
        return
    types: list[Any] = source.connection.execute(f"DESCRIBE SELECT items, candidates FROM ({sql})").fetchall()
    if types[0][1] != types[1][1]:
        raise InvalidInput(
            f"{source.name}: items are {types[0][1]} and candidates {types[1][1]}; give both as texts, or "
            "both as whole numbers"
        )


def chance(name: str) -> str:
    """A probability in a cell."""
    return f"try_cast({identifier(name)} AS DOUBLE)"


def seconds(name: str, kind: str) -> str:
    """A time in a cell, in seconds since the epoch; a text without a zone is UTC."""
    cell = identifier(name)
    if kind.startswith(("TIMESTAMP", "DATE")):
        return f"epoch({cell})"
    if kind == "VARCHAR":
        return f"coalesce(try_cast({cell} AS DOUBLE), epoch(try_cast({cell} AS TIMESTAMPTZ)))"
    return f"try_cast({cell} AS DOUBLE)"
