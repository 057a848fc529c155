"""`firstclick keys`: who may call a server."""

import time
from typing import TYPE_CHECKING, Annotated

from rich.table import Table
from typer import Argument, Option

from firstclick.cli.command_line import command_group
from firstclick.cli.console import page, print_json, talk
from firstclick.cli.options import choice, count
from firstclick.cli.stores import OWN_STORE, StoreOption, opened
from firstclick.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from firstclick.serve.store.store import ApiKey

keys_app = command_group("Create, list and revoke API keys.")


@keys_app.command(short_help="Create a key and print it.")
def create(
    name: Annotated[str, Argument(metavar="NAME", help="Who or what will use it.")],
    role: Annotated[
        str,
        choice(
            "page: slates and clicks from browsers; read: look; write: slates, clicks, items; admin: all.",
            "page",
            "read",
            "write",
            "admin",
        ),
    ] = "write",
    model: Annotated[
        str | None, Option("--model", metavar="NAME", help="With --role page: the only model it is good for.")
    ] = None,
    store: StoreOption = OWN_STORE,
) -> None:
    """Create a key and print it. Only its SHA-256 is stored, so it cannot be shown again.

    If a server has the SQLite file open, ask the server: POST /v1/keys.

    \b
    Examples:
      firstclick keys create frontend --role write --store shop.db
      firstclick keys create web --role page --model shop --store shop.db
    """
    from firstclick.serve.http.auth import check_model_of_key, new_key

    check_model_of_key(role, model, "--model")
    key, hashed = new_key()
    with opened(store, read_only=False) as there:
        if role != "admin" and not there.api_keys():
            raise InvalidInput(
                "the first key must be an admin's, or nobody could make more; say --role admin"
            )
        made = there.add_api_key(name, role, hashed, time.time(), model)
        missing = model is not None and model not in {stored.name for stored in there.models()}
    print(key)
    if missing:
        talk.print(f"note: the store has no model {model!r} yet")
    talk.print(f"key {made.id} ({_role(made)}) for {name}; send it as `Authorization: Bearer {key[:6]}...`")


@keys_app.command("list", short_help="List all keys, without their secrets.")
def list_keys(
    store: StoreOption = OWN_STORE,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """List number, name, role and age of each key.

    \b
    Example:
      firstclick keys list --store shop.db
    """
    with opened(store) as there:
        keys = there.api_keys()
    if json:
        print_json(
            [
                {"id": key.id, "name": key.name, "role": key.role, "created": key.created, "model": key.model}
                for key in keys
            ]
        )
        return
    table = Table("id", "name", "role", "made", box=None, pad_edge=False)
    for key in keys:
        table.add_row(
            str(key.id), key.name, _role(key), time.strftime("%Y-%m-%d %H:%M", time.localtime(key.created))
        )
    page().print(table if keys else "no keys: the server is open to this machine, and to no other")


def _role(key: "ApiKey") -> str:
    return key.role if key.model is None else f"{key.role} of {key.model}"


@keys_app.command(short_help="Revoke a key.")
def revoke(
    key: Annotated[int, count("Number of the key, as `firstclick keys list` shows it.", "--id")],
    store: StoreOption = OWN_STORE,
    force: Annotated[
        bool, Option("--force", help="Revoke even the last key; the server is then open to this machine.")
    ] = False,
) -> None:
    """Revoke a key. Servers that share a PostgreSQL store follow within seconds.

    \b
    Example:
      firstclick keys revoke --id 3 --store shop.db
    """
    with opened(store, read_only=False) as there:
        if [one.id for one in there.api_keys()] == [key] and not force:
            raise InvalidInput(
                f"key {key} is the last one, and a server without keys is open to whoever reaches it on this "
                "machine; make another first, or say --force"
            )
        if not there.revoke_api_key(key):
            raise UnknownName(f"no key {key} in the store; `firstclick keys list` shows what there is")
    talk.print(f"key {key} is revoked")
