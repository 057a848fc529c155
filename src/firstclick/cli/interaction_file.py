"""What commands share that read a file of who liked what: its options, and a note on its first line."""

from typing import Annotated

from typer import Option

from firstclick.cli.options import count, number
from firstclick.data import Interactions

DEFAULT_RANK = 20

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


def note_of_header(name: str, read: Interactions) -> str:
    """A line to say where one word among numbers looks as if it came from a header."""
    for kind, ids in (("user", read.user_ids), ("item", read.item_ids)):
        words = [one for one in ids if not one.lstrip("-").isdecimal()]
        if len(words) == 1 and len(ids) > 2:
            found = f"one {kind} that is no number, {words[0]!r}"
            return f"note: {name} has {found}; if line 1 is a header, say --header\n"
    return ""
