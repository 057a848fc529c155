"""The probability of each item at its position, as the log tells it, and where a target needs more of it."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from firstclick.evaluation.targets import Table, Target
from firstclick.logs.ranked_log import NO_ITEM, SlateBatch


def logged_places(batch: SlateBatch) -> Table | None:
    """n x K; NaN: not known. After the end of a slate it is 1, as for targets: nothing is missed there."""
    if batch.logged_places is None:
        return None
    places = np.where(batch.items == NO_ITEM, 1.0, batch.logged_places)
    if batch.propensities is not None and places.shape[1] > 1:
        # Nothing stands above the first place: its probability is that of the prefix. Of a slate whose
        # probability is told as a whole, the first prefix is NaN, or the slate has one item.
        first = places[:, 0]
        places[:, 0] = np.where(np.isnan(first), batch.propensities[:, 0], first)
    return places


def gaps(logged: Table, wanted: Table) -> NDArray[np.bool_]:
    """Slates with an item that the target may show where it stands, and whose probability is not known.
    Where the target never shows it the weight is 0, whatever the logger did."""
    return np.asarray((np.isnan(logged) & (wanted > 0)).any(axis=1))


def slates_with_gaps(target: Target, batches: Iterable[SlateBatch]) -> int | None:
    """How many there are; None if the target, or the log, does not tell probabilities by position."""
    found = 0
    for batch in batches:
        logged = logged_places(batch)
        wanted = None if logged is None else target.place_chances(batch)
        if logged is None or wanted is None:
            return None
        found += int(gaps(logged, wanted).sum())
    return found
