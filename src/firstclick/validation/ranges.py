"""What the arrays of a state may hold. Kernels do not look: a state that comes from outside is checked."""

from sys import float_info
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput


class Range(NamedTuple):
    """The least and the largest number that an array may hold."""

    least: float
    most: float

    def check(self, owner: str, name: str, array: NDArray[Any]) -> None:
        """InvalidInput if a number lies outside, or is none."""
        if array.size and not (array.min() >= self.least and array.max() <= self.most):
            outside = array[~((array >= self.least) & (array <= self.most))]
            raise InvalidInput(
                f"must lie between {self.least:.16g} and {self.most:.16g}, got {outside[0]}", name, owner
            )


BIT = Range(0, 1)
# Whole numbers up to here are exact as floating point too, and can be counted up for ever.
COUNT = Range(0, 2**53)
FINITE = Range(-float_info.max, float_info.max)
NOT_NEGATIVE = Range(0, float_info.max)
POSITIVE = Range(float_info.min, float_info.max)


def usual_range(array: NDArray[Any]) -> Range:
    """Whole numbers are counts, others are finite."""
    return COUNT if np.issubdtype(array.dtype, np.integer) else FINITE


def check_no_more(owner: str, name: str, part: NDArray[Any], whole_name: str, whole: NDArray[Any]) -> None:
    """InvalidInput if `part` somewhere exceeds `whole`, which has it in it."""
    if (part > whole).any():
        at = int(np.argmax(np.ravel(part > whole)))
        raise InvalidInput(
            f"must be at most {whole_name}, got {part.flat[at]} of {whole.flat[at]}", name, owner
        )


def check_factor(owner: str, name: str, factor: NDArray[np.float64]) -> None:
    """InvalidInput if a triangular factor, or one of several, has something else than positive numbers on its
    diagonal: kernels divide by them."""
    POSITIVE.check(owner, f"the diagonal of {name}", np.diagonal(factor, axis1=-2, axis2=-1))
