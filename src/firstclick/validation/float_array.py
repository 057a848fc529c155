"""The door for every table or list of numbers: a plain float64 array, or a sentence that says why not."""

import datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.errors import InvalidInput
from firstclick.in_pieces import array_of
from firstclick.validation.quoting import quoted

TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


def float_array(
    name: str, given: ArrayLike, *, rule: str = "numbers", largest: float = 1e300
) -> NDArray[np.float64]:
    """The numbers as a new float64 array in C order, of whatever shape; they may be NaN or infinite.

    What NumPy would misread is refused: masked values, dates and times, complex numbers. `rule` says what the
    numbers must be, and `largest` what is said to those who give one that no float64 can hold.

    >>> float_array("features", [[1, 2], [3, 4.5]])
    array([[1. , 2. ],
           [3. , 4.5]])
    """
    refuse_masked(name, given)
    _refuse_rows(name, given)
    found: NDArray[Any] = np.empty(0)
    try:
        found = array_of(given) if isinstance(given, list) else np.asarray(given)
        _refuse_times(name, found)
        if found.dtype.kind == "c":
            raise TypeError  # NumPy would drop the imaginary part with a warning.
        # Beside a text NumPy makes texts of numbers too: then once more from what was given.
        array = np.array(found if found.dtype.kind in "fiub" else given, np.float64, order="C")
    except OverflowError:
        place, value = _first_too_large(found)
        raise InvalidInput(
            f"must be at most {largest:g} in size, got {quoted(value)}{_where(place)}; scale them down", name
        ) from None
    except InvalidInput:
        raise
    except (TypeError, ValueError):
        got = f"an array of {given.dtype}" if isinstance(given, np.ndarray) else quoted(given)
        raise InvalidInput(f"must be {rule}, got {got}", name) from None
    _refuse_masked_values(name, given, array)
    return array


def refuse_masked(name: str, given: Any, *row: int) -> None:
    """InvalidInput for an array with something masked: NumPy would take what lies under the mask for data."""
    if isinstance(given, np.ma.MaskedArray) and (mask := np.ma.getmaskarray(given)).any():
        raise _masked(name, (*row, *np.argwhere(mask)[0].tolist()))


def _refuse_rows(name: str, given: Any) -> None:
    """The same for each part of a list. And of dates in nanoseconds, beside numbers, NumPy makes numbers."""
    for row, part in enumerate(given if isinstance(given, list | tuple) else ()):
        refuse_masked(name, part, row)
        if getattr(getattr(part, "dtype", None), "kind", "") in ("m", "M"):
            raise _times(name, str(part.dtype))


def _refuse_masked_values(name: str, given: Any, array: NDArray[np.float64]) -> None:
    """In a list of lists NumPy makes NaN of `np.ma.masked`."""
    if array.ndim == 2 and isinstance(given, list | tuple):
        for row in np.flatnonzero(np.isnan(array).any(axis=1)).tolist():
            for column, value in enumerate(given[row]):
                if value is np.ma.masked:
                    raise _masked(name, (row, column))


def _masked(name: str, place: tuple[int, ...]) -> InvalidInput:
    return InvalidInput(
        f"must not be masked, got a masked value{_where(place)}; fill it first, as by .filled(0.0)", name
    )


def _refuse_times(name: str, found: NDArray[Any]) -> None:
    """NumPy would make numbers of days, or of microseconds, of them."""
    if found.dtype.kind in "mM":
        example = str(found.dtype)
    elif found.dtype.kind == "O":
        times = (quoted(value) for value in found.flat if isinstance(value, TIMES))
        example = next(times, "")
    else:
        return
    if example:
        raise _times(name, example)


def _times(name: str, example: str) -> InvalidInput:
    return InvalidInput(
        f"must be numbers, got dates or times ({example}); convert them first, for example to days since a "
        "fixed date",
        name,
    )


def _first_too_large(found: NDArray[Any]) -> tuple[tuple[int, ...], object]:
    """Where the first value is that no float64 can hold, and the value."""
    for place, value in np.ndenumerate(found):
        try:
            float(value)
        except OverflowError:
            return place, value
    return (), found


def _where(place: tuple[int, ...]) -> str:
    if len(place) == 2:
        return f" in row {place[0]}, column {place[1]}"
    return f" at position {place[0]}" if len(place) == 1 else ""
