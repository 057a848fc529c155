"""HTML pages of a simulation, a reproduction and an evaluation: text only, complete, nothing loaded."""

import re
from dataclasses import replace

import numpy as np
import pytest

from firstclick.errors import InvalidInput
from firstclick.evaluation.page import evaluation_page
from firstclick.experiments.results import Shown
from firstclick.report import html_report
from firstclick.report.grid import grid_figure
from firstclick.report.page import ClaimRow, FigureBlock, LearnedBlock, Page, html_page
from firstclick.report.panel import Curve, Plot
from firstclick.report.tables import TableBlock
from tests.evaluation.test_evaluation_page import NO_ANSWER, PLAYED, evaluation, judged
from tests.report.conftest import HOSTILE
from tests.support.html import Page as Reader

STEP = np.array([1, 50, 900], np.int64)
KINDS = {"yes": "holds", "no": "does not hold", "open": "not testable with this data"}


def block(name):
    curves = tuple(
        Curve(f"d = {d}", "cascade-lin-ts", STEP, STEP * 1.0 * d, STEP * 0.1, place)
        for place, d in enumerate((10, 20, 40))
    )
    others = (Curve("random", "random", STEP, STEP * 2.0, STEP * 0.1),)
    figure = grid_figure([[Plot("a", curves), Plot("b", others)]], row_titles=["row"])
    return FigureBlock(name, f"title of {name}", figure, f"caption {HOSTILE}", f"label {HOSTILE}")


def claims(*kinds):
    return tuple(
        ClaimRow(
            f"claim-{place}", "Section 4.4 · Yelp" if place < 2 else "Section 4.6 · MovieLens 1M",
            f"sentence {place} {HOSTILE}", f"rule {place} {HOSTILE}",
            (f"ratio {place}.5 (1.2 to 1.9)", f"second {place}"), KINDS.get(kind, ""), kind,
            f"reason {place} {HOSTILE}",
        )
        for place, kind in enumerate(kinds)
    )  # fmt: skip


@pytest.fixture
def content():
    return Page(
        title=f"title {HOSTILE}",
        subtitle=f"subtitle {HOSTILE}",
        facts=("mode paper", f"fact {HOSTILE}"),
        headline=f"headline {HOSTILE}",
        overview=TableBlock(f"overview {HOSTILE}", ("data set", "✓ holds"), (("Yelp", "1"), ("Book", "2"))),
        summary=(f"summary {HOSTILE}",),
        notes=(f"note {HOSTILE}",),
        figures=(block("Figure 1"), block("Figure 2")),
        claims=claims(*KINDS, "yes"),
        tables=(TableBlock(f"caption {HOSTILE}", ("Learner", "at 1k"), ((HOSTILE, "812 ± 31"), ("b", "7"))),),
        data=(TableBlock("What was read", ("Data set", "SHA-256"), (("MovieLens 1M", "0f" * 32),)),),
        learned=(
            LearnedBlock(
                "256 items", 2, (Shown(HOSTILE, 1.0), Shown("Tea", 1.0)),
                {"cascade-ucb1": (Shown("Tea", 0.93), Shown("Salt", 0.5), Shown("Rice", 0.01))},
            ),
        ),
        settings={"mode": "paper", "split": HOSTILE},
        versions={"numpy": "9.9.9"},
        command=f"firstclick reproduce {HOSTILE}",
    )  # fmt: skip


@pytest.fixture(params=["simulation", "reproduction", "evaluation"])
def render(request, content, make_results):
    """Write one of the pages, with hostile text wherever a text is given."""
    label = f"x{HOSTILE}:a=<b>,c=1"
    results = make_results({label: (1.0, 2.0), "random": (5.0, 6.0)})
    answers = [judged("random", -0.03), replace(NO_ANSWER, policy=label)]
    texts = {"title": f"title {HOSTILE}", "subtitle": f"subtitle {HOSTILE}", "command": f"run {HOSTILE}"}
    return {
        "simulation": lambda: html_report(results, **texts),
        "reproduction": lambda: html_page(content),
        "evaluation": lambda: evaluation_page(evaluation(answers, PLAYED), command=f"run {HOSTILE}"),
    }[request.param]


def test_page_is_text_only_loads_nothing_and_has_the_same_bytes_each_time(render):
    source = render()
    page = Reader(source)
    assert source == render()
    assert HOSTILE in page.text
    assert not {"script", "img", "b", "i"} & set(page.tags)
    assert not re.search(r"https?:|@import|//\w", source)
    assert len(page.ids) == len(set(page.ids))
    for tag, name, value in page.attributes:
        assert name != "src"
        assert not name.startswith("on")
        if name in ("href", "xlink:href") and value != "data:,":
            assert value.removeprefix("#") in page.ids, (tag, value)
        for target in re.findall(r"url\(#([^)]+)\)", value):
            assert target in page.ids
    # Colours of figures follow the theme.
    figures = "".join(re.findall(r"<figure.*?</figure>", source, flags=re.DOTALL))
    assert figures
    assert not re.findall(r"(?:fill|stroke): ?#\w+", figures)
    used = set(re.findall(r"var\((--[\w-]+)\)", source))
    assert len(used) >= 5
    for variable in used:
        assert len(re.findall(rf"{variable}: #\w{{6}};", source)) == 2, f"{variable} in light and dark"


def test_everything_given_is_on_the_page(content):
    page = Reader(html_page(content))
    for start in ("title", "subtitle", "fact", "headline", "overview", "summary", "note", "caption",
                  "sentence 3", "rule 2", "reason 1", "firstclick reproduce"):  # fmt: skip
        assert f"{start} {HOSTILE}" in page.text
    for text in ("ratio 2.5 (1.2 to 1.9)", "second 1", "claim-3", "Section 4.4 · Yelp", "9.9.9", "0f" * 32,
                 "93.0%", "Salt", "1 more", "mode paper", "What was read"):  # fmt: skip
        assert text in page.text
    assert "812 ± 31" in re.sub(r"\s+", " ", page.text)
    labels = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-label")]
    assert labels == [f"label {HOSTILE}"] * 2
    # In figures only what is referred to has an id, and no two are equal.
    ids = [(tag, value) for tag, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert "g" not in dict(ids)


def test_every_verdict_is_a_word_and_a_symbol(content):
    source = html_page(content)
    rows = re.findall(r'<tr id="claim-claim-\d">.*?</tr>', source, flags=re.DOTALL)
    verdicts = [" ".join(Reader(row[row.index('class="ruling"') - 4 :]).text.split()) for row in rows]
    assert verdicts == ["✓ holds", "✗ does not hold", "○ not testable with this data", "✓ holds"]
    assert [re.findall(r'class="verdict (\w+)"', row) for row in rows] == [["yes"], ["no"], ["open"], ["yes"]]
    with pytest.raises(InvalidInput, match="claim claim-0: kind"):
        claims("holds")


def test_empty_parts_are_left_out_with_heading_and_link(content):
    page = Reader(html_page(Page(title="only a title", command="firstclick reproduce")))
    links = [value for tag, name, value in page.attributes if (tag, name) == ("a", "href")]
    assert (page.tags.count("h2"), links) == (1, ["#repeat"])
    without = html_page(replace(content, claims=()))
    assert ('id="claims"' in without, 'id="tables"' in without) == (False, True)
