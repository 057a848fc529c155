"""Single cells of a catalog: what is missing, a number, a yes or no, a date, a list of numbers.

Two steps. `plain` makes one of a few types out of whatever a file, a frame or a request holds. The others
read a plain cell, and give None if it is not what they look for.
"""

import json
import math
import re
import unicodedata
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from uuid import UUID

import numpy as np

from firstclick.catalog.features import LARGEST_FEATURE, MOST_FEATURES

# What is left of a cell when it is plain, and what JSON and MessagePack can hold.
Plain = str | int | float | bool | list[float] | None

# A longer text is no level of a category. It is kept with one character more, so that it stays too long.
LONGEST_LEVEL = 200
LARGEST_INTEGER = 2**63 - 1

MISSING = frozenset(
    ("", "na", "n/a", "n.a.", "k.a.", "n.c.", "n.d.", "unknown", "unbekannt",
     "#n/a", "#na", "<na>", "nan", "nat", "null", "none", "nil", "\\n", "?",
     "-", "--", "---", "\N{EN DASH}", "\N{EM DASH}")
)  # fmt: skip
TRUE = frozenset(("true", "yes", "y", "t", "1", "1.0", "ja", "j", "oui", "si", "sí", "wahr", "vrai"))
FALSE = frozenset(("false", "no", "n", "f", "0", "0.0", "nein", "non", "falsch", "faux"))

CURRENCIES = frozenset(
    ("aud", "brl", "cad", "chf", "cny", "czk", "dkk", "eur", "gbp", "huf", "inr", "jpy", "krw", "mxn", "nok",
     "nzd", "pln", "ron", "sek", "sgd", "thb", "try", "usd", "zar")
)  # fmt: skip
_EXPONENT = r"(?:[eE][+-]?\d{1,4})?"
_POINT = re.compile(rf"[+-]?(?:(?:\d+|[1-9]\d{{0,2}}(?:,\d{{3}})+)(?:\.\d*)?|\.\d+){_EXPONENT}", re.ASCII)
_COMMA = re.compile(rf"[+-]?(?:(?:\d+|[1-9]\d{{0,2}}(?:\.\d{{3}})+)(?:,\d*)?|,\d+){_EXPONENT}", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_MONEY_WORD = re.compile(r"^([A-Za-z]{3})\.?(?=[\d.,+-])|(?<=[\d.,])([A-Za-z]{3})$")
# Blanks, and the apostrophe that separates thousands in Switzerland.
_DROPPED = re.compile(r"[\s'’]+")
_MINUS = str.maketrans({"−": "-"})

_TIME = (
    r"(?:[T ]\s*(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?P<part>[.,]\d{1,9})?)?"
    r"\s*(?P<zone>Z|[+-]\d{2}:?\d{2})?)?"
)
_YEAR_FIRST = re.compile(r"(?P<year>\d{4})(?P<mark>[-/.])(?P<a>\d{1,2})(?P=mark)(?P<b>\d{1,2})" + _TIME, re.A)
_YEAR_LAST = re.compile(r"(?P<a>\d{1,2})(?P<mark>[-/.])(?P<b>\d{1,2})(?P=mark)(?P<year>\d{4})" + _TIME, re.A)
# 31.12.24; with one digit more or less it might be a version.
_SHORT_YEAR = re.compile(r"(\d\d([/.])\d\d\2)(\d\d)", re.A)


def plain(cell: object) -> Plain:
    """The cell as a text, a number, a bool, a list of numbers, or None if nothing is there.

    >>> plain(" tea "), plain(float("nan")), plain(date(2024, 5, 1)), plain((1, 2))
    ('tea', None, '2024-05-01', [1.0, 2.0])
    """
    kind = type(cell)
    if kind is str:
        return _text(cell)  # type: ignore[arg-type]
    if cell is None or kind is bool:
        return cell  # type: ignore[return-value]
    if kind is float:
        return _float(cell)  # type: ignore[arg-type]
    if kind is int:
        return _whole(cell)  # type: ignore[arg-type]
    return _of_other_type(cell)


def _float(number: float) -> float | str | None:
    if math.isfinite(number):
        return number + 0.0  # Minus zero equals zero, and would give other bits.
    # Infinity is told as a cell that cannot be used; NaN is what pandas writes for nothing.
    return None if math.isnan(number) else "inf" if number > 0 else "-inf"


def _whole(number: int) -> int | str:
    if abs(number) <= LARGEST_INTEGER:
        return number
    return str(number) if number.bit_length() < 512 else "-inf" if number < 0 else "inf"


def _text(text: str) -> str | None:
    text = text.strip()
    if len(text) > LONGEST_LEVEL and not (text[0] == "[" and text[-1] == "]"):
        text = text[: LONGEST_LEVEL + 1]
    if not text.isascii():
        # Half a surrogate pair can be in JSON, and cannot be written as UTF-8.
        text = text.encode("utf-8", "replace").decode()
    return text or None


def _of_other_type(cell: object) -> Plain:
    if isinstance(cell, str):
        return _text(str(cell))
    if isinstance(cell, datetime | date):
        # pandas' NaT is a datetime, and has no year.
        return None if cell != cell else cell.isoformat()
    if isinstance(cell, np.datetime64):
        return None if np.isnat(cell) else str(cell.astype("datetime64[us]"))
    if isinstance(cell, timedelta):
        return cell / timedelta(1)
    if isinstance(cell, np.timedelta64):
        return plain(float(cell / np.timedelta64(1, "D")))
    if isinstance(cell, np.generic):
        return None if isinstance(cell, np.void) else plain(cell.item())
    if isinstance(cell, float | Decimal):
        return plain(_as_float(cell))
    if isinstance(cell, int):
        return plain(int(cell))
    if isinstance(cell, list | tuple | np.ndarray):
        return _list(cell.tolist() if isinstance(cell, np.ndarray) else list(cell))
    if isinstance(cell, UUID | time):
        return str(cell)
    # Structs, bytes and the like are nothing that can be learned from.
    return None


def _as_float(number: float | Decimal) -> float:
    try:
        return float(number)
    except (ValueError, OverflowError):
        return math.nan


def _list(cells: list[object]) -> Plain:
    """A list of numbers as such, cut where nothing takes more; one of texts as one text."""
    cells = cells[: MOST_FEATURES + 1]
    if not cells:
        return None
    if all(type(cell) is float or (isinstance(cell, int | float | np.number)) for cell in cells):
        numbers = [_as_float(cell) + 0.0 for cell in cells]  # type: ignore[arg-type]
        return numbers if all(math.isfinite(number) for number in numbers) else None
    return _text("|".join(str(cell) for cell in cells if cell is not None and not isinstance(cell, Mapping)))


def is_missing(cell: Plain) -> bool:
    """Whether there is nothing in the cell, or a word for nothing."""
    return cell is None or (type(cell) is str and len(cell) < 6 and cell.casefold() in MISSING)


def has_decimal_comma(cell: Plain) -> bool | None:
    """Whether this can only be a number with a decimal comma; False: with a point; None: it does not tell.

    >>> has_decimal_comma("1,52"), has_decimal_comma("1,234.56"), has_decimal_comma("1,234")
    (True, False, None)
    """
    if type(cell) is not str or not ("," in cell or "." in cell):
        return None
    text = _bare(cell)
    point, comma = _POINT.fullmatch(text) is not None, _COMMA.fullmatch(text) is not None
    return None if point == comma else comma


def is_ambiguous(cell: Plain) -> bool:
    """Whether a mark in it may separate thousands or decimals, such as 1,234."""
    if type(cell) is not str or not ("," in cell or "." in cell):
        return False
    text = _bare(cell)
    both = _POINT.fullmatch(text) is not None and _COMMA.fullmatch(text) is not None
    return both and as_number(cell, comma=True) != as_number(cell, comma=False)


def as_number(cell: Plain, *, comma: bool = False) -> float | None:
    """The number in a cell, None if it is none; infinite if it is too large to be a feature.

    Currencies, per cent signs and blanks are dropped. `comma` is the column's decimal mark; a number that
    can only be read with the other mark is read so.

    >>> as_number("1.234,56 €", comma=True), as_number("1,234.56"), as_number("12 %"), as_number("1_000")
    (1234.56, 1234.56, 12.0, None)
    """
    if type(cell) is str:
        number = _number_in(cell, comma)
    elif isinstance(cell, int | float):
        number = float(cell)
    else:
        return None
    if number is None or abs(number) <= LARGEST_FEATURE:
        return number
    return math.copysign(math.inf, number)


def _number_in(text: str, comma: bool) -> float | None:
    try:
        # Most are as Python writes them. It takes 1_000 and digits of other alphabets, and we do not.
        number = float(text) if text.isascii() and "_" not in text else None
    except ValueError:
        number = None
    if number is not None and not (comma and "." in text):
        return None if math.isnan(number) else number
    text = _bare(text)
    for mark in (comma, not comma):
        if (_COMMA if mark else _POINT).fullmatch(text):
            digits = text.replace(".", "").replace(",", ".") if mark else text.replace(",", "")
            return float(digits)
    return math.copysign(math.inf, -1 if text.startswith("-") else 1) if _INFINITE.fullmatch(text) else None


@lru_cache(maxsize=4096)
def _bare(text: str) -> str:
    """The text without blanks, currency and per cent."""
    if len(text) > LONGEST_LEVEL:
        return ""
    text = _DROPPED.sub("", text.translate(_MINUS))
    if text.isascii():
        text = text.strip("$%")
        # The sign may stand before the currency: -$5.
        if text[:2] in ("-$", "+$"):
            text = text[0] + text[2:]
    else:
        text = "".join(
            letter for letter in text if letter not in "$%" and unicodedata.category(letter) != "Sc"
        )
    if text and (text[0].isalpha() or text[-1].isalpha()):
        text = _MONEY_WORD.sub(_without_currency, text)
    return text


def _without_currency(found: "re.Match[str]") -> str:
    word = found[1] or found[2]
    return "" if word.casefold() in CURRENCIES else found[0]


def as_flag(cell: Plain) -> bool | None:
    """Whether the cell says yes; None if it says neither yes nor no.

    >>> as_flag("Yes"), as_flag(0), as_flag("nein"), as_flag("maybe")
    (True, False, False, None)
    """
    if type(cell) is bool:
        return cell
    if type(cell) is str:
        word = cell.casefold() if len(cell) < 8 else ""
        return True if word in TRUE else False if word in FALSE else None
    return bool(cell) if cell in (0, 1) else None


def as_days(cell: Plain, *, month_first: bool = False) -> float | None:
    """The date in a cell as days since the year 1, in UTC if it has a zone; None if it is no date.

    >>> as_days("2024-05-02") - as_days("01.05.2024"), as_days("05/01/2024") == as_days("2024-01-05")
    (1.0, True)
    """
    found = _date_in(cell)
    if found is None:
        return None
    year, first, second = int(found["year"]), int(found["a"]), int(found["b"])
    if found.re is _YEAR_LAST and not (month_first and found["mark"] == "/"):
        first, second = second, first
    try:
        days = float(date(year, first, second).toordinal())
    except ValueError:
        return None
    return days + (_seconds(found) / 86400 if found["hour"] else 0.0)


def _date_in(cell: Plain) -> "re.Match[str] | None":
    if type(cell) is not str or not 8 <= len(cell) <= 40 or not cell[0].isdigit():
        return None
    if short := _SHORT_YEAR.fullmatch(cell):
        # As POSIX has it: 69 is 1969, 68 is 2068.
        cell = f"{short[1]}{'19' if short[3] >= '69' else '20'}{short[3]}"
    return _YEAR_FIRST.fullmatch(cell) or _YEAR_LAST.fullmatch(cell)


def _seconds(found: "re.Match[str]") -> float:
    """The time of the day, and what its zone moves it by; a time that is none is midnight."""
    hour, minute, second = int(found["hour"]), int(found["minute"]), int(found["second"] or 0)
    if hour > 23 or minute > 59 or second > 60:
        return 0.0
    zone = found["zone"] or "Z"
    ahead = 0 if zone == "Z" else (int(zone[1:3]) * 60 + int(zone[-2:])) * (-1 if zone[0] == "-" else 1)
    part = float(f"0{found['part'].replace(',', '.')}") if found["part"] else 0.0
    return (hour * 60 + minute - ahead) * 60 + second + part


def is_month_first(cell: Plain) -> bool | None:
    """Whether 12/31/2024 says that months come first, and 31/12/2024 that days do; None: it does not tell."""
    found = _date_in(cell)
    if found is None or found.re is not _YEAR_LAST or found["mark"] != "/":
        return None
    first, second = int(found["a"]), int(found["b"])
    return None if (first > 12) == (second > 12) else second > 12


def names_both(cell: Plain) -> bool:
    """Whether a date may be read in two ways, such as 03/04/2024."""
    found = _date_in(cell)
    if found is None or found.re is not _YEAR_LAST or found["mark"] != "/":
        return False
    first, second = int(found["a"]), int(found["b"])
    return first != second and 0 < first <= 12 and 0 < second <= 12


def as_vector(cell: Plain) -> list[float] | None:
    """The list of numbers in a cell, also one written as text, such as [0.1, 0.2]; None if it is none."""
    if type(cell) is str and cell.startswith("[") and cell.endswith("]"):
        try:
            inside = json.loads(cell)
        except (ValueError, RecursionError):
            return None
        cell = plain(inside) if isinstance(inside, list) else None
    if type(cell) is not list or not all(abs(number) <= LARGEST_FEATURE for number in cell):
        return None
    return cell


def level_of(cell: Plain) -> str:
    """How a cell is called as a level of a category; a year that a frame made 2020.0 is 2020."""
    if type(cell) is str:
        return " ".join(cell.split())
    if type(cell) is bool:
        return "true" if cell else "false"
    if type(cell) is float and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return str(cell)
