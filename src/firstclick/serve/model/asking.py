"""What a request asks for, from ids and words to rows and arrays."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.catalog.catalog import Catalog
from firstclick.catalog.feature_scale import FeatureScale
from firstclick.catalog.features import check_features
from firstclick.catalog.groups import caps_by_group
from firstclick.catalog.ids import ItemId, item_ids
from firstclick.kernels.arrays import NO_LIMITS, Request
from firstclick.online.engine import Engine
from firstclick.serve.model.catalog_state import CatalogState
from firstclick.serve.model.pinned import pinned_rows
from firstclick.validation.whole_number import whole_number
from firstclick.wire.errors import Malformed

Caps = tuple[NDArray[np.int32], NDArray[np.int64]]
AtMost = int | Mapping[str, int]


class Wish(NamedTuple):
    """A request for kernels, how many places are left to fill, and the rows at the others."""

    request: Request
    free: int
    held: dict[int, int]


def wish(
    live: Engine,
    state: CatalogState,
    scale: Mapping[str, Any] | None,
    *,
    k: int | None,
    candidates: Iterable[ItemId] | None,
    exclude: Iterable[ItemId],
    pinned: Mapping[int, ItemId] | None,
    context: ArrayLike | None,
    at_most: AtMost | None,
    features: ArrayLike | None,
) -> Wish:
    """What is wished for a slate of `k` items, by default as many as there may be; or an error.

    `scale` is what is done to features that people give, as the log has it.
    """
    n = live.k
    if k is not None:
        n = whole_number("k", k, at_least=1, at_most=live.k, because=", the places of this model")
    catalog = state.catalog
    ids = None if candidates is None else item_ids(candidates, "candidates")
    asked = None if ids is None else catalog.rows(ids)
    excluded = catalog.known_rows(item_ids(exclude, "exclude"))
    held = pinned_rows(state, pinned, n) if pinned else {}
    excluded += held.values()
    own = None
    if features is not None:
        if ids is None:
            raise Malformed("features are those of candidates, a row for each; give candidates too")
        own = _own_features(live, scale, catalog, ids, features)
    caps = None if at_most is None else _caps(state, at_most, held)
    request = live.request(asked, excluded, context=context, features=own, caps=caps)
    # To a kernel no candidates are all of them.
    free = n - len(held) if asked is None or len(asked) else 0
    return Wish(request, free, held)


def _own_features(
    live: Engine,
    scale: Mapping[str, Any] | None,
    catalog: Catalog,
    ids: Sequence[ItemId],
    features: ArrayLike,
) -> NDArray[np.float64]:
    """The features of those candidates that are shown, as the learner is given them."""
    if not live.policy.takes_features:
        raise Malformed(f"{live.policy.label} takes no features with a request; leave them out")
    if not ids:
        return NO_LIMITS.features
    table = check_features(features, len(ids))
    if scale is not None:
        table = FeatureScale.from_json(scale).apply(table)
    table = live.own_features(table, len(ids))
    rows = [row for item in ids if (row := catalog.row_of(item)) is not None]
    if len(set(rows)) < len(rows):
        twice = next(item for place, item in enumerate(ids) if rows.index(rows[place]) < place)
        raise Malformed(f"candidate {twice!r} is given twice; with features give each once")
    return np.ascontiguousarray(table[catalog.hidden[rows] == 0])


def _caps(state: CatalogState, at_most: AtMost, held: Mapping[int, int]) -> Caps:
    """The group of each row and what is left of its cap beside the pinned rows."""
    names, groups = state.numbered_groups()
    if not names:
        raise Malformed("at_most is about groups, and no item of this model has one; put items with a group")
    caps = caps_by_group(names, at_most, len(groups))
    for row in held.values():
        caps[groups[row]] -= 1  # Below 0 it lets nothing in, as at 0.
    return groups, caps


def features_as_shown(request: Request, catalog: Catalog, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """The features of these rows of a slate, if the request brought some: a pinned row may have none of them,
    and then has the catalog's."""
    if not len(request.features):
        return NO_LIMITS.features
    place_of = {row: place for place, row in enumerate(request.candidates.tolist())}
    of_catalog = catalog.arrays.features
    return np.array(
        [request.features[place_of[row]] if row in place_of else of_catalog[row] for row in rows.tolist()]
    ).reshape(len(rows), of_catalog.shape[1])
