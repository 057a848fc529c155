"""The table in the terminal, and how numbers are written."""

import io
import math

import pytest
from rich.console import Console

from firstclick.report import results_table
from firstclick.rounding import compact, microseconds, percent, with_error


def printed(results, width=80, default=""):
    out = io.StringIO()
    Console(file=out, width=width).print(results_table(results, default=default))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_the_table_is_sorted_by_expected_regret(results):
    heading, *rows = printed(results)
    assert heading.split() == ["policy", "expected", "regret", "realised", "regret", "of", "best", "µs/step"]
    assert [" ".join(row.split()) for row in rows] == [
        "cascade-lin-ts −20.0 ± 1.2 −19.0 ± 1.2 107.6% 3.9",
        "my-plugin 41.0 ± 1.5 42.0 ± 1.5 83.3% 3.9",
        "cascade-ucb1:radius=0.5 83.0 ± 1.7 84.0 ± 1.7 66.5% 3.9",
        "random 155.0 ± 2.9 156.0 ± 2.9 37.8% 3.9",
    ]


def test_the_default_is_marked_and_no_other(results):
    rows = [" ".join(row.split()) for row in printed(results, default="my-plugin")]
    assert [row for row in rows if "default" in row] == [
        "my-plugin, the default 41.0 ± 1.5 42.0 ± 1.5 83.3% 3.9"
    ]
    assert not any("default" in row for row in printed(results, default="my-plug"))


def test_table_fits_80_columns_and_labels_are_text(make_results):
    long = "cascade-lin-ts:sigma=0.123456,prior=2.5,forget=0.999"
    lines = printed(make_results({long: (123_456.0, 234_567.0), "random": (1e7, 1.2e7)}))
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)
    assert "11,000,000 ± 1,000,000" in "\n".join(lines)
    lines = printed(make_results({"[bold]x[/bold]": (155.0,)}))
    assert lines[1].split()[:2] == ["[bold]x[/bold]", "155"]
    assert "±" not in "".join(lines)


@pytest.mark.parametrize(
    ("value", "stderr", "text"),
    [
        (812.4, 31.4, "812 ± 31"),
        (5.4321, 0.1234, "5.43 ± 0.12"),
        (12_345.0, 1234.0, "12,300 ± 1,200"),
        (100.04, 9.96, "100 ± 10"),
        (100.04, 0.996, "100.0 ± 1.0"),
        (-35.2, 1.26, "−35.2 ± 1.3"),
        (-0.001, 0.31, "0.00 ± 0.31"),
        (812.4, 0.0, "812 ± 0"),
        (812.4, math.nan, "812"),
        (8.1249, math.nan, "8.12"),
        (0.0, math.nan, "0.00"),
        (math.nan, math.nan, "–"),
    ],
)
def test_numbers_are_cut_at_the_second_digit_of_their_error(value, stderr, text):
    assert with_error(value, stderr) == text


def test_shares_times_and_ticks():
    assert [percent(x) for x in (0, 0.0001, 0.0044, 0.942, 1, 1.021, math.nan)] == [
        "0.0%", "<0.1%", "0.4%", "94.2%", "100%", "102.1%", "–",
    ]  # fmt: skip
    assert [microseconds(x) for x in (3.94e-6, 9.96e-6, 1.25e-3)] == ["3.9", "10", "1,250"]
    assert [compact(x) for x in (0, 0.25, -10, 2500, 20_000, 1e6)] == [
        "0",
        "0.25",
        "−10",
        "2.5k",
        "20k",
        "1M",
    ]
