"""`firstclick audit`, `log`, `export` and `import`: what a store holds, seen from outside the server."""

import json as json_module
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
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
    from firstclick.catalog.catalog import Catalog
    from firstclick.serve.log.events import Created, Event, Words
    from firstclick.serve.model.explained import ExplainedSlates
    from firstclick.serve.model.replay import Log
    from firstclick.serve.model.slates import SlateAudit
    from firstclick.serve.store.store import Base, Store, StoredModel

StoreOption = Annotated[
    str,
    Option(
        "--store",
        metavar="STORE",
        envvar="FIRSTCLICK_STORE",
        show_envvar=False,
        help="SQLite file, or postgresql://...; or set FIRSTCLICK_STORE.",
    ),
]
ArchiveOption = Annotated[
    list[Path] | None,
    Option(
        "--archive", metavar="FILE", help="File that `firstclick archive` wrote for this model; repeatable."
    ),
]
ModelArgument = Annotated[str, Argument(metavar="MODEL", help="Name of the model.")]
OWN_STORE = "firstclick.db"
KINDS = (
    "created", "feedback", "items-put", "items-changed", "items-withdrawn", "availability", "rolled-back",
    "build", "list-put", "list-removed", "settings", "baseline", "trial-started", "trial-shares",
    "trial-stopped", "correction", "recommended", "copied",
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


@contextmanager
def log_of(store: "Store", stored: "StoredModel", archive: list[Path] | None) -> Iterator["Log"]:
    """The model's log: the store, with the files that events of it were archived in."""
    from firstclick.serve.model.archive import ArchivedLog, opened_archives

    with opened_archives(archive or []) as files:
        yield ArchivedLog(store, stored, files) if files else store


def audit(
    model: Annotated[str | None, Argument(metavar="[MODEL]", help="Only this model.")] = None,
    store: StoreOption = OWN_STORE,
    archive: ArchiveOption = None,
    slates: Annotated[
        bool, Option("--slates", help="Also draw every slate again from what the log says, and compare.")
    ] = False,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Replay every log from its first event and compare the result with the snapshots, bit for bit.

    Also checks the store for damage, gaps and feedback counted twice. Works while a server is running. The
    exit code is 1 if anything differs. `GET /v1/models/MODEL/audit` compares with what a server serves now.
    An archived log is replayed from the end of the archive, or from its first event with --archive.

    \b
    Examples:
      firstclick audit --store shop.db
      firstclick audit --slates --store shop.db
      firstclick audit shop --store shop.db --archive shop-2026.archive
    """
    if archive and model is None:
        raise InvalidInput("--archive is of one model; name it: firstclick audit MODEL --archive FILE")
    from firstclick.serve.model.audit import audit_stored
    from firstclick.serve.model.slates import SlateAudit, audit_slates

    with opened(store) as there:
        wrong = there.check()
        audits = []
        drawn: list[SlateAudit] = []
        for stored in [find_model(there, model)] if model else there.models():
            with progress_bar() as progress, log_of(there, stored, archive) as whole:
                folding = progress.doing(f"folding {stored.name}")
                audits.append(audit_stored(there, stored, folding, log=whole))
                if slates and audits[-1].digest:
                    drawing = progress.doing(f"drawing {stored.name}")
                    drawn.append(audit_slates(whole, stored, drawing))
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
            since = f" (folded from the archive's end, event {one.start:,})" if one.start > 1 else ""
            out.print(f"{one.name}: {found}, {one.seq:,} events{since}, SHA-256 {one.digest}")
        for redrawn in drawn:
            out.print(f"{redrawn.name}: {_slates_in_words(redrawn)}")
        out.print("storage: " + ("sound" if not wrong else "DAMAGED"))
    problems = [*wrong, *(f"{one.name}: {sentence}" for one in audits for sentence in one.differing)]
    problems += [f"{redrawn.name}: {sentence}" for redrawn in drawn for sentence in redrawn.told]
    if problems:
        raise WorkFailed("; ".join(problems))


def _slates_in_words(audit: "SlateAudit") -> str:
    told = f"{audit.equal:,} slates drawn again equal, {audit.differing:,} differ"
    if audit.by_origin:
        told += "".join(f", {n:,} of them of {model}" for model, n in audit.by_origin.items())
    if audit.other_build:
        told += f", {audit.other_build:,} differ and were made by another build"
    reasons = "; ".join(f"{n:,} {reason}" for reason, n in audit.not_evaluable.items())
    return told + (f", {sum(audit.not_evaluable.values()):,} not evaluable ({reasons})" if reasons else "")


def export(
    model: ModelArgument,
    out: Annotated[Path, Option("--out", metavar="FILE", help="File to write.")],
    store: StoreOption = OWN_STORE,
    archive: ArchiveOption = None,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Write a model's whole log to one file, for `firstclick import`. Works while a server is running.

    \b
    Example:
      firstclick export shop --store shop.db --out shop.model
    """
    from firstclick.serve.model.export import export_model

    refuse_existing(out, overwrite=overwrite)
    with opened(store) as there:
        stored = find_model(there, model)
        with log_of(there, stored, archive) as whole:
            write_whole(out, export_model(whole, stored))
    talk.print(f"{model}: {stored.head:,} events written to {out}")


def import_(
    file: Annotated[Path, Argument(metavar="FILE", help="File that `firstclick export` wrote.")],
    store: StoreOption = OWN_STORE,
    name: Annotated[
        str | None,
        Option("--name", metavar="NAME", help="Name of the model; by default the one in the file."),
    ] = None,
    relearn: Annotated[
        bool,
        Option("--relearn", help="Learn its slates again if another version of its policy learned them."),
    ] = False,
) -> None:
    """Import a model into a store. An SQLite file must not be open in a server.

    To import into a running server: `POST /v1/models/NAME/import`.

    \b
    Example:
      firstclick import shop.model --store postgresql://user@host/shops
    """
    from firstclick.serve.config import shown_store
    from firstclick.serve.log.model_file import ModelFile
    from firstclick.serve.model.export import import_model

    with ExitStack() as stack:
        with reading(file):
            exported = ModelFile(stack.enter_context(file.open("rb")))
        there = stack.enter_context(opened(store, read_only=False))
        told = stack.enter_context(progress_bar()).doing(f"importing {file.name}")
        stored = import_model(there, name or exported.name, exported, relearn=relearn, progress=told)
    talk.print(f"{stored.name}: {stored.head:,} events are in {shown_store(store)}")


def log(
    model: ModelArgument,
    store: StoreOption = OWN_STORE,
    archive: ArchiveOption = None,
    after: Annotated[int, count("Only events after this one.")] = 0,
    last: Annotated[int, count("Only the last N events.")] = 0,
    kind: Annotated[
        str | None, Option("--kind", metavar="KIND", help=f"Only one kind: {', '.join(KINDS)}.")
    ] = None,
    out: Annotated[
        Path | None,
        Option("--out", metavar="FILE", help="File to write, .jsonl or .parquet, instead of stdout."),
    ] = None,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace an existing file.")] = False,
    explain: Annotated[
        bool,
        Option(
            "--explain",
            help="Also say of each item whether the policy would have shown it without exploring.",
        ),
    ] = False,
) -> None:
    """Print a model's events as JSON lines, or write them as JSON lines or Parquet.

    Clicks are positions from 0: `click` is the first; `clicks` lists all if there are several. Features are
    printed as they were sent, up to rounding. In a fork, `origin` names the model that an event comes from.
    Works while a server is running. Archived events are left out unless --archive names their files.

    --explain replays the log, from a snapshot if there is one, and looks at each slate where it was drawn.
    `without_exploring` is null if unknown; a note says why. This takes about 50 bytes of memory per slate:
    use --last or --after for a part of a long log.

    \b
    Examples:
      firstclick log shop --store shop.db --last 5
      firstclick log shop --store shop.db --last 5 --explain
      firstclick log shop --store shop.db --kind feedback --out clicks.parquet
    """
    from firstclick.serve.log.copies import drawn_by, seen_by
    from firstclick.serve.log.events import Event, Kind, as_json
    from firstclick.serve.model.catalog_state import CatalogState
    from firstclick.serve.model.explained import ExplainedSlates
    from firstclick.serve.model.replay import changes_in, created_in

    if kind is not None and kind not in KINDS:
        raise InvalidInput(f"--kind must be one of {', '.join(KINDS)}, got {kind!r}")
    if explain and kind not in (None, "feedback"):
        raise InvalidInput(
            f"--explain is of feedback; leave --kind out, or say --kind feedback, got {kind!r}"
        )
    if out is not None:
        if out.suffix not in (".jsonl", ".parquet"):
            raise InvalidInput(f"--out {out} must end in .jsonl or .parquet")
        refuse_existing(out, overwrite=overwrite)
    wanted = None if kind is None else Kind[kind.upper().replace("-", "_")]
    with ExitStack() as stack:
        there = stack.enter_context(opened(store))
        stored = find_model(there, model)
        whole = stack.enter_context(log_of(there, stored, archive))
        created, base = created_in(whole, stored), whole.base(stored.id)
        begins = 1 if base is None else base.seq
        catalog = CatalogState.after(
            created, lambda: changes_in(whole, stored, begins), base.content if base else b""
        ).catalog
        feedback = wanted is None or wanted == Kind.FEEDBACK
        if last and wanted is None:
            after = max(after, stored.head - last)
        if after < begins - 1:
            talk.print(
                f"note: the log begins at event {begins:,}: events 2 to {begins - 1:,} are archived; name "
                "their file by --archive to see them"
            )
        events = chain.from_iterable(
            chain(
                whole.events(stored.id, after, 1),
                # What is below the base is on its way out.
                whole.events(stored.id, max(after, begins - 1, 1), stored.head, feedback=feedback),
            )
        )

        def as_drawn(event: Event) -> tuple[Event, int | None]:
            """An event that was copied as it is in the log that it comes from, and whose that is."""
            place = drawn_by(created, event.seq) if event.seq > 1 else None
            return event if place is None else seen_by(event, place, created), place

        arms = _arms((as_drawn(event)[0] for event in changes_in(whole, stored, begins)), base)
        words = _words(created, catalog, arms)
        of_origins = [_words(origin.created, catalog, arms) for origin in created.origins]
        chosen: Iterator[tuple[Event, int | None]] = (
            pair for pair in map(as_drawn, events) if wanted is None or pair[0].kind == wanted
        )
        if last:
            those = deque(chosen, maxlen=last)
            if those:
                after = max(after, those[0][0].seq - 1)
            chosen = iter(those)
        explained = None
        if explain:
            with progress_bar() as progress:
                explained = ExplainedSlates(whole, stored, after, progress.doing(f"explaining {model}"))
            _tell_unexplained(explained)

        def in_words(event: Event, place: int | None) -> dict[str, Any]:
            told = as_json(event, words if place is None else of_origins[place])
            if explained is not None and event.kind == Kind.FEEDBACK:
                told["without_exploring"] = explained.of(event.seq)
            if place is None:
                return told
            origin = created.origins[place]
            whose = {"model": origin.model, "policy": origin.created.policy, "seq": event.seq}
            return told | {"origin": whose}

        told = (in_words(*pair) for pair in chosen)
        if out is not None and out.suffix == ".parquet":
            _write_parquet(told, out)
            talk.print(f"{out} is written")
            return
        lines = (json_module.dumps(line, ensure_ascii=False) + "\n" for line in told)
        if out is None:
            sys.stdout.writelines(lines)
        else:
            write_whole(out, (line.encode() for line in lines))
            talk.print(f"{out} is written")


def _arms(changes: Iterable["Event"], base: "Base | None") -> dict[int, list[str]]:
    """The names of the arms of each trial, by its id: of those that began in these events, and of the last
    one before."""
    import msgspec

    from firstclick.serve.log.events import Kind, TrialStarted, unpacked
    from firstclick.serve.log.snapshot import read_snapshot

    started = [unpacked(event, TrialStarted) for event in changes if event.kind == Kind.TRIAL_STARTED]
    if base is not None and (before := read_snapshot(base.content)[0]["launch"]["trial"]):
        started.append(msgspec.convert(before["body"], TrialStarted))
    return {trial.id: [arm.name for arm in trial.arms] for trial in started}


def _tell_unexplained(explained: "ExplainedSlates") -> None:
    if explained.reasons:
        n = explained.reasons.total()
        why = "; ".join(f"{count:,} {reason}" for reason, count in sorted(explained.reasons.items()))
        talk.print(f"note: {n:,} of {n + len(explained):,} slates are not explained: {why}")


def _words(created: "Created", catalog: "Catalog", arms: Mapping[int, Sequence[str]]) -> "Words":
    """What it takes to tell the events of a model with this creation."""
    from firstclick.catalog.feature_scale import FeatureScale
    from firstclick.serve.log.events import Words

    # A plug-in that is not installed here was asked when its log was written.
    policy = policy_classes().get(created.policy)
    return Words(
        catalog.items,
        catalog.encoder.inputs if catalog.encoder else (),
        FeatureScale.from_json(created.feature_scale) if created.feature_scale else None,
        getattr(policy, "wants_all_clicks", False),
        arms,
    )


def _write_parquet(events: Iterator[dict[str, Any]], out: Path) -> None:
    """One row an event; what is no feedback and no correction of some has its words in the column `change`,
    as JSON."""
    from firstclick.files.parquet import write_parquet

    columns = {
        "seq": "BIGINT", "kind": "VARCHAR", "received": "DOUBLE", "nonce": "VARCHAR", "click": "SMALLINT",
        "issued": "DOUBLE", "items": "VARCHAR[]", "clicks": "SMALLINT[]", "examined": "SMALLINT",
        "context": "DOUBLE[]", "features": "DOUBLE[][]", "encoded_features": "DOUBLE[][]", "to": "BIGINT",
        "drawn_from": "BIGINT", "build": "SMALLINT", "k": "SMALLINT", "candidates": "VARCHAR[]",
        "candidates_list": "VARCHAR", "exclude": "VARCHAR[]", "exclude_list": "VARCHAR", "pinned": "VARCHAR",
        "at_most": "VARCHAR", "explored": "BOOLEAN", "explore": "DOUBLE", "explore_propensities": "DOUBLE[]",
        "choice": "VARCHAR", "policy_share": "DOUBLE", "reasons": "VARCHAR[]",
        "without_exploring": "BOOLEAN[]", "trial": "BIGINT", "period": "INTEGER", "arm": "SMALLINT",
        "arm_name": "VARCHAR", "bucket": "SMALLINT", "timed_out": "DOUBLE", "corrects": "BIGINT",
        "not_evaluable": "VARCHAR", "unreadable": "VARCHAR", "change": "VARCHAR", "origin": "VARCHAR",
    }  # fmt: skip
    write_parquet(out, columns, map(_flat, events))


def _flat(told: dict[str, Any]) -> dict[str, Any]:
    if "origin" in told:
        told = told | {"origin": json_module.dumps(told["origin"], ensure_ascii=False)}
    if told["kind"] in ("feedback", "correction"):
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
    flat = {name: told[name] for name in ("seq", "kind", "received", "nonce", "to", "origin") if name in told}
    change = {name: value for name, value in told.items() if name not in flat}
    return flat | {"change": json_module.dumps(change, ensure_ascii=False)}


def refuse_existing(path: Path, *, overwrite: bool) -> None:
    """A file that is there is not replaced by accident."""
    if path.is_dir():
        raise InvalidInput(f"--out {path} is a folder; name a file in it")
    if path.exists() and not overwrite:
        raise InvalidInput(f"--out {path} is there already; name a new file, or say --overwrite")
