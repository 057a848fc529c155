"""`firstclick data`: the sources of data, what they hold, and how to get it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from firstclick.cli.console import page, print_json, talk
from firstclick.data.cut import group_items, keep_items
from firstclick.data.describe import SLATE, Description, ItemShare
from firstclick.data.describe import describe as describe_interactions
from firstclick.data.download import download as fetch
from firstclick.data.download import find_archive
from firstclick.data.sources import Progress as Report
from firstclick.data.sources import Source, make_source, source_classes
from firstclick.errors import InvalidInput
from firstclick.report.rounding import rounded, whole

INTERRUPTED = 130

# What is left of 80 columns beside the numbers, for the name of an item or a group.
NAME_WIDTH = 56
LARGEST_GROUPS = 15

data_app = typer.Typer(help="Get data, and see what is in it.", add_completion=False, rich_markup_mode=None)


@data_app.callback(invoke_without_command=True)
def _start(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


class Interrupted(typer.TyperException):
    """Ctrl-C where something was written after all."""

    exit_code = INTERRUPTED


@data_app.command(short_help="List the sources of data and their parameters.")
def sources(json: Annotated[bool, Option("--json", help="Print JSON.")] = False) -> None:
    """List the sources of data, their parameters with defaults, and the files they read.

    \b
    Example:
      firstclick data sources --json
    """
    described = [describe_source(cls) for cls in source_classes().values()]
    if json:
        print_json(described)
        return
    out = page()
    for entry in described:
        out.print(Text.assemble((entry["name"], "bold"), "  ", entry["summary"]))
        files = Text("made up, needs no files" if entry["synthetic"] else f"reads {entry['files']}", "dim")
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for name, parameter in entry["parameters"].items():
            default = "" if parameter["default"] is None else parameter["default"]
            table.add_row(f"{name}={default}", Text(f"{parameter['help']} ({parameter['rule']})"))
        for below in (files, table) if entry["parameters"] else (files,):
            out.print(Padding(below, (0, 0, 0, 2), expand=False))


def describe_source(cls: type[Source]) -> dict[str, Any]:
    """A source class in plain words, for the list, the docs page and JSON."""
    defaults = cls.defaults()
    return {
        "name": cls.name,
        "title": cls.title,
        "summary": (cls.__doc__ or "").strip().splitlines()[0],
        "synthetic": cls.synthetic,
        "files": "" if cls.synthetic else cls().wanted(),
        "parameters": {
            name: {"default": defaults[name], "help": rule.help, "rule": rule.describe()}
            for name, rule in cls.rules().items()
        },
    }


@data_app.command(short_help="Fetch a public data set, once you agree to its terms.")
def download(
    name: Annotated[str, Argument(metavar="NAME", help="What to fetch: movielens-1m.")],
    folder: Annotated[
        Path, Option("--data", metavar="FOLDER", help="Folder to put the data set's own folder in.")
    ] = Path("data"),
    yes: Annotated[bool, Option("--yes", help="I agree to the terms.")] = False,
) -> None:
    """Fetch a public data set from its owner's address, after showing its terms.

    A download that was cut goes on where it was. Yelp and Million Song have to be fetched by hand:
    `firstclick data download yelp` says how.

    \b
    Example:
      firstclick data download movielens-1m --data data
      firstclick data describe movielens --data data
    """
    archive = find_archive(name)
    there = not archive.lacks(folder)
    if not there:
        talk.print(archive.terms)
        if not yes:
            _ask()
    try:
        with _bar(f"fetching {archive.title}", DownloadColumn()) as progress:
            target = fetch(archive, folder, progress)
    except KeyboardInterrupt:
        raise Interrupted("interrupted; what has come is kept, run it again to go on from there") from None
    if there:
        talk.print(f"{archive.title} is there already")
    print(target)
    talk.print(f"see what is in it: firstclick data describe {archive.source} --data {target}")


def _on_a_terminal() -> bool:
    return bool(sys.stdin and sys.stdin.isatty() and sys.stderr.isatty())


def _ask() -> None:
    if not _on_a_terminal():
        raise InvalidInput("nobody is here to agree to the terms above; if you do, say --yes")
    talk.print("Do you agree? [y/N] ", end="")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InvalidInput("nothing was downloaded, because the terms were not agreed to")


@data_app.command(short_help="Print users, items, density, most attractive items, groups.")
def describe(
    source: Annotated[
        str, Argument(metavar="SOURCE", help="NAME[:param=value,...], see `firstclick data sources`.")
    ],
    data: Annotated[
        Path | None, Option("--data", metavar="PATH", help="Folder or file of the data; none if made up.")
    ] = None,
    group: Annotated[
        str | None, Option("--group", metavar="NAME", help="Only the items of this group.")
    ] = None,
    json: Annotated[bool, Option("--json", help="Print JSON instead of the tables.")] = False,
) -> None:
    """Print how large and dense the data is, its most attractive items, best slate and groups.

    \b
    Examples:
      firstclick data describe movielens --data data/ml-1m --group Adventure
      firstclick data describe synthetic-yelp:seed=3
      firstclick data describe table:user=customer,item=film --data sales.csv
    """
    chosen = make_source(source)
    if chosen.synthetic and data is not None:
        raise InvalidInput(f"{chosen.name} is made up from a seed; leave --data out")
    if not chosen.synthetic and data is None:
        raise InvalidInput(f"{chosen.name} needs --data, the place of {chosen.wanted()}")
    with _bar("making data up" if chosen.synthetic else "reading", TaskProgressColumn()) as progress:
        loaded = chosen.load(data, progress)
    with talk.status("counting") if sys.stderr.isatty() else nullcontext():
        described = describe_interactions(keep_items(loaded, group_items(loaded, group)) if group else loaded)
    if json:
        about = {"source": chosen.label, "title": chosen.title, "synthetic": chosen.synthetic, "group": group}
        print_json(about | asdict(described))
        return
    out = page()
    title = chosen.title + (f", {group}" if group else "")
    out.print(Text(title, "bold"))
    for block in _blocks(described):
        out.print(block)


def _blocks(described: Description) -> Iterator[Table | str]:
    sizes = _table("", "")
    for label, value in (
        ("users", whole(described.users)),
        ("items", whole(described.items)),
        ("interactions", whole(described.interactions)),
        ("attracted pairs", whole(described.attracted_pairs)),
        ("density", _share(described.density)),
        ("users whom nothing attracts", _share(described.idle_users)),
        *((f"{name}, in the files", whole(value)) for name, value in described.facts.items()),
    ):
        sizes.add_row(label, value)
    yield sizes

    yield ""
    yield _shares("most attractive items", described.most_attractive)

    yield ""
    yield _shares(f"best slate of {len(described.best_slate)}, greedy", described.best_slate)
    clicked = f"clicked by {_share(described.best_click_probability)} of users"
    if len(described.best_slate) == SLATE:
        popular = _share(described.popular_click_probability)
        clicked += f"; the {SLATE} most attractive: {popular}"
    yield clicked

    yield ""
    yield "attraction of items"
    names = {0.0: "least", 0.5: "median", 1.0: "most"}
    quantiles = _table(*(names.get(share, f"{share:.0%}") for share in described.quantiles), right=True)
    quantiles.add_row(*map(_share, described.quantiles.values()))
    yield quantiles

    if described.groups:
        yield ""
        left = len(described.groups) - LARGEST_GROUPS
        groups = _table("group" + (f" (the largest; {left:,} more)" if left > 0 else ""), "items", "density")
        for entry in described.groups[:LARGEST_GROUPS]:
            groups.add_row(Text(entry.name), whole(entry.items), _share(entry.density))
        yield groups


def _shares(heading: str, items: tuple[ItemShare, ...]) -> Table:
    table = _table(heading, "attraction")
    for item in items:
        table.add_row(Text(item.name), _share(item.attraction))
    return table


def _table(first: str, *others: str, right: bool = False) -> Table:
    shown = bool(first)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=shown)
    table.add_column(
        first, justify="right" if right else "left", no_wrap=True, overflow="ellipsis", max_width=NAME_WIDTH
    )
    for heading in others:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _share(share: float) -> str:
    """'0.402%', with three digits: densities are small."""
    return rounded(100 * share)[0] + "%" if share else "0%"


@contextmanager
def _bar(doing: str, *amount: ProgressColumn) -> Iterator[Report]:
    """A `progress(done, total)` drawn on stderr, if that is a terminal; nothing stays of it."""
    columns = (TextColumn("{task.description}"), BarColumn(30), *amount, TimeRemainingColumn())
    with Progress(*columns, console=talk, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total or None)
