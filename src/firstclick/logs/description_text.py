"""A described log as plain text for the terminal."""

import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime

from firstclick.logs.describe import LogDescription
from firstclick.rounding import percent

_WIDTH = 100
# Positions listed one by one; further ones are left to --json.
MOST_POSITIONS = 20


def facts(log: LogDescription) -> list[tuple[str, str]]:
    """What was counted, as pairs of a name and a value."""
    length = f"{log.k}" if log.shortest == log.k else f"{log.shortest} to {log.k}"
    found = [
        ("slates", f"{log.slates:,}"),
        ("without reported outcome", _of(log.slates - log.reported, log.slates)),
    ]
    if log.timed_out:
        found.append(("not reported in time", _of(log.timed_out, log.slates)))
    if log.never_reported:
        found.append(("recommended, never reported", f"{log.never_reported:,}"))
    found += [
        ("items", f"{log.items:,}" + (f", {log.items_shown:,} shown" if log.items_shown < log.items else "")),
        ("positions of a slate", length),
    ]
    if log.segments:
        found.append(("segments", f"{log.segments:,}"))
    if log.first_time is not None and log.last_time is not None:
        found.append(("time", f"{_date(log.first_time)} to {_date(log.last_time)} UTC"))
    found += [
        ("slates with a click", _of(log.clicked_slates, log.reported)),
        ("  with more than one", _of(log.several_clicks, log.clicked_slates)),
        ("clicks below the first", _of(log.clicks_below_first, log.clicks)),
        ("examined is told", _of(log.examined_told, log.reported)),
        ("distinct slates", f"{log.distinct_slates:,}"),
        ("  the most frequent one", _of(log.most_frequent, log.slates)),
        ("items at several positions", _of(log.items_at_several_positions, log.items_shown)),
        ("propensities known", _propensities(log)),
    ]
    return found


def positions(log: LogDescription) -> list[tuple[str, str, str, str]]:
    """One row a position: shown, clicks, click-through."""
    return [
        (str(one.position), f"{one.shown:,}", f"{one.clicks:,}", percent(one.click_through))
        for one in log.positions
    ]


def description_text(log: LogDescription) -> str:
    """Everything that was found, for people."""
    lines = [f"{log.log}: {log.slates:,} slates of up to {log.k} of {log.items:,} items", ""]
    names = facts(log)
    width = max(len(name) for name, _ in names)
    lines += [f"  {name.ljust(width)}  {value}" for name, value in names]
    if log.slates:
        lines += [
            "",
            *_table(("position", "shown", "clicks", "click-through"), positions(log)[:MOST_POSITIONS]),
        ]
        if log.k > MOST_POSITIONS:
            lines.append(f"  ... and {log.k - MOST_POSITIONS:,} more positions; --json has all")
    lines += _listed("How it was read", log.notes)
    lines += _listed(f"Left out{counted(log)}", list(map(str, log.skipped)))
    lines += _listed(f"Kept, but for a part{counted(log)}", list(map(str, log.doubtful)))
    said = log.said()
    lines += _listed("What can be evaluated", [text for kind, text in said if kind == "can"])
    lines += _listed("What cannot", [text for kind, text in said if kind == "cannot"])
    return "\n".join(lines) + "\n"


def counted(log: LogDescription) -> str:
    """How odd rows are numbered."""
    return "" if log.has_fold else " (rows count from 0)"


def _listed(heading: str, sentences: Sequence[str]) -> list[str]:
    if not sentences:
        return []
    found = ["", heading]
    for sentence in sentences:
        found += textwrap.wrap(sentence, _WIDTH, initial_indent="  - ", subsequent_indent="    ")
    return found


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[place]) for row in [heads, *rows]) for place in range(len(heads))]
    return [
        "  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in [heads, *rows]
    ]


def _of(n: int, total: int) -> str:
    return f"{n:,}" if not n or not total else f"{n:,} ({percent(n / total)})"


def _propensities(log: LogDescription) -> str:
    found = []
    if log.prefixes_known:
        found.append(f"of every prefix: {_of(log.prefixes_known, log.slates)}")
    if log.slate_known > log.prefixes_known:
        found.append(f"of the whole slate only: {_of(log.slate_known - log.prefixes_known, log.slates)}")
    if log.places_known:
        found.append(f"of each item at its position: {_of(log.places_known, log.slates)}")
    if not found:
        return "can be computed from the log" if log.has_fold else "no"
    least = "" if log.least_propensity is None else f"; the smallest is {log.least_propensity:.3g}"
    return ", ".join(found) + least


def _date(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return f"{seconds:.0f}"
