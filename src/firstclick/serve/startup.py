"""What a server does before its first request: open the store, make the model or bring it up to date."""

import hashlib
import json
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.catalog import Catalog
from firstclick.catalog.describe import short_description
from firstclick.catalog.file import CatalogFile, read_catalog
from firstclick.catalog.ids import ItemId
from firstclick.catalog.item import Features, Item
from firstclick.catalog.list_file import read_list
from firstclick.click_models.click_fit import ClickFit, load_click_fit
from firstclick.errors import InvalidInput
from firstclick.files.progress import Progress, silent
from firstclick.not_given import NOT_GIVEN, NotGiven
from firstclick.online.baseline import check_baseline
from firstclick.online.log_file import mark_of, read_log
from firstclick.parameters import split_spec
from firstclick.registry import make_policy
from firstclick.serve.config import Settings
from firstclick.serve.demo import demo_catalog, start_beside_the_list
from firstclick.serve.log.tuning import DEFAULT, Tuning
from firstclick.serve.model.model import Model
from firstclick.serve.model.new_events import items_changed
from firstclick.serve.service import Service, open_service
from firstclick.wire.errors import Conflict, Refused


class Opened(NamedTuple):
    """A service, what became of its catalog, and what its owner should know."""

    service: Service
    catalog: list[str]
    notes: list[str]


def open_for(
    settings: Settings,
    progress: Progress = silent,
    given: Collection[str] = ("policy", "k"),
    check: Callable[[Service], object] = lambda service: None,
    *,
    tuning: Tuning = DEFAULT,
) -> Opened:
    """The service that the settings ask for.

    `given` names the settings that somebody chose. A model in the store keeps what nobody did. `check` is
    called before models are made or changed, and may refuse.
    """
    service = open_service(
        settings.store,
        relaxed=settings.durability == "relaxed",
        tuning=tuning,
        token_days=settings.token_days,
        max_batch=settings.max_batch,
        max_queue=settings.max_queue,
        snapshot_events=settings.snapshot_events,
        snapshot_seconds=settings.snapshot_seconds,
        poll_seconds=settings.poll_seconds,
        progress=progress,
    )
    try:
        check(service)
        catalog: list[str] = []
        notes = list(service.store.notes)
        notes += [f"model {name!r} is not served: {why}" for name, why in service.models.broken.items()]
        if settings.demo:
            is_new = settings.name not in service.names()
            catalog = _follow(service, settings, demo_catalog(), given, notes)
            if is_new and settings.baseline is None:
                notes += start_beside_the_list(service, settings.name, settings.max_loss)
        elif settings.catalog is not None:
            catalog = _follow(service, settings, _read(settings), given, notes)
        notes += _warm_start(service, settings, progress)
        notes += _baseline(service, settings, given)
        notes += _exploration(service, settings, given)
        notes += _no_click_after(service, settings, given)
    except BaseException:
        service.close()
        raise
    return Opened(service, catalog, notes)


def _exploration(service: Service, settings: Settings, given: Collection[str]) -> list[str]:
    """Explore as much as was asked for; what to know of it."""
    if settings.name not in service.names():
        return []
    model = service.model(settings.name)
    if "explore" in given and settings.explore != model.explorer.share:
        service.set_explore(settings.name, settings.explore)
        return [f"model {settings.name!r} draws {settings.explore:.3g} of its slates uniformly from now on"]
    if model.explorer.share or model.engine.policy.draws:
        return []
    return [
        f"{model.engine.policy.name} draws nothing at random but ties, so its log cannot tell what another "
        "policy would have earned; --explore 0.05 draws 5 % of slates uniformly among all items"
    ]


def _warm_start(service: Service, settings: Settings, progress: Progress) -> list[str]:
    """Learn from the log, unless the model had one before; what to know of it."""
    if settings.warm_start is None or settings.name not in service.names():
        return []
    model, file, mark = service.model(settings.name), settings.warm_start, mark_of(settings.warm_start)
    if mark in model.warm_starts:
        return []
    if any(model.warm_starts):
        return [
            f"{file} was not learned: model {settings.name!r} has learned from another log, or from this one "
            f"before it was changed; send what is new to POST /v1/models/{settings.name}/warm-start"
        ]
    try:
        log = load_click_fit(file) if file.suffix == ".npz" else read_log(file, progress)
        _, used = service.warm_start(settings.name, log, file_mark=mark)
    except Refused as refusal:
        raise InvalidInput(f"{file}: {refusal}") from None
    what = "items of the click model" if isinstance(log, ClickFit) else "slates of"
    return [f"model {settings.name!r} has learned from {used:,} {what} {file}"]


def _baseline(service: Service, settings: Settings, given: Collection[str]) -> list[str]:
    """Take the list of the file, unless it was taken before; what to know of it."""
    if settings.name not in service.names():
        return []
    model = service.model(settings.name)
    launch, notes = model.launch, []
    if settings.baseline is not None:
        items = read_list(settings.baseline, model.catalog)
        # A list that was changed over HTTP since is newer than a file that stayed as it was.
        mark = hashlib.blake2b(json.dumps(items).encode(), digest_size=8).hexdigest()
        try:
            if launch.file_mark != mark:
                service.set_baseline(settings.name, items, settings.max_loss, file_mark=mark)
        except Conflict as refusal:
            notes.append(f"the list of {settings.baseline} is not taken: {refusal}")
        if not notes and launch.baseline is not None and list(launch.baseline.items) != items:
            notes.append(
                f"the list of {settings.baseline} is not taken: it was taken before, and another one was "
                "sent since"
            )
    baseline = launch.baseline
    if baseline is None:
        return notes
    if "max_loss" in given and settings.max_loss != baseline.floor.max_loss:
        service.set_baseline(settings.name, baseline.items, settings.max_loss, file_mark=launch.file_mark)
        baseline = launch.baseline
        assert baseline is not None
    told = f"the baseline has {len(baseline.items)} items, the first is {baseline.items[0]!r}"
    if (loss := baseline.floor.max_loss) < 1:
        told += (
            "; the policy decides few slates at first, and more as clicks show that it is better: expected "
            f"clicks stay at least {1 - loss:.0%} of the baseline's, if its click "
            "rate is constant and pages are reported (docs/guide/launching.md)"
        )
    return [*notes, told]


def _no_click_after(service: Service, settings: Settings, given: Collection[str]) -> list[str]:
    """Wait for the outcome of slates as long as was asked for; what to know of it."""
    if settings.name not in service.names() or "no_click_after" not in given:
        return []
    model, wait = service.model(settings.name), settings.no_click_after
    if wait == model.no_click_after:
        return []
    service.set_no_click_after(settings.name, wait)
    if not wait:
        return [f"slates of model {settings.name!r} that nobody reports teach nothing from now on"]
    return [
        f"slates of model {settings.name!r} that nobody reports within {wait:g} s have no click from now on"
    ]


def _read(settings: Settings) -> CatalogFile:
    """Read the catalog file."""
    assert settings.catalog is not None
    return read_catalog(
        settings.catalog, id=settings.id, ignore=settings.ignore, category=settings.category,
        number=settings.number, embedding=settings.embedding, encoding=settings.encoding,
    )  # fmt: skip


def _follow(
    service: Service, settings: Settings, file: CatalogFile, given: Collection[str], notes: list[str]
) -> list[str]:
    """Make the model of this catalog, or bring its items to what the file says now. Adds to the notes, and
    tells what became of the catalog."""
    if settings.name in service.models.broken:
        return []  # Told already; other models are served.
    notes += file.notes
    if settings.name not in service.names():
        if settings.baseline is not None:  # checked first: a wrong list leaves no model behind
            catalog = Catalog(file.ids)
            check_baseline(
                read_list(settings.baseline, catalog), catalog, settings.k, make_policy(settings.policy)
            )
        try:
            return _create(service, settings, file)
        except Conflict:
            # Another process was quicker, with this file or with another.
            stored = next(one for one in service.store.models() if one.name == settings.name)
            service.models.take_up(stored)
            model = service.model(settings.name)
            _check_same(model, settings, given)
            if differences := _differences(model, file):
                notes.append(
                    f"another process has just made model {settings.name!r} of another catalog: "
                    f"{', '.join(differences)}; the stored one is served"
                )
            return []
    model = service.model(settings.name)
    _check_same(model, settings, given)
    # What was withdrawn while the server ran stays withdrawn: it may be a product that was recalled.
    known, listed = model.items.names, set(file.ids)
    if listed.isdisjoint(known):
        raise InvalidInput(
            f"no item of {file.name} is in model {settings.name!r}: its ids are like {next(iter(known))!r}, "
            f"those of the file like {file.ids[0]!r}; say --id COLUMN, or --name for another model"
        )
    withdrawn = {item for item in listed if item in known and not model.catalog.has(item)}
    changed = [(item, mark) for item, mark in _changed(model, file) if item.id not in withdrawn]
    others = _not_in(model, file)
    new, gone = _other_columns(model, file)
    if changed:
        items, marks = zip(*changed, strict=True)
        service.put_items(settings.name, items, file_marks=marks)
        notes.append(f"{len(changed)} of {len(listed)} items of the catalog are new or changed, and were put")
    if options := [f"--{name}" for name in ("ignore", "category", "number", "embedding") if name in given]:
        notes.append(
            f"{', '.join(options)}: model {settings.name!r} keeps what was decided when it was made; say "
            "--name for a new one"
        )
    notes += model.items.oddities.sentences()
    notes += [
        f"column {name!r} of the catalog is not learned, because model {settings.name!r} was made without "
        "it; say --name for a new model that learns it"
        for name in new
    ]
    notes += [
        f"the catalog has no column {name!r} any more; items keep what they have there" for name in gone
    ]
    if withdrawn:
        notes.append(
            f"{len(withdrawn)} items of the catalog were withdrawn and stay so; put what you want back by "
            f"PUT /v1/models/{settings.name}/items/ID"
        )
    if others:
        notes.append(
            f"{len(others)} items of model {settings.name!r} are not in the catalog file and stay, "
            f"{others[0]!r} for one; withdraw what you do not want by DELETE "
            f"/v1/models/{settings.name}/items/ID"
        )
    return []


def _create(service: Service, settings: Settings, file: CatalogFile) -> list[str]:
    encoder = file.encoder(unscaled=make_policy(settings.policy).unit_features)
    items = _items(file, encoder.inputs)
    service.create(
        settings.name,
        policy=settings.policy,
        k=settings.k,
        items=items,
        seed=settings.seed,
        encoder=encoder,
        file_marks=[_mark(item) for item in items],
        explore=settings.explore,
        no_click_after=settings.no_click_after,
    )
    return short_description(encoder, file, "" if settings.demo else str(settings.catalog))


def _items(file: CatalogFile, inputs: Collection[str]) -> list[Item]:
    """The items of the file with the columns that a model takes."""
    there = [name for name in inputs if name in file.columns]
    cells = zip(*(file.columns[name] for name in there), strict=True) if there else ((),) * len(file.ids)
    return _with_words(file, [dict(zip(there, values, strict=True)) for values in cells])


def _with_words(file: CatalogFile, features: Sequence[Features | NotGiven | None]) -> list[Item]:
    """The items of the file with these features; nothing is said of what the file does not have."""
    said = {decision.kind for decision in file.chosen}
    return [
        Item(
            item,
            name if "name" in said else NOT_GIVEN,
            group if "group" in said else NOT_GIVEN,
            values,
            NOT_GIVEN if available is None else available,
        )
        for item, name, group, available, values in zip(
            file.ids, file.names, file.groups, file.available, features, strict=True
        )
    ]


def _differences(model: Model, file: CatalogFile) -> list[str]:
    """What differs between the file and a model that was just made."""
    told = []
    if changed := [item for item, _ in _changed(model, file) if _differs(model, item, None)]:
        told.append(f"{len(changed)} of {len(file.ids)} items differ")
    if others := _not_in(model, file):
        told.append(f"{len(others)} of its items {'is' if len(others) == 1 else 'are'} not in the file")
    new, gone = _other_columns(model, file)
    told += [f"it has no column {name!r}" for name in new]
    told += [f"the file has no column {name!r}" for name in gone]
    return told


def _not_in(model: Model, file: CatalogFile) -> list[ItemId]:
    """The items of the model that the file does not have."""
    listed = set(file.ids)
    return [item for item in model.items.names if item not in listed and model.catalog.has(item)]


def _other_columns(model: Model, file: CatalogFile) -> tuple[list[str], list[str]]:
    """Columns of the file that the model was made without, and columns of the model that the file lacks."""
    encoder = model.catalog.encoder
    if encoder is None:
        return [], []
    known = {*encoder.inputs, *(decision.name for decision in encoder.decisions)}
    new = [name for name in file.columns if name not in known]
    return new, [name for name in encoder.inputs if name not in file.columns]


def _changed(model: Model, file: CatalogFile) -> list[tuple[Item, str]]:
    """The items of the file that are new, or of which it says other things than last time; with their marks.

    What was changed over HTTP since is newer than a file that stayed as it was.
    """
    encoder, marks = model.catalog.encoder, model.items.file_marks
    if encoder is None:
        items = _with_words(file, [item.features for item in file.items])
    else:
        items = _items(file, encoder.inputs)
    found = [(item, _mark(item)) for item in items]
    unsure = [(item, mark) for item, mark in found if marks.get(item.id) != mark]
    # Of items that no file has put yet, the model itself says whether they differ.
    learned = None
    if encoder is None and any(item.id not in marks for item, _ in unsure):
        learned = items_changed(model, [item for item, _ in unsure]).table()
    return [
        (item, mark)
        for place, (item, mark) in enumerate(unsure)
        if item.id in marks or _differs(model, item, None if learned is None else learned[place])
    ]


def _mark(item: Item) -> str:
    """A hash of what a file says of an item."""
    said = [None if part is NOT_GIVEN else part for part in item[1:]]
    text = json.dumps(said, default=lambda part: np.asarray(part).tolist())
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _differs(model: Model, item: Item, learned: NDArray[np.float64] | None) -> bool:
    catalog = model.catalog
    row = catalog.row_of(item.id)
    if row is None:
        return True
    held: dict[str, Any] = {
        "name": model.items.names[item.id],
        "group": model.items.group(item.id),
        "available": item.id not in catalog.unavailable,
    }
    if any(getattr(item, word) not in (NOT_GIVEN, value) for word, value in held.items()):
        return True
    if catalog.encoder is None:
        return learned is not None and not np.array_equal(learned, catalog.table[row])
    own = dict(zip(catalog.encoder.inputs, catalog.values[item.id], strict=True))
    # As they are stored, for 3.0 in a file may be 3 there.
    ((now,), (then,)) = (
        catalog.encoder.values_of({name: [value] for name, value in values.items()}, 1)
        for values in ({**own, **item.features}, own)  # type: ignore[dict-item]
    )
    return now != then


def _check_same(model: Model, settings: Settings, given: Collection[str]) -> None:
    name, parameters = split_spec(settings.policy)
    asked, stored = make_policy(settings.policy), model.engine.policy
    # Parameters that are not named were stored with the model: a default of today says nothing of them.
    same = name == stored.name and all(asked.settings[one] == stored.settings[one] for one in parameters)
    policy = stored.label if same else asked.label
    for word, now, then in (("policy", policy, stored.label), ("k", settings.k, model.k)):
        if now != then and word in given:
            raise InvalidInput(
                f"model {model.name!r} is in the store with {word} {then}, and {word} {now} is asked for; "
                f"say --{word} {then}, or --name for another model"
            )
