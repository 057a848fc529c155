"""`firstclick catalog`: what a catalog file becomes."""

import shlex
from pathlib import Path
from typing import Annotated

from rich import box
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from firstclick.catalog.decisions import LEFT_OUT
from firstclick.catalog.describe import Described, catalog_as_json, described
from firstclick.catalog.file import read_catalog
from firstclick.cli.command_line import command_group
from firstclick.cli.console import page, print_json, talk
from firstclick.cli.progress_bar import progress_bar
from firstclick.rounding import in_words as _unused  # noqa: F401

catalog_app = command_group("See what becomes of a catalog file.")

Ignore = Annotated[list[str] | None, Option("--ignore", metavar="COLUMN", help="Leave it out; again for more.")]
Category = Annotated[
    list[str] | None, Option("--category", metavar="COLUMN", help="Take it as a category, such as a year.")
]
Number = Annotated[
    list[str] | None, Option("--number", metavar="COLUMN", help="Take it as a number; other cells are missing.")
]
Embedding = Annotated[
    list[str] | None,
    Option("--embedding", metavar="PREFIX", help="PREFIX0, PREFIX1, ... are one embedding, scaled by one number."),
]
IdColumn = Annotated[str | None, Option("--id", metavar="COLUMN", help="The column of ids, if not called id.")]
Encoding = Annotated[
    str | None, Option("--encoding", metavar="NAME", help="Of a text file, such as latin-1; UTF-8 by default.")
]
