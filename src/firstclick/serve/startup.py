"""What a server does before its first request: open the store, make the model or bring it up to date."""

from collections.abc import Collection

import numpy as np

from firstclick.catalog.feature_scale import note_of_small_columns
from firstclick.catalog.file import CatalogFile, read_catalog
from firstclick.catalog.item import Item
from firstclick.errors import InvalidInput
from firstclick.files.progress import Progress, silent
from firstclick.parameters import split_spec
from firstclick.policies.base import Policy
from firstclick.registry import make_policy
from firstclick.serve.config import Settings
from firstclick.serve.demo import demo_catalog
from firstclick.serve.model.model import Model
from firstclick.serve.model.new_events import items_changed
from firstclick.serve.service import Service
from firstclick.serve.store import open_store


def open_for(
    settings: Settings, progress: Progress = silent, given: Collection[str] = ("policy", "k")
) -> tuple[Service, list[str]]:
    """The service that the settings ask for, and what its owner should know.

    `given` names the settings that somebody chose. A model in the store keeps what nobody did.
    """
    store = open_store(settings.store, relaxed=settings.durability == "relaxed")
    try:
        service = Service(
            store,
            token_days=settings.token_days,
            max_batch=settings.max_batch,
            max_queue=settings.max_queue,
            snapshot_events=settings.snapshot_events,
            snapshot_seconds=settings.snapshot_seconds,
            poll_seconds=settings.poll_seconds,
            progress=progress,
        )
    except BaseException:
        store.close()
        raise
    try:
        notes = list(store.notes)
        notes += [f"model {name!r} is not served: {why}" for name, why in service.models.broken.items()]
        if settings.demo:
            notes += _follow(service, settings, demo_catalog(), given)
        elif settings.catalog is not None:
            notes += _follow(service, settings, read_catalog(settings.catalog), given)
    except BaseException:
        service.close()
        raise
    return service, notes


def _follow(service: Service, settings: Settings, file: CatalogFile, given: Collection[str]) -> list[str]:
    """Make the model of this catalog, or bring its items to what the file says now."""
    if settings.name in service.models.broken:
        return []  # Told already; other models are served.
    if settings.name not in service.names():
        service.create(
            settings.name,
            policy=settings.policy,
            k=settings.k,
            items=file.items,
            seed=settings.seed,
            feature_names=file.feature_names,
        )
        return _notes_of_size(file, make_policy(settings.policy))
    model = service.model(settings.name)
    _check_same(model, settings, given)
    listed = {item.id: item for item in file.items}
    # What was withdrawn while the server ran stays withdrawn: it may be a product that was recalled.
    withdrawn = {item for item in listed if item in model.items.names and not model.items.is_shown(item)}
    changed = [item for item in file.items if item.id not in withdrawn and _differs(model, item)]
    others = [item for item in model.items.names if item not in listed and model.items.is_shown(item)]
    notes = []
    if changed:
        service.put_items(settings.name, changed)
        notes.append(f"{len(changed)} of {len(listed)} items of the catalog are new or changed, and were put")
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
    return notes


def _notes_of_size(file: CatalogFile, policy: Policy) -> list[str]:
    """What to say of features whose units are of very different size, if the policy minds units."""
    if not file.feature_names or policy.scales_features:
        return []
    small = note_of_small_columns(file.feature_names, np.array([item.features for item in file.items]))
    return [small] if small else []


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


def _differs(model: Model, item: Item) -> bool:
    if item.id not in model.items.names:
        return True
    if (item.name, item.group) != (model.items.names[item.id], model.items.group(item.id)):
        return True
    row = model.catalog.row_of(item.id)
    features = model.catalog.features
    learned = items_changed(model, [item]).table()
    return learned is not None and not np.array_equal(learned[0], features[row])  # type: ignore[index]
