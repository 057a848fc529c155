"""A grid shows every panel and curve, hides nothing silently, and no word covers another."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from firstclick import policy_classes
from firstclick.errors import InvalidInput
from firstclick.registry import USUAL_POLICIES
from firstclick.report.figures import figure_bytes, save_figure
from firstclick.report.grid import grid_figure
from firstclick.report.panel import Curve, Plot, ceiling_for
from firstclick.report.style import FREE, LOOKS, dark_colors, line_styles, setting_style

STEP = np.array([1, 10, 100, 1_000, 20_000, 50_000, 100_000], np.int64)
LONG = "Synthetic stand-in for the Million Song data, 400,000 users and 10,000 songs, all of them made up"
LEARNERS = {
    "cascade-ucb1": 55_512.0,
    "cascade-kl-ucb": 31_000.0,
    "cascade-ts": 16_000.0,
    "cascade-lin-ts": 1_400.0,
    "ranked-lin-ts": 3_100.0,
    "cascade-lin-ucb": 1_700.0,
}


def curve(
    label: str, final: float, variant: int | None = None, policy: str = "", power: float = 0.5
) -> Curve:
    mean = final * (STEP / STEP[-1]) ** power
    return Curve(label, policy or label, STEP, mean, 0.05 * np.abs(mean), variant)


def settings(letter: str, finals: tuple[float, ...]) -> tuple[Curve, ...]:
    names = (f"{letter} = {value}" for value in (4, 8, 12, 16, 20))
    return tuple(
        curve(name, final, place, "cascade-lin-ts")
        for place, (name, final) in enumerate(zip(names, finals, strict=False))
    )


def learners(share: float = 1.0) -> Plot:
    curves = tuple(curve(name, share * final) for name, final in LEARNERS.items())
    return Plot("L = 3,706 (all)", curves, ceiling=ceiling_for(curves))


def clipped_late(other: float) -> Plot:
    """One curve leaves near the right edge."""
    return Plot("L = 16", (curve("cascade-ucb1", 1050.0), curve("cascade-lin-ts", other)), ceiling=1000.0)


def drawn(axes: Axes) -> list[Line2D]:
    return [line for line in axes.lines if len(np.asarray(line.get_xdata())) == len(STEP)]


def numbers(axis: Axis) -> list[Text]:
    """The numbers of an axis that are seen."""
    low, high = sorted(axis.get_view_interval())
    labels = zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True)
    return [label for place, label in labels if low <= place <= high]


def words(figure: Figure) -> list[Text]:
    """Every text that is seen, ticks and legend included."""
    found = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    for axes in figure.axes:
        found += [*axes.texts, axes.xaxis.label]
        found += [*numbers(axes.xaxis), *numbers(axes.yaxis)]
    return [text for text in found if text.get_text()]


def collisions(figure: Figure) -> list[tuple[str, str]]:
    FigureCanvasAgg(figure).draw()
    inside = figure.bbox.padded(0.5)
    boxes = {}
    for text in words(figure):
        box = text.get_window_extent()
        assert inside.contains(box.x0, box.y0), text.get_text()
        assert inside.contains(box.x1, box.y1), text.get_text()
        boxes[text] = box.padded(-0.5)
    return [
        (first.get_text(), second.get_text())
        for (first, one), (second, other) in combinations(boxes.items(), 2)
        if one.overlaps(other)
    ]


FIGURES = {
    "figure 1": lambda: grid_figure(
        [[learners(0.02), learners(0.2), learners()], [None, learners(), learners(3)]],
        row_titles=["MovieLens 1M", LONG],
    ),
    "figure 2": lambda: grid_figure(
        [
            [
                Plot("a. Rank, 256 items", settings("d", (1200, 1250, 1260))),
                Plot("b. American, 1,512 restaurants", settings("d", (2600, 1200, 900))),
                Plot("c. Slate size", settings("K", (100, 100, 100))),
                Plot("d. Slate size", settings("K", (84_000, 93_000, 95_000)), measure="reward"),
            ]
        ],
        row_titles=[LONG + ", each and every one"],
    ),
    "clipped late": lambda: grid_figure(
        [[clipped_late(400.0), clipped_late(990.0)] * 2] * 2, row_titles=["a", "b"]
    ),
    "sweep": lambda: grid_figure(
        [[Plot("MovieLens 1M", (curve("cascade-lin-ts", 900.0), curve("ranked-lin-ts", 1100.0)))] * 3],
        row_titles=["Regret after the last step"],
        parameter="sigma",
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_no_word_covers_another_or_leaves_the_figure_and_none_is_too_small(name: str) -> None:
    figure = FIGURES[name]()
    assert collisions(figure) == []
    assert figure.get_size_inches()[0] == pytest.approx(7.0)
    assert min(text.get_fontsize() for text in words(figure)) >= 7


def test_every_plot_has_a_panel_and_an_empty_place_none() -> None:
    plot, other = learners(0.02), Plot("K", settings("K", (10.0, 20.0)), measure="reward")
    figure = grid_figure([[plot, None, other], [None, plot]], row_titles=["first", "second"])
    titles = [axes.texts[0].get_text() for axes in figure.axes]
    assert titles == ["L = 3,706 (all)", "K", "L = 3,706 (all)"]
    lefts = [axes.get_position().x0 for axes in figure.axes]
    assert lefts[0] < lefts[2] < lefts[1]
    assert figure.axes[2].get_position().y1 < figure.axes[0].get_position().y0
    assert [axes.get_xlabel() for axes in figure.axes] == ["Step"] * 3
    said = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert "Reward (clicks)" in said[1]
    assert "Expected regret (clicks)" in said[0]
    assert [text.get_text() for text in figure.texts] == ["first", "second"]


def test_the_measure_is_said_where_it_changes_and_steps_below_the_last_row() -> None:
    plot = learners(0.02)
    figure = grid_figure([[plot, plot], [plot, plot]], row_titles=["first", "second"])
    said = [sum(text.get_text().startswith("Expected") for text in axes.texts) for axes in figure.axes]
    assert said == [1, 0, 1, 0]
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "", "Step", "Step"]


def test_learners_keep_their_styles_and_are_named_once_in_the_legend() -> None:
    figure = grid_figure([[learners(0.02), learners(0.02)]], row_titles=["row"])
    styles = line_styles(LEARNERS)
    for axes in figure.axes:
        lines = drawn(axes)
        assert [to_hex(str(line.get_color())) for line in lines] == [styles[name].color for name in LEARNERS]
        assert [line.get_marker() for line in lines] == [styles[name].marker for name in LEARNERS]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(LEARNERS)


def test_settings_of_one_learner_differ_in_shade_dash_and_marker_and_are_named_at_their_ends() -> None:
    figure = grid_figure([[Plot("K", settings("K", (10.0, 20.0, 15.0)))]], row_titles=["row"])
    (axes,) = figure.axes
    lines = drawn(axes)
    assert len({to_hex(str(line.get_color())) for line in lines}) == 3
    assert len({line.get_marker() for line in lines}) == 3
    assert len({str(line._dash_pattern) for line in lines}) == 3
    heights = {text.get_text(): text.xyann[1] for text in axes.texts if text.get_text().startswith("K =")}
    assert sorted(heights, key=heights.__getitem__) == ["K = 4", "K = 12", "K = 8"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["cascade-lin-ts"]


def test_shades_differ_in_lightness_too() -> None:
    for name in (*USUAL_POLICIES, "my-plugin"):
        greys = [np.dot((0.3, 0.59, 0.11), matplotlib.colors.to_rgb(setting_style(name, place).color))
                 for place in range(3)]  # fmt: skip
        assert greys[0] - greys[1] > 0.1 < greys[1] - greys[2], name
    looks = {
        (style.color, style.dash) for style in (setting_style("cascade-lin-ts", place) for place in range(15))
    }
    assert len(looks) == 15


def test_every_colour_has_its_own_counterpart_on_a_dark_ground() -> None:
    dark = dark_colors()
    for style in (*LOOKS.values(), *FREE, *line_styles(policy_classes()).values()):
        assert dark[style.color] == style.on_dark
    assert len(set(dark.values())) == len(dark)
    shade = setting_style("cascade-lin-ts:sigma=2", 2)
    assert dark[shade.color] == shade.on_dark


def test_a_few_huge_curves_do_not_flatten_the_others() -> None:
    ceiling = ceiling_for(curve(name, final) for name, final in LEARNERS.items())
    assert ceiling == pytest.approx(1.5 * 3_100)
    assert ceiling_for([curve("a", 1_400.0), curve("b", 3_000.0), curve("c", 17_000.0)]) is None
    assert ceiling_for([curve("a", 1_400.0), curve("b", 2_000.0), curve("c", 55_000.0)]) == pytest.approx(
        3_000
    )
    assert ceiling_for([curve("a", 1.0), curve("b", 100.0), curve("c", 100.0)]) is None
    assert ceiling_for([curve("a", -50.0), curve("b", 100.0)]) is None
    assert ceiling_for([curve("a", 5.0)]) is None
    assert ceiling_for([]) is None


def test_a_clipped_curve_says_its_name_and_value_and_is_marked_where_it_leaves() -> None:
    clipped = curve("cascade-ucb1", 55_512.0, power=1.0)
    plot = Plot("all", (clipped, curve("cascade-lin-ts", 1_400.0)), ceiling=2_775.6)
    figure = grid_figure([[plot, learners(0.02)]], row_titles=["row"])
    axes = figure.axes[0]
    assert axes.get_ylim() == (0, 2_775.6)
    assert "cascade-ucb1 55.5k ↑" in [text.get_text() for text in axes.texts]
    assert not any("cascade-lin-ts" in text.get_text() for text in axes.texts)
    points = [line for line in axes.findobj(Line2D) if len(np.asarray(line.get_xdata())) == 1]
    (mark,) = [line for line in points if line.get_transform() == axes.transData]
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (pytest.approx(5_000), 2_775.6)
    lines = drawn(axes)
    assert [line.get_clip_on() for line in lines] == [True, False]


def test_curves_that_leave_are_named_above_the_panel_from_the_highest_down() -> None:
    early = Plot("all", (curve("cascade-ucb1", 9e5), curve("cascade-lin-ts", 400.0)), ceiling=1000.0)
    figure = grid_figure([[learners(), early, clipped_late(400.0)]], row_titles=["row"])
    said = [
        {text.get_text().split()[0]: text.xyann for text in axes.texts if text.get_text().endswith("↑")}
        for axes in figure.axes
    ]
    assert [list(names) for names in said] == [
        ["cascade-ucb1", "cascade-kl-ucb", "cascade-ts"], ["cascade-ucb1"], ["cascade-ucb1"],
    ]  # fmt: skip
    heights = [height for _, height in said[0].values()]
    assert heights == sorted(heights, reverse=True)
    assert min(height for names in said for _, height in names.values()) > 0
    # Each stands where its curve leaves, or as near as there is room.
    assert said[1]["cascade-ucb1"][0] < said[2]["cascade-ucb1"][0]
    assert collisions(figure) == []


def test_a_name_too_long_for_its_panel_leaves_the_value() -> None:
    name = "cascade-ucb1:radius=0.5,start=pessimistic,and=more"
    plot = Plot("all", (curve(name, 55_512.0), curve("cascade-lin-ts", 1_400.0)), ceiling=2_000.0)
    figure = grid_figure([[plot] * 4], row_titles=["row"])
    assert "55.5k ↑" in [text.get_text() for text in figure.axes[0].texts]
    assert collisions(figure) == []


def test_axes_start_at_zero_or_below_and_hold_every_band() -> None:
    low, high = curve("a", -40.0), curve("b", 100.0)
    below, above = grid_figure([[Plot("t", (low, high)), Plot("t", (high,))]], row_titles=["r"]).axes
    assert below.get_xlim() == above.get_xlim() == (0, 100_000)
    assert below.get_ylim() == pytest.approx((-42 * 1.05, 105 * 1.05))
    assert above.get_ylim() == pytest.approx((0, 105 * 1.05))


def test_bands_are_one_standard_error_and_one_run_has_none() -> None:
    single = Curve("a", "a", STEP, STEP * 1.0, np.full(len(STEP), np.nan))
    figure = grid_figure([[Plot("t", (curve("a", 100.0),)), Plot("t", (single,))]], row_titles=["r"])
    (band,) = figure.axes[0].collections
    ends = np.asarray(band.get_paths()[0].vertices)
    assert ends[ends[:, 0] == STEP[-1], 1].min() == pytest.approx(95)
    assert ends[:, 1].max() == pytest.approx(105)
    assert not figure.axes[1].collections


def test_a_sweep_is_logarithmic_across_and_upwards_only_if_values_differ_tenfold() -> None:
    sigma = np.array([0.1, 1.0, 10.0])
    near = Curve("a", "a", sigma, np.array([300.0, 100.0, 200.0]), np.array([3.0, 2.0, 1.0]))
    far = Curve("a", "a", sigma, np.array([3000.0, 100.0, 200.0]), np.full(3, np.nan))
    figure = grid_figure([[Plot("t", (near,)), Plot("t", (far,))]], row_titles=["r"], parameter="sigma")
    assert [(axes.get_xscale(), axes.get_yscale()) for axes in figure.axes] == [
        ("log", "linear"), ("log", "log"),
    ]  # fmt: skip
    assert figure.axes[0].get_ylim()[0] == 0
    assert [axes.get_xlabel() for axes in figure.axes] == ["sigma", "sigma"]
    (bars,) = figure.axes[0].collections
    np.testing.assert_allclose(
        [segment[:, 1] for segment in bars.get_segments()], [[297, 303], [98, 102], [199, 201]]
    )


SIGMAS = np.array([0.1, 0.3, 1.0, 3.0, 10.0])
WIDTHS = np.array([0.03, 0.1, 0.3, 1.0, 3.0, 10.0])


@pytest.mark.parametrize("values", [SIGMAS, WIDTHS], ids=["sigma", "c"])
def test_the_values_of_a_sweep_are_numbered_themselves(values: np.ndarray) -> None:
    curves = [Curve(name, name, values, 10 + values, values) for name in ("cascade-lin-ts", "other")]
    # The second curve lacks the largest value; the panel has it nevertheless.
    short = replace(curves[1], x=values[:-1], mean=values[:-1], stderr=values[:-1])
    figure = grid_figure([[Plot("t", (curves[0], short))]], row_titles=["r"], parameter="sigma")
    assert collisions(figure) == []
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == [f"{value:g}" for value in values]


def test_a_sweep_over_more_values_than_there_is_room_for_has_powers_of_ten() -> None:
    values = np.geomspace(0.1, 10, 60)
    plot = Plot("t", (Curve("a", "a", values, values, values),))
    figure = grid_figure([[plot] * 3], row_titles=["r"], parameter="sigma")
    assert collisions(figure) == []
    assert [label.get_text() for label in numbers(figure.axes[0].xaxis)] == ["0.1", "1", "10"]


def test_words_are_text_not_mathematics() -> None:
    plot = Plot("my $title$", (curve("a$b$", 3.0), curve("c$d$", 4.0, 1, "cascade-lin-ts")))
    root = ElementTree.fromstring(figure_bytes(grid_figure([[plot]], row_titles=["$x$ <b>"]), "svg"))
    written = [element.text for element in root.iter() if str(element.tag).endswith("}text")]
    assert {"my $title$", "a$b$", "c$d$", "$x$ <b>"} <= set(written)


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_the_same_curves_give_the_same_bytes_whatever_the_users_settings(kind: str, tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    save_figure(FIGURES["figure 2"](), tmp_path / f"first.{kind}")
    assert dict(matplotlib.rcParams) == before
    with matplotlib.rc_context({"font.size": 20, "legend.handletextpad": 3, "axes.linewidth": 5}):
        save_figure(FIGURES["figure 2"](), tmp_path / f"second.{kind}")
    assert (tmp_path / f"first.{kind}").read_bytes() == (tmp_path / f"second.{kind}").read_bytes()


def test_wrong_arguments_are_named() -> None:
    plot = learners()
    with pytest.raises(InvalidInput, match=r"row_titles must be one per row \(1\), got 2"):
        grid_figure([[plot]], row_titles=["a", "b"])
    with pytest.raises(InvalidInput, match="at least one plot"):
        grid_figure([[None]], row_titles=["a"])
    with pytest.raises(InvalidInput, match=r"measure must be one of .* got 'rewards'; did you mean 'reward'"):
        grid_figure([[Plot("t", plot.curves, measure="rewards")]], row_titles=["a"])
