"""Tables with one row an impression: view, position, item, clicked. The rows of a view may be anywhere."""

from dataclasses import dataclass

from firstclick.errors import InvalidInput
from firstclick.files.duck import identifier, run
from firstclick.files.progress import Progress, silent
from firstclick.logs.columns import IMPRESSION_COLUMNS, find_columns
from firstclick.logs.duck_log import SlateQuery
from firstclick.logs.slate_rows import WHOLE_NUMBERS, chance, seconds
from firstclick.logs.table_source import TableSource

PROPENSITY_OF = ("prefix", "place", "slate")


@dataclass(frozen=True)
class ImpressionOptions:
    """How to read a table of impressions; None: found out, and told in the notes of the log."""

    columns: dict[str, str]
    positions_from: int | None = None
    propensity_of: str | None = None  # of PROPENSITY_OF
    gaps: str | None = None  # "close": items move up where positions are missing

    def __post_init__(self) -> None:
        if self.propensity_of not in (None, *PROPENSITY_OF):
            raise InvalidInput(
                f"must be one of {', '.join(PROPENSITY_OF)}, got {self.propensity_of!r}", "propensity_of"
            )
        if self.gaps not in (None, "close"):
            raise InvalidInput(f"must be 'close', got {self.gaps!r}", "gaps")
        if self.positions_from not in (None, 0, 1):
            raise InvalidInput(f"must be 0 or 1, got {self.positions_from!r}", "positions_from")


def is_table_of_impressions(source: TableSource, columns: dict[str, str]) -> bool:
    """Whether the table has views and items."""
    found = find_columns(source.name, list(source.types), IMPRESSION_COLUMNS, columns)
    return "view" in found and "item" in found


def slates_of_impressions(
    source: TableSource, options: ImpressionOptions, progress: Progress = silent
) -> SlateQuery:
    """The slates of a table of impressions, in the order of their first rows."""
    found = find_columns(source.name, list(source.types), IMPRESSION_COLUMNS, options.columns)
    kinds = {role: source.types[name] for role, name in found.items()}
    item = identifier(found["item"])
    id_type = "BIGINT" if kinds["item"] in WHOLE_NUMBERS else "VARCHAR"
    text = f"nullif(trim({item}::VARCHAR), '')" if id_type == "VARCHAR" else f"{item}::BIGINT"
    cells = {"item": text}
    if "position" in found:
        cells["place"] = f"try_cast({identifier(found['position'])} AS BIGINT)"
    if "clicked" in found:
        name = identifier(found["clicked"])
        # 0, 1, true, false; a number above 1 is a count of clicks.
        cells["mark"] = (
            f"(coalesce(try_cast({name} AS DOUBLE), try_cast({name} AS BOOLEAN)::DOUBLE) > 0)::TINYINT"
        )
    if "propensity" in found:
        cells["chance"] = chance(found["propensity"])
    packed = ", ".join(
        f"{name} := {name}"
        for name in (
            *(["place"] if "place" in cells else []),
            "number",
            *(name for name in cells if name != "place"),
        )
    )
    single = {"view": identifier(found["view"])}
    if "segment" in found:
        single["segment"] = f"coalesce({identifier(found['segment'])}::VARCHAR, '')"
    if "time" in found:
        single["seconds"] = seconds(found["time"], kinds["time"])
    if "examined" in found:
        single["examined"] = f"try_cast({identifier(found['examined'])} AS BIGINT)"
    listed = ", ".join(f"{expression} AS {name}" for name, expression in (cells | single).items())
    rows = f"SELECT {listed}, row_number() OVER () - 1 AS number FROM ({source.counted})"
    once = "".join(
        f", {how} AS {name}"
        for name, how in (
            ("segment", "arg_min(segment, number)"),
            ("seconds", "min(seconds)"),
            ("examined", "max(examined)"),
        )
        if name in single
    )
    # Sorted by place, and rows of one place by their number: the structs are compared field by field.
    views = (
        f"SELECT min(number) AS number, list_sort(list(struct_pack({packed}))) AS shown{once} "
        f"FROM ({rows}) WHERE view IS NOT NULL GROUP BY view ORDER BY 1"
    )
    sql = source.keep(views, progress)
    return _finished(source, sql, found, cells, single, options)


def _finished(
    source: TableSource,
    sql: str,
    found: dict[str, str],
    cells: dict[str, str],
    single: dict[str, str],
    options: ImpressionOptions,
) -> SlateQuery:
    notes = []
    items = "list_transform(shown, lambda one: one.item)"
    if "place" in cells:
        begin = options.positions_from
        if begin is None:
            least = _least(source, sql)
            begin = 1 if least is None or least >= 1 else 0
        notes.append(f"positions in {found['position']!r} count from {begin}")
        # A slate with a hole, or with two items at one position, is none: it is told as odd.
        whole = (
            f"shown[1].place = {begin} AND shown[-1].place = {begin} + len(shown) - 1 AND "
            "len(list_distinct(list_transform(shown, lambda one: one.place))) = len(shown)"
        )
        if options.gaps == "close":
            notes.append("items of a view move up where positions are missing")
        else:
            items = f"if(coalesce({whole}, false), {items}, [NULL])"
    else:
        notes.append("without a column of positions, the rows of a view are in the order of the slate")
    has = {"number", "items"} | (set(single) - {"view"})
    columns = ["number", f"{items} AS items", *sorted(set(single) - {"view"})]
    if "mark" in cells:
        has.add("clicks")
        marked = "list_filter(range(len(shown)), lambda place: shown[place + 1].mark = 1)"
        told = "len(list_filter(shown, lambda one: one.mark IS NOT NULL)) > 0"
        columns.append(f"if({told}, {marked}, NULL) AS clicks")
    else:
        notes.append(f"{source.name} has no column of clicks: every slate is without a reported outcome")
    if "chance" in cells:
        kind = options.propensity_of or _kind_of_chances(source, sql, found["propensity"])
        name = {"prefix": "prefixes", "place": "places", "slate": "chance"}[kind]
        what = {
            "prefix": "of the items down to the row",
            "place": "of the item at its position, whatever is above it",
            "slate": "of the whole slate",
        }[kind]
        notes.append(f"{found['propensity']!r} is the probability {what}")
        chances = "list_transform(shown, lambda one: one.chance)"
        columns.append(f"{'shown[-1].chance' if kind == 'slate' else chances} AS {name}")
        has.add(name)
    return SlateQuery(
        source.name,
        f"SELECT {', '.join(columns)} FROM ({sql})",
        frozenset(has),
        tuple(notes),
        skipped=source.skipped,
    )


def _least(source: TableSource, sql: str) -> int | None:
    query = f"SELECT min(shown[1].place) FROM ({sql})"
    least = run(source.connection, lambda: source.connection.execute(query).fetchall())[0][0]
    return None if least is None else int(least)


def _kind_of_chances(source: TableSource, sql: str, name: str) -> str:
    """Equal within each view: of the slate. Never rising: of prefixes. Else of each place."""
    if name.strip().casefold() == "pscore_cascade":
        return "prefix"
    chances = "list_transform(shown, lambda one: one.chance)"
    query = (
        f"SELECT bool_and(list_min(c) = list_max(c)), bool_and(list_reverse_sort(c) = c), max(len(c)) "
        f"FROM (SELECT {chances} AS c FROM ({sql}))"
    )
    equal, falling, longest = run(source.connection, lambda: source.connection.execute(query).fetchall())[0]
    if longest == 1:
        return "prefix"
    return "slate" if equal else "prefix" if falling else "place"
