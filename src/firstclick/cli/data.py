"""`firstclick data`: the sources of data, what they hold, and how to get it."""

import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from rich.progress import DownloadColumn
from rich.text import Text
from typer import Argument, Option

from firstclick.cli.command_line import command_group
from firstclick.cli.console import Interrupted, page, print_json, talk
from firstclick.cli.parameters import in_words, print_entry
from firstclick.cli.progress_bar import progress_bar
from firstclick.data.cut import group_items, keep_items
from firstclick.data.describe import describe as describe_interactions
from firstclick.data.sources import Source, make_source, source_classes
from firstclick.data.sources.download import download as fetch
from firstclick.data.sources.download import find_archive
from firstclick.errors import InvalidInput

data_app = command_group("Download and describe data sets.")


@data_app.command(short_help="List data sources and their parameters.")
def sources(json: Annotated[bool, Option("--json", help="Print JSON.")] = False) -> None:
    """List data sources, their parameters and defaults, and the files they read.

    \b
    Example:
      firstclick data sources --json
    """
    described = [
        in_words(
            cls,
            title=cls.title,
            synthetic=cls.synthetic,
            files="" if cls.synthetic else cls().wanted(),
        )
        for cls in source_classes().values()
    ]
    if json:
        print_json(described)
        return
    for entry in described:
        print_entry(entry, "made up, needs no files" if entry["synthetic"] else f"reads {entry['files']}")


@data_app.command(short_help="Download a public data set, after you agree to its terms.")
def download(
    name: Annotated[str, Argument(metavar="NAME", help="Data set: movielens-1m.")],
    folder: Annotated[
        Path,
        Option("--data", metavar="FOLDER", help="Folder in which the data set gets a folder of its own."),
    ] = Path("data"),
    yes: Annotated[bool, Option("--yes", help="I agree to the terms.")] = False,
) -> None:
    """Download a public data set from its owner's site, after showing its terms.

    An interrupted download continues where it stopped. Yelp and Million Song must be downloaded by hand:
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
        with progress_bar(amount=DownloadColumn()) as progress:
            target = fetch(archive, folder, progress.doing(f"fetching {archive.title}"))
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
        Path | None,
        Option("--data", metavar="PATH", help="Folder or file of the data; none for made-up data."),
    ] = None,
    group: Annotated[
        str | None, Option("--group", metavar="NAME", help="Only the items of this group.")
    ] = None,
    json: Annotated[bool, Option("--json", help="Print JSON instead of the tables.")] = False,
) -> None:
    """Print the size and density of the data, its most attractive items, best slate and groups.

    \b
    Examples:
      firstclick data describe movielens --data data/ml-1m --group Adventure
      firstclick data describe synthetic-yelp:seed=3
      firstclick data describe table:user=customer,item=film --data sales.csv
    """
    chosen = chosen_source(source, data)
    with progress_bar() as progress:
        loaded = chosen.load(data, progress.doing("making data up" if chosen.synthetic else "reading"))
    with talk.status("counting") if sys.stderr.isatty() else nullcontext():
        described = describe_interactions(keep_items(loaded, group_items(loaded, group)) if group else loaded)
    if json:
        about = {"source": chosen.label, "title": chosen.title, "synthetic": chosen.synthetic, "group": group}
        print_json(about | asdict(described))
        return
    from firstclick.report.tables import description_blocks

    out = page()
    title = chosen.title + (f", {group}" if group else "")
    out.print(Text(title, "bold"))
    for block in description_blocks(described):
        out.print(block)


def chosen_source(spec: str, data: Path | None) -> Source:
    """The source of this description; --data must be given where it reads files, and only there."""
    chosen = make_source(spec)
    if chosen.synthetic and data is not None:
        raise InvalidInput(f"{chosen.name} is made up from a seed; leave --data out")
    if not chosen.synthetic and data is None:
        raise InvalidInput(f"{chosen.name} needs --data, the place of {chosen.wanted()}")
    return chosen
