"""The table and the picture of the guide."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_hex

from firstclick.report.figures import figure_bytes
from firstclick.studies.guide.figure import SCALE, color_of, guide_figure
from firstclick.studies.guide.fitting import Contender
from firstclick.studies.guide.page import guide_page, guide_table, leaders_table
from firstclick.studies.guide.standings import lines_of
from firstclick.studies.guide.stock import stock_worlds
from firstclick.studies.guide.summary import REFERENCES


@pytest.fixture
def lines():
    """Two worlds: KL leads in the first, and in the second two policies have nothing to choose between."""
    few, topics = stock_worlds(["few-items", "topics-and-more"])
    regrets = {
        "cascade-kl-ucb": ([10, 12], [50, 60]),
        "cascade-ts": ([30, 35], [61, 52]),
        "cascade-lin-ts": (None, [-1, -3]),
        "top-rank": ([40, 41], [90, 95]),
        "random": ([100, 120], [100, 120]),
    }
    played = []
    for place, world in enumerate((few, topics)):
        for name, given in regrets.items():
            regret = given[place]
            policy = "top-rank:horizon=50" if name == "top-rank" else name
            reason = "" if regret else f"{name} needs features, and this world has none"
            named, regret = SimpleNamespace(label=policy), np.array(regret or [], float)
            played.append(Contender(world, name, named, world.spec, 16, None, reason, regret))
    return lines_of(played, 50)


def test_the_table_has_shares_of_random_order_leaders_in_bold_and_own_ground_marked(lines):
    page = guide_page(lines, everything=True)
    assert " | few-items | topics-and-more |" in page
    rows = {row.split("`")[1]: row.split(" | ")[2:] for row in page.splitlines() if row.startswith("| `")}
    assert rows["cascade-kl-ucb"] == ["**10**°", "50 |"]
    assert rows["cascade-lin-ts"] == ["–", "**−1.8** |"]
    assert rows["random"] == ["100", "100 |"]
    assert "Regret after 50 steps" in page
    assert "mean of 2 runs" in page
    order = [page.index(f"| `{name}`") for name in ("cascade-kl-ucb", "cascade-lin-ts", "top-rank", "random")]
    assert order == sorted(order)
    assert page.index("**Counts for each item**") < page.index("`cascade-kl-ucb`")


def test_research_policies_stand_in_the_appendix(lines):
    main, appendix = guide_page(lines).split("## Appendix: all policies\n")
    assert "top-rank" not in main
    assert "| `top-rank` | " in appendix
    assert "- `top-rank:horizon=50`" in appendix
    assert main.count("| `cascade-kl-ucb` |") == appendix.count("| `cascade-kl-ucb` |") == 1
    assert ("need features" in main, "need features" in appendix) == (True, False)
    # Below the table stand the worlds and the policies that are missing; the terminal gets the leaders.
    text = guide_table(lines)
    assert any(line.startswith("- **few-items**: Sixteen items") and "± 10" in line for line in text)
    assert any(line.startswith("- few-items: `cascade-lin-ts`") for line in text)
    leaders = [str(cell) for cell in leaders_table(lines).columns[1].cells]
    assert leaders == ["cascade-kl-ucb", "cascade-lin-ts"]


def test_the_table_begins_with_the_summary_of_several_worlds(lines):
    page = guide_page(lines, everything=True)
    assert "| | times the best reference | few-items |" in page
    # cascade-ts is the only reference of the first world. In the second cascade-lin-ts wins more than the
    # best slate: that counts as a thousandth of what random order loses, 0.11.
    assert "| `cascade-ts` | 23, worst 514 in topics-and-more | 30" in page
    assert "| `cascade-lin-ts` | 1.00, worst 1.00 in topics-and-more | – |" in page
    assert "| `cascade-kl-ucb` | 13, worst 500 in topics-and-more |" in page
    named = [f"`{name}`" for name in REFERENCES if name in ("cascade-ts", "cascade-lin-ts")]
    assert f"({', '.join(named)})" in page
    assert "Regret below 0.1 % of random order's counts as that much" in page


def test_one_world_and_policies_without_a_reference_have_no_summary(lines):
    alone = [line for line in lines if line.world == "few-items"]
    assert "times the best reference" not in guide_page(alone)
    assert "worst world" not in [text.get_text() for text in guide_figure(alone).axes[0].texts]
    others = [line for line in lines if line.learner in ("cascade-kl-ucb", "random")]
    assert "times the best reference" not in guide_page(others)
    assert "| | few-items | topics-and-more |" in guide_page(others)


def test_figure_has_each_policy_and_world_and_the_same_bytes_each_time(lines):
    figure = guide_figure(lines)
    (axes,) = figure.axes
    words = [text.get_text() for text in axes.texts]
    for name in ("few-items", "topics-and-more", "cascade-kl-ucb", "random", "No click model"):
        assert words.count(name) == 1
    bold = {text.get_text() for text in axes.texts if text.get_fontweight() == "bold"}
    assert ({"10", "−1.8"} <= bold, "100" in bold) == (True, False)
    assert "514 topics-and-more" in words
    assert figure_bytes(figure, "png") == figure_bytes(guide_figure(lines), "png")


def test_colours_go_from_light_to_dark():
    assert to_hex(color_of(-0.2)) == to_hex(color_of(0.0)) == SCALE[0][1]
    assert to_hex(color_of(1.3)) == to_hex(color_of(1.0)) == SCALE[-1][1]
    assert (np.diff([sum(color_of(share)) for share in np.linspace(0, 1, 40)]) < 0).all()
