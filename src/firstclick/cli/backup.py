"""`firstclick backup`: a copy of a store that a server may have open."""

from pathlib import Path
from typing import Annotated

from typer import Option

from firstclick.cli.console import page
from firstclick.cli.progress_bar import progress_bar
from firstclick.cli.stores import OWN_STORE, StoreOption, opened, refuse_existing
from firstclick.errors import InvalidInput


def backup(
    out: Annotated[Path, Option("--out", metavar="FILE", help="File to write.")],
    store: StoreOption = OWN_STORE,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Copy an SQLite store to one file, with all models and keys, as of one moment.

    Works while a server is running. Before the copy gets its name, every log in it is replayed and compared
    with the snapshots. The copy contains the secrets that sign tokens; only you can read the file. Back up
    PostgreSQL with pg_dump or your usual tools.

    \b
    Example:
      firstclick backup --store shop.db --out shop-monday.db
    """
    from firstclick.serve.model.backup import back_up
    from firstclick.serve.store.sqlite import SqliteStore

    refuse_existing(out, overwrite=overwrite)
    with opened(store) as there:
        if not isinstance(there, SqliteStore):
            raise InvalidInput(
                "firstclick backup copies SQLite files; back up PostgreSQL with its own tools: "
                "pg_dump --format=custom --file=FILE --dbname=postgresql://..."
            )
        if out.exists() and out.samefile(store.removeprefix("sqlite:")):
            raise InvalidInput(f"--out {out} is the store itself; name another file")
        with progress_bar() as progress:
            audits = back_up(there, out, progress.doing("folding the copy"))
    lines = page()
    for one in audits:
        found = f"not folded: {one.not_folded}" if one.not_folded else f"SHA-256 {one.digest}"
        lines.print(f"{one.name}: {one.seq:,} events, {found}")
    lines.print(f"{out}: {out.stat().st_size:,} bytes, sound")
