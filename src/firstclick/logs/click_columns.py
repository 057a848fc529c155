"""What a cell about clicks means: positions from 0 or from 1, a mark for each position, or items.

Found out from all rows, and told in the notes of the log, because people write clicks in many ways.
"""

from dataclasses import dataclass
from typing import Any

from firstclick.errors import InvalidInput
from firstclick.files.duck import run
from firstclick.logs.table_source import TableSource

CLICKS_AS = ("positions", "marks", "items")
EMPTY_CLICK = ("no-click", "not-reported")
# A click that is nowhere in its slate: the row is told as odd.
_NOWHERE = -9
# A share of rows that may be mistakes.
_RARE = 0.001
# A whole number, or a truth value as one; null for any other text. A cast alone would round 0.5.
_WHOLE_OF_TEXT = (
    "CASE lower(one) WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE "
    "if(try_cast(one AS DOUBLE) = floor(try_cast(one AS DOUBLE)), try_cast(one AS BIGINT), NULL) END"
)


@dataclass(frozen=True)
class ClickRules:
    """How clicks are written; None: found out."""

    clicks_as: str | None = None  # of CLICKS_AS
    positions_from: int | None = None  # 0 or 1
    empty_click: str | None = None  # of EMPTY_CLICK

    def __post_init__(self) -> None:
        for value, words, name in (
            (self.clicks_as, CLICKS_AS, "clicks_as"),
            (self.empty_click, EMPTY_CLICK, "empty_click"),
        ):
            if value is not None and value not in words:
                raise InvalidInput(f"must be one of {', '.join(words)}, got {value!r}", name)
        if self.positions_from not in (None, 0, 1):
            raise InvalidInput(f"must be 0 or 1, got {self.positions_from!r}", "positions_from")


def read_clicks(
    source: TableSource,
    sql: str,
    present: list[str],
    scalar: list[str],
    names: dict[str, str],
    rules: ClickRules,
) -> tuple[str | None, tuple[str, ...]]:
    """The expression for the clicks of a row, positions from 0 or null, and notes on how it was found.

    `sql` has the columns `present` of clicks, click and reported; those in `scalar` were one cell.
    """
    lists = [role for role in present if role != "reported"]
    if not lists:
        return None, (f"{source.name} has no column of clicks: every slate is without a reported outcome",)
    cell = lists[0] if len(lists) == 1 else "coalesce(clicks, click)"
    table = f"SELECT items, {cell} AS clicks FROM ({sql})"
    described = source.connection.execute(f"DESCRIBE {table}").fetchall()
    kind = str(described[1][1])
    of_text, of_reals = kind.startswith("VARCHAR"), kind.startswith(("DOUBLE", "FLOAT", "DECIMAL"))
    name = " and ".join(repr(names[role]) for role in lists)
    as_items = rules.clicks_as == "items"
    if of_text and not as_items:
        numbers = f"list_transform(clicks, lambda one: {_WHOLE_OF_TEXT})"
        whole = f"len(list_filter({numbers}, lambda one: one IS NULL)) = 0"
        # An empty list is as good for ids as for numbers.
        told, other = _one(
            source, f"SELECT count(*), count(*) FILTER (NOT {whole}) FROM ({table}) WHERE len(clicks) > 0"
        )
        as_items = rules.clicks_as is None and other * 2 > told
    numbers = cell
    if of_text:
        numbers = f"list_transform({cell}, lambda one: coalesce({_WHOLE_OF_TEXT}, {_NOWHERE}))"
    elif of_reals:
        whole_real = f"if(one = floor(one), one::BIGINT, {_NOWHERE})"
        numbers = f"list_transform({cell}, lambda one: {whole_real})"
    may_be_items = False
    if rules.clicks_as is None and not as_items and kind not in ("BOOLEAN[]", "BOOLEAN"):
        as_items, may_be_items = _numbers_are_items(source, sql, numbers, cell)
    if as_items:
        places = (
            f"list_transform({cell}::VARCHAR[], lambda one: "
            f"coalesce(list_position(items::VARCHAR[], one) - 1, {_NOWHERE}))"
        )
        by_ids = (f"{name} holds the ids of clicked items",)
        return _with_reports(source, places, sql, present, scalar, rules, by_ids, none_told=False)
    expression, notes = _positions(source, sql, numbers, name, present, scalar, rules)
    if may_be_items:
        notes = (*notes, f"the numbers in {name} may be ids as well: say `clicks_as='items'` if they are")
    return expression, notes


def _numbers_are_items(source: TableSource, sql: str, numbers: str, cell: str) -> tuple[bool, bool]:
    """Whether numbers of clicks must be ids, because they are in their slates and beyond the last position;
    and whether they may be."""
    told, beyond, in_slate = _one(
        source,
        "SELECT count(*), count(*) FILTER (list_max(numbers) > len(items)), "
        "count(*) FILTER (list_has_all(items::VARCHAR[], clicks::VARCHAR[])) FROM "
        f"(SELECT items, {numbers} AS numbers, {cell} AS clicks FROM ({sql})) WHERE len(clicks) > 0",
    )
    all_in_slate = told > 0 and told - in_slate <= _RARE * told
    return all_in_slate and beyond > _RARE * told, all_in_slate


def _positions(
    source: TableSource,
    sql: str,
    numbers: str,
    name: str,
    present: list[str],
    scalar: list[str],
    rules: ClickRules,
) -> tuple[str | None, tuple[str, ...]]:
    least, most, at_end, minus_one, empty, told, same_length, longest, several, rows = _one(
        source,
        "SELECT min(least) FILTER (least >= 0), max(most), count(*) FILTER (most = width), "
        "bool_or(least = -1), bool_or(n = 0), count(n), bool_and(n = width), max(width), "
        "bool_or(n > 1), count(*) "
        "FROM (SELECT list_min(clicks) AS least, list_max(clicks) AS most, len(clicks) AS n, "
        f"len(items) AS width FROM (SELECT items, {numbers} AS clicks FROM ({sql})))",
    )
    only_marks = least is not None and most <= 1
    as_marks = rules.clicks_as == "marks" or (
        rules.clicks_as is None and only_marks and same_length and (several or (longest == 1 and most == 1))
    )
    if as_marks:
        marked = (
            f"list_filter(list_transform({numbers}, lambda mark, place: CASE mark WHEN 1 THEN place - 1 "
            f"WHEN 0 THEN -1 ELSE {_NOWHERE} END), lambda place: place <> -1)"
        )
        wide = f"if(len({numbers}) = len(items), {marked}, [{_NOWHERE}])"
        expression = f"if(({numbers}) IS NULL, NULL, {wide})"
        told_so = (f"{name} holds a mark for each position",)
        return _with_reports(source, expression, sql, present, scalar, rules, told_so, none_told=True)
    none_told = bool(minus_one or empty)
    always_told = told == rows and not none_told
    if rules.clicks_as is None and scalar and only_marks and most == 1 and longest > 2 and always_told:
        raise InvalidInput(
            f"{source.name}: {name} is 0 or 1 in every row. Does it say whether anything was clicked? A "
            "slate needs the position of its click. If these are positions, say `clicks_as='positions'`"
        )
    begin = rules.positions_from
    zero_is_none = False
    notes: tuple[str, ...] = ()
    if begin is None:
        begin = 0
        if at_end and least >= 1:
            begin = 1
        elif at_end > _RARE * told and always_told and scalar:
            # A click at the end of its slate, often, and no other way to say that there was none.
            begin, zero_is_none = 1, True
        ambiguous = least is not None and least >= 1 and not at_end
        why = (
            " (none is 0, and none is the length of its slate: say `positions_from=1` if they count from 1)"
            if ambiguous
            else ""
        )
        if least is not None:
            notes = (f"clicks in {name} are positions that count from {begin}{why}",)
    else:
        notes = (f"clicks in {name} are positions that count from {begin}, as asked",)
        zero_is_none = begin == 1 and least == 0
    if zero_is_none:
        notes = (
            *notes,
            "position 0 means no click",
        )
        none_told = True
    expression = numbers
    if minus_one or zero_is_none:
        none = "(-1, 0)" if zero_is_none else "(-1)"
        expression = f"list_filter({expression}, lambda place: place NOT IN {none})"
    if begin:
        expression = f"list_transform({expression}, lambda place: place - 1)"
    return _with_reports(source, expression, sql, present, scalar, rules, notes, none_told=none_told)


def _with_reports(
    source: TableSource, expression: str, sql: str, present: list[str], scalar: list[str], rules: ClickRules,
    notes: tuple[str, ...], *, none_told: bool,
) -> tuple[str, tuple[str, ...]]:  # fmt: skip
    """The clicks, with what an empty cell means."""
    if "reported" in present:
        told = "'reported' says which outcomes are known"
        return f"if(reported, coalesce({expression}, []), NULL)", (*notes, told)
    lists = [role for role in present if role != "reported"]
    all_null = " AND ".join(f"{role} IS NULL" for role in lists)
    empty, rows = _one(source, f"SELECT count(*) FILTER ({all_null}), count(*) FROM ({sql})")
    if not empty:
        return expression, notes
    as_no_click = rules.empty_click == "no-click"
    if rules.empty_click is None:
        # A list can be empty, and so says no click. One cell says -1 somewhere, or is left empty.
        # Where nothing is told at all, nothing was reported.
        as_no_click = len(scalar) == len(lists) and not none_told and empty < rows
    if as_no_click:
        return f"coalesce({expression}, [])", (
            *notes,
            f"{_rows(empty)} with an empty click taken as no click",
        )
    return expression, (*notes, f"{_rows(empty)} without clicks taken as not reported")


def _rows(n: int) -> str:
    return f"{n:,} row{'s' * (n != 1)}"


def _one(source: TableSource, query: str) -> tuple[Any, ...]:
    found = run(source.connection, lambda: source.connection.execute(query).fetchall())
    return tuple(found[0])
