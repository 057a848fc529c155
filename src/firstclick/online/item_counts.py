"""How often each item was looked at and clicked: all that a count, or a fitted click model, has to tell."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.catalog import Catalog
from firstclick.catalog.ids import IDS, ItemId, item_id
from firstclick.click_models.click_fit import ClickFit
from firstclick.errors import InvalidInput
from firstclick.online.warm_start import HeadStart
from firstclick.validation.quoting import quoted
from firstclick.validation.ranges import COUNT

# Looks and clicks by item. Both are real numbers: a fit knows how likely each position was looked at.
CountsByItem = Mapping[ItemId, tuple[float, float]]


class ItemCounts(NamedTuple):
    """Looks and clicks of some rows of a catalog."""

    rows: NDArray[np.int64]
    looks: NDArray[np.float64]
    clicks: NDArray[np.float64]


def counts_of(fit: ClickFit) -> dict[ItemId, tuple[float, float]]:
    """The looks and clicks that a fit stands for, by item, over all segments.

    A look is one that the click model believes in: a place that nobody looked at counts for nothing, so that
    an item that stood low on the page is not punished for it. Clicks are looks times attraction.
    """
    looks = fit.looks.sum(axis=0)
    clicks = (fit.looks * fit.attraction).sum(axis=0)
    return {
        item: (float(looks[place]), float(clicks[place]))
        for place, item in enumerate(fit.items)
        if looks[place] > 0
    }


def item_counts(catalog: Catalog, counts: CountsByItem) -> ItemCounts:
    """The counts of the items that the catalog has; InvalidInput if there are none, or one is wrong."""
    known: dict[int, tuple[float, float]] = {}
    if not isinstance(counts, Mapping):
        raise InvalidInput(f"must be {{item: (looks, clicks)}}, got {quoted(counts)}", "counts")
    for item, pair in counts.items():
        try:
            looks, clicks = pair
            valid = bool(0 <= clicks <= looks <= COUNT.most)
        except (TypeError, ValueError):
            raise InvalidInput(
                f"must have (looks, clicks), got {quoted(pair)} for {quoted(item)}", "counts"
            ) from None
        if not valid:
            raise InvalidInput(
                "must have looks of at least 0, and clicks from 0 to looks, got "
                f"looks={quoted(looks)} and clicks={quoted(clicks)} for {quoted(item)}",
                "counts",
            )
        row = catalog.row_of(item_id(item, "counts", IDS))
        if row is not None and looks > 0:
            known[row] = float(looks), float(clicks)
    if not known:
        raise InvalidInput(
            f"must have items of the catalog, got {len(counts):,} others; nothing was learned", "counts"
        )
    rows = np.array(sorted(known), np.int64)
    told = np.array([known[row] for row in rows.tolist()])
    return ItemCounts(rows, told[:, 0], told[:, 1])


def check_takes_counts(start: HeadStart) -> None:
    """Refuse a policy for which counts are not enough."""
    past, none = start.past, np.zeros(len(start.past.catalog.items))
    past.policy.with_counts(past.state, none, none, 0)


def learn_counts(start: HeadStart, counts: ItemCounts) -> None:
    """Learn these counts as a head start. They are taken for as many slates as their looks fill."""
    past = start.past
    n_rows = len(past.catalog.items)
    looks, clicks = np.zeros(n_rows), np.zeros(n_rows)
    looks[counts.rows], clicks[counts.rows] = counts.looks, counts.clicks
    slates = int(np.ceil(looks.sum() / past.k))
    past.state = past.policy.with_counts(past.state, looks, clicks, slates)
    start.finish()


def counts_by_item(counted: Iterable[tuple[ItemId, float, float]]) -> dict[ItemId, tuple[float, float]]:
    """Items with their looks and clicks, each item once."""
    found: dict[ItemId, tuple[float, float]] = {}
    for item, looks, clicks in counted:
        if item in found:
            raise InvalidInput(f"must name an item once, got {quoted(item)} twice", "counts")
        found[item] = looks, clicks
    return found
