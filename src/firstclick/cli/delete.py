"""`firstclick delete`: a model that nobody wants any more."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from firstclick.cli.console import talk
from firstclick.cli.stores import OWN_STORE, ModelArgument, StoreOption, find_model, opened
from firstclick.errors import InvalidInput, WorkFailed

if TYPE_CHECKING:
    from firstclick.serve.store.store import Store


def delete(
    model: ModelArgument,
    store: StoreOption = OWN_STORE,
    yes_delete: Annotated[
        str | None,
        Option("--yes-delete", metavar="MODEL", help="The name once more; otherwise you are asked."),
    ] = None,
) -> None:
    """Delete a model for good: its log, its snapshots and everything it has learned.

    An SQLite file is rewritten so that nothing of the model is left in it. It must not be open in a server,
    and the disk needs room for a second copy. To delete from a running server: DELETE /v1/models/MODEL.
    PostgreSQL: works while servers are running; they stop serving the model within a second. Backups,
    exports and archives are not touched.

    \b
    Example:
      firstclick delete shop --store shop.db --yes-delete shop
    """
    from firstclick.serve.config import shown_store

    with opened(store) as there:
        stored = find_model(there, model)
    _confirm(model, yes_delete, stored.head, shown_store(store))
    try:
        with opened(store, read_only=False) as there:
            _delete(there, model)
    except InvalidInput as error:
        # As a rule a server has the file.
        raise InvalidInput(
            f"{error}; or have a running server delete it: DELETE /v1/models/{model}"
        ) from None
    talk.print(f"{model}: deleted, with {stored.head:,} events")


def _delete(store: "Store", model: str) -> None:
    from firstclick.wire.errors import Unavailable

    store.delete(find_model(store, model).id)
    while store.sweep():
        pass
    try:
        store.compact()
    except Unavailable as error:
        raise WorkFailed(f"{model} is deleted, but its file keeps its size: {error}") from None


def _confirm(model: str, said: str | None, events: int, store: str) -> None:
    if said is None:
        if not sys.stdin.isatty():
            raise InvalidInput(f"to delete {model!r} for good, repeat its name: say --yes-delete {model}")
        said = typer.prompt(f"This deletes {model} with {events:,} events from {store} for good. Its name")
    if said != model:
        raise InvalidInput(f"the name must be {model!r} once more, got {said!r}; nothing was deleted")
