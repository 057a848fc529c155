"""What commands share that read a file of who liked what: its options, the file itself, and a note on it."""

import re
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from firstclick.cli.options import count, number
from firstclick.data import Interactions, read_interactions
from firstclick.errors import InvalidInput
from firstclick.files.progress import Progress, silent

DEFAULT_RANK = 20
# A log of impressions has a column with one of these words, or few items and mostly zeros.
POSITION_WORDS = {"position", "pos", "rank", "slot"}
FEW_ITEMS = 1000

File = Annotated[
    Path | None,
    Option(metavar="FILE", help="File of user, item[, value]: CSV, TSV or '::'-separated."),
]
UserColumn = Annotated[
    str | None, Option(metavar="COLUMN", help="Column of users: a name, or a number from 0; 0 by default.")
]
ItemColumn = Annotated[
    str | None, Option(metavar="COLUMN", help="Column of items: a name, or a number from 0; 1 by default.")
]
ValueColumn = Annotated[
    str | None,
    Option(
        metavar="COLUMN", help="Column of values, such as ratings; by default every row counts as attracted."
    ),
]
Above = Annotated[float | None, number("A row counts as attracted if its value is above this; 0 by default.")]
Separator = Annotated[str | None, Option(metavar="TEXT", help="Column separator; detected by default.")]
Header = Annotated[
    bool, Option("--header", help="Line 1 is a header, although columns are given as numbers.")
]
Encoding = Annotated[
    str | None, Option(metavar="NAME", help="Encoding of a text file, such as latin-1; UTF-8 by default.")
]
Strict = Annotated[
    bool,
    Option("--strict", help="Stop at blank lines and unusable rows; by default they are skipped."),
]
Items = Annotated[int | None, count("Number of items to keep; all by default.", "--items")]
Rank = Annotated[
    int | None,
    count(f"Number of features, by truncated SVD; {DEFAULT_RANK} by default, or what the data allows."),
]


def check_above(above: float | None) -> None:
    """Refuse a bound that is no number before a large file is read."""
    if above is not None and not isfinite(above):
        raise InvalidInput(f"must be a finite number, got {above}", "above")


def read_file(path: Path, columns: Mapping[str, Any], progress: Progress = silent) -> Interactions:
    """The file, read by the options that were given; one that nothing can be learned from is refused."""
    read = read_interactions(path, **columns, progress=progress)
    if not read.attracted.any():
        bound = columns.get("above") or 0.0
        raise InvalidInput(
            f"{path.name}: no value is above {bound:g}, so nothing attracts anybody; lower --above"
        )
    if len(read.user_ids) < 2:
        raise InvalidInput(
            f"{path.name} has 1 user, and two are needed: half of the users teach features, the others click"
        )
    return read


def usual_rank(read: Interactions) -> int:
    """The rank of the features where none is given."""
    return max(min(DEFAULT_RANK, len(read.user_ids) // 2, len(read.item_ids)), 1)


def notes_on(name: str, read: Interactions, columns: Mapping[str, Any]) -> str:
    """What to say about a file before its results: rows that were skipped, and what it cannot tell."""
    notes = note_of_skipped(name, read) + note_of_impressions(name, read, columns.get("above") or 0.0)
    return notes + ("" if "header" in columns else _note_of_header(name, read))


def note_of_skipped(name: str, read: Interactions) -> str:
    """A line with the rows that could not be used, if there are any."""
    if not read.skipped:
        return ""
    skipped = sum(one.rows for one in read.skipped)
    total = skipped + read.facts.get("interactions", len(read.users))
    reasons = ", ".join(map(str, read.skipped))
    return f"note: {name}: {skipped:,} of {total:,} rows skipped: {reasons}\n"


def note_of_impressions(name: str, read: Interactions, above: float = 0.0) -> str:
    """A line on what a log of impressions cannot tell, if this one looks like it.

    It does if a column is called position, pos, rank or slot; or if most values are not above 0, and there
    are few items.
    """
    placed = [one for one in read.columns if POSITION_WORDS & set(re.split("[^a-z]+", one.casefold()))]
    if placed:
        why = f"column {placed[0]!r}"
    elif above == 0 and len(read.item_ids) <= FEW_ITEMS and 2 * read.attracted.sum() < len(read.attracted):
        share = 1 - read.attracted.mean()
        why = f"{share:.0%} of its values are 0, and it has {len(read.item_ids):,} items"
    else:
        return ""
    return (
        f"note: {name} looks like a log of impressions ({why}): an item that a user was never shown counts "
        "as not attractive here; `firstclick evaluate` is for such logs\n"
    )


def _note_of_header(name: str, read: Interactions) -> str:
    """A line to say where one word among numbers looks as if it came from a header."""
    for kind, ids in (("user", read.user_ids), ("item", read.item_ids)):
        words = [one for one in ids if not one.lstrip("-").isdecimal()]
        if len(words) == 1 and len(ids) > 2:
            found = f"one {kind} that is no number, {words[0]!r}"
            return f"note: {name} has {found}; if line 1 is a header, say --header\n"
    return ""
