"""What an item and a model's name must be like, checked at the door."""

import re
from collections.abc import Container, Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.catalog import Catalog
from firstclick.catalog.feature_scale import FeatureScale
from firstclick.catalog.features import check_features, typical_row
from firstclick.catalog.ids import ItemId, item_ids
from firstclick.catalog.item import Item
from firstclick.policies.base import Policy
from firstclick.serve.log.events import ItemsPut
from firstclick.serve.model.model import Model
from firstclick.validation.quoting import quoted
from firstclick.validation.whole_number import whole_number
from firstclick.wire.errors import Malformed, Unknown, refusing
from firstclick.wire.limits import LARGEST_ID, LONGEST_ID, LONGEST_NAME, MOST_CONTEXT, MOST_FEATURES

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


def check_items(items: Sequence[Item], n_features: int | None, *, cold: bool = False) -> list[Item]:
    """The items, each with this many features (None: all with as many as the first), or Malformed.

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
        return list(items)
    table: Any = [item.features for item in given]
    with refusing:
        rows = iter(check_features(table, len(given)))
    return [item if item.features is None else item._replace(features=next(rows)) for item in items]


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


def filled(items: Sequence[Item], more: NDArray[np.float64] | None = None) -> list[Item]:
    """The items; where some have features, those without get the mean of these and of the rows in `more`."""
    given = [item.features for item in items if item.features is not None]
    if len(given) == len(items) or (not given and more is None):
        return list(items)
    mean = typical_row(np.array([*given, *(() if more is None else more)]))
    return [item._replace(features=mean) if item.features is None else item for item in items]


def scaled(items: Sequence[Item], scale: FeatureScale | None) -> list[Item]:
    """The items with features as the learner is given them; those without stay without."""
    given = [item.features for item in items if item.features is not None]
    if scale is None or not given:
        return list(items)
    rows = iter(scale.apply(np.array(given)))
    return [item if item.features is None else item._replace(features=next(rows)) for item in items]


def items_as_learned(model: Model, items: Sequence[Item]) -> ItemsPut:
    """The items as the model's log has them, with scaled features; Malformed if they do not fit it.

    An item that comes without features to a model with some keeps those it has; a new one gets the mean of
    all rows there are.
    """
    catalog, engine = model.catalog, model.engine
    with refusing:
        checked = scaled(check_items(items, model.n_given_features, cold=True), catalog.scale)
        if model.created.n_features:
            with model.lock:
                checked = filled([_with_own(catalog, item) for item in checked], catalog.features)
        body = ItemsPut.of(check_items(checked, model.created.n_features))
        if (table := body.table()) is not None:
            engine.policy.admit(engine.numbers, table)
        _check_growth(model, checked)
    return body


def _with_own(catalog: Catalog, item: Item) -> Item:
    """The item with the features that it has in the catalog, unless it comes with others."""
    row = catalog.row_of(item.id)
    if item.features is not None or row is None:
        return item
    return item._replace(features=catalog.table[row].copy())


def _check_growth(model: Model, items: Sequence[Item]) -> None:
    """A learner that cannot take new items must not find them in its log."""
    catalog = model.catalog
    for item in items:
        row = catalog.row_of(item.id)
        if row is None or (item.features is not None and (item.features != catalog.table[row]).any()):
            if not model.engine.policy.growable:
                raise Malformed(
                    f"{model.policy} takes no new items, nor other features for those it has, and item "
                    f"{item.id!r} would be one; make a new model"
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
