"""How features as people write them become the rows that a policy is given."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.catalog.features import LARGEST_FEATURE, check_features, longest_norm
from firstclick.errors import InvalidInput


class FeatureScale(NamedTuple):
    """A constant is put after the features, and everything is divided by one number.

    A policy's prior holds each coordinate of theta for about 1 in size and knows no level of its own, so
    that it wants rows of norm about 1 and a constant among them. `intercept` is the constant before it is
    divided, 0 if there is none. The same numbers give the same bits, whether they come from a file or,
    later and one by one, over HTTP.

    The constant is last because some policies use the first features alone, such as context-lin-ts with a
    `rank`.
    """

    names: tuple[str, ...]
    intercept: float
    divisor: float

    @classmethod
    def fitted(
        cls, names: Sequence[str], features: NDArray[np.float64], *, add_constant: bool = True
    ) -> "FeatureScale":
        """The scale by which the longest of these rows gets the norm 1.

        The constant is as long as the longest row: in whatever unit features were written, it is learned
        as fast as they are. A column that is one number in all rows is constant enough.
        """
        largest = float(np.abs(features).max(initial=0.0)) or 1.0
        # Divided first, because the square of a very small number is 0.
        longest = largest * longest_norm(features / largest) or 1.0
        constant = (features == features[:1]).all(axis=0) & (features[0] != 0)
        if not add_constant or (len(features) > 1 and constant.any()):
            return cls(tuple(names), 0.0, longest)
        return cls(tuple(names), longest, longest * math.sqrt(2))

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "FeatureScale":
        """Read what `as_json` wrote."""
        return cls(tuple(content["names"]), float(content["intercept"]), float(content["divisor"]))

    def as_json(self) -> dict[str, Any]:
        """The scale as plain values."""
        return {"names": list(self.names), "intercept": self.intercept, "divisor": self.divisor}

    @property
    def n_features(self) -> int:
        """The length of the rows that `apply` gives."""
        return len(self.names) + (self.intercept != 0)

    def apply(self, features: ArrayLike, n_items: int | None = None) -> NDArray[np.float64]:
        """The rows for the policy, of features in the order of `names`, one row an item."""
        rows = check_features(features, n_items)
        if rows.shape[1] != len(self.names):
            raise InvalidInput(
                f"must have {len(self.names)} columns ({listed(self.names)}), got {rows.shape[1]}", "features"
            )
        if self.intercept:
            rows = np.hstack([rows, np.full((len(rows), 1), self.intercept)])
        with np.errstate(over="ignore"):
            scaled = rows / self.divisor
        # Refused in words, if it is too large now.
        return scaled if np.abs(scaled).max(initial=0.0) <= LARGEST_FEATURE else check_features(scaled)

    def undo(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The features as people wrote them.

        Exactly, where they have at most 15 digits or single precision; others but for rounding in the last
        digit: two numbers may come to the same when they are divided.
        """
        scaled = rows[:, : len(self.names)]
        # What nobody could have sent, and nobody learned from, may be too large to be told.
        with np.errstate(all="ignore"):
            given = scaled * self.divisor
            # Single precision last: such numbers are so rare that none fits by chance.
            for guess in (_short(given), given.astype(np.float32).astype(np.float64)):
                given = np.where(guess / self.divisor == scaled, guess, given)
        return given


# Powers of ten that are exact.
_TENS = np.array([float(f"1e{exponent}") for exponent in range(23)])


def _short(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest numbers of 15 digits."""
    exponents = np.floor(np.log10(np.abs(np.where(numbers == 0, 1, numbers))))
    places = np.nan_to_num(14 - exponents, posinf=0, neginf=0).clip(-22, 22).astype(np.int64)
    tens = _TENS[np.abs(places)]
    whole = np.rint(np.where(places < 0, numbers / tens, numbers * tens))
    # One division of two exact numbers, which rounds once, as reading the digits does.
    return np.where(places < 0, whole * tens, whole / tens)


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names for a sentence, the first of many."""
    return ", ".join(names) if len(names) <= most else ", ".join(names[:most]) + ", ..."
