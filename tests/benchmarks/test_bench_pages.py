"""A benchmark as a page and a picture: every label has a mark, and what says nothing is not said."""

from xml.etree import ElementTree

import pytest

from benchmarks.bench.figure import bench_figure
from benchmarks.bench.measure import Timing
from benchmarks.bench.page import bench_page
from benchmarks.bench.results import FLOOR, PASS, PLAIN, POLICY, SCAN, TUNED, Bench, Measured, PeerMeasured
from benchmarks.bench.tables import times
from firstclick.report.figures import figure_bytes
from firstclick.report.labels import text_width

LIN = {POLICY: 5.0, SCAN: 40.0, FLOOR: 2.0, PASS: 0.01, PLAIN: 300.0, TUNED: 50.0}
COUNTS = {POLICY: 3.0, SCAN: 3.1, FLOOR: 0.004, PASS: 0.01}


def cell(policy, n_items, micros, *, steps=20_000, k=4):
    timings = {name: Timing(value * 1e-6, steps) for name, value in micros.items()}
    return Measured(policy, n_items, 20, k, timings, min(steps, 2000), "2026-01-01")


def bench(*cells, peers=()):
    return Bench(
        "2 cores", {"python": "3.11"}, "2026-01-01", "python -m benchmarks.bench", 20, 4, cells, tuple(peers)
    )


def peer(name, seconds, failure=""):
    return PeerMeasured(name, "1.0", 16, 20, 4, seconds, 3, 9, failure, "2026-01-01")


def words(figure):
    """All that can be read in it."""
    return [
        element.text for element in ElementTree.fromstring(figure_bytes(figure, "svg")).iter() if element.text
    ]


LIN_CELLS = [cell("cascade-lin-ts", n, LIN) for n in (16, 256)]
COUNT_CELLS = [cell("cascade-ts", n, COUNTS) for n in (16, 256)]


def test_all_that_is_drawn_is_within_the_limits_and_names_are_at_their_curves():
    figure = bench_figure(bench(*LIN_CELLS, *COUNT_CELLS))
    axes = figure.axes[0]
    low, high = axes.get_ylim()
    curves = [line for line in axes.lines if line.get_transform() == axes.transData]
    assert len(curves) == 5  # two policies, one scan, floor and one pass
    for curve in curves:
        assert all(low < value < high for value in curve.get_ydata())
    to_axes = axes.transScale + axes.transLimits
    names = {text.get_text(): text for text in axes.texts}
    for name, micros in (
        ("floor of cascade-lin-ts", 2.0),
        ("one pass over features", 0.01),
        ("cascade-ts", 3.0),
    ):
        wanted = to_axes.transform((256, micros))[1]
        assert names[name].get_position()[1] == pytest.approx(wanted, abs=0.06)


def test_dotted_scans_are_told_only_where_they_are_drawn():
    assert any("dotted: by scans" in text for text in words(bench_figure(bench(*LIN_CELLS))))
    assert not any("dotted" in text for text in words(bench_figure(bench(*COUNT_CELLS))))


@pytest.mark.parametrize(
    ("cells", "curves", "dots"),
    [
        ([*LIN_CELLS, *COUNT_CELLS], True, True),
        (LIN_CELLS[:1], False, True),
        (COUNT_CELLS, True, False),
        (COUNT_CELLS[:1], True, False),
    ],
)
def test_a_panel_that_would_be_empty_is_not_drawn(cells, curves, dots):
    figure = bench_figure(bench(*cells))
    said = " ".join(words(figure))
    assert len(figure.axes) == curves + dots
    assert ("Microseconds per step" in said) == curves
    assert ("Times as long as" in said) == dots
    assert ("Log scale" in said) == dots


def test_one_size_alone_is_a_dot_beside_its_name():
    (axes,) = bench_figure(bench(COUNT_CELLS[0])).axes
    (curve, _) = axes.lines
    assert curve.get_marker() == "v"
    assert curve.get_xdata() == axes.get_xlim()[1] == 16


def test_dots_stand_at_their_ratios_and_nothing_is_cut_off():
    peers = [peer("vowpalwabbit", 1e-6), peer("mabwiser", None, "failed: " + "x" * 200)]
    figure = bench_figure(bench(LIN_CELLS[0], peers=peers))
    (axes,) = figure.axes
    dots = [float(line.get_xdata()[0]) for line in axes.lines if line.get_marker() == "o"]
    assert dots == pytest.approx([1.0, 8.0, 10.0, 60.0, 0.2])
    low, high = axes.get_xlim()
    assert all(low < dot < high for dot in dots)
    assert "failed" in words(figure)
    room = 72 * figure.get_size_inches()[0] * axes.get_position().x0
    assert text_width("dense scan, compiled", 8.2) + 5 < room


def test_policies_without_features_have_no_ratio_to_a_floor_or_a_pass():
    page = bench_page(bench(*LIN_CELLS, *COUNT_CELLS), "bench.png")
    floor, scan = (
        page.partition(title)[2] for title in ("Times its floor", "Times faster than the compiled")
    )
    one_pass = page.partition("Times faster than one pass")[2]
    assert "| `cascade-lin-ts` | 2.5 | 2.5 |" in floor.partition("Times faster")[0]
    assert "cascade-ts" not in floor.partition("Times faster")[0]
    assert "| `cascade-ts` | 1.0 | 1.0 |" in scan.partition("Times faster")[0]
    assert "| `cascade-lin-ts` | 0.0020 | 0.0020 |" in one_pass.partition("Times faster")[0]
    assert "cascade-ts" not in one_pass.partition("Times faster")[0]


def test_a_size_without_a_ratio_has_a_dash_beside_those_that_have_one():
    other = cell("cascade-lin-ucb", 16, {name: value for name, value in LIN.items() if name != PLAIN})
    page = bench_page(bench(*LIN_CELLS, other, cell("cascade-lin-ucb", 256, LIN)), "bench.png")
    assert (
        "| `cascade-lin-ucb` | – | 60 |" in page.partition("than plain NumPy")[2].partition("Times faster")[0]
    )


def test_places_of_policies_without_features_have_times_alone():
    cells = [cell(name, 3000, micros, k=k) for name, micros in (("cascade-lin-ts", LIN), ("random", COUNTS))
             for k in (2, 4)]  # fmt: skip
    page = bench_page(bench(*cells), "bench.png")
    assert "| `cascade-lin-ts` | 5.0 (2.5) | 5.0 (2.5) |" in page
    assert "| `random` | 3.0 | 3.0 |" in page


def test_a_table_without_numbers_is_left_out():
    page = bench_page(bench(*COUNT_CELLS), "bench.png")
    assert "compiled dense scan" in page
    for title in ("Times its floor", "than one pass", "NumPy", "## Peers", "## How cost grows", "## Other"):
        assert title not in page


def test_the_page_stands_alone_and_says_what_its_letters_mean():
    page = bench_page(bench(*LIN_CELLS), "bench.png")
    letters = "L: items, d: features, K: places of a slate."
    assert page.count(letters) == 1
    assert "policies.md" not in page


def test_the_page_says_how_many_steps_were_played_at_least():
    page = bench_page(bench(cell("cascade-lin-ts", 16, LIN, steps=1234), *COUNT_CELLS), "bench.png")
    assert (
        "Fewest steps in a cell: policy 1,234, floor 1,234, scan 1,234, "
        "one pass 1,234, plain NumPy 1,234, tuned NumPy 1,234."
    ) in page
    assert "5,234 compared, all equal" in page


def test_growth_says_what_its_exponents_mean():
    cells = [cell("cascade-lin-ts", n, LIN) for n in (256, 3000, 10_000)]
    page = bench_page(bench(*cells), "bench.png")
    assert "| `cascade-lin-ts` | L | 256 to 10,000; d = 20, K = 4 | 0.00 | 0.00 |" in page
    assert "Time grows like size^p: 0 is no growth, 1 is in proportion." in page


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.996, "1.0"), (1.0, "1.0"), (1.04, "1.0"), (0.934, "0.93"), (9.96, "10"), (2.66, "2.7"),
        (54.6, "55"), (1325.2, "1,325"), (0.0651, "0.065"), (None, "–"),
    ],
)  # fmt: skip
def test_ratios_have_two_digits(ratio, text):
    assert times(ratio) == text
