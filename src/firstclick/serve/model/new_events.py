"""New events from what people send: a model, items put or withdrawn; checked before anything is written."""

import re
import secrets
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, SupportsIndex

import msgspec
import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.encoder import Encoder
from firstclick.catalog.feature_scale import FeatureScale, listed
from firstclick.catalog.features import check_features, typical_row
from firstclick.catalog.ids import ItemId, item_ids
from firstclick.catalog.item import Item
from firstclick.errors import FirstclickError, InvalidInput
from firstclick.in_pieces import array_of
from firstclick.not_given import NOT_GIVEN, NotGiven
from firstclick.online.baseline import MAX_LOSS, check_baseline
from firstclick.online.engine import scale_for
from firstclick.online.explore import check_share
from firstclick.online.floor import check_max_loss
from firstclick.policies.base import Policy
from firstclick.registry import make_policy
from firstclick.serve.log.events import Availability, BaselineSet, Created, FirstItems, ItemsChanged, ListPut
from firstclick.serve.model.build import this_build
from firstclick.serve.model.model import Model
from firstclick.streams import stream_key
from firstclick.validation.duration import check_wait
from firstclick.validation.lists import as_list
from firstclick.validation.quoting import quoted
from firstclick.validation.whole_number import whole_number
from firstclick.wire.errors import Malformed, Unknown, refusing
from firstclick.wire.limits import (
    LARGEST_ID,
    LONGEST_ID,
    LONGEST_NAME,
    MOST_CONTEXT,
    MOST_FEATURES,
    MOST_LISTS,
    MOST_ROWS,
)

# The features of each item; None for an item without.
Rows = list[NDArray[np.float64] | None]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_name(name: object, argument: str = "name") -> None:
    """Check the name of a model, or of a list: it is part of addresses and files."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise Malformed(
            f"must be 1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit, got "
            f"{quoted(name)}",
            argument,
        )


def check_context_size(policy: Policy) -> None:
    """A context goes out with each token and comes back with it."""
    if policy.n_context > MOST_CONTEXT:
        raise Malformed(
            f"{policy.label} must have a context of at most {MOST_CONTEXT} numbers, got {policy.n_context}",
            "policy",
        )


def checked_items(items: Iterable[Item]) -> list[Item]:
    """Check all but the features of the items and return them as a list; Malformed if something is wrong."""
    with refusing:
        checked = as_list("items", items, "Item(...)")
    if not checked:
        raise Malformed("must have at least one item, got an empty list", "items")
    seen: set[str | int] = set()
    for item in checked:
        _check_words(item)
        if item.id in seen:
            raise Malformed(f"must be distinct, got {item.id!r} twice", "items")
        seen.add(item.id)
    return [_plain(item) for item in checked]


def check_items(items: Sequence[Item], n_features: int | None = None, *, cold: bool = False) -> Rows:
    """The features of the items, each this many (None: as many as the first has), or Malformed.

    `cold` lets items pass that come without features where others have some.
    """
    items = checked_items(items)
    for item in items:
        if isinstance(item.features, Mapping):
            raise Malformed(
                f"of item {item.id!r} must be a list of numbers, got an object; only a model that was "
                "created from a table has columns by name",
                "features",
            )
        if _has_features(item) and not _is_list(item.features):
            raise Malformed(
                f"of item {item.id!r} must be a list of numbers, got {quoted(item.features)}", "features"
            )
    given = [item for item in items if _has_features(item)] if cold else items
    wanted = (_size(given[0]) if given else 0) if n_features is None else n_features
    for item in given:
        size = _size(item)
        if size != wanted:
            has = f"{wanted} numbers, as those of other items" if wanted else "left out, as for other items"
            way_out = "; create a new model for other features" if n_features is not None else ""
            raise Malformed(f"of item {item.id!r} must be {has}, got {size}{way_out}", "features")
    if wanted > MOST_FEATURES:
        raise Malformed(f"must be at most {MOST_FEATURES} numbers per item, got {wanted}", "features")
    if not (wanted and given):
        return [None] * len(items)
    table: Any = [item.features for item in given]
    with refusing:
        rows = iter(check_features(table, len(given)))
    return [next(rows) if _has_features(item) else None for item in items]


def _has_features(item: Item) -> bool:
    return item.features is not None and item.features is not NOT_GIVEN


def _size(item: Item) -> int:
    return len(item.features) if _has_features(item) else 0  # type: ignore[arg-type]


def _check_words(item: Item) -> None:
    if not isinstance(item, Item):
        raise Malformed(f"must be Item(id, name, group, features, available), got {quoted(item)}", "items")
    if isinstance(item.id, str):
        if not 1 <= len(item.id) <= LONGEST_ID:
            raise Malformed(f"must have 1 to {LONGEST_ID} characters, got {len(item.id)}", "id")
    elif type(item.id) is not int or abs(item.id) > LARGEST_ID:
        raise Malformed(
            f"must be a text, or a whole number of at most 2^53 in size, got {quoted(item.id)}", "id"
        )
    if not isinstance(item.available, bool | NotGiven):
        raise Malformed(
            f"of item {item.id!r} must be true or false, got {quoted(item.available)}", "available"
        )
    for word, text in (("name", item.name), ("group", item.group), ("id", str(item.id))):
        if text is None or text is NOT_GIVEN:
            continue
        if not isinstance(text, str):
            raise Malformed(f"of item {item.id!r} must be a text, got {quoted(text)}", word)
        if len(text) > LONGEST_NAME:
            raise Malformed(
                f"of item {item.id!r} must have at most {LONGEST_NAME} characters, got {len(text)}", word
            )
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise Malformed(
                f"of item {item.id!r} must be UTF-8, got half a character (a lone surrogate)", word
            )


def _plain(item: Item) -> Item:
    """Make plain texts of subclasses of str, such as those of NumPy: a log takes no others."""
    texts = {word: text for word in ("id", "name", "group") if isinstance(text := getattr(item, word), str)}
    odd: dict[str, Any] = {word: str(text) for word, text in texts.items() if type(text) is not str}
    return item._replace(**odd) if odd else item


def _is_list(features: object) -> bool:
    """Whether it has one dimension; what the numbers are, is looked at with those of all items."""
    try:
        return np.ndim(features) == 1  # type: ignore[arg-type]
    except ValueError:  # lists of different lengths
        return False


def policy_of(spec: Policy | str) -> Policy:
    """Make the policy, or raise Malformed that names the argument `policy`."""
    try:
        return make_policy(spec)
    except FirstclickError as error:
        raise Malformed(error.problem if error.argument == "policy" else str(error), "policy") from None


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
    encoder: Encoder | None,
    file_marks: Sequence[str] = (),
    explore: float = 0.0,
    baseline: Sequence[ItemId] = (),
    max_loss: float = MAX_LOSS,
    baseline_mark: str = "",
    no_click_after: float = 0.0,
) -> Created:
    """How a model of this policy and these items begins, or Malformed."""
    check_name(name)
    with refusing:
        chosen = policy_of(policy)
        share = check_share(explore, chosen)
        places = whole_number("k", k, at_least=1, at_most=MOST_ROWS)
        check_context_size(chosen)
        items = checked_items(items)
        if encoder is None and any(isinstance(item.features, Mapping) for item in items):
            encoder = Encoder.fitted(_columns(items), unscaled=chosen.unit_features)
        values: list[list[Any]] = []
        if encoder is None:
            rows = _filled(check_items(items, cold=True))
        else:
            given = _given_values(encoder, items)
            values, feature_names = given.values, encoder.names
            rows = given.rows if encoder.n_features else [None] * len(items)
        has_features = rows[0] is not None
        if chosen.needs_features and not has_features:
            raise Malformed(
                f"{chosen.name} needs features, and the items have none: add columns that describe them, use "
                "a policy that needs none, such as cascade-ts, or learn some with `firstclick features`",
                "policy",
            )
        fitted = None
        if scale and has_features:
            table = np.array(rows, np.float64)
            if feature_names and len(feature_names) != table.shape[1]:
                raise Malformed(
                    f"must name {table.shape[1]} features, got {len(feature_names)} names", "feature_names"
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
            key=int(stream_key(drawn, "model", chosen.name, places)),
            version=chosen.version,
            build=this_build(type(chosen)),
            encoder=None if encoder is None else encoder.as_json(),
            values=values,
            unavailable=[item.id for item in items if item.available is False],
            file_marks=list(file_marks),
            explore=share,
            no_click_after=check_wait(no_click_after),
        )
        model = Model(0, name, body)  # What the policy cannot work with it refuses now.
        if first_list := item_ids(baseline, "baseline"):
            listed = baseline_set(model, first_list, max_loss, baseline_mark)
            body = msgspec.structs.replace(body, baseline=listed)
    return body


def items_changed(model: Model, items: Sequence[Item], file_marks: Sequence[str] = ()) -> ItemsChanged:
    """The change as the model's log has it; Malformed if the items do not fit the model.

    A new item that comes without features gets the mean of all rows there are.
    """
    catalog, engine = model.catalog, model.engine
    with refusing:
        items = checked_items(items)
        if catalog.encoder is None:
            rows = _scaled(check_items(items, model.n_given_features, cold=True), catalog.scale)
            if catalog.features is not None:
                with model.lock:
                    rows = _filled(rows, catalog.features)
            given = GivenValues(rows, [], [item.features is not NOT_GIVEN for item in items])
        else:
            given = _given_values(catalog.encoder, items)
            rows = _scaled(given.rows, catalog.scale)
        put = _as_put(items, rows, model.created.n_features)
        table = _merged(model, put, given.sent)
        if table is not None:
            engine.policy.admit(engine.numbers, table)
        _check_growth(model, put.ids, table)
    return ItemsChanged(
        put.ids,
        [_told(item.name) for item in items],
        [_told(item.group) for item in items],
        [None if item.available is NOT_GIVEN else item.available for item in items],
        given.sent,
        put.n_features,
        put.features,
        [
            values if sent is True else [values[place] for place in sent or ()]
            for values, sent in zip(given.values, given.sent, strict=True)
        ]
        if catalog.encoder is not None
        else [],
        *_new_and_unknown(model, items, given.values),
        list(given.unreadable),
        list(file_marks),
    )


def _new_and_unknown(
    model: Model, items: Sequence[Item], values: Sequence[list[Any]]
) -> tuple[int, list[int]]:
    """How many items are new, and for each input, how many of these have a level that nobody knows here.

    An item that is there may have a rare level, which counts as unknown too: of such a one nothing has to be
    said every night.
    """
    catalog = model.catalog
    if catalog.encoder is None:
        return 0, []
    new = [values[place] for place, item in enumerate(items) if catalog.row_of(item.id) is None]
    _, odd = catalog.encoder.encode(new)
    return len(new), list(odd.unknown)


def _told(text: str | NotGiven | None) -> str | None:
    """A text as an event has it: empty if it is cleared, None if it was not sent."""
    return None if text is NOT_GIVEN else text or ""


class GivenValues(NamedTuple):
    """What people gave for some items, for a model with an encoder."""

    rows: Rows
    values: list[list[Any]]  # of all inputs; None where nothing was sent
    sent: list[bool | list[int]]  # as in `ItemsChanged`
    unreadable: Sequence[int] = ()


def _given_values(encoder: Encoder, items: Sequence[Item]) -> GivenValues:
    """The features of these items, encoded."""
    n_inputs = len(encoder.inputs)
    sent: list[bool | list[int]] = []
    lines: list[Mapping[str, Any]] = []
    for item in items:
        features = item.features
        if features is None or features is NOT_GIVEN:
            sent.append(features is None)
            lines.append({})
        elif isinstance(features, Mapping):
            try:
                encoder.check_names(features)
            except InvalidInput as error:
                raise Malformed(f"of item {item.id!r}: {error}", "features") from None
            places = [place for place, name in enumerate(encoder.inputs) if name in features]
            sent.append(places if len(places) < n_inputs else True)
            lines.append(features)
        elif _is_line(features) and len(features) == n_inputs:
            sent.append(True)
            lines.append(dict(zip(encoder.inputs, features, strict=True)))
        else:
            raise Malformed(
                f"of item {item.id!r} must be an object by column name, or a list of {n_inputs} values "
                f"({listed(encoder.inputs)}), got {quoted(features)}",
                "features",
            )
    columns = {name: [line.get(name) for line in lines] for name in encoder.inputs}
    values = [list(line) for line in encoder.values_of(columns, len(items))]
    rows, odd = encoder.encode(values)
    return GivenValues(list(rows), values, sent, odd.unreadable)


def _is_line(features: object) -> bool:
    return isinstance(features, Sequence | np.ndarray) and not isinstance(features, str | bytes)


def _columns(items: Sequence[Item]) -> dict[str, list[Any]]:
    """Features that were given by name, column by column."""
    names: dict[str, None] = {}
    for item in items:
        if not isinstance(item.features, Mapping | NotGiven | None):
            raise Malformed(
                f"of item {item.id!r} must be an object by column name, as those of other items, got "
                f"{quoted(item.features)}",
                "features",
            )
        if isinstance(item.features, Mapping):
            names |= dict.fromkeys(item.features)
    return {
        name: [item.features.get(name) if isinstance(item.features, Mapping) else None for item in items]
        for name in names
    }


def _scaled(rows: Rows, scale: FeatureScale | None) -> Rows:
    """The rows as the policy is given them."""
    given = [row for row in rows if row is not None]
    if scale is None or not given:
        return rows
    scaled = iter(scale.apply(array_of(given)))
    return [None if row is None else next(scaled) for row in rows]


def _filled(rows: Rows, more: Sequence[NDArray[np.float64]] | NDArray[np.float64] = ()) -> Rows:
    """The rows; where some have features, those without get the mean of these and of the rows in `more`."""
    if all(row is not None for row in rows):
        return rows
    given = [*(row for row in rows if row is not None), *more]
    if not given:
        return rows
    mean = typical_row(array_of(given))
    return [mean if row is None else row for row in rows]


def _as_put(items: Sequence[Item], rows: Rows, n_features: int | None = None) -> FirstItems:
    """The items with these features; Malformed if scaling made them too many or too large."""
    ready = [
        Item(item.id, _told(item.name) or "", _told(item.group) or "", row)
        for item, row in zip(items, rows, strict=True)
    ]
    check_items(ready, n_features)
    return FirstItems.of(ready)


def _merged(model: Model, put: FirstItems, sent: Sequence[bool | list[int]]) -> NDArray[np.float64] | None:
    """The features that the items will have if nobody else changes them meanwhile; None if they have none."""
    catalog, table = model.catalog, put.table()
    if table is None:
        return None
    merged = table.copy()
    with model.lock:
        for place, (item, told) in enumerate(zip(put.ids, sent, strict=True)):
            row = catalog.row_of(item)
            if row is None or told is True:
                continue
            merged[place] = catalog.table[row]
            if told:
                assert catalog.encoder is not None
                columns = [column for one in told for column in catalog.encoder.blocks[one]]
                merged[place, columns] = table[place, columns]
    return merged


def _check_growth(model: Model, ids: Sequence[ItemId], table: NDArray[np.float64] | None) -> None:
    """A policy that cannot take new items must not find them in its log."""
    catalog = model.catalog
    for place, item in enumerate(ids):
        row = catalog.row_of(item)
        changes = table is not None and (table[place] != catalog.table[row]).any()
        if row is None or changes:
            if not model.engine.policy.growable:
                raise Malformed(
                    f"cannot have {item!r} with these features: {model.policy} takes neither new items nor "
                    "other features; create a new model",
                    "items",
                )
            with model.lock:
                model.engine.check_growable()
            return


def availability(model: Model, on: Sequence[ItemId], off: Sequence[ItemId]) -> Availability:
    """Items that may be shown, and items that may not; Unknown if one was never there."""
    with refusing:
        shown, hidden = list(dict.fromkeys(item_ids(on, "on"))), list(dict.fromkeys(item_ids(off, "off")))
    if not shown and not hidden:
        raise Malformed("must have ids, or `off` must, got none", "on")
    if both := set(shown).intersection(hidden):
        raise Malformed(f"must not name items of `off`, got {quoted(min(both, key=str))} in both", "on")
    for item in shown:
        _check_known(model, item, "on")
    for item in hidden:
        _check_known(model, item, "off")
    return Availability(shown, hidden)


def list_put(model: Model, name: str, items: Sequence[ItemId]) -> ListPut:
    """A list of items that requests can name; Unknown if one was never there."""
    check_name(name, "list_name")
    with refusing:
        ids = list(dict.fromkeys(item_ids(items)))
    if name not in model.items.lists and len(model.items.lists) >= MOST_LISTS:
        raise Malformed(
            f"must be one of the {MOST_LISTS} lists of {model.name!r}, got {quoted(name)}, and there is no "
            "room for more; remove one first",
            "list_name",
        )
    for item in ids:
        _check_known(model, item)
    return ListPut(str(name), ids)


def baseline_set(model: Model, items: Sequence[ItemId], max_loss: float, file_mark: str = "") -> BaselineSet:
    """The list that is shown today; Malformed if it cannot be."""
    with refusing:
        ids, _ = check_baseline(items, model.catalog, model.k, model.engine.policy)
        return BaselineSet(ids, check_max_loss(max_loss), file_mark)


def _check_known(model: Model, item: ItemId, argument: str = "items") -> None:
    if model.catalog.row_of(item) is None:
        raise Unknown(f"must name items of model {model.name!r}, got {quoted(item)}", argument)


def withdrawn_ids(model: Model, items: Sequence[ItemId], put: Container[ItemId]) -> list[ItemId]:
    """Items to withdraw, each once. They must have been there; one that is gone already, as in a repeated
    call, is fine."""
    with refusing:
        ids = list(dict.fromkeys(item_ids(items, "withdraw")))
    for item in ids:
        if item in put:
            raise Malformed(f"must not name items of `put`, got {quoted(item)} in both", "withdraw")
        _check_known(model, item, "withdraw")
    return ids
