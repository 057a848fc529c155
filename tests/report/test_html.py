"""The page tells the truth, shows everything, and trusts no text that it is given."""

import io
import math
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import firstclick.report
from firstclick.errors import InvalidInput
from firstclick.report import headline, html_report, results_table, write_report
from firstclick.report.winner import leaders
from firstclick.rounding import compact, microseconds, percent, with_error
from tests.support.html import Page


def test_default_has_a_badge_and_is_named_in_headline_and_figures(results):
    page = Page(html_report(results, title="t", default="my-plugin"))
    labels = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-label")]
    assert all("my-plugin, the default " in label for label in labels)
    assert page.text.count("the default") == 2 + 1 + 3  # badges, headline, ends of curves
    assert "the default" not in Page(html_report(results, title="t")).text


def test_every_policy_item_setting_and_version_is_there(results):
    page = Page(html_report(results, title="t"))
    labels = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-label")]
    assert page.tags.count("figure") == page.tags.count("figcaption") == len(labels) == 3
    assert all("cascade-lin-ts −20.0 ± 1.2" in label for label in labels[:2])
    for result in results.results:
        assert page.text.count(result.policy) >= 4  # table, two regret figures, slate
        for shown in result.shown:
            assert page.text.count(shown.item) >= len(results.results)
    for word in ("Never learned", "1234", "matrix", "numpy", np.__version__, "numba", "python", "platform"):
        assert word in page.text
    # Items of the best slate are marked in words.
    assert page.text.count("(in the best slate)") == 2 + len(results.results)
    # The policy in the lead is marked.
    assert re.findall(r"[\w-]+\s*lowest\s*−20.0 ± 1.2", page.text)
    assert page.text.count("lowest") == 1


RANDOM = {"random": (9000, 9100, 9200)}


@pytest.mark.parametrize(
    ("finals", "verdict"),
    [
        (RANDOM | {"b": (1200, 1260, 1230), "a": (800, 850, 810)}, "a has lost 820 ± 15 .*b .*1,230 ± 17"),
        # No win within noise.
        (RANDOM | {"b": (800, 960, 850), "a": (900, 810, 820)}, "a and b share the lead.*too close to call"),
        ({"random": (155.0,), "a": (83.0,)}, "this one run .* a has lost 83.0 .*cannot tell skill from luck"),
        (None, "cascade-lin-ts has won 20.0 ± 1.2 clicks more than the best fixed slate"),
        ({"random": (80.0, 90.0), "a": (81.0, 86.0)}, "too close to call.*The lead includes random"),
    ],
)
def test_headline_is_the_verdict(make_results, finals, verdict):
    results = make_results(finals)
    assert re.search(verdict, headline(results))
    page = Page(html_report(results, title="t")).text
    assert headline(results) in " ".join(page.split())
    assert page.count("tied for lowest") == (2 if "too close" in verdict else 0)
    if results.runs == 1:
        assert not any(word in page for word in ("±", "nan", "lowest"))


def test_a_small_difference_that_every_run_shows_is_a_win(make_results):
    """Runs differ a lot, but the same users make them differ for both."""
    results = make_results({"a": (500, 900, 1300), "b": (521, 920, 1319)})
    assert [result.policy for result in leaders(results)] == ["a"]


def test_equal_policies_seldom_have_a_single_leader(make_results):
    """At most 5 in 100; more than 21 of 200 would come by chance with probability below 1e-3."""
    rng = np.random.default_rng(5)
    alone = 0
    for _ in range(200):
        finals = {name: 100 + rng.standard_normal(6) for name in "abcd"}
        alone += len(leaders(make_results(finals))) == 1
    assert alone <= 21


def test_report_is_written_whole_or_not_at_all(results, tmp_path):
    target = tmp_path / "report.html"
    assert write_report(results, target, title="first") == target
    assert target.read_text(encoding="utf-8") == html_report(results, title="first")
    with pytest.raises(InvalidInput, match=r"report\.html cannot be written"):
        write_report(results, tmp_path / "missing" / "report.html", title="t")


def test_public_names_are_not_those_of_modules():
    # Names are loaded when they are used: a module of the same name would take their place.
    modules = {path.stem for path in Path(firstclick.report.__file__).parent.glob("*.py")}
    assert not modules & set(firstclick.report.__all__)


def printed(results, width=80, default=""):
    out = io.StringIO()
    Console(file=out, width=width).print(results_table(results, default=default))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_terminal_table_is_sorted_by_expected_regret_and_marks_the_default(results):
    heading, *rows = printed(results, default="my-plugin")
    assert heading.split() == ["policy", "expected", "regret", "realised", "regret", "of", "best", "µs/step"]
    assert [" ".join(row.split()) for row in rows] == [
        "cascade-lin-ts −20.0 ± 1.2 −19.0 ± 1.2 107.6% 3.9",
        "my-plugin, the default 41.0 ± 1.5 42.0 ± 1.5 83.3% 3.9",
        "cascade-ucb1:radius=0.5 83.0 ± 1.7 84.0 ± 1.7 66.5% 3.9",
        "random 155.0 ± 2.9 156.0 ± 2.9 37.8% 3.9",
    ]
    assert not any("default" in row for row in printed(results, default="my-plug"))


def test_table_fits_80_columns_and_labels_are_text(make_results):
    long = "cascade-lin-ts:sigma=0.123456,prior=2.5,forget=0.999"
    lines = printed(make_results({long: (123_456.0, 234_567.0), "random": (1e7, 1.2e7)}))
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)
    lines = printed(make_results({"[bold]x[/bold]": (155.0,)}))
    assert lines[1].split()[:2] == ["[bold]x[/bold]", "155"]


def test_numbers_are_cut_at_the_second_digit_of_their_error():
    nan = math.nan
    texts = {
        (5.4321, 0.1234): "5.43 ± 0.12",
        (12_345.0, 1234.0): "12,300 ± 1,200",
        (100.04, 9.96): "100 ± 10",
        (100.04, 0.996): "100.0 ± 1.0",
        (-0.001, 0.31): "0.00 ± 0.31",
        (812.4, 0.0): "812 ± 0",
        (8.1249, nan): "8.12",
        (nan, nan): "–",
    }
    assert {number: with_error(*number) for number in texts} == texts
    shares = {0: "0.0%", 0.0001: "<0.1%", 0.942: "94.2%", 1: "100%", 1.021: "102.1%", nan: "–"}
    assert {share: percent(share) for share in shares} == shares
    times = {3.94e-6: "3.9", 9.96e-6: "10", 1.25e-3: "1,250"}
    assert {seconds: microseconds(seconds) for seconds in times} == times
    ticks = {0: "0", 0.25: "0.25", -10: "−10", 2500: "2.5k", 20_000: "20k", 1e6: "1M"}
    assert {tick: compact(tick) for tick in ticks} == ticks
