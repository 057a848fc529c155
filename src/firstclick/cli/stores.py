"""`firstclick audit`, `log`, `export` and `import`: what a store holds, seen from outside the server."""

import json as json_module
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from firstclick.cli.console import page, print_json, talk
from firstclick.cli.options import count
from firstclick.cli.progress_bar import progress_bar
from firstclick.errors import InvalidInput, UnknownName, WorkFailed
from firstclick.files.reading import reading
from firstclick.files.writing import write_whole
from firstclick.registry import policy_classes

if TYPE_CHECKING:
    from firstclick.serve.model.slates import SlateAudit
    from firstclick.serve.store.store import Store, StoredModel

StoreOption = Annotated[
    str,
    Option(
        "--store",
        metavar="STORE",
        envvar="FIRSTCLICK_STORE",
        show_envvar=False,
        help="File of an SQLite store, or postgresql://...; FIRSTCLICK_STORE is taken too.",
    ),
]
ModelArgument = Annotated[str, Argument(metavar="MODEL", help="Name of the model.")]
OWN_STORE = "firstclick.db"
KINDS = (
    "created", "feedback", "items-put", "items-changed", "items-withdrawn", "availability", "rolled-back",
    "build", "list-put", "list-removed", "settings",
)  # fmt: skip


@contextmanager
def opened(store: str, *, read_only: bool = True) -> Iterator["Store"]:
    """The store, which must be there to be read."""
    from firstclick.serve.store import open_store

    new = "://" not in store and not Path(store.removeprefix("sqlite:")).exists()
    if new and read_only:
        raise InvalidInput(f"no store {store}; name the one of your server with --store")
    with open_store(store, read_only=read_only) as there:
        if new:
            talk.print(f"note: {store} is a new store")
        yield there


def find_model(store: "Store", name: str) -> "StoredModel":
    """The model of this name."""
    models = {stored.name: stored for stored in store.models()}
    if name not in models:
        raise UnknownName(f"no model {name!r} in the store; there are: {', '.join(models) or 'none'}")
    return models[name]


def audit(
    model: Annotated[str | None, Argument(metavar="[MODEL]", help="Only this model.")] = None,
    store: StoreOption = OWN_STORE,
    slates: Annotated[
        bool, Option("--slates", help="Draw every slate again too, from what the log says it was drawn from.")
    ] = False,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Fold every log from its first event, and compare what comes out with the snapshots, bit for bit.

    The storage itself is checked too: damage, gaps, feedback counted twice. Works beside a running server.
    Exit code 1 if anything differs. `GET /v1/models/MODEL/audit` compares with what a server serves now.

    \b
    Example:
      firstclick audit --store shop.db
      firstclick audit --slates --store shop.db
    """
    from firstclick.serve.model.audit import audit_stored
    from firstclick.serve.model.slates import SlateAudit, audit_slates

    with opened(store) as there:
        wrong = there.check()
        audits = []
        drawn: list[SlateAudit] = []
        for stored in [find_model(there, model)] if model else there.models():
            with progress_bar() as progress:
                audits.append(audit_stored(there, stored, progress.doing(f"folding {stored.name}")))
                if slates and audits[-1].digest:
                    drawn.append(audit_slates(there, stored, progress.doing(f"drawing {stored.name}")))
    if json:
        told = {"storage": wrong, "models": [one._asdict() | {"equal": one.equal} for one in audits]}
        print_json(told | ({"slates": [one._asdict() for one in drawn]} if slates else {}))
    else:
        out = page()
        for one in audits:
            if one.not_folded:
                out.print(f"{one.name}: not folded, {one.seq:,} events: {one.not_folded}")
                continue
            found = (
                f"{'equal' if one.equal else 'DIFFERS'} ({one.compared} snapshot{'s' * (one.compared != 1)})"
            )
            if one.equal and not one.compared:
                found = "folded (no snapshot to compare with)"
            out.print(f"{one.name}: {found}, {one.seq:,} events, SHA-256 {one.digest}")
        for redrawn in drawn:
            out.print(f"{redrawn.name}: {_slates_in_words(redrawn)}")
        out.print("storage: " + ("sound" if not wrong else "DAMAGED"))
    problems = [*wrong, *(f"{one.name}: {sentence}" for one in audits for sentence in one.differing)]
    problems += [f"{redrawn.name}: {sentence}" for redrawn in drawn for sentence in redrawn.told]
    if problems:
        raise WorkFailed("; ".join(problems))


def _slates_in_words(audit: "SlateAudit") -> str:
    told = f"{audit.equal:,} slates drawn again equal, {audit.differing:,} differ"
    if audit.other_build:
        told += f", {audit.other_build:,} differ and were made by another build"
    reasons = "; ".join(f"{n:,} {reason}" for reason, n in audit.not_evaluable.items())
    return told + (f", {sum(audit.not_evaluable.values()):,} not evaluable ({reasons})" if reasons else "")


def export(
    model: ModelArgument,
    out: Annotated[Path, Option("--out", metavar="FILE", help="File to write.")],
    store: StoreOption = OWN_STORE,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace a file that is there.")] = False,
) -> None:
    """Write a model, its whole log, to one file for `firstclick import`. Works beside a running server.

    \b
    Example:
      firstclick export shop --store shop.db --out shop.model
    """
    from firstclick.serve.model.export import export_model

    refuse_existing(out, overwrite=overwrite)
    with opened(store) as there:
        stored = find_model(there, model)
        write_whole(out, export_model(there, stored))
    talk.print(f"{model}: {stored.head:,} events written to {out}")


def import_(
    file: Annotated[Path, Argument(metavar="FILE", help="What `firstclick export` wrote.")],
    store: StoreOption = OWN_STORE,
    name: Annotated[
        str | None, Option("--name", metavar="NAME", help="Name of the model; by default its own.")
    ] = None,
    relearn: Annotated[
        bool,
        Option("--relearn", help="Learn its slates again, if another version of its policy learned them."),
    ] = False,
) -> None:
    """Put an exported model into a store, which no server has open if it is an SQLite file.

    A running server takes it by `POST /v1/models/NAME/import`.

    \b
    Example:
      firstclick import shop.model --store postgresql://user@host/shops
    """
    from firstclick.serve.config import shown_store
    from firstclick.serve.model.export import exported_name, import_model

    with reading(file):
        content = file.read_bytes()
    chosen = name or exported_name(content)
    with opened(store, read_only=False) as there:
        stored = import_model(there, chosen, content, relearn=relearn)
    talk.print(f"{stored.name}: {stored.head:,} events are in {shown_store(store)}")


def relearn(
    model: ModelArgument,
    name: Annotated[str, Option("--name", metavar="NAME", help="Name of the new model.")],
    store: StoreOption = OWN_STORE,
) -> None:
    """Start a new model from the log of another: the same items and slates, learned by this version.

    For a model that another version of its policy has learned, which this firstclick does not serve. The old
    model stays as it is; clicks for slates that it has shown and not heard of yet are lost. No server may
    have the store open if it is an SQLite file.

    \b
    Example:
      firstclick relearn shop --name shop-2 --store shop.db
    """
    from firstclick.serve.model.export import relearn as relearned

    with opened(store) as there:
        find_model(there, model)
    with opened(store, read_only=False) as there:
        stored = relearned(there, find_model(there, model), name)
    talk.print(f"{stored.name}: a new model with the {stored.head:,} events of {model}")


def log(
    model: ModelArgument,
    store: StoreOption = OWN_STORE,
    after: Annotated[int, count("Only events after this one.")] = 0,
    last: Annotated[int, count("Only the last N events.")] = 0,
    kind: Annotated[
        str | None, Option("--kind", metavar="KIND", help=f"Only one kind: {', '.join(KINDS)}.")
    ] = None,
    out: Annotated[
        Path | None,
        Option("--out", metavar="FILE", help="File to write, .jsonl or .parquet, instead of stdout."),
    ] = None,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace a file that is there.")] = False,
) -> None:
    """Print a model's events as JSON lines, or write them as JSON lines or Parquet.

    Clicks are positions from 0: `click` is the first, `clicks` are all where there are several. Features are
    as they were sent, but for rounding. Works beside a running server.

    \b
    Examples:
      firstclick log shop --store shop.db --last 5
      firstclick log shop --store shop.db --kind feedback --out clicks.parquet
    """
    from firstclick.serve.log.events import Event, Kind, Words, as_json
    from firstclick.serve.model.catalog_state import CatalogState
    from firstclick.serve.model.replay import changes_in, created_in

    if kind is not None and kind not in KINDS:
        raise InvalidInput(f"--kind must be one of {', '.join(KINDS)}, got {kind!r}")
    if out is not None:
        if out.suffix not in (".jsonl", ".parquet"):
            raise InvalidInput(f"--out {out} must end in .jsonl or .parquet")
        refuse_existing(out, overwrite=overwrite)
    wanted = None if kind is None else Kind[kind.upper().replace("-", "_")]
    with opened(store) as there:
        stored = find_model(there, model)
        catalog = CatalogState.after(changes_in(there, stored, 0)).catalog
        # A plug-in that is not installed here was asked when its log was written.
        policy = policy_classes().get(created_in(there, stored).policy)
        words = Words(
            catalog.items,
            catalog.encoder.inputs if catalog.encoder else (),
            catalog.scale,
            getattr(policy, "wants_all_clicks", False),
        )
        feedback = wanted is None or wanted == Kind.FEEDBACK
        events = chain.from_iterable(there.events(stored.id, after, stored.head, feedback=feedback))
        chosen: Iterator[Event] = (event for event in events if wanted is None or event.kind == wanted)
        if last:
            chosen = iter(deque(chosen, maxlen=last))
        told = (as_json(event, words) for event in chosen)
        if out is not None and out.suffix == ".parquet":
            _write_parquet(told, out)
            talk.print(f"{out} is written")
            return
        lines = (json_module.dumps(line, ensure_ascii=False) + "\n" for line in told)
        if out is None:
            sys.stdout.writelines(lines)
        else:
            write_whole(out, "".join(lines).encode())
            talk.print(f"{out} is written")


def _write_parquet(events: Iterator[dict[str, Any]], out: Path) -> None:
    """One row an event; what is not feedback has its words in the column `change`, as JSON."""
    from firstclick.files.parquet import write_parquet

    columns = {
        "seq": "BIGINT", "kind": "VARCHAR", "received": "DOUBLE", "nonce": "VARCHAR", "click": "SMALLINT",
        "issued": "DOUBLE", "items": "VARCHAR[]", "clicks": "SMALLINT[]", "examined": "SMALLINT",
        "context": "DOUBLE[]", "features": "DOUBLE[][]", "encoded_features": "DOUBLE[][]", "to": "BIGINT",
        "drawn_from": "BIGINT", "build": "SMALLINT", "k": "SMALLINT", "candidates": "VARCHAR[]",
        "candidates_list": "VARCHAR", "exclude": "VARCHAR[]", "exclude_list": "VARCHAR", "pinned": "VARCHAR",
        "at_most": "VARCHAR", "explored": "BOOLEAN", "explore": "DOUBLE", "explore_propensities": "DOUBLE[]",
        "not_evaluable": "VARCHAR", "change": "VARCHAR",
    }  # fmt: skip
    write_parquet(out, columns, map(_flat, events))


def _flat(told: dict[str, Any]) -> dict[str, Any]:
    if told["kind"] == "feedback":
        flat = told | {"items": [str(item) for item in told["items"]]}
        for word in ("candidates", "exclude"):
            if isinstance(told.get(word), str):
                flat[f"{word}_list"] = flat.pop(word)
            elif word in told:
                flat[word] = [str(item) for item in told[word]]
        for word in ("pinned", "at_most"):
            if word in told:
                flat[word] = json_module.dumps(told[word], ensure_ascii=False)
        return flat
    flat = {name: told[name] for name in ("seq", "kind", "received", "nonce", "to") if name in told}
    change = {name: value for name, value in told.items() if name not in flat}
    return flat | {"change": json_module.dumps(change, ensure_ascii=False)}


def refuse_existing(path: Path, *, overwrite: bool) -> None:
    """A file that is there is not replaced by accident."""
    if path.is_dir():
        raise InvalidInput(f"--out {path} is a folder; name a file in it")
    if path.exists() and not overwrite:
        raise InvalidInput(f"--out {path} is there already; name a new file, or say --overwrite")
