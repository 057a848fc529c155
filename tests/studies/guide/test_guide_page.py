"""Pages of a comparison: the answer, the table, the summary over worlds and the sweep of sizes."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t

from firstclick.registry import DEFAULT_POLICY
from firstclick.report.figures import figure_bytes
from firstclick.studies.guide.data_worlds import LIMITS, DataWorld
from firstclick.studies.guide.decision import answer, decision_block, decision_page
from firstclick.studies.guide.figure import guide_figure
from firstclick.studies.guide.fitting import Contender
from firstclick.studies.guide.page import guide_page, guide_table, leaders_table
from firstclick.studies.guide.standings import Line, lines_of
from firstclick.studies.guide.summary import LEAST, Summary, summaries, times
from firstclick.studies.guide.sweep import sweep_block, swept
from firstclick.studies.guide.worlds import worlds_named


def contender(world, name, regret, *, policy=None, n_items=16, rank=None, clicks=()):
    """A policy that was played; without regret it could not be."""
    reason = "" if regret else f"{name} needs features, and this world has none"
    named, regret = SimpleNamespace(label=policy or name), np.array(regret or [], float)
    spec, clicks = "" if isinstance(world, DataWorld) else world.spec, np.array(clicks, float)
    return Contender(world, name, named, spec, n_items, rank, reason, regret, clicks)


@pytest.fixture
def lines():
    """Two worlds: KL leads in the first, and in the second two policies have nothing to choose between."""
    regrets = {
        "cascade-kl-ucb": ([10, 12], [50, 60]),
        "cascade-ts": ([30, 35], [61, 52]),
        "cascade-lin-ts": (None, [-1, -3]),
        "top-rank": ([40, 41], [90, 95]),
        "random": ([100, 120], [100, 120]),
    }
    return lines_of(
        [
            contender(world, name, given[place], policy=f"{name}:horizon=50" if name == "top-rank" else name)
            for place, world in enumerate(worlds_named(["few-items", "topics-and-more"]))
            for name, given in regrets.items()
        ],
        50,
    )


def test_table_has_shares_of_random_order_and_leaders_in_bold(lines):
    page = guide_page(lines, everything=True)
    rows = {row.split("`")[1]: row.split(" | ")[2:] for row in page.splitlines() if row.startswith("| `")}
    assert rows["cascade-kl-ucb"] == ["**10**°", "50 |"]
    assert rows["cascade-lin-ts"] == ["–", "**−1.8** |"]
    assert rows["random"] == ["100", "100 |"]
    order = [page.index(f"| `{name}`") for name in ("cascade-kl-ucb", "cascade-lin-ts", "top-rank", "random")]
    assert order == sorted(order)


def test_research_policies_stand_in_the_appendix(lines):
    main, appendix = guide_page(lines).split("## Appendix: all policies\n")
    assert "top-rank" not in main
    assert "- `top-rank:horizon=50`" in appendix
    assert main.count("| `cascade-kl-ucb` |") == appendix.count("| `cascade-kl-ucb` |") == 1
    # Below the table stand the worlds and the policies that are missing; the terminal gets the leaders.
    text = guide_table(lines)
    assert any(line.startswith("- **few-items**: Sixteen items") and "± 10" in line for line in text)
    assert any(line.startswith("- few-items: `cascade-lin-ts`") for line in text)
    leaders = [str(cell) for cell in leaders_table(lines).columns[1].cells]
    assert leaders == ["cascade-kl-ucb", "cascade-lin-ts"]


def test_the_table_begins_with_the_summary_of_several_worlds(lines):
    page = guide_page(lines, everything=True)
    # cascade-ts is the only reference of the first world. In the second cascade-lin-ts wins more than the
    # best slate: that counts as a thousandth of what random order loses, 0.11.
    assert "| `cascade-ts` | 23, worst 514 in topics-and-more | 30" in page
    alone = [line for line in lines if line.world == "few-items"]
    without = [line for line in lines if line.learner in ("cascade-kl-ucb", "random")]
    shown = ["times the best reference" in guide_page(some) for some in (lines, alone, without)]
    assert shown == [True, False, False]


def test_figure_has_each_policy_and_world_and_the_same_bytes_each_time(lines):
    figure = guide_figure(lines)
    (axes,) = figure.axes
    words = [text.get_text() for text in axes.texts]
    for name in ("few-items", "topics-and-more", "cascade-kl-ucb", "random", "No click model"):
        assert words.count(name) == 1
    assert figure_bytes(figure, "png") == figure_bytes(guide_figure(lines), "png")


WORLD = DataWorld("films.csv", "--interactions films.csv", 4, "Films.")


def played(regrets, random=(900, 1000, 1100, 1000)):
    given = {**regrets, "random": random}
    return lines_of(
        [contender(WORLD, name, regret, n_items=9, rank=4) for name, regret in given.items()], 5000
    )


D, A, B = DEFAULT_POLICY, "other-a", "other-b"
GOOD, BAD = (100, 115, 110, 115), (300, 310, 320, 310)
TAKE_D, TAKE_A, NO_VERDICT = f"Take {D}: ", f"Take {A}: ", "The runs cannot tell: "
ONE_RUN = "One run cannot tell: "


@pytest.mark.parametrize(
    ("regrets", "random", "verdict", "ends"),
    [
        ({D: GOOD, A: (200, 190, 210, 220)}, None, TAKE_D, "all others lost clearly more."),
        # Two runs that are both worse by a little.
        ({D: (100, 120), A: (101, 140), B: (300, 322)}, (900, 925), TAKE_D, "from it in 2 runs."),
        ({D: BAD, A: GOOD, B: (99, 117, 111, 117)}, None, TAKE_A, f" {B} cannot be told from it in 4 runs."),
        ({D: None, A: GOOD, B: BAD}, None, TAKE_A, "all others lost clearly more."),
        # The worst run is worse than that of the default.
        (
            {D: [300] * 20, A: [100] * 19 + [400]}, [1000] * 20, TAKE_A,
            "its worst run lost 400, that of the default 300.",
        ),
        ({D: GOOD, A: (60, 150, 70, 130)}, None, f"{NO_VERDICT}{A} lost least", ""),
        # No better than random order.
        ({D: (950, 990, 1120, 900), A: (980, 940, 1090, 1000)}, None, f"{NO_VERDICT}no policy", ""),
        ({D: (100,), A: (50,)}, (900,), f"{ONE_RUN}{A} lost least, 50.0 clicks in 5,000 steps", "--runs."),
    ],
)  # fmt: skip
def test_answer_is_a_policy_or_no_verdict(regrets, random, verdict, ends):
    text = answer(played(regrets, **{} if random is None else {"random": random}))
    assert text.startswith(verdict)
    assert text.endswith(ends)
    assert ("worst run" in text) == ("worst run" in ends)


def test_the_best_of_many_must_be_further_ahead_than_the_only_one():
    # Ahead by t = 3.8 with 3 degrees of freedom: enough for one (2.4), too little for the best of four (4.2).
    default, better = (100, 100, 100, 100), (100 - 27 - 10 * 3**0.5, 73, 73, 73 + 10 * 3**0.5)
    more = np.subtract(better, default)
    score = -more.mean() / (more.std(ddof=1) / 2)
    assert t.ppf(0.95, 3) < score < t.ppf(1 - 0.05 / 4, 3)
    alone = {D: default, A: better}
    assert answer(played(alone)).startswith(TAKE_A)
    many = alone | dict.fromkeys((B, "other-c", "other-d"), (500, 510, 505, 500))
    assert answer(played(many)).startswith(f"{NO_VERDICT}{A} lost least")


def test_page_begins_with_the_answer_and_has_spread_and_paired_differences():
    given = played({D: BAD, A: GOOD, B: None})
    page = decision_page(given, WORLD)
    title, _, first = page.splitlines()[:3]
    assert (title, first) == ("# Which policy for films.csv?", answer(given))
    assert "| other-a | 110.0 ± 3.5 | 115 | 115 | −200 (−208 to −192) |" in page
    assert f"| {D} | 310.0 ± 4.1 | 317 | 320 | – |" in page
    assert all(f"- {limit}" in page for limit in LIMITS)
    block = decision_block(given)
    assert (block.bold, len(block.rows)) == ({A}, 3)


def line(world, policy, regret, reason=""):
    return Line(world, policy, policy, 100, 2, regret, 1.0, regret / 1000, 1.0, False, reason)


def lost(**worlds):
    """`lost(first={"cascade-ts": 20})`: random order loses 1,000 everywhere."""
    return [
        line(world, policy, regret)
        for world, regrets in worlds.items()
        for policy, regret in {**regrets, "random": 1000}.items()
    ]


def test_it_is_the_geometric_mean_of_ratios_to_the_best_reference_and_the_worst():
    found = summaries(
        lost(
            first={"cascade-ts": 20, "cascade-lin-ts": 40, "logistic-ts": 10},
            second={"cascade-ts": 80, "cascade-lin-ts": 10, "logistic-ts": 20},
        )
    )
    # logistic-ts is no reference: it may be better than all of them.
    assert found["logistic-ts"] == Summary(pytest.approx(1.0), 2.0, "second")
    assert found["cascade-ts"] == Summary(pytest.approx(8**0.5), 8.0, "second")
    assert found["cascade-lin-ts"] == Summary(pytest.approx(2**0.5), 2.0, "first")


def test_small_regret_and_worlds_without_a_reference():
    # Regret below a thousandth of random order's counts as that.
    assert LEAST == 0.001
    found = summaries(lost(only={"cascade-ts": 4, "cascade-lin-ts": -30, "vac2-ucb": 0.2}))
    assert found["cascade-ts"].mean == pytest.approx(4)
    assert found["cascade-lin-ts"].mean == found["vac2-ucb"].mean == 1
    # Worlds in which a policy cannot be played are left out of its mean.
    some = lost(first={"cascade-ts": 20}, second={"cascade-ts": 80, "cascade-lin-ts": 10})
    some.append(line("first", "cascade-lin-ts", float("nan"), "it needs features"))
    assert summaries(some)["cascade-lin-ts"] == Summary(1.0, 1.0, "second")
    # Without any regret there is no summary.
    assert summaries([line("first", "cascade-ts", 0.0), line("first", "random", 0.0)]) == {}
    ratios = {1: "1.00", 9.996: "10", 1234.4: "1,234"}
    assert {ratio: times(ratio) for ratio in ratios} == ratios


def test_sizes_that_leave_nothing_to_choose_are_left_out():
    few = DataWorld("few", "", 4, "Few.", n_items=8)
    many = DataWorld("many k=2", "", 4, "Many.", n_items=17)
    assert [(one.name, one.k) for one in swept([few, many])] == [
        ("few k=1", 1), ("few k=2", 2), ("few k=4", 4),
        *((f"many k=2 k={k}", k) for k in (1, 2, 4, 8, 16)),
    ]  # fmt: skip


def test_sweep_has_a_row_for_each_size_and_a_section_on_the_page(lines):
    swept_lines = lines_of(
        [
            contender(world, name, [lost, lost], n_items=3, rank=2, clicks=[50 - lost / world.k] * 2)
            for world in swept([DataWorld("few k=3", "", 4, "Few.", n_items=3)])
            for name, lost in ((DEFAULT_POLICY, 10.0), ("random", 40.0))
        ],
        50,
    )
    assert sweep_block(swept_lines).rows == (
        ("few k=3", "1", "80.0%", "20.0%", "10.0 ± 0", "25.0%"),
        ("few k=3", "2", "90.0%", "60.0%", "10.0 ± 0", "25.0%"),
    )
    for swept_too, expected in (((), False), ((swept_lines,), True)):
        assert ("## How many items to show" in guide_page(lines, *swept_too)) == expected
