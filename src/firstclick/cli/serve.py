"""`firstclick serve`: a catalog becomes a recommender behind HTTP."""

import inspect
import json
import logging
import os
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from typer import Exit, Option

from firstclick.cli.console import talk
from firstclick.cli.progress_bar import progress_bar
from firstclick.errors import InvalidInput
from firstclick.extras import needed_by
from firstclick.serve.config import (
    Columns,
    Settings,
    as_toml,
    flag,
    load_settings,
    shown_store,
)
from firstclick.wire.errors import Refused

if TYPE_CHECKING:
    from firstclick.serve.service import Service

DEMO_MODEL = "cafe"
METAVARS = {int: "N", float: "NUMBER", Path: "FILE"}
OWN_METAVARS = {"allow_origin": "ORIGIN", "embedding": "PREFIX", "encoding": "NAME"}


def serve(**flags: Any) -> None:
    """Serve recommendations over HTTP, and learn from the clicks.

    Recommending writes nothing. When feedback is answered, it is on disk and counted once. Every option can
    also be set by an environment variable FIRSTCLICK_<NAME> or in a TOML file.

    \b
    Examples:
      firstclick serve --demo
      firstclick serve --catalog items.csv --policy cascade-lin-ts --k 6 \\
        --store shop.db
      firstclick serve --config serve.toml --print-config
    """
    file, printing = flags.pop("config"), flags.pop("print_config")
    settings, origins = load_settings(flags, os.environ, file)
    if settings.demo and origins["name"] == "default":
        flags["name"] = DEMO_MODEL
        settings, origins = load_settings(flags, os.environ, file)
    if printing:
        print(as_toml(settings, origins), end="")
        return
    with ExitStack() as stack:
        if settings.demo and origins["store"] == "default":
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="firstclick-demo-"))
            settings, _ = load_settings(flags | {"store": str(Path(folder) / "demo.db")}, os.environ, file)
        given = {name for name, origin in origins.items() if origin != "default"}
        _serve(settings, given, stack)


def _serve(settings: Settings, given: set[str], stack: ExitStack) -> None:
    # The web server and its libraries are loaded by this command alone.
    with needed_by("the server"):
        from firstclick.serve.demo import DemoTraffic
        from firstclick.serve.http.server import Server, check_private
        from firstclick.serve.startup import open_for

    logging.basicConfig(level=settings.log_level.upper(), format="%(asctime)s %(levelname)s %(message)s")
    talk.print("starting (kernels are compiled the first time, which takes about a minute)")
    with progress_bar() as progress:
        service, catalog, notes = open_for(
            settings, progress.doing("starting"), given, lambda service: check_private(service, settings)
        )
    stack.callback(service.close)
    server = Server(service, settings)
    for line in (*catalog, *(f"note: {note}" for note in notes)):
        talk.print(line)
    _welcome(server.address, settings, service)
    if settings.demo:
        traffic = DemoTraffic(service, settings.name)
        traffic.start()
        stack.callback(traffic.close)
    if code := server.run():
        raise Exit(code)
    talk.print("closed")


def _welcome(address: str, settings: Settings, service: "Service") -> None:
    key = " \\\n  -H 'Authorization: Bearer '$KEY" if service.maintenance.api_keys else ""
    talk.print(f"\nfirstclick serves {address}   (store: {shown_store(settings.store)}; Ctrl-C ends it)\n")
    if settings.durability == "relaxed":
        talk.print("durability is relaxed: a power cut may take the clicks of the last moments\n")
    models = service.names()
    if service.models.broken and not models:
        talk.print("No model of this store can be served; see the notes above.")
    elif not models:
        talk.print("There is no model yet: start with --catalog items.csv, or POST one to /v1/models.")
    else:
        model = settings.name if settings.name in models else models[0]
        base = f"{address}/v1/models/{model}"
        post = f"curl -s -H 'Content-Type: application/json'{key}"
        talk.print("What to show, and what was clicked (a position from 0, or null):\n")
        talk.print(f"  {post} \\\n    {base}/recommend -d '{first_request(service, model)}'")
        talk.print(f'  {post} \\\n    {base}/feedback -d \'{{"token": "...", "click": 0}}\'\n')
    talk.print(f"Dashboard: {address}/    API: {address}/openapi.json    Metrics: {address}/metrics\n")


def first_request(service: "Service", model: str) -> str:
    """What a request has to say at least: nothing, or what is known of the user."""
    try:
        policy = service.model(model).engine.policy
    except Refused:  # A model that is broken does not keep the others from being served.
        return "{}"
    if not policy.n_context:
        return "{}"
    context = np.zeros(policy.n_context, np.int64)
    with suppress(InvalidInput):  # A user of whom all numbers are 0 teaches little, but is always allowed.
        policy.check_context(np.eye(1, policy.n_context)[0])
        context[0] = 1
    return json.dumps({"context": context.tolist()})


def _signature() -> inspect.Signature:
    """An option for every setting, from its declaration; values are checked where those of files are."""
    options: dict[str, tuple[Any, Any]] = {}
    for name, rule in Settings.rules().items():
        default = getattr(Settings, name)
        told = f"{rule.help[0].upper()}{rule.help[1:]}."
        if rule.kind is bool:
            options[name] = bool | None, Option(flag(name), help=told)
            continue
        known = "" if default in (None, ()) else f"  [default: {default}]"
        kind = list[str] | None if rule.kind is tuple else str | None
        shown = "COLUMN" if name == "id" or isinstance(rule, Columns) else METAVARS.get(rule.kind, "TEXT")
        shown = OWN_METAVARS.get(name, shown)
        options[name] = kind, Option(flag(name), metavar=shown, help=told + known)
    options["config"] = (
        Path | None,
        Option("--config", metavar="FILE", help="TOML file with any of these settings."),
    )
    options["print_config"] = (
        bool,
        Option("--print-config", help="Print the settings as TOML, and where each comes from; then end."),
    )
    return inspect.Signature(
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=False if kind is bool else None,
                annotation=Annotated[kind, option],
            )
            for name, (kind, option) in options.items()
        ]
    )


serve.__signature__ = _signature()  # type: ignore[attr-defined]
