"""Options of every command that reads a file of who liked what."""

from typing import Annotated

from typer import Option

from firstclick.cli.options import number

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
