"""`firstclick archive`: old events of a model moved from its store to a file."""

from pathlib import Path
from typing import Annotated

from typer import Option

from firstclick.cli.console import talk
from firstclick.cli.options import count, number
from firstclick.cli.progress_bar import progress_bar
from firstclick.cli.stores import OWN_STORE, ModelArgument, StoreOption, find_model, opened
from firstclick.errors import InvalidInput
from firstclick.validation.quoting import quoted


def archive(
    model: ModelArgument,
    before: Annotated[int, count("First event that stays in the store.", "--before")],
    out: Annotated[Path, Option("--out", metavar="FILE", help="File to write. Keep it.")],
    store: StoreOption = OWN_STORE,
    token_days: Annotated[
        float, number("As set for the servers: younger slates stay, feedback for them may still come.")
    ] = 7.0,
) -> None:
    """Move a model's old events to a file. The first event, its creation, stays in the store.

    The store keeps the state of the model at that point and continues from there. Before anything is removed,
    the file is written, read back and replayed, and the two states are compared bit for bit. Keep the file:
    a full audit, export, fork and relearn need it (--archive).

    PostgreSQL: works while servers are running. SQLite: stop the server first.

    \b
    Example:
      firstclick archive shop --before 1000000 --out old.archive --store shop.db
    """
    from firstclick.serve.config import shown_store
    from firstclick.serve.model.archive import archive as archived

    if not token_days >= 0:
        raise InvalidInput(f"--token-days must be at least 0, got {quoted(token_days)}")
    if out.exists():
        # It may be an archive itself, and what it holds is nowhere else.
        raise InvalidInput(f"--out {out} is there already, and no archive is replaced; name a new file")
    with opened(store) as there:
        find_model(there, model)
    with opened(store, read_only=False) as there, progress_bar() as progress:
        told = progress.doing(f"archiving {model}")
        moved = archived(there, find_model(there, model), before, out, token_days=token_days, progress=told)
    talk.print(
        f"{model}: events {moved.first:,} to {moved.last:,} are in {out}; {shown_store(store)} goes on from "
        f"event {before:,}, SHA-256 {moved.digest}"
    )
