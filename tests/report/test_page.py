"""The page of a reproduction says all it was given, as text only, and each verdict in word and symbol."""

import re
from dataclasses import replace

import numpy as np
import pytest

from firstclick.errors import InvalidInput
from firstclick.experiments.results import Shown
from firstclick.report.grid import grid_figure
from firstclick.report.page import ClaimRow, FigureBlock, LearnedBlock, Page, html_page
from firstclick.report.panel import Curve, Plot
from firstclick.report.tables import TableBlock
from tests.support.html import Page as Reader

HOSTILE = "<script>alert('1')</script> & \"Co\""
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


def test_everything_given_is_on_the_page_as_text_only(content):
    page = Reader(html_page(content))
    assert not {"script", "img", "b"} & set(page.tags)
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    for start in ("title", "subtitle", "fact", "headline", "overview", "summary", "note", "caption",
                  "sentence 3", "rule 2", "reason 1", "firstclick reproduce"):  # fmt: skip
        assert f"{start} {HOSTILE}" in page.text
    for text in ("ratio 2.5 (1.2 to 1.9)", "second 1", "claim-3", "Section 4.4 · Yelp", "9.9.9", "0f" * 32,
                 "93.0%", "Salt", "1 more", "mode paper", "What was read"):  # fmt: skip
        assert text in page.text
    assert "812 ± 31" in re.sub(r"\s+", " ", page.text)
    labels = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-label")]
    assert labels == [f"label {HOSTILE}"] * 2


def test_every_verdict_is_a_word_and_a_symbol_beside_its_claim(content):
    source = html_page(content)
    rows = re.findall(r'<tr id="claim-claim-\d">.*?</tr>', source, flags=re.DOTALL)
    said = [" ".join(Reader(row[row.index('class="ruling"') - 4 :]).text.split()) for row in rows]
    assert said == ["✓ holds", "✗ does not hold", "○ not testable with this data", "✓ holds"]
    assert [re.findall(r'class="verdict (\w+)"', row) for row in rows] == [["yes"], ["no"], ["open"], ["yes"]]
    for kind in ("yes", "no", "open"):
        assert len(re.findall(rf"--{kind}: #\w{{6}};", source)) == 2, f"{kind} in light and dark"


def test_the_overview_comes_before_the_figures_and_claims_under_their_headings(content):
    source = html_page(content)
    overview = source[source.index('class="card scroll overview"') : source.index("<figure")]
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</th>(.*?)</tr>", overview, flags=re.DOTALL)
    assert [(name, re.findall(r">(\d+)</td>", counts)) for name, counts in rows] == [
        ("Yelp", ["1"]), ("Book", ["2"]),
    ]  # fmt: skip
    ledger = source[source.index('id="claims"') : source.index('id="tables"')]
    order = re.findall(r'Section 4\.\d · [\w ]+|id="claim-claim-\d"', ledger)
    assert order == [
        "Section 4.4 · Yelp", 'id="claim-claim-0"', 'id="claim-claim-1"',
        "Section 4.6 · MovieLens 1M", 'id="claim-claim-2"', 'id="claim-claim-3"',
    ]  # fmt: skip


def test_the_page_loads_nothing_and_its_links_lead_somewhere(content):
    source = html_page(content)
    page = Reader(source)
    assert not re.search(r"https?:|@import|//\w", source)
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    for tag, name, value in page.attributes:
        assert name != "src"
        if name in ("href", "xlink:href") and value != "data:,":
            assert value.removeprefix("#") in ids, (tag, value)
        for target in re.findall(r"url\(#([^)]+)\)", value):
            assert target in ids


def test_figure_colours_follow_the_theme(content):
    source = html_page(content)
    figures = "".join(re.findall(r"<figure.*?</figure>", source, flags=re.DOTALL))
    assert not re.findall(r"(?:fill|stroke): ?#\w+", figures)
    used = set(re.findall(r"var\((--[\w-]+)\)", source))
    assert len({name for name in used if name.startswith("--c") and name != "--card"}) >= 5
    for variable in used:
        assert len(re.findall(rf"{variable}: #\w{{6}};", source)) == 2, f"{variable} in light and dark"


def test_what_is_empty_is_left_out_with_its_heading_and_link(content):
    source = html_page(Page(title="only a title", command="firstclick reproduce"))
    page = Reader(source)
    assert page.tags.count("h2") == 1
    links = [value for tag, name, value in page.attributes if (tag, name) == ("a", "href")]
    assert links == ["#repeat"]
    assert not {"figure", "thead", "ol"} & set(page.tags)
    without = html_page(replace(content, claims=()))
    assert 'id="claims"' not in without
    assert 'id="tables"' in without


def test_the_same_content_gives_the_same_page(content):
    assert html_page(content) == html_page(content)


def test_another_kind_of_verdict_is_refused():
    with pytest.raises(InvalidInput, match=r"claim claim-0: kind must be one of yes, no, open, got 'holds'"):
        claims("holds")
