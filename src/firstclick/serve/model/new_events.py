"""New events from what people send: a model, items put or withdrawn; checked before anything is written."""

import re
import secrets
from collections.abc import Container, Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.feature_scale import FeatureScale
from firstclick.catalog.features import check_features, typical_row
from firstclick.catalog.ids import ItemId, item_ids
from firstclick.catalog.item import Item
from firstclick.online.engine import scale_for
from firstclick.online.random_key import new_key
from firstclick.policies.base import Policy
from firstclick.registry import make_policy
from firstclick.serve.log.events import Created, ItemsPut
from firstclick.serve.model.model import Model
from firstclick.validation.quoting import quoted
from firstclick.validation.whole_number import whole_number
from firstclick.wire.errors import Malformed, Unknown, refusing
from firstclick.wire.limits import (
    LARGEST_ID,
    LONGEST_ID,
    LONGEST_NAME,
    MOST_CONTEXT,
    MOST_FEATURES,
    MOST_ROWS,
)

# The features of each item; None for an item without.
Rows = list[NDArray[np.float64] | None]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_name(name: object) -> None:
    """A model's name is part of addresses and files."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Malformed(
            "a model's name must be 1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or "
            f"digit, got {quoted(name)}"
        )


def check_context_size(policy: Policy) -> None:
    """A context goes out with each token and comes back with it."""
    if policy.n_context > MOST_CONTEXT:
        raise Malformed(
            f"{policy.label}: a context may have {MOST_CONTEXT} numbers here, got {policy.n_context}"
        )


def check_items(items: Sequence[Item], n_features: int | None = None, *, cold: bool = False) -> Rows:
    """The features of the items, each this many (None: as many as the first has), or Malformed.

    `cold` lets items pass that come without features where others have some.
    """
    if not items:
        raise Malformed("no items given; give at least one")
    seen: set[str | int] = set()
    for item in items:
        _check_words(item)
        if item.id in seen:
            raise Malformed(f"item {item.id!r} is given twice")
        seen.add(item.id)
    given = [item for item in items if item.features is not None] if cold else items
    first = given[0].features if given else None
    wanted = (0 if first is None else len(first)) if n_features is None else n_features
    for item in given:
        size = 0 if item.features is None else len(item.features)
        if size != wanted:
            has = f"{wanted} features" if wanted else "no features"
            way_out = "; a model with other features is a new model" if n_features is not None else ""
            raise Malformed(f"item {item.id!r}: every item must have {has}, got {size}{way_out}")
    if wanted > MOST_FEATURES:
        raise Malformed(f"an item may have {MOST_FEATURES} features, got {wanted}")
    if not (wanted and given):
        return [item.features for item in items]
    table: Any = [item.features for item in given]
    with refusing:
        rows = iter(check_features(table, len(given)))
    return [None if item.features is None else next(rows) for item in items]


def _check_words(item: Item) -> None:
    if not isinstance(item, Item):
        raise Malformed(f"an item must be an Item(id, name, group, features), got {quoted(item)}")
    if isinstance(item.id, str):
        if not 1 <= len(item.id) <= LONGEST_ID:
            raise Malformed(f"an item id must have 1 to {LONGEST_ID} characters, got {len(item.id)}")
    elif type(item.id) is not int or abs(item.id) > LARGEST_ID:
        raise Malformed(
            f"an item id must be a text, or a whole number of at most 2^53 in size, got {quoted(item.id)}"
        )
    if item.features is not None and not _is_list(item.features):
        raise Malformed(f"item {item.id!r}: features must be a list of numbers, got {quoted(item.features)}")
    for word, text in (("name", item.name), ("group", item.group), ("id", str(item.id))):
        if not isinstance(text, str):
            raise Malformed(f"item {item.id!r}: {word} must be a text, got {quoted(text)}")
        if len(text) > LONGEST_NAME:
            raise Malformed(
                f"item {item.id!r}: {word} must have at most {LONGEST_NAME} characters, got {len(text)}"
            )
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise Malformed(f"item {item.id!r}: {word} holds half a character (a lone surrogate)")


def _is_list(features: object) -> bool:
    """Whether it has one dimension; what the numbers are, is looked at with those of all items."""
    try:
        return np.ndim(features) == 1  # type: ignore[arg-type]
    except ValueError:  # lists of different lengths
        return False


def model_seed(seed: SupportsIndex) -> int:
    """The seed of a model; a log has room for 64 bits."""
    return whole_number("seed", seed, at_least=0, at_most=2**64 - 1)


def first_event(
    name: str,
    *,
    policy: Policy | str,
    k: int,
    items: Sequence[Item],
    seed: int | None,
    feature_names: Sequence[str],
    scale: bool,
) -> Created:
    """How a model of this policy and these items begins, or Malformed."""
    check_name(name)
    with refusing:
        chosen = make_policy(policy)
        places = whole_number("k", k, at_least=1, at_most=MOST_ROWS)
        check_context_size(chosen)
        rows = _filled(check_items(items, cold=True))
        has_features = rows[0] is not None
        if chosen.needs_features and not has_features:
            raise Malformed(
                f"{chosen.name} needs features, and the items have none: add columns of numbers, take a "
                "policy that needs none, such as cascade-ts, or learn features with `firstclick features`"
            )
        fitted = None
        if scale and has_features:
            table = np.array(rows, np.float64)
            if feature_names and len(feature_names) != table.shape[1]:
                raise Malformed(
                    f"there are {table.shape[1]} features, and {len(feature_names)} names for them"
                )
            fitted = scale_for(chosen, table, places, feature_names)
        put = _as_put(items, _scaled(rows, fitted))
        drawn = secrets.randbits(32) if seed is None else model_seed(seed)
        body = Created(
            policy=chosen.name,
            settings=chosen.settings,
            k=places,
            seed=drawn,
            n_features=put.n_features,
            items=put,
            feature_scale=fitted and fitted.as_json(),
            key=int(new_key("model", drawn, chosen, places)),
            version=chosen.version,
        )
        Model(0, name, body)  # What the policy cannot work with it refuses now.
    return body


def items_as_learned(model: Model, items: Sequence[Item]) -> ItemsPut:
    """The items as the model's log has them, with scaled features; Malformed if they do not fit it.

    An item that comes without features to a model with some keeps those it has; a new one gets the mean of
    all rows there are.
    """
    catalog, engine = model.catalog, model.engine
    with refusing:
        rows = _scaled(check_items(items, model.n_given_features, cold=True), catalog.scale)
        if catalog.features is not None:
            with model.lock:
                for place, item in enumerate(items):
                    if rows[place] is None and (row := catalog.row_of(item.id)) is not None:
                        rows[place] = catalog.table[row].copy()
                rows = _filled(rows, catalog.features)
        put = _as_put(items, rows, model.created.n_features)
        if (table := put.table()) is not None:
            engine.policy.admit(engine.numbers, table)
        _check_growth(model, put)
    return put


def _scaled(rows: Rows, scale: FeatureScale | None) -> Rows:
    """The rows as the policy is given them."""
    given = [row for row in rows if row is not None]
    if scale is None or not given:
        return rows
    scaled = iter(scale.apply(np.array(given)))
    return [None if row is None else next(scaled) for row in rows]


def _filled(rows: Rows, more: Sequence[NDArray[np.float64]] | NDArray[np.float64] = ()) -> Rows:
    """The rows; where some have features, those without get the mean of these and of the rows in `more`."""
    given = [*(row for row in rows if row is not None), *more]
    if not given or not any(row is None for row in rows):
        return rows
    mean = typical_row(np.array(given))
    return [mean if row is None else row for row in rows]


def _as_put(items: Sequence[Item], rows: Rows, n_features: int | None = None) -> ItemsPut:
    """The items with these features; Malformed if scaling made them too many or too large."""
    ready = [item._replace(features=row) for item, row in zip(items, rows, strict=True)]
    check_items(ready, n_features)
    return ItemsPut.of(ready)


def _check_growth(model: Model, put: ItemsPut) -> None:
    """A policy that cannot take new items must not find them in its log."""
    catalog, table = model.catalog, put.table()
    for place, item in enumerate(put.ids):
        row = catalog.row_of(item)
        if row is None or (table is not None and (table[place] != catalog.table[row]).any()):
            if not model.engine.policy.growable:
                raise Malformed(
                    f"{model.policy} takes no new items, nor other features for those it has, and item "
                    f"{item!r} would be one; make a new model"
                )
            with model.lock:
                model.engine.check_growable()
            return


def withdrawn_ids(model: Model, items: Sequence[ItemId], put: Container[ItemId]) -> list[ItemId]:
    """Items to withdraw, each once. They must have been there; one that is gone already, as in a repeated
    call, is fine."""
    with refusing:
        ids = list(dict.fromkeys(item_ids(items)))
    for item in ids:
        if item in put:
            raise Malformed(f"item {quoted(item)} is both put and withdrawn; decide for one")
        if model.catalog.row_of(item) is None:
            raise Unknown(f"no item {quoted(item)} in model {model.name!r}")
    return ids
