"""Items without features in a catalog that has some: what stands in for what nobody knows."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.catalog.features import check_features
from firstclick.errors import InvalidInput
from firstclick.validation.float_array import float_array


def split_off_cold(
    features: ArrayLike, n_items: int | None, n_features: int | None
) -> tuple[NDArray[np.float64], list[int]]:
    """The features as numbers, with zeros in the rows of items that have none (None, or NaN throughout); and
    which rows these are. `n_features` is how many the catalog has, if any."""
    given: Any = features
    if isinstance(given, list | tuple) and any(row is None for row in given):
        # As many numbers as the first row that is there: one of another length is refused as any other is.
        first = next((row for row in given if row is not None), [0.0] * (n_features or 1))
        width = len(first) if hasattr(first, "__len__") else 1
        given = [[np.nan] * width if row is None else row for row in given]
    try:
        table = float_array("features", given)
    except InvalidInput:
        return check_features(features, n_items), []  # It says what is wrong with what was given.
    cold = np.isnan(table).all(axis=1) if table.ndim == 2 and table.size else np.zeros(0, np.bool_)
    if cold.any():
        table[cold] = 0.0
    return check_features(table, n_items), np.flatnonzero(cold).tolist()


def typical_row(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a cold item gets: the mean of the rows that have features."""
    if not len(features):
        raise InvalidInput(
            "no item has features, so that nobody knows what a typical one is like; "
            "give the features of one at least, or features to none"
        )
    return np.asarray(features.mean(axis=0))
