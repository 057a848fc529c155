"""What estimators are given: logged slates with their clicks, and how likely logger and target show them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput

Table = NDArray[np.float64]

# Probabilities come from quadrature or Monte Carlo: so much above 1, or above the prefix before, is rounding.
ROUNDING = 1e-6


class WeightedSlates(NamedTuple):
    """Slates in the order of the log, n x K. After the end of a shorter slate clicks are 0, and
    probabilities stay as they were. A slate with NaN among `logged` is left out and counted; without
    `logged`, one with NaN among `logged_places` where the target may show the item."""

    clicks: Table
    # The probability of the first 1, 2, ... items under the policy that logged; None: only places are known.
    logged: Table | None
    target: Table  # the same under the policy that is judged
    # The probability of each item at its position, whatever is above it; None if it is not known.
    logged_places: Table | None = None
    target_places: Table | None = None
    # What a click model predicts for each position of the logged slate, and the mean of that over the item
    # that the target would show there, after the logged items above it. None without a model.
    predicted: Table | None = None
    predicted_target: Table | None = None
    # The mean of the squared weight of each prefix, as it was known before the slate was drawn: the sum over
    # prefixes of target^2 / logged. For a fixed list it is 1 / (the probability of its first items).
    spread: Table | None = None
    items: NDArray[np.int32] | None = None  # n x K, for the check of propensities by item

    @property
    def n(self) -> int:
        """The number of slates."""
        return len(self.clicks)


def check(slates: WeightedSlates, first: int = 0) -> None:
    """InvalidInput if an array does not fit, or holds what is no probability. `first` is the number of the
    first slate, for the message."""
    shape = slates.clicks.shape
    if len(shape) != 2 or not shape[1]:
        raise InvalidInput(f"must have one row a slate and one column a position, got {shape}", "clicks")
    for name in WeightedSlates._fields:
        array = getattr(slates, name)
        if array is not None and array.shape != shape:
            raise InvalidInput(f"must have the shape {shape}, got {array.shape}", name)
    with np.errstate(invalid="ignore"):
        _refuse(~(slates.clicks >= 0), slates.clicks, first, "clicks", "must be numbers from 0 on")
        if slates.logged is not None:
            _refuse(
                slates.logged <= 0, slates.logged, first, "logged",
                "must be above 0 (what was shown cannot have had no chance)",
            )  # fmt: skip
        elif slates.logged_places is None or slates.target_places is None:
            raise InvalidInput("must be given, or else logged_places and target_places", "logged")
        for name in ("logged", "target", "logged_places", "target_places"):
            array = getattr(slates, name)
            if array is None:
                continue
            _refuse((array < 0) | (array > 1 + ROUNDING), array, first, name, "must be probabilities")
            if name in ("logged", "target"):
                rising = np.zeros(shape, dtype=np.bool_)
                rising[:, 1:] = array[:, 1:] > array[:, :-1] * (1 + ROUNDING)
                _refuse(
                    rising, array, first, name,
                    "must not rise from one position to the next (they are those of prefixes)",
                )  # fmt: skip


def _refuse(wrong: NDArray[np.bool_], array: Table, first: int, name: str, rule: str) -> None:
    if wrong.any():
        at, position = (int(one) for one in np.argwhere(wrong)[0])
        raise InvalidInput(
            f"{rule}, got {array[at, position]:.6g} at slate {first + at}, position {position + 1}", name
        )


def known(slates: WeightedSlates) -> WeightedSlates:
    """The slates whose propensities are known."""
    if slates.logged is not None:
        rows = np.asarray(~np.isnan(slates.logged).any(axis=1))
    else:
        assert slates.logged_places is not None
        assert slates.target_places is not None
        gaps = np.isnan(slates.logged_places) & (slates.target_places > 0)
        rows = np.asarray(~gaps.any(axis=1))
    return slates if rows.all() else chosen_rows(slates, rows)


def chosen_rows(slates: WeightedSlates, rows: NDArray[np.bool_] | slice) -> WeightedSlates:
    """Some of the slates."""
    taken: list[Any] = [None if array is None else array[rows] for array in slates]
    return WeightedSlates(*taken)


def prefix_weights(slates: WeightedSlates) -> Table:
    """w_{1:k}: how much more likely the target shows the first k items than the logger, n x K."""
    assert slates.logged is not None
    return slates.target / slates.logged


def place_weights(slates: WeightedSlates) -> Table:
    """w_k: how much more likely the target shows this item at this position, whatever is above, n x K."""
    assert slates.target_places is not None
    assert slates.logged_places is not None
    # 0: a slate that has ended. NaN: not known, and the target never shows the item there (see `known`).
    return np.divide(
        slates.target_places,
        slates.logged_places,
        out=np.zeros_like(slates.target_places),
        where=slates.logged_places > 0,
    )
