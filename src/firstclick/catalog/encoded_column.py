"""A column of the catalog, and the columns of features that it becomes: one class for each kind.

All of them are plain values, so that they can be stored, and all do the same arithmetic everywhere: a row
gets the same bits alone and among others, here and on another machine.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import date
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.cells import (
    Plain,
    as_days,
    as_flag,
    as_number,
    as_vector,
    is_missing,
    level_of,
)
from firstclick.catalog.features import LARGEST_FEATURE, MOST_FEATURES
from firstclick.errors import InvalidInput
from firstclick.validation.quoting import quoted

Floats = NDArray[np.float64]

MOST_LEVELS = 50
OTHER = "other"
# The standard deviation that numbers and dates get beside the 0 and 1 of yes/no and categories. With 1,
# cascade-lin-ucb learns more slowly: `python -m benchmarks.encoding`.
SIZE = 2.0
# Numbers that are more than four spreads from the centre are moved there.
FURTHEST = 4 * SIZE
# The same for an embedding, whose longest rows have length 1: only what is broken is so large.
FURTHEST_IN_EMBEDDING = 100.0

PLAIN_SCALE, LOG, LOG_PLUS_1 = "", "log", "log(1 + x)"


class Read(NamedTuple):
    """What a column became: a row an item, and how many cells had an unknown level, or could not be read."""

    rows: Floats
    unknown: int
    unreadable: int


def distinct(cells: Sequence[Plain]) -> tuple[list[Plain], NDArray[np.intp]]:
    """The cells that differ, and for every cell which of them it is. Each is read once, however common."""
    places: dict[object, int] = {}
    found: list[Plain] = []
    codes = np.empty(len(cells), np.intp)
    for row, cell in enumerate(cells):
        # 1, 1.0 and True are one key to Python, and three levels to a reader.
        key: object = cell
        if type(cell) is list:
            key = tuple(cell)
        elif type(cell) is not str:
            key = type(cell), cell
        place = places.get(key, -1)
        if place < 0:
            places[key] = place = len(found)
            found.append(cell)
        codes[row] = place
    return found, codes


def log(values: Floats) -> Floats:
    """The natural logarithm, in steps that every machine rounds alike; that of a library need not be.

    >>> log(np.array([1.0, np.e])).round(12).tolist()
    [0.0, 1.0]
    """
    mantissa, exponent = np.frexp(values)
    low = mantissa < math.sqrt(0.5)
    mantissa, exponent = np.where(low, 2 * mantissa, mantissa), exponent - low
    s = (mantissa - 1) / (mantissa + 1)
    square, total = s * s, np.zeros_like(s)
    for odd in range(23, 0, -2):
        total = total * square + 1 / odd
    # ln 2 in two parts: the first has few digits, so that its multiples are exact.
    return exponent * 0.693147180369123816490 + (2 * s * total + exponent * 1.90821492927058770002e-10)


@dataclass(frozen=True)
class _Column:
    """What all kinds share."""

    kind: ClassVar[str]
    name: str

    def __post_init__(self) -> None:
        for problem, wrong in self._problems().items():
            if wrong:
                raise InvalidInput(f"column {quoted(self.name)} of an encoder: {problem}")

    def _problems(self) -> dict[str, bool]:
        return {}

    @property
    def names(self) -> tuple[str, ...]:
        """Those of the columns of features."""
        raise NotImplementedError

    def encode(self, cells: Sequence[Plain]) -> Read:
        """The features of these cells, a row each."""
        raise NotImplementedError

    def stored(self, cell: Plain) -> Plain:
        """What of a cell has to be kept to encode it again."""
        return cell

    def as_json(self) -> dict[str, Any]:
        """The column as plain values."""
        values = {
            name: list(value) if type(value) is tuple else value for name, value in asdict(self).items()
        }
        return {"kind": self.kind, **values}

    def _with_indicator(self, name: str, indicator: bool) -> tuple[str, ...]:
        return (name, f"{self.name} missing") if indicator else (name,)


def _one_number(
    cells: Sequence[Plain], read: Callable[[Plain], float | None], fill: float, indicator: bool,
    scaled: Callable[[Floats], Floats],
) -> Read:  # fmt: skip
    """Cells of which each is one number, or missing, or wrong."""
    found, codes = distinct(cells)
    numbers = [None if is_missing(cell) else read(cell) for cell in found]
    usable = np.array([number is not None and math.isfinite(number) for number in numbers], np.bool_)
    wrong = np.array(
        [not ok and not is_missing(cell) for ok, cell in zip(usable, found, strict=True)], np.bool_
    )
    rows = np.full((len(found), 1 + indicator), fill)
    known = np.array([number for number, ok in zip(numbers, usable, strict=True) if ok], np.float64)
    with np.errstate(all="ignore"):
        rows[usable, 0] = scaled(known)
    if indicator:
        rows[:, 1] = ~usable
    return Read(rows[codes], 0, int(wrong[codes].sum()))


def _finite(*numbers: float) -> bool:
    return all(abs(number) <= LARGEST_FEATURE for number in numbers)


@dataclass(frozen=True)
class NumberColumn(_Column):
    """Numbers on a plain or logarithmic scale: centred, divided by their spread, and moved to `furthest` if
    they are further away than that. 0 stands for no limit.

    Not more than 0 on a log scale is as far down as possible.
    """

    kind = "number"
    scale: str
    centre: float
    spread: float
    furthest: float
    fill: float
    indicator: bool
    comma: bool

    def _problems(self) -> dict[str, bool]:
        return {
            "no such scale": self.scale not in (PLAIN_SCALE, LOG, LOG_PLUS_1),
            "centre and fill must be finite": not _finite(self.centre, self.fill),
            "the spread must be positive": not 0 < self.spread <= LARGEST_FEATURE,
            "the limit must not be negative": not 0 <= self.furthest <= LARGEST_FEATURE,
            "a log scale needs a limit": self.scale != PLAIN_SCALE and not self.furthest,
        }

    @property
    def names(self) -> tuple[str, ...]:
        name = f"{self.name} (log)" if self.scale != PLAIN_SCALE else self.name
        return self._with_indicator(name, self.indicator)

    def encode(self, cells: Sequence[Plain]) -> Read:
        return _one_number(cells, self._read, self.fill, self.indicator, self._scaled)

    def _read(self, cell: Plain) -> float | None:
        return as_number(cell, comma=self.comma)

    def _scaled(self, values: Floats) -> Floats:
        if not self.furthest and self.centre == 0 and self.spread == 1:
            return values
        moved = (on_scale(self.scale, values) - self.centre) / self.spread
        return np.clip(moved, -self.furthest, self.furthest) if self.furthest else moved


def on_scale(scale: str, values: Floats) -> Floats:
    """The values, or their logarithms: minus infinity for what has none."""
    if scale == PLAIN_SCALE:
        return values
    shifted = values + 1 if scale == LOG_PLUS_1 else values
    return np.where(shifted > 0, log(np.where(shifted > 0, shifted, 1.0)), -np.inf)


@dataclass(frozen=True)
class DateColumn(_Column):
    """Dates: days before `reference`, which never changes, then as numbers are."""

    kind = "date"
    reference: str
    month_first: bool
    centre: float
    spread: float
    fill: float
    indicator: bool

    def __post_init__(self) -> None:
        try:
            date.fromisoformat(self.reference)
        except ValueError:
            raise InvalidInput(
                f"column {quoted(self.name)} of an encoder: no date, got {quoted(self.reference)}"
            ) from None
        super().__post_init__()

    def _problems(self) -> dict[str, bool]:
        return {
            "centre and fill must be finite": not _finite(self.centre, self.fill),
            "the spread must be positive": not 0 < self.spread <= LARGEST_FEATURE,
        }

    @property
    def names(self) -> tuple[str, ...]:
        return self._with_indicator(f"{self.name} (days before {self.reference})", self.indicator)

    def encode(self, cells: Sequence[Plain]) -> Read:
        start = float(date.fromisoformat(self.reference).toordinal())

        def scaled(days: Floats) -> Floats:
            return np.clip(((start - days) - self.centre) / self.spread, -FURTHEST, FURTHEST)

        return _one_number(cells, self._read, self.fill, self.indicator, scaled)

    def _read(self, cell: Plain) -> float | None:
        return as_days(cell, month_first=self.month_first)


@dataclass(frozen=True)
class FlagColumn(_Column):
    """Yes is 1, no is 0. Where there was one value or nothing, `given`: 1 if anything is there."""

    kind = "yes/no"
    given: bool
    fill: float
    indicator: bool

    def _problems(self) -> dict[str, bool]:
        return {
            "the mean of yes and no lies between 0 and 1": not 0 <= self.fill <= 1,
            "an indicator says again what is given": self.given and self.indicator,
        }

    @property
    def names(self) -> tuple[str, ...]:
        return self._with_indicator(f"{self.name} given" if self.given else self.name, self.indicator)

    def encode(self, cells: Sequence[Plain]) -> Read:
        return _one_number(cells, self._read, self.fill, self.indicator, lambda values: values)

    def _read(self, cell: Plain) -> float | None:
        if self.given:
            # One value or nothing: where somebody writes a no after all, it is one.
            return float(as_flag(cell) is not False)
        flag = as_flag(cell)
        return None if flag is None else float(flag)


@dataclass(frozen=True)
class CategoryColumn(_Column):
    """A column for each level, and one that rare and unknown levels share. Missing cells have the shares that
    the levels had."""

    kind = "category"
    levels: tuple[str, ...]
    shares: tuple[float, ...]
    indicator: bool

    def _problems(self) -> dict[str, bool]:
        return {
            f"it must have at most {MOST_LEVELS} levels": len(self.levels) > MOST_LEVELS,
            "two levels are the same": len({level_key(level) for level in self.levels}) < len(self.levels),
            "each level and the rest need a share": len(self.shares) != len(self.levels) + 1,
            "shares lie between 0 and 1": not all(0 <= share <= 1 for share in self.shares),
        }

    @cached_property
    def names(self) -> tuple[str, ...]:
        names = tuple(f"{self.name}={level}" for level in (*self.levels, OTHER))
        return (*names, f"{self.name} missing") if self.indicator else names

    def encode(self, cells: Sequence[Plain]) -> Read:
        found, codes = distinct(cells)
        places = {level_key(level): place for place, level in enumerate(self.levels)}
        n = len(self.levels)
        rows = np.zeros((len(found), n + 1 + self.indicator))
        unknown = np.zeros(len(found), np.bool_)
        for row, cell in enumerate(found):
            if is_missing(cell):
                rows[row, : n + 1] = self.shares
                rows[row, n + 1 :] = 1.0
                continue
            key = level_key(level_of(cell))
            place = places.get(key, n)
            rows[row, place] = 1.0
            unknown[row] = place == n and key != OTHER
        return Read(rows[codes], int(unknown[codes].sum()), 0)


def level_key(level: str) -> str:
    """Levels that differ in case or blanks alone are one."""
    return " ".join(level.split()).casefold()


@dataclass(frozen=True)
class EmbeddingPart(_Column):
    """One of the columns of an embedding. All are divided by the same number."""

    kind = "embedding part"
    block: str
    divisor: float
    fill: float
    comma: bool

    def _problems(self) -> dict[str, bool]:
        return {
            "the divisor must be positive": not 0 < self.divisor <= LARGEST_FEATURE,
            "the fill must be finite": not _finite(self.fill),
        }

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def encode(self, cells: Sequence[Plain]) -> Read:
        return _one_number(
            cells, self._read, self.fill, False, lambda values: in_embedding(values, self.divisor)
        )

    def _read(self, cell: Plain) -> float | None:
        return as_number(cell, comma=self.comma)


def in_embedding(values: Floats, divisor: float) -> Floats:
    """Coordinates in the unit of the embedding."""
    with np.errstate(over="ignore"):
        return np.clip(values / divisor, -FURTHEST_IN_EMBEDDING, FURTHEST_IN_EMBEDDING)


@dataclass(frozen=True)
class EmbeddingColumn(_Column):
    """Lists of numbers, all of one length and divided by one number."""

    kind = "embedding"
    divisor: float
    fill: tuple[float, ...]
    indicator: bool

    def _problems(self) -> dict[str, bool]:
        return {
            "the divisor must be positive": not 0 < self.divisor <= LARGEST_FEATURE,
            "the fill must be finite": not _finite(*self.fill),
            f"it has 1 to {MOST_FEATURES} numbers": not 1 <= len(self.fill) <= MOST_FEATURES,
        }

    @cached_property
    def names(self) -> tuple[str, ...]:
        names = tuple(f"{self.name}[{place}]" for place in range(len(self.fill)))
        return (*names, f"{self.name} missing") if self.indicator else names

    def stored(self, cell: Plain) -> Plain:
        vector = as_vector(cell)
        return vector if vector is not None else cell if is_missing(cell) else "no list"

    def encode(self, cells: Sequence[Plain]) -> Read:
        n = len(self.fill)
        rows = np.empty((len(cells), n + self.indicator))
        rows[:, :n] = self.fill
        rows[:, n:] = 1.0
        unreadable = 0
        for row, cell in enumerate(cells):
            vector = as_vector(cell)
            if vector is not None and len(vector) == n:
                rows[row, :n] = in_embedding(np.array(vector), self.divisor)
                rows[row, n:] = 0.0
            else:
                unreadable += not is_missing(cell)
        return Read(rows, 0, unreadable)


Column = NumberColumn | DateColumn | FlagColumn | CategoryColumn | EmbeddingPart | EmbeddingColumn
KINDS: dict[str, type[Column]] = {
    cls.kind: cls
    for cls in (NumberColumn, DateColumn, FlagColumn, CategoryColumn, EmbeddingPart, EmbeddingColumn)
}


def column_from_json(page: object) -> Column:
    """What `as_json` wrote; InvalidInput for anything else."""
    if not isinstance(page, Mapping) or str(page.get("kind")) not in KINDS:
        raise InvalidInput(
            f"a column of an encoder must have a kind ({', '.join(KINDS)}), got {quoted(page)}"
        )
    cls = KINDS[str(page["kind"])]
    wanted = {field.name: field.type for field in fields(cls)}
    if set(page) != {"kind", *wanted}:
        raise InvalidInput(
            f"a {cls.kind} of an encoder has the fields {', '.join(wanted)}, got {quoted(page)}"
        )
    return cls(**{name: _checked(name, page[name], kind) for name, kind in wanted.items()})


def _checked(name: str, value: object, wanted: object) -> Any:
    if wanted is float and type(value) in (int, float) and abs(value) < math.inf:  # type: ignore[arg-type]
        with suppress(OverflowError):  # Python compares whole numbers that no float can hold.
            return float(value)  # type: ignore[arg-type]
    if wanted in (str, bool) and type(value) is wanted:
        return value
    if wanted in (tuple[float, ...], tuple[str, ...]) and isinstance(value, list | tuple):
        inside = float if wanted == tuple[float, ...] else str
        return tuple(_checked(name, one, inside) for one in value)
    raise InvalidInput(f"{name} of a column of an encoder has the wrong type, got {quoted(value)}")
