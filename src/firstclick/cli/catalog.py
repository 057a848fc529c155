"""`firstclick catalog`: what a catalog file becomes."""

import shlex
from pathlib import Path
from typing import Annotated

from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from firstclick.catalog.decisions import LEFT_OUT
from firstclick.catalog.describe import Described, catalog_as_json, described
from firstclick.catalog.file import read_catalog
from firstclick.cli.command_line import command_group
from firstclick.cli.console import page, print_json, talk
from firstclick.cli.progress_bar import progress_bar

catalog_app = command_group("Check how a catalog file is read.")

# Wide enough for a table, and narrow enough for a page of documentation.
WIDEST = 100
COLUMN, EXAMPLES = 22, 20

Ignore = Annotated[
    list[str] | None, Option("--ignore", metavar="COLUMN", help="Column to leave out; repeatable.")
]
Category = Annotated[
    list[str] | None,
    Option("--category", metavar="COLUMN", help="Column to read as a category, such as a year."),
]
Number = Annotated[
    list[str] | None,
    Option("--number", metavar="COLUMN", help="Column to read as a number; other cells count as missing."),
]
Embedding = Annotated[
    list[str] | None,
    Option("--embedding", metavar="PREFIX", help="Columns PREFIX0, PREFIX1, ... are one embedding."),
]
IdColumn = Annotated[
    str | None, Option("--id", metavar="COLUMN", help="Column of ids, if none is called id.")
]
Encoding = Annotated[
    str | None,
    Option("--encoding", metavar="NAME", help="Encoding of a text file, such as latin-1; UTF-8 by default."),
]


@catalog_app.command(short_help="Print how each column of a catalog file is read.")
def describe(
    catalog: Annotated[
        Path, Argument(metavar="FILE", help="CSV, TSV, Parquet (.parquet) or JSON lines (.jsonl).")
    ],
    id: IdColumn = None,
    ignore: Ignore = None,
    category: Category = None,
    number: Number = None,
    embedding: Embedding = None,
    encoding: Encoding = None,
    json: Annotated[bool, Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Print how each column of a catalog is read, which features it becomes, and what is wrong with it.

    `firstclick serve` reads catalogs the same way and takes the same options.

    \b
    Examples:
      firstclick catalog describe products.csv
      firstclick catalog describe products.csv --ignore weight_kg --category year
      firstclick catalog describe products.parquet --id sku --embedding text_
    """
    with progress_bar() as progress:
        file = read_catalog(
            catalog, id=id, ignore=ignore or (), category=category or (), number=number or (),
            embedding=embedding or (), encoding=encoding, progress=progress.doing("reading"),
        )  # fmt: skip
        encoder = file.encoder()
    if json:
        print_json(catalog_as_json(file, encoder))
        return
    rows = described(encoder, file)
    n_columns = sum(row.n_columns for row in rows)
    out = page()
    counts = ((len(file.ids), "items"), (n_columns, "columns"), (encoder.n_features, "features"))
    items, columns, features = (f"{count:,} {word[: -1 if count == 1 else None]}" for count, word in counts)
    out.print(Text(f"{file.name}: {items}, {columns} -> {features}", "bold"))
    out.print(_table(rows, len(file.ids)), width=min(out.width, WIDEST))
    for note in file.notes:
        out.print(Text(f"note: {note}"))
    said = {"--ignore": ignore, "--category": category, "--number": number, "--embedding": embedding}
    said |= {"--id": [id] if id else None, "--encoding": [encoding] if encoding else None}
    options = [f"{option} {shlex.quote(value)}" for option, values in said.items() for value in values or ()]
    talk.print(
        " ".join(["serve it: firstclick serve --catalog", shlex.quote(str(catalog)), *options, "--k 6"])
    )


def _table(rows: list[Described], n_items: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("column", max_width=COLUMN, overflow="fold")
    table.add_column("taken as", no_wrap=True)
    table.add_column("features", justify="right", no_wrap=True)
    table.add_column("missing", justify="right", no_wrap=True)
    table.add_column("examples", max_width=EXAMPLES, overflow="ellipsis", no_wrap=True)
    table.add_column("what to know", overflow="fold", ratio=1)
    for row in rows:
        know = Text(row.reason)
        for problem in row.problems:
            know.append("\n" if know else "")
            know.append(f"! {problem}", "yellow")
        style = "dim" if row.taken_as == LEFT_OUT else ""
        table.add_row(
            Text(row.column), Text(row.taken_as), Text(str(row.n_features) if row.n_features else ""),
            Text(_missing(row, n_items)), Text(", ".join(row.examples)), know, style=style,
        )  # fmt: skip
    return table


def _missing(row: Described, n_items: int) -> str:
    cells = n_items * row.n_columns
    if not row.n_missing:
        return ""
    share = 100 * row.n_missing / cells
    return "< 1 %" if share < 1 else f"{share:.0f} %"
