"""A request for a slate, from ids and words to rows and arrays: for the `Ranker` and the service alike."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.catalog.catalog import Catalog, Subset
from firstclick.catalog.features import LARGEST_CONTEXT
from firstclick.catalog.groups import caps_by_group
from firstclick.catalog.ids import IDS, ItemId, item_id, item_ids
from firstclick.errors import InvalidInput
from firstclick.kernels.arrays import NO_LIMITS, Request
from firstclick.online.engine import PolicyEngine
from firstclick.online.explore import Explored, Explorer, places_among
from firstclick.policies.base import Policy
from firstclick.validation.float_array import float_array
from firstclick.validation.quoting import quoted
from firstclick.validation.whole_number import whole_number

AtMost = int | Mapping[Any, int]


class RowRequest(NamedTuple):
    """A request in rows: what it takes to make the same slate again."""

    k: int
    candidates: NDArray[np.int64] | None  # in ascending order, none that is hidden; None: all
    exclude: Sequence[int]
    pinned: dict[int, int]  # the row at each pinned place, none that is hidden or excluded
    at_most: AtMost | None
    context: NDArray[np.float64]
    features: NDArray[np.float64]  # of the candidates, as kernels see them; empty: those of the catalog


class SlateRequest(NamedTuple):
    """A request as kernels take it, how many places are left to fill, the request in rows, and the pinned
    items that may not be shown."""

    kernel: Request
    free: int
    rows: RowRequest
    skipped_pins: tuple[ItemId, ...] = ()


class Answered(NamedTuple):
    """The rows of a slate, what is held for the attraction of each, their features if the request brought
    some, and what exploration did."""

    rows: NDArray[np.int64]
    means: NDArray[np.float64]
    features: NDArray[np.float64]
    explored: Explored | None


def read_request(
    engine: PolicyEngine,
    *,
    k: int | None = None,
    candidates: Iterable[ItemId] | Subset | None = None,
    exclude: Iterable[ItemId] | Subset = (),
    pinned: Mapping[int, ItemId] | None = None,
    context: ArrayLike | None = None,
    at_most: AtMost | None = None,
    features: ArrayLike | None = None,
) -> SlateRequest:
    """A request for a slate of `k` items, or an error.

    The slate has items of `candidates` (None: all that are shown) and none of `exclude`. `pinned` gives the
    item at a position. One that is excluded or withdrawn is skipped: its place is free. `at_most` is how many
    items of a group the slate may have: one number for every group, or {group: number}. `context` describes
    the user. `features`, one row for each candidate, replace those of the catalog. What the policy would
    learn wrongly from (`Policy.misreads`) is refused.
    """
    catalog, n = engine.catalog, engine.k
    if k is not None:
        n = whole_number("k", k, at_least=1, at_most=n, because=", the k that it was created with")
    own = NO_LIMITS.features
    if features is not None:
        if candidates is None:
            raise InvalidInput(
                "must have a row for each of candidates, and candidates are missing", "features"
            )
        if not engine.policy.takes_features:
            raise InvalidInput(
                f"must be left out: {engine.policy.label} takes no features with a request", "features"
            )
        if not isinstance(candidates, Subset):
            candidates = item_ids(candidates, "candidates")
    rows = None if candidates is None else catalog.rows(candidates, "candidates")
    excluded = catalog.known_rows(exclude, "exclude")
    held, skipped = ({}, ()) if pinned is None else _pinned_rows(catalog, pinned, n, excluded)
    if engine.policy.misreads:
        restricted = {
            "candidates": rows is not None, "exclude": bool(excluded), "pinned": bool(held or skipped),
            "at_most": at_most is not None,
        }  # fmt: skip
        _refuse_misread(engine.policy, [name for name, restricts in restricted.items() if restricts])
    if features is not None and candidates:
        own = _own_features(engine, candidates, features)  # type: ignore[arg-type]
    if rows is not None and (rows[1:] < rows[:-1]).any():
        # Their order means nothing, and a log keeps none.
        order = np.argsort(rows)
        rows, own = rows[order], own[order] if len(own) else own
    given = read_context(engine.policy, context)
    asked = request_of_rows(engine, RowRequest(n, rows, excluded, held, at_most, given, own))
    return asked._replace(skipped_pins=skipped) if skipped else asked


def request_of_rows(engine: PolicyEngine, asked: RowRequest) -> SlateRequest:
    """The request for kernels."""
    rows, held = asked.candidates, asked.pinned
    request = Request(
        NO_LIMITS.candidates if rows is None else rows,
        engine.hidden([*asked.exclude, *held.values()]),
        asked.context,
        asked.features,
        *(
            (NO_LIMITS.groups, NO_LIMITS.caps)
            if asked.at_most is None
            else _caps(engine.catalog, asked.at_most, held)
        ),
    )
    # To a kernel no candidates are all of them.
    return SlateRequest(request, asked.k - len(held) if rows is None or len(rows) else 0, asked)


def _refuse_misread(policy: Policy, given: Sequence[str]) -> None:
    for name in given:
        if name in policy.misreads:
            raise InvalidInput(
                f"is not for {policy.label}, which compares items that had the same chances of a click, and "
                f"would learn wrongly from this slate; leave {name} out, {policy.misreads[name]}",
                name,
            )


def answered(
    engine: PolicyEngine,
    key: np.uint64,
    number: int,
    asked: SlateRequest,
    *,
    scored: bool,
    explorer: Explorer | None = None,
) -> Answered:
    """The slate for a request. The key and the number decide what the policy explores, and the explorer, if
    there is one, which slates are drawn uniformly instead."""
    request, pinned = asked.kernel, asked.rows.pinned
    drawn = explorer is not None and explorer.draws(number)
    if explorer is not None and drawn:
        rows, means = engine.draw_uniformly(explorer.key, number, asked.free, request), np.empty(0)
    else:
        ((rows, means),) = engine.recommend_many(key, [number], asked.free, request, scored=scored)
    if pinned:
        rows = with_pinned(rows, pinned)
    own = NO_LIMITS.features
    if len(request.features):
        # A pinned row that is no candidate keeps the features of the catalog.
        place_of = {row: place for place, row in enumerate(request.candidates.tolist())}
        of_catalog = engine.features
        own = np.array(
            [request.features[place_of[row]] if row in place_of else of_catalog[row] for row in rows.tolist()]
        ).reshape(len(rows), of_catalog.shape[1])
    if (pinned or drawn) and scored:
        means, _ = engine.estimates(rows, request.context, own)
    explored = None
    if explorer is not None and explorer.share > 0:
        among = places_among(request, len(engine.catalog.items), rows, pinned)
        explored = Explored(explorer.share, drawn, among)
    return Answered(rows, means, own, explored)


def without_exploring(engine: PolicyEngine, asked: SlateRequest) -> NDArray[np.int64] | None:
    """The rows that the policy would show if it drew nothing: those of the highest estimates that the request
    allows. None if it ranks by something else."""
    if not engine.policy.best_by_estimates:
        return None
    request, pinned = asked.kernel, asked.rows.pinned
    rows = request.candidates if asked.rows.candidates is not None else np.arange(len(engine.catalog.items))
    shown = request.hidden[rows] == 0 if len(request.hidden) else np.ones(len(rows), bool)
    features = request.features[shown] if len(request.features) else request.features
    rows = rows[shown]
    means, _ = engine.estimates(rows, request.context, features)
    if np.isnan(means).any():
        return None
    best = within_caps(request, rows[np.argsort(-means, kind="stable")].tolist(), asked.free)
    free = np.array(best, np.int64)
    return with_pinned(free, pinned) if pinned else free


def within_caps(request: Request, rows: Iterable[int], n: int) -> list[int]:
    """The first n of these rows of which no group has more than its cap."""
    left = request.caps.copy()
    found: list[int] = []
    for row in rows:
        if len(found) == n:
            break
        if len(request.groups):
            group = request.groups[row]
            if left[group] <= 0:
                continue
            left[group] -= 1
        found.append(row)
    return found


def read_context(policy: Policy, context: ArrayLike | None) -> NDArray[np.float64]:
    """The context of a request for kernels, or InvalidInput if it is not what the policy wants."""
    wanted = policy.n_context
    if context is None and not wanted:
        return NO_LIMITS.context
    size = f"{wanted} number{'' if wanted == 1 else 's'}"
    if context is None:
        raise InvalidInput(f"must be given: {policy.label} needs {size} with each request", "context")
    given = float_array("context", context, rule="a list of numbers", largest=LARGEST_CONTEXT)
    given = np.atleast_1d(given)
    if not wanted:
        for name, value in (("context", given.size), ("segments", 4)):
            if name in policy.rules():
                raise InvalidInput(
                    f"must be left out: {policy.label} was created without a context; use "
                    f"{policy.name}:{name}={value}",
                    "context",
                )
        raise InvalidInput(
            f"must be left out: {policy.label} takes no context; use a policy that does, such as "
            "context-lin-ts:context=3",
            "context",
        )
    if given.shape != (wanted,):
        got = f"{len(given)}" if given.ndim == 1 else f"an array of shape {given.shape}"
        raise InvalidInput(f"must be {size} for {policy.label}, got {got}", "context")
    if not np.isfinite(given).all():
        place = int(np.argmin(np.isfinite(given)))
        raise InvalidInput(f"must be finite numbers, got {given[place]} at position {place}", "context")
    if np.abs(given).max() > LARGEST_CONTEXT:
        raise InvalidInput(
            f"must be at most {LARGEST_CONTEXT:g} in size, got {np.abs(given).max():g}", "context"
        )
    policy.check_context(given)
    return given


def _own_features(
    engine: PolicyEngine, ids: list[ItemId] | Subset, features: ArrayLike
) -> NDArray[np.float64]:
    """The features of those candidates that are shown, for kernels."""
    table = engine.encoded(features, list(ids))
    catalog = engine.catalog
    if isinstance(ids, Subset):
        return np.ascontiguousarray(table[catalog.hidden[ids.rows_in(catalog)] == 0])
    rows = catalog.rows_of(ids, "candidates")
    if len(set(rows)) < len(rows):
        twice = next(item for place, item in enumerate(ids) if rows.index(rows[place]) < place)
        raise InvalidInput(
            f"must be distinct where features are given, got {quoted(twice)} twice", "candidates"
        )
    return np.ascontiguousarray(table[catalog.hidden[rows] == 0])


def _pinned_rows(
    catalog: Catalog, pinned: Mapping[int, ItemId], n: int, excluded: Collection[int]
) -> tuple[dict[int, int], tuple[ItemId, ...]]:
    """The row at each pinned position of a slate of n, and the items that are excluded or withdrawn."""
    if not isinstance(pinned, Mapping):
        raise InvalidInput(
            f"must be an item for each position, such as {{0: 'tea'}}, got {quoted(pinned)}", "pinned"
        )
    for position in pinned:
        try:
            whole_number("pinned", position, at_least=0, at_most=n - 1)
        except InvalidInput:
            raise InvalidInput(
                f"must have positions from 0 to {n - 1}, got {quoted(position)}", "pinned"
            ) from None
    asked: dict[int, int] = {}
    for position, item in sorted(pinned.items()):
        row = catalog.row_of(item_id(item, "pinned", IDS))
        if row is None:
            raise InvalidInput(
                f"must name items of the catalog, got {quoted(item)}; add it first, or leave it out", "pinned"
            )
        if row in asked.values():
            raise InvalidInput(f"must name an item once, got {quoted(item)} twice", "pinned")
        asked[position] = row
    not_shown = set(excluded)
    held = {
        position: row for position, row in asked.items() if row not in not_shown and catalog.is_shown(row)
    }
    if len(held) == len(asked):
        return held, ()
    return held, tuple(catalog.items[row] for position, row in asked.items() if position not in held)


def with_pinned(free: NDArray[np.int64], pinned: Mapping[int, int]) -> NDArray[np.int64]:
    """Free rows in the places that no pinned row has; where they run out, pinned ones move up."""
    rows: list[int] = []
    waiting = iter(free.tolist())
    for position in range(len(free) + len(pinned)):
        if position in pinned:
            rows.append(pinned[position])
        elif (row := next(waiting, None)) is not None:
            rows.append(row)
    rows += [row for position, row in sorted(pinned.items()) if position >= len(free) + len(pinned)]
    return np.array(rows, np.int64)


def _caps(
    catalog: Catalog, at_most: AtMost, pinned: Mapping[int, int]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The group of each row, and what its cap leaves beside the pinned rows."""
    names, groups = catalog.numbered_groups()
    caps = caps_by_group(names, at_most, len(groups))
    for row in pinned.values():
        caps[groups[row]] -= 1  # Below 0 it lets nothing in, as at 0.
    return groups, caps
