"""Features as people give them: finite numbers, one row per item, and what stands in where there are none."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.errors import InvalidInput
from firstclick.validation.float_array import float_array

# Products of larger ones, summed over many observations, leave the range of floating point.
LARGEST_FEATURE = 1e100
# A context multiplies features, and their product is squared.
LARGEST_CONTEXT = 1e50
# A policy's state grows with the square of the features: more than these is a mistake, or an attack.
MOST_FEATURES = 1024


def check_features(features: ArrayLike, n_items: int | None = None) -> NDArray[np.float64]:
    """The features as a finite float64 array of one row per item, contiguous."""
    # A copy: the caller may change his array, or have made it read-only, which would compile anew.
    array = float_array("features", features, rule="numbers, one row per item", largest=LARGEST_FEATURE)
    if array.ndim != 2:
        raise InvalidInput(f"must have two dimensions (items x features), got {array.ndim}", "features")
    if array.shape[1] == 0:
        raise InvalidInput("must have at least one column, got 0", "features")
    if n_items is not None and len(array) != n_items:
        raise InvalidInput(f"must have one row for each of the {n_items} items, got {len(array)}", "features")
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise InvalidInput(
            f"must be finite, got {array[row, column]} in row {row}, column {column}", "features"
        )
    if array.size and np.abs(array).max() > LARGEST_FEATURE:
        row, column = np.unravel_index(np.abs(array).argmax(), array.shape)
        raise InvalidInput(
            f"must be at most {LARGEST_FEATURE:g} in size, got {array[row, column]:g} in row {row}, "
            f"column {column}; divide all of them by one number",
            "features",
        )
    return array


def longest_norm(features: NDArray[np.float64]) -> float:
    """The largest Euclidean norm of a row."""
    return float(np.sqrt((features**2).sum(axis=1).max(initial=0.0)))


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
            "must be given for at least one item, got none: the mean of the others stands in for missing "
            "ones; give features of an item, or leave them all out",
            "features",
        )
    return np.asarray(features.mean(axis=0))
