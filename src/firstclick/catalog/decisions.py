"""What each column of a catalog is: a number, a category, yes or no, a date, an embedding, or no feature."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.cells import (
    LONGEST_LEVEL,
    Plain,
    as_days,
    as_flag,
    as_number,
    as_vector,
    has_decimal_comma,
    is_ambiguous,
    is_missing,
    is_month_first,
    level_of,
    names_both,
)
from firstclick.catalog.encoded_column import (
    FURTHEST,
    LOG,
    LOG_PLUS_1,
    MOST_LEVELS,
    OTHER,
    PLAIN_SCALE,
    SIZE,
    CategoryColumn,
    Column,
    DateColumn,
    EmbeddingColumn,
    EmbeddingPart,
    FlagColumn,
    NumberColumn,
    distinct,
    in_embedding,
    level_key,
    on_scale,
)
from firstclick.catalog.features import MOST_FEATURES
from firstclick.errors import InvalidInput
from firstclick.parameters import did_you_mean
from firstclick.validation.quoting import quoted

Floats = NDArray[np.float64]

# A column is of a kind if so many of its cells are; the others are told, and taken as missing.
ENOUGH = 0.95
# A text of which so much is a number, and that would be left out otherwise, is one all the same.
MOSTLY = 0.5
# Missing cells as common as this get a column that says where they are.
COMMON = 0.05
# A level of fewer items is rare.
FEWEST_OF_A_LEVEL = 2
# A text that differs in so many rows is a title or an address, not a category.
NEARLY_ALL = 0.9
# Skewed: the upper tail is so many times as long as the lower one. For a log-normal it is 2 at sigma 0.42.
SKEWED = 2.0
EXAMPLES = 3

LEFT_OUT = "left out"
IDENTIFIERS = frozenset(
    ("id", "ids", "ean", "sku", "gtin", "isbn", "asin", "upc", "code", "uuid", "guid", "key")
)
# What columns of row numbers are called, those of pandas' index among them.
ROW_NUMBERS = frozenset(("unnamed", "index", "row", "column", "nr", "no", "number"))
FEWEST_OF_AN_EMBEDDING = 4
WIDE_EMBEDDING = 16
# Columns of one embedding are numbered: these words before the number say so.
EMBEDDINGS = frozenset(
    ("vec", "vector", "emb", "embed", "embedding", "dim", "latent", "factor", "svd", "pca", "feature", "feat")
)
_NUMBERED = re.compile(r"(.*?)([_.\- ]?)(\d{1,4})")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@dataclass(frozen=True)
class Decision:
    """What a column was taken as, and why.

    `kind` is number, category, yes/no, date, embedding or left out. `block` is the embedding that the column
    is a part of, if it is.
    """

    name: str
    kind: str
    reason: str
    n_columns: int = 0
    n_missing: int = 0
    examples: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    block: str = ""


class Look:
    """A column as it is looked at: its cells, and each that differs once."""

    def __init__(self, name: str, cells: list[Plain], where: Callable[[int], str]) -> None:
        self.name, self.cells, self.where = name, cells, where
        self.found, self.codes = distinct(cells)
        self.counts = np.bincount(self.codes, minlength=len(self.found))
        self.missing = np.array([is_missing(cell) for cell in self.found], np.bool_)
        self.n_missing = int(self.counts[self.missing].sum())
        self.n_present = len(cells) - self.n_missing

    @cached_property
    def present(self) -> list[tuple[Plain, int]]:
        """The cells that are there, each once, and how often."""
        pairs = zip(self.found, self.counts.tolist(), self.missing.tolist(), strict=True)
        return [(cell, count) for cell, count, missing in pairs if not missing]

    @cached_property
    def levels(self) -> dict[str, int]:
        """How often each level is there; the most frequent way to write it stands for all."""
        spelled: dict[str, int] = {}
        for cell, count in self.present:
            level = level_of(cell)
            spelled[level] = spelled.get(level, 0) + count
        best: dict[str, tuple[int, str]] = {}
        total: dict[str, int] = {}
        for level, count in spelled.items():
            key = level_key(level)
            total[key] = total.get(key, 0) + count
            if key not in best or count > best[key][0]:
                best[key] = count, level
        return {best[key][1]: count for key, count in total.items()}

    @cached_property
    def has_one_value(self) -> bool:
        """Whether all cells that are there have one level."""
        first = level_key(level_of(self.present[0][0]))
        return all(level_key(level_of(cell)) == first for cell, _ in self.present)

    def share(self, is_one: Callable[[Plain], bool]) -> float:
        """The share of cells that are there for which this is true."""
        return sum(count for cell, count in self.present if is_one(cell)) / max(self.n_present, 1)

    def are(self, is_one: Callable[[Plain], bool], enough: float = ENOUGH) -> bool:
        """Whether this is true for enough of the cells that are there."""
        others, most = 0, self.n_present - enough * self.n_present
        for cell, count in self.present:
            others += 0 if is_one(cell) else count
            if others > most:
                return False
        return self.n_present > 0

    def values(self, read: Callable[[Plain], float | None]) -> Floats:
        """The number in each row; NaN where there is none."""
        numbers = [
            None if missing else read(cell) for cell, missing in zip(self.found, self.missing, strict=True)
        ]
        each = np.array([math.nan if number is None else number for number in numbers], np.float64)
        return each[self.codes]

    def wrong(self, read: Callable[[Plain], object], what: str) -> list[str]:
        """A sentence on the cells that are there and cannot be read, with the line of the first; or none."""
        bad = np.array(
            [
                not missing and read(cell) is None
                for cell, missing in zip(self.found, self.missing, strict=True)
            ],
            np.bool_,
        )
        return self._told(bad, f"is no {what}", f"are no {what}s") if bad.any() else []

    def _told(self, bad: NDArray[np.bool_], one: str, many: str) -> list[str]:
        rows = np.flatnonzero(bad[self.codes])
        first = f"{quoted(self.cells[rows[0]], 30)} in {self.where(int(rows[0]))}"
        count = f"1 cell {one}" if len(rows) == 1 else f"{len(rows):,} cells {many}"
        return [f"{count}, {first}; taken as missing"]

    def too_large(self, read: Callable[[Plain], float | None]) -> list[str]:
        """A sentence on numbers that are infinite or too large to be used; or none."""
        infinite = [not is_missing(cell) and math.isinf(read(cell) or 0.0) for cell in self.found]
        bad = np.array(infinite, np.bool_)
        return (
            self._told(bad, "is infinite or above 1e100", "are infinite or above 1e100") if bad.any() else []
        )

    @property
    def examples(self) -> tuple[str, ...]:
        """The most frequent cells, as they are written; one for those that differ in case or blanks alone."""
        shown: dict[str, str] = {}
        for cell, _ in sorted(self.present, key=lambda pair: -pair[1])[: 4 * EXAMPLES]:
            shown.setdefault(level_key(level_of(cell)), _shown(cell))
        return tuple(shown.values())[:EXAMPLES]

    def decided(self, kind: str, reason: str, *, missing: int | None = None, **more: Any) -> Decision:
        """The decision about this column."""
        n_missing = self.n_missing if missing is None else missing
        return Decision(self.name, kind, reason, n_missing=n_missing, examples=self.examples, **more)


Found = tuple[Column | None, Decision]


def _shown(cell: Plain, longest: int = 24) -> str:
    if type(cell) is list:
        text = "[" + ", ".join(f"{number:.3g}" for number in cell[:3]) + (", ...]" if len(cell) > 3 else "]")
    else:
        text = level_of(cell)
    return text if len(text) <= longest else text[: longest - 1] + "…"


@dataclass(frozen=True)
class Overrules:
    """What somebody decided himself: names of columns, and prefixes of embeddings."""

    ignore: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    number: tuple[str, ...] = ()
    embedding: tuple[str, ...] = ()

    def resolved(self, names: Collection[str]) -> "Overrules":
        """With the names as the catalog has them; InvalidInput for those it has not, and for two in one."""
        chosen: dict[str, str] = {}
        found = {}
        for option in ("ignore", "category", "number"):
            given = getattr(self, option)
            if isinstance(given, str):
                raise InvalidInput(
                    f"must be a list of columns, got the text {given!r}; say [{given!r}]", option
                )
            found[option] = tuple(_named(option, name, names) for name in given)
            for name in found[option]:
                if chosen.setdefault(name, option) != option:
                    raise InvalidInput(
                        f"column {name!r} is in `{chosen[name]}` and in `{option}`; leave out one of them"
                    )
        if isinstance(self.embedding, str):
            raise InvalidInput(
                f"must be a list of prefixes, got the text {self.embedding!r}; say [{self.embedding!r}]",
                "embedding",
            )
        return Overrules(**found, embedding=tuple(self.embedding))


def _named(option: str, name: str, names: Collection[str]) -> str:
    if name in names:
        return name
    same = [one for one in names if one.casefold() == str(name).strip().casefold()]
    if len(same) == 1:
        return same[0]
    raise InvalidInput(
        f"names {quoted(name)}, and no column is called so{did_you_mean(str(name), names) or _some(names)}",
        option,
    )


def _some(names: Iterable[str], most: int = 12) -> str:
    listed = list(names)
    shown = ", ".join(listed[:most]) + (", ..." if len(listed) > most else "")
    return f" (columns: {shown})" if listed else ""


def decide(looks: Sequence[Look], overrules: Overrules, *, unscaled: bool) -> list[Found]:
    """For each column what becomes of it, and why."""
    names = [look.name for look in looks]
    said = overrules.resolved(names)
    free = [look for look in looks if look.name not in (*said.ignore, *said.category)]
    votes = Counter(vote for look in free for vote in [_comma_of(look)] if vote is not None)
    hint = votes[True] > votes[False]
    found: dict[str, Found] = {} if unscaled else _embeddings(free, said, hint)
    for look in looks:
        if look.name not in found:
            found[look.name] = _decided(look, said, hint, unscaled)
    if not unscaled:
        _leave_out_copies([look for look in looks if look.name not in said.number], found)
    _check_width(found)
    return [found[name] for name in names]


def _comma_of(look: Look) -> bool | None:
    """Whether the column has decimal commas; None if it does not tell."""
    votes = Counter[bool | None]()
    for cell, count in look.present:
        votes[has_decimal_comma(cell)] += count
    if votes[True] == votes[False] or votes[True] + votes[False] + votes[None] < ENOUGH * look.n_present:
        return None
    return votes[True] > votes[False]


def _decided(look: Look, said: Overrules, hint: bool, unscaled: bool) -> Found:
    if look.name in said.ignore:
        return None, look.decided(LEFT_OUT, "ignored; you said so")
    if look.n_present == 0:
        return None, look.decided(LEFT_OUT, "empty; every cell is missing")
    if look.name in said.category:
        return _category(look, "category; you said so")
    if look.name in said.number:
        return _number(look, hint, unscaled, "number; you said so")
    if look.are(_is_vector):
        return _list_column(look, unscaled)
    if unscaled:
        if look.are(_is_flag, 1.0):
            return _flag(look)
        if look.are(_is_number):
            return _number(look, hint, unscaled, "number as it is")
        return None, look.decided(LEFT_OUT, "no number; this policy takes shares between 0 and 1")
    if look.has_one_value:
        return _one_value(look)
    if look.are(_is_flag, 1.0) and len({as_flag(cell) for cell, _ in look.present}) == 2:
        return _flag(look)
    if look.are(_is_date):
        return _date(look)
    if look.are(_is_number):
        return _number(look, hint, unscaled, "number")
    return _text(look, hint)


def _is_flag(cell: Plain) -> bool:
    return as_flag(cell) is not None


def _is_number(cell: Plain) -> bool:
    return as_number(cell) is not None


def _is_date(cell: Plain) -> bool:
    return as_days(cell) is not None or as_days(cell, month_first=True) is not None


def _is_vector(cell: Plain) -> bool:
    return as_vector(cell) is not None


def _one_value(look: Look) -> Found:
    if look.n_missing < COMMON * len(look.cells):
        return None, look.decided(LEFT_OUT, f"constant; always {quoted(look.examples[0], 30)}")
    column = FlagColumn(look.name, True, 0.0, False)
    reason = f"1 if given; it is always {quoted(look.examples[0], 30)} then"
    return column, look.decided("yes/no", reason, n_columns=1)


def _flag(look: Look) -> Found:
    values = look.values(lambda cell: float(as_flag(cell) or 0))
    indicator = _is_common(look.n_missing, look)
    column = FlagColumn(look.name, False, float(np.nanmean(values)), indicator)
    return column, look.decided("yes/no", f"{_percent(column.fill)} yes", n_columns=1 + indicator)


def _is_common(n_missing: int, look: Look) -> bool:
    return n_missing >= COMMON * len(look.cells) and n_missing > 0


def _number(look: Look, hint: bool, unscaled: bool, reason: str) -> Found:
    comma = _comma_of(look)
    problems = []
    unclear = next((cell for cell, _ in look.present if is_ambiguous(cell)), None)
    if comma is None:
        comma = hint
        if unclear is not None:
            problems.append(f"{unclear} is taken as {as_number(unclear, comma=hint):g}")

    def read(cell: Plain) -> float | None:
        return as_number(cell, comma=comma)

    problems += look.wrong(read, "number") + look.too_large(read)
    values = look.values(read)
    usable = np.isfinite(values)
    n_missing = int(len(values) - usable.sum())
    there = values[usable]
    if not len(there) and "you said" not in reason:
        why = "empty; no number can be used"
        return None, look.decided(LEFT_OUT, why, missing=n_missing, problems=tuple(problems))
    if not len(there):
        raise InvalidInput(
            f"names {look.name!r}, but none of its cells is a number, {quoted(look.examples[0], 30)} for "
            "instance; leave it out",
            "number",
        )
    indicator = _is_common(n_missing, look)
    if unscaled:
        column = NumberColumn(look.name, PLAIN_SCALE, 0.0, 1.0, 0.0, float(there.mean()), indicator, comma)
        return column, look.decided(
            "number", reason, missing=n_missing, n_columns=1 + indicator, problems=tuple(problems)
        )
    if reason == "number":
        why = _identifies(look.name, there, len(look.cells))
        if why:
            return None, look.decided(LEFT_OUT, why, missing=n_missing, problems=tuple(problems))
    scale = _scale_of(there)
    centre, spread = _centre_and_spread(on_scale(scale, there))
    if not spread > 0:
        return None, look.decided(
            LEFT_OUT, "constant; one number in all rows", missing=n_missing, problems=tuple(problems)
        )
    column = NumberColumn(look.name, scale, centre, spread, FURTHEST, 0.0, indicator, comma)
    column = replace(column, fill=_mean_of(column, look.cells, usable))
    words = [f"{scale} scale"] if scale else []
    words += ["decimal comma"] if comma and _has_comma(look) else []
    words += ["you said so"] if "you said" in reason else []
    words.append(f"{_number_shown(there.min())} to {_number_shown(there.max())}")
    told = "; ".join(words)
    decision = look.decided(
        "number", told, missing=n_missing, n_columns=1 + indicator, problems=tuple(problems)
    )
    return column, decision


def _number_shown(number: float) -> str:
    return f"{number:,.0f}" if 1000 <= abs(number) < 1e12 else f"{number:.4g}"


def _has_comma(look: Look) -> bool:
    return any(type(cell) is str and "," in cell for cell, _ in look.present)


def _mean_of(column: NumberColumn | DateColumn, cells: Sequence[Plain], usable: NDArray[np.bool_]) -> float:
    return float(column.encode(cells).rows[usable, 0].mean())


def _identifies(name: str, values: Floats, n_rows: int) -> str:
    """Why these numbers say who an item is and not what it is like; empty if they do not."""
    if n_rows < 3 or (values % 1).any() or len(np.unique(values)) < NEARLY_ALL * len(values):
        return ""
    if identifier_name(name):
        return "identifier; a whole number that differs in nearly every row"
    words = _WORDS.findall(name)
    in_order = len(values) == n_rows and values[0] in (0, 1) and bool((np.diff(values) == 1).all())
    if in_order and (not words or words[0].casefold() in ROW_NUMBERS):
        return "row numbers; they say nothing of an item"
    return ""


def identifier_name(name: str) -> bool:
    """Whether a column is called as those of ids are: its last word is id, ean, sku, ..."""
    words = _WORDS.findall(name)
    return bool(words) and words[-1].casefold() in IDENTIFIERS


def _scale_of(values: Floats) -> str:
    """The log scale for positive numbers whose upper tail is SKEWED times as long as the lower one.

    Whole numbers that may be 0, such as counts of reviews, get log(1 + x).
    """
    if values.min() > 0:
        scale = LOG
    elif values.min() == 0 and not (values % 1).any() and values.max() > 1:
        scale = LOG_PLUS_1
    else:
        return PLAIN_SCALE
    low, middle, high = np.quantile(values, (0.05, 0.5, 0.95))
    return scale if high > middle and high - middle >= SKEWED * (middle - low) else PLAIN_SCALE


def _centre_and_spread(values: Floats) -> tuple[float, float]:
    """The median, and what to divide by so that numbers get the standard deviation SIZE.

    The spread is that of a normal distribution with the same quantiles, the wider of two: half of the
    numbers lie within the first, nine tenths within the second. If both are 0, as where most numbers are 0,
    it is the standard deviation itself.
    """
    centre = float(np.median(values))
    quarter, three_quarters = np.quantile(values, (0.25, 0.75))
    # Inwards, so that one wild number among a few is not seen.
    high = np.quantile(values, 0.95, method="lower")
    low = np.quantile(values, 0.05, method="higher")
    spread = max(float(three_quarters - quarter) / 1.349, float(high - low) / 3.29)
    if spread > 0:
        return centre, spread / SIZE
    away = values - centre
    largest = float(np.abs(away).max())
    return centre, largest * float((away / largest).std()) / SIZE if largest > 0 else 0.0


def _date(look: Look) -> Found:
    votes = Counter[bool | None]()
    for cell, count in look.present:
        votes[is_month_first(cell)] += count
    month_first = votes[True] > votes[False]
    problems = []
    unclear = next((cell for cell, _ in look.present if names_both(cell)), None)
    if unclear is not None and votes[True] == votes[False]:
        problems.append(f"{unclear} is taken as day/month/year")

    def read(cell: Plain) -> float | None:
        return as_days(cell, month_first=month_first)

    problems += look.wrong(read, "date")
    days = look.values(read)
    usable = np.isfinite(days)
    n_missing = int(len(days) - usable.sum())
    latest = math.floor(days[usable].max()) if usable.any() else 0
    centre, spread = _centre_and_spread(latest - days[usable]) if usable.any() else (0.0, 0.0)
    if not spread > 0:
        return None, look.decided(
            LEFT_OUT, "constant; one date in all rows", missing=n_missing, problems=tuple(problems)
        )
    indicator = _is_common(n_missing, look)
    reference = date.fromordinal(latest).isoformat()
    column = DateColumn(look.name, reference, month_first, centre, spread, 0.0, indicator)
    column = replace(column, fill=_mean_of(column, look.cells, usable))
    earliest = date.fromordinal(max(math.floor(days[usable].min()), 1)).isoformat()
    reason = f"days before {reference}; the earliest is {earliest}"
    return column, look.decided(
        "date", reason, missing=n_missing, n_columns=1 + indicator, problems=tuple(problems)
    )


def _text(look: Look, hint: bool) -> Found:
    if look.share(_is_long) > 0.5:
        return None, look.decided(LEFT_OUT, f"long text; more than {LONGEST_LEVEL} characters in most cells")
    if not _differs(look):
        return _category(look, "category")
    # Better than nothing, and it is told.
    if look.share(_is_number) >= MOSTLY:
        return _number(look, hint, False, "number")
    if look.share(_is_date) >= MOSTLY:
        return _date(look)
    return None, look.decided(LEFT_OUT, "differs in nearly every row")


def _is_long(cell: Plain) -> bool:
    return type(cell) is str and len(cell) > LONGEST_LEVEL


def is_nearly_unique(look: Look) -> bool:
    """Whether it is a text that differs in nearly every row, such as a title; no number and no date."""
    if look.are(_is_number) or look.are(_is_date) or look.are(_is_vector) or look.share(_is_long) > 0.5:
        return False
    return _differs(look)


def _differs(look: Look) -> bool:
    levels = look.levels
    return len(levels) >= NEARLY_ALL * look.n_present or max(levels.values()) < FEWEST_OF_A_LEVEL


def _category(look: Look, reason: str) -> Found:
    counted = {
        level: n
        for level, n in look.levels.items()
        if level_key(level) != OTHER and len(level) <= LONGEST_LEVEL
    }
    fewest = FEWEST_OF_A_LEVEL if any(n >= FEWEST_OF_A_LEVEL for n in counted.values()) else 1
    # By falling frequency; among equals the first in the file.
    kept = sorted((level for level in counted if counted[level] >= fewest), key=lambda level: -counted[level])
    kept = kept[:MOST_LEVELS]
    own = sum(counted[level] for level in kept)
    rest = look.n_present - own
    shares = [counted[level] / look.n_present for level in kept] + [rest / look.n_present]
    indicator = _is_common(look.n_missing, look)
    column = CategoryColumn(look.name, tuple(kept), tuple(shares), indicator)
    n_levels = len(look.levels)
    told = f"{n_levels:,} levels" if n_levels > 1 else "1 level"
    if n_levels > len(kept):
        told += f", {n_levels - len(kept):,} in {OTHER!r} ({_percent(rest / look.n_present)} of items)"
    joined = len({level_of(cell) for cell, _ in look.present}) - n_levels
    problems = [f"spellings that differ in case or blanks alone were joined: {joined:,}"] if joined else []
    if "you said" not in reason and (share := look.share(_is_number)) >= MOSTLY:
        problems.append(f"{_percent(share)} of its cells are numbers: `number` takes the others as missing")
    prefix = f"{told}; you said so" if "you said" in reason else told
    return column, look.decided("category", prefix, n_columns=len(column.names), problems=tuple(problems))


def _embeddings(looks: Sequence[Look], said: Overrules, hint: bool) -> dict[str, Found]:
    """The columns that are parts of an embedding."""
    by_prefix: dict[str, list[Look]] = {}
    for look in looks:
        if look.name not in said.number and (parts := _NUMBERED.fullmatch(look.name)):
            by_prefix.setdefault(parts[1], []).append(look)
    asked = {_prefix(prefix): prefix for prefix in said.embedding}
    found: dict[str, Found] = {}
    for prefix, parts_of in by_prefix.items():
        if _prefix(prefix) in asked:
            wrong = [look for look in parts_of if not look.are(_is_number)]
            if wrong:
                raise InvalidInput(
                    f"names {asked[_prefix(prefix)]!r}, but its column {wrong[0].name!r} is no number, "
                    f"{quoted((wrong[0].examples or ('',))[0], 30)} for instance; `ignore` it",
                    "embedding",
                )
            asked.pop(_prefix(prefix))
        elif not _looks_like_one(prefix, parts_of):
            continue
        found |= _block(parts_of, hint)
    lists = {_prefix(look.name): look for look in looks}
    for key, prefix in asked.items():
        if key not in lists or not lists[key].are(_is_vector):
            names = sorted(by_prefix) or [look.name for look in looks]
            raise InvalidInput(
                f"names {prefix!r}, but there are no columns {prefix}0, {prefix}1, ..., and no column of "
                f"lists of numbers is called so{did_you_mean(prefix, names)}",
                "embedding",
            )
    return found


def _prefix(text: str) -> str:
    return str(text).rstrip("_.- ").casefold()


def _looks_like_one(prefix: str, looks: Sequence[Look]) -> bool:
    words = _WORDS.findall(prefix)
    numbers = [int(_NUMBERED.fullmatch(look.name)[3]) for look in looks]  # type: ignore[index]
    if prefix == "f":
        # What `firstclick features` writes.
        named = numbers == list(range(1, len(looks) + 1))
    else:
        named = bool(words) and words[-1].casefold() in EMBEDDINGS and len(looks) > 1
        # Under another name, such as img_0, they must be many and counted from 0 or 1.
        in_order = numbers in (list(range(len(looks))), list(range(1, len(looks) + 1)))
        named = named or (in_order and len(looks) >= FEWEST_OF_AN_EMBEDDING)
    return named and all(look.are(_is_number) for look in looks)


def _block(looks: Sequence[Look], hint: bool) -> dict[str, Found]:
    """One embedding of several columns: one number divides all."""
    called = f"{looks[0].name} ... {looks[-1].name}" if len(looks) > 1 else looks[0].name
    commas = [hint if (comma := _comma_of(look)) is None else comma for look in looks]
    readers = [_reader(comma) for comma in commas]
    table = np.column_stack([look.values(read) for look, read in zip(looks, readers, strict=True)])
    table[~np.isfinite(table)] = np.nan
    divisor = _divisor(np.nan_to_num(table))
    found: dict[str, Found] = {}
    for look, comma, read, values in zip(looks, commas, readers, table.T, strict=True):
        there = values[~np.isnan(values)]
        fill = float(in_embedding(there, divisor).mean()) if len(there) else 0.0
        column = EmbeddingPart(look.name, called, divisor, fill, comma)
        problems = tuple(look.wrong(read, "number") + look.too_large(read))
        reason = f"embedding of {len(looks)}; all columns are divided by {divisor:.4g}"
        decision = look.decided(
            "embedding",
            reason,
            missing=len(values) - len(there),
            n_columns=1,
            problems=problems,
            block=called,
        )
        found[look.name] = column, decision
    return found


def _reader(comma: bool) -> Callable[[Plain], float | None]:
    return lambda cell: as_number(cell, comma=comma)


def _divisor(table: Floats) -> float:
    """What makes the columns of an embedding about 1 in size, as numbers are; of a wide one less, so that it
    does not drown them: a row is about as long as one of WIDE_EMBEDDING columns."""
    largest = float(np.abs(table).max(initial=0.0)) or 1.0
    centred = table / largest - (table / largest).mean(axis=0)
    norms = largest * np.sqrt((centred**2).sum(axis=1))
    usual = float(np.median(norms)) or float(norms.max()) or largest
    return usual / math.sqrt(min(table.shape[1], WIDE_EMBEDDING))


def _list_column(look: Look, unscaled: bool) -> Found:
    lengths = Counter[int]()
    for cell, count in look.present:
        lengths[len(as_vector(cell) or ())] += count
    n = max((length for length in lengths if length), key=lambda length: lengths[length])
    if n > MOST_FEATURES:
        raise InvalidInput(
            f"column {look.name!r} has lists of more than {MOST_FEATURES:,} numbers; shorten or ignore it"
        )

    def read(cell: Plain) -> list[float] | None:
        vector = as_vector(cell)
        return vector if vector is not None and len(vector) == n else None

    vectors = [read(cell) for cell in look.cells]
    table = np.array([vector for vector in vectors if vector is not None], np.float64)
    divisor = 1.0 if unscaled else _divisor(table)
    n_missing = len(look.cells) - len(table)
    indicator = _is_common(n_missing, look)
    fill = tuple(in_embedding(table, divisor).mean(axis=0).tolist())
    column = EmbeddingColumn(look.name, divisor, fill, indicator)
    reason = f"embedding of {n}; divided by {divisor:.4g}"
    problems = tuple(look.wrong(read, f"list of {n} number"))
    return column, look.decided(
        "embedding", reason, missing=n_missing, n_columns=n + indicator, problems=problems
    )


def _leave_out_copies(looks: Sequence[Look], found: dict[str, Found]) -> None:
    """Of columns that become the same features, but for a sign, the first stays."""
    first: dict[bytes, str] = {}
    for look in looks:
        column, decision = found[look.name]
        if column is None or isinstance(column, EmbeddingPart | EmbeddingColumn):
            continue
        rows = np.round(column.encode(look.cells).rows, 9) + 0.0
        if isinstance(column, NumberColumn | DateColumn):
            sign = np.sign(rows[np.flatnonzero(rows[:, 0])[:1], 0])
            rows[:, :1] = rows[:, :1] * (sign if len(sign) else 1.0) + 0.0
        key = hashlib.blake2b(np.ascontiguousarray(rows).tobytes()).digest()
        if key in first:
            told = f"a copy of {first[key]}; the same but for unit or names"
            found[look.name] = None, replace(decision, kind=LEFT_OUT, reason=told, n_columns=0)
        else:
            first[key] = look.name


def _check_width(found: Mapping[str, Found]) -> None:
    widths = {name: decision.n_columns for name, (_, decision) in found.items()}
    total = sum(widths.values())
    if total > MOST_FEATURES:
        widest = sorted(widths, key=lambda name: -widths[name])[:5]
        listed = ", ".join(f"{name} ({widths[name]:,})" for name in widest)
        raise InvalidInput(
            f"the catalog becomes {total:,} features, and {MOST_FEATURES:,} is the most; the widest columns "
            f"are {listed}: `ignore` some"
        )


def _percent(share: float) -> str:
    return "less than 1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"
