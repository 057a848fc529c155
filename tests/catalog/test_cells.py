import json
import math
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstclick.catalog.cells import (
    LONGEST_LEVEL,
    as_days,
    as_flag,
    as_number,
    as_vector,
    has_decimal_comma,
    is_ambiguous,
    is_missing,
    is_month_first,
    level_of,
    plain,
)


@pytest.mark.parametrize(
    ("text", "point", "comma"),
    [
        ("1,234", 1234, 1.234), ("1.234", 1.234, 1234),
        *[(text, number, number) for text, number in [
            ("12", 12), ("-3.5", -3.5), ("1,52", 1.52), ("1.234,56", 1234.56), ("1,234.56", 1234.56),
            ("0,125", 0.125), ("0.125", 0.125), ("1.234.567", 1234567), ("1,234,567", 1234567),
            ("19,99 €", 19.99), ("$1,234.50", 1234.5), ("-$5", -5), ("EUR 12,50", 12.5), ("12.50 USD", 12.5),
            ("12 %", 12), ("1 234,5", 1234.5), ("1'234.50", 1234.5), ("−7", -7), ("1,5e-3", 0.0015),
            (".5", 0.5), ("5.", 5), ("-Infinity", -math.inf), ("1e308", math.inf), ("1e100", 1e100),
        ]],
        *[(text, None, None) for text in (
            "1_000", "12 kg", "on request", "1,2,3", "1.2.3", "--5", "1,23,456", "", "€", "١٢", "nan", "0x1F",
            "12 abc",
        )],
    ],
)  # fmt: skip
def test_numbers_have_a_decimal_point_or_comma(text, point, comma):
    assert as_number(text) == point
    assert as_number(text, comma=True) == comma


@pytest.mark.parametrize(
    ("text", "comma", "unclear"),
    [
        ("1,52", True, False), ("1.52", False, False), ("1,234", None, True), ("1.234", None, True),
        ("1.234,5", True, False), ("1,234.5", False, False), ("12", None, False), ("0,500", True, False),
        ("x,y", None, False), ("1,234,567", False, False), (1.5, None, False),
    ],
)  # fmt: skip
def test_decimal_mark_is_recognised_or_unclear(text, comma, unclear):
    assert has_decimal_comma(text) is comma
    assert is_ambiguous(text) is unclear


@given(st.floats(-1e100, 1e100))
def test_numbers_of_python_are_read_with_the_same_bits(number):
    assert as_number(repr(number)) == number
    german = f"{number:,.2f}".translate(str.maketrans(",.", ".,"))
    assert as_number(german, comma=True) == float(f"{number:.2f}")


def test_words_for_nothing_are_missing():
    for cell in ("", "NA", "n/a", "N/A", "null", "NULL", "-", "None", "#N/A", "nan", "–", None):
        assert is_missing(plain(cell)), cell
    for cell in ("no", "0", 0, False, "n", "nah", "NAB", " x", "none of these"):
        assert not is_missing(plain(cell)), cell


def test_words_and_numbers_for_yes_and_no_are_flags():
    for cell in ("Yes", "TRUE", "1", 1.0, True, "ja"):
        assert as_flag(cell) is True, cell
    for cell in ("no", "f", 0, "Nein"):
        assert as_flag(cell) is False, cell
    for cell in ("2", 0.5, "maybe", [0.0]):
        assert as_flag(cell) is None, cell


DAY = date(2024, 12, 31).toordinal()


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("2024-12-31", DAY), ("2024/12/31", DAY), ("31.12.2024", DAY), ("31/12/2024", DAY), ("31.12.24", DAY),
        ("2024-12-31T12:00", DAY + 0.5), ("2024-12-31 06:00:00.000", DAY + 0.25),
        ("2024-12-31T12:00:00Z", DAY + 0.5), ("2024-12-31T12:00:00+06:00", DAY + 0.25),
        ("2024-12-31 12:00 -0600", DAY + 0.75), ("31.12.2024 18:00", DAY + 0.75),
        ("31.12.69", float(date(1969, 12, 31).toordinal())),
        *[(text, None) for text in (
            "12/31/2024", "2024-13-01", "2024-02-30", "20241231", "2024", "1.12.24", "2024-12/31",
            "0000-01-01", "2024-12-31x", 20241231,
        )],
    ],
)  # fmt: skip
def test_dates_are_days(text, days):
    assert as_days(text) == days


def test_months_come_first_where_slashes_say_so():
    assert as_days("12/31/2024", month_first=True) == DAY
    assert as_days("31.12.2024", month_first=True) == DAY
    assert [is_month_first(text) for text in ("12/31/2024", "31/12/2024", "03/04/2024", "31.12.2024")] == [
        True, False, None, None,
    ]  # fmt: skip


zones = st.none() | st.just(timezone(timedelta(hours=-5)))


@given(st.datetimes(max_value=datetime(9998, 12, 31), timezones=zones))
def test_dates_of_python_are_read(moment):
    naive = moment.replace(tzinfo=None) + (timedelta(hours=5) if moment.tzinfo else timedelta(0))
    seconds = (naive - datetime(1, 1, 1)) / timedelta(seconds=1)
    assert as_days(plain(moment)) == pytest.approx(1 + seconds / 86400, abs=1e-9)


@pytest.mark.parametrize(
    ("cell", "simple"),
    [
        (" tea ", "tea"), ("  ", None), (3, 3), (2.5, 2.5), (float("nan"), None), (float("-inf"), "-inf"),
        (True, True), (np.True_, True), (np.int32(4), 4), (np.float32(0.5), 0.5), (Decimal("1.5"), 1.5),
        (Decimal("NaN"), None), (2**63 - 1, 2**63 - 1), (2**63, str(2**63)), (-(10**400), "-inf"),
        (date(2024, 5, 1), "2024-05-01"),
        (datetime(2024, 5, 1, 6), "2024-05-01T06:00:00"), (pd.NaT, None), (pd.NA, None),
        (np.datetime64("2024-05-01"), "2024-05-01T00:00:00.000000"), (np.datetime64("NaT"), None),
        (timedelta(hours=36), 1.5), ([1, 2.5], [1.0, 2.5]), (np.array([1, 2]), [1.0, 2.0]), ([], None),
        (["a", None, "b"], "a|b"), ([1.0, math.nan], None), (b"x", None), ({"a": 1}, None), ("\ud800", "?"),
        ("x" * 5000, "x" * (LONGEST_LEVEL + 1)),
    ],
)  # fmt: skip
def test_cells_become_plain_values(cell, simple):
    result = plain(cell)
    assert result == simple
    assert type(result) is type(simple)


SIMPLE = (
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.dates(), st.datetimes(), st.binary(),
    st.decimals(), st.uuids(), st.timedeltas(), st.complex_numbers(),
)  # fmt: skip
anything = st.recursive(
    st.one_of(*SIMPLE),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=5,
)


@given(anything)
def test_any_cell_becomes_plain_and_stays_so(cell):
    result = plain(cell)
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert plain(result) == result
    assert type(result) is not int or abs(result) < 2**63
    for read in (as_number, as_flag, as_days, as_vector, level_of, is_missing, has_decimal_comma):
        read(result)


def test_lists_are_vectors():
    assert as_vector([1.0, 2.0]) == [1.0, 2.0]
    assert as_vector("[1, 2.5]") == [1.0, 2.5]
    for cell in ("[1, 2", "[a]", "[]", "[[1]]", "[1e300]", "1", None, 3.0, "[" * 5000 + "]" * 5000):
        assert as_vector(cell) is None


def test_levels_are_text():
    assert [level_of(cell) for cell in ("a  b", True, 3, 2020.0, 2.5)] == ["a b", "true", "3", "2020", "2.5"]
