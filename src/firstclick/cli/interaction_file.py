"""What commands share that read a file of who liked what: its options, the file itself, and a note on it."""

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

File = Annotated[
    Path | None,
    Option(metavar="FILE", help="File of user, item[, value]: CSV, TSV or '::'-separated."),
]
UserColumn = Annotated[
    str | None, Option(metavar="COLUMN", help="Column of the user: a name, or a number; 0 by default.")
]
ItemColumn = Annotated[
    str | None, Option(metavar="COLUMN", help="Column of the item: a name, or a number; 1 by default.")
]
ValueColumn = Annotated[
    str | None,
    Option(metavar="COLUMN", help="Column of a value, such as a rating; without it every row attracts."),
]
Above = Annotated[float | None, number("A row attracts if its value is above this; 0 if not given.")]
Separator = Annotated[
    str | None, Option(metavar="TEXT", help="Separator of columns, if not found by itself.")
]
Header = Annotated[
    bool, Option("--header", help="Line 1 names columns, though columns are given as numbers.")
]
Encoding = Annotated[
    str | None, Option(metavar="NAME", help="Encoding of a text file; utf-8-sig if not given.")
]
Items = Annotated[int | None, count("Keep so many items; all by default.", "--items")]
Rank = Annotated[
    int | None,
    count(f"Features by truncated SVD of this rank; {DEFAULT_RANK} by default, or what the data allows."),
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


def note_of_header(name: str, read: Interactions) -> str:
    """A line to say where one word among numbers looks as if it came from a header."""
    for kind, ids in (("user", read.user_ids), ("item", read.item_ids)):
        words = [one for one in ids if not one.lstrip("-").isdecimal()]
        if len(words) == 1 and len(ids) > 2:
            found = f"one {kind} that is no number, {words[0]!r}"
            return f"note: {name} has {found}; if line 1 is a header, say --header\n"
    return ""
