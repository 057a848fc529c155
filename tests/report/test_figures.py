"""Figures show every curve whole, and look the same in any company."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from firstclick import policy_classes
from firstclick.errors import InvalidInput
from firstclick.experiments.results import Results
from firstclick.policies.base import FAMILIES
from firstclick.registry import DEFAULT_POLICY
from firstclick.report.comparisons import caption, regret_figure
from firstclick.report.figures import figure_bytes, save_figure
from firstclick.report.labels import spread
from firstclick.report.style import LOOKS, family_looks, line_styles

MakeResults = Callable[..., Results]
PLUGINS = ["softmax-rank", "cascade-exp3", "epsilon-greedy", "third"]  # whose hashes differ
EVERY_KIND = [
    (measure, scale) for measure in ("expected_regret", "regret", "reward") for scale in ("linear", "log")
]


def curves(figure: Figure) -> dict[str, Line2D]:
    labels = [(str(line.get_label()), line) for line in figure.axes[0].lines]
    return {label: line for label, line in labels if label and not label.startswith("_")}


def texts(figure: Figure) -> list[str]:
    return [text.get_text().replace("\n", "") for text in figure.axes[0].texts]


@pytest.mark.parametrize(("measure", "scale"), EVERY_KIND)
def test_every_policy_is_drawn_and_named_at_the_end_of_its_curve(
    results: Results, measure: str, scale: str
) -> None:
    figure = regret_figure(results, measure=measure, scale=scale)
    names = [result.policy for result in results.results]
    assert sorted(curves(figure)) == sorted(names)
    assert set(names) <= set(texts(figure))


@pytest.mark.parametrize("measure", ["expected_regret", "regret"])
@pytest.mark.parametrize("scale", ["linear", "log"])
def test_negative_regret_stays_within_the_figure(results: Results, measure: str, scale: str) -> None:
    figure = regret_figure(results, measure=measure, scale=scale)
    axes = figure.axes[0]
    result = results["cascade-lin-ts"]
    drawn = np.asarray(curves(figure)["cascade-lin-ts"].get_ydata())
    np.testing.assert_allclose(drawn, result.mean(measure))
    assert np.isfinite(axes.transData.transform(np.column_stack([results.step, drawn]))).all()
    low, high = axes.get_ylim()
    assert low < (result.mean(measure) - result.stderr(measure)).min() < 0 < drawn[-1] + 30 < high


def test_a_log_figure_is_logarithmic_on_both_axes_and_linear_near_zero_only_if_needed(
    results: Results, make_results: MakeResults
) -> None:
    mixed = regret_figure(results, scale="log").axes[0]
    assert (mixed.get_xscale(), mixed.get_yscale()) == ("log", "symlog")
    assert "negative" in caption(results, scale="log")

    positive = make_results({"random": (10.0, 12.0)})
    plain = regret_figure(positive, scale="log").axes[0]
    assert (plain.get_xscale(), plain.get_yscale()) == ("log", "log")
    assert "negative" not in caption(positive, scale="log")


def test_the_band_is_one_standard_error_and_a_single_run_has_none(make_results: MakeResults) -> None:
    three = regret_figure(make_results({"random": (90.0, 110.0, 100.0)})).axes[0]
    (band,) = three.collections
    outline = np.asarray(band.get_paths()[0].vertices)
    at_the_end = outline[outline[:, 0] == 500, 1]
    stderr = 10 / np.sqrt(3)
    assert (min(at_the_end), max(at_the_end)) == pytest.approx((100 - stderr, 100 + stderr))

    alone = make_results({"random": (90.0,)})
    assert not regret_figure(alone).axes[0].collections
    assert "no bands" in caption(alone)


def test_reward_is_drawn_per_step_below_the_optimal_reward(results: Results) -> None:
    figure = regret_figure(results, measure="reward")
    assert np.asarray(curves(figure)["random"].get_ydata())[-1] == pytest.approx(0.5 - 155 / 500)
    assert "best fixed slate" in texts(figure)
    levels = [line.get_ydata() for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert any(np.allclose(np.asarray(level, float), results.optimal_reward) for level in levels)


@pytest.mark.parametrize(("measure", "scale"), EVERY_KIND)
def test_a_single_step_of_a_single_run_can_be_drawn(measure: str, scale: str, results: Results) -> None:
    result = results["random"]
    tiny = Results(
        **{
            **vars(results),
            "steps": 1,
            "runs": 1,
            "step": np.array([1], np.int64),
            "results": (
                type(result)(
                    **{
                        **vars(result),
                        "regret": np.zeros((1, 1)),
                        "expected_regret": np.zeros((1, 1)),
                        "reward": np.zeros((1, 1)),
                    }
                ),
            ),
        }
    )
    assert figure_bytes(regret_figure(tiny, measure=measure, scale=scale), "svg")


def test_labels_are_pushed_apart_in_order_and_stay_inside() -> None:
    wanted = [3.0, 1.0, 1.5, 99.0, 100.0, 100.0, 50.0]
    sizes = [10.0, 10.0, 20.0, 10.0, 10.0, 10.0, 10.0]
    placed = spread(wanted, sizes, 100.0)
    assert placed[6] == 50.0
    order = sorted(range(7), key=lambda place: wanted[place])
    for below, above in pairwise(order):
        assert placed[above] - placed[below] >= (sizes[above] + sizes[below]) / 2 - 1e-6
    assert min(placed) >= 0
    assert max(placed) <= 100


def test_the_curve_of_the_default_says_so_and_looks_as_ever(results: Results) -> None:
    plain, marked = (regret_figure(results, default=name).axes[0] for name in ("", "my-plugin"))
    names = [text.get_text() for text in marked.texts]
    assert [name for name in names if "default" in name] == ["my-plugin,\nthe default"]
    colors = [[line.get_color() for line in axes.get_lines()] for axes in (plain, marked)]
    assert colors[0] == colors[1]
    assert not any("default" in text.get_text() for text in plain.texts)


def test_many_long_names_make_the_figure_taller_and_none_overlaps(make_results: MakeResults) -> None:
    names = [f"cascade-lin-ts:sigma={sigma},prior=0.25" for sigma in range(1, 15)]
    figure = regret_figure(make_results({name: (float(place), 2.0) for place, name in enumerate(names)}))
    FigureCanvasAgg(figure)  # attaches itself; get_window_extent measures with it
    boxes = sorted(
        (text.get_window_extent() for text in figure.axes[0].texts),
        key=lambda box: box.y0,
    )
    assert len(boxes) == len(names) + 1  # and the measure, above
    assert all(below.y1 <= above.y0 + 1 for below, above in pairwise(boxes))
    assert boxes[0].y0 >= 0
    assert boxes[-1].y1 <= figure.bbox.y1
    assert max(box.x1 for box in boxes) <= figure.bbox.x1


def test_a_name_is_text_not_mathematics_or_markup(make_results: MakeResults) -> None:
    results = make_results({"my$plugin$<b>": (3.0, 4.0), "other$": (5.0, 6.0)})
    root = ElementTree.fromstring(figure_bytes(regret_figure(results), "svg"))
    written = [element.text for element in root.iter() if str(element.tag).endswith("}text")]
    assert {"my$plugin$<b>", "other$"} <= set(written)


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_the_same_results_give_the_same_bytes_whatever_the_users_settings(
    kind: str, results: Results, tmp_path: Path
) -> None:
    save_figure(regret_figure(results, scale="log"), tmp_path / f"first.{kind}")
    with matplotlib.rc_context({"font.size": 20, "axes.linewidth": 5, "svg.hashsalt": None}):
        save_figure(regret_figure(results, scale="log"), tmp_path / f"second.{kind}")
    first = (tmp_path / f"first.{kind}").read_bytes()
    assert first == (tmp_path / f"second.{kind}").read_bytes()
    assert b"Date" not in first
    assert {path.name for path in tmp_path.iterdir()} == {f"first.{kind}", f"second.{kind}"}


def test_drawing_leaves_matplotlibs_settings_alone(results: Results) -> None:
    before = dict(matplotlib.rcParams)
    figure_bytes(regret_figure(results), "svg")
    assert dict(matplotlib.rcParams) == before


def test_wrong_arguments_are_named(results: Results, tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"measure must be one of .*, got 'regrets'; did you mean 'regret'"
    ):
        regret_figure(results, measure="regrets")
    with pytest.raises(InvalidInput, match="scale must be one of linear, log, got 'cubic'"):
        regret_figure(results, scale="cubic")
    with pytest.raises(InvalidInput, match=r"figure\.gif: a figure's name must end in \.svg, \.png or \.pdf"):
        save_figure(regret_figure(results), tmp_path / "figure.gif")


# The paper's policies and those beside them look as they always did.
KNOWN = {
    "random": LOOKS["grey"],
    "cascade-ucb1": LOOKS["amber"],
    "cascade-kl-ucb": LOOKS["vermilion"],
    "cascade-ts": LOOKS["pink"],
    "cascade-lin-ts": LOOKS["blue"],
    "cascade-lin-ucb": LOOKS["sky"],
    "ranked-lin-ts": LOOKS["green"],
}


def test_a_policy_keeps_its_style_in_any_company() -> None:
    ours = [name for name, cls in policy_classes().items() if cls.__module__.startswith("firstclick.")]
    everyone = [*ours, *PLUGINS, "cascade-ucb1:radius=0.5", "cascade-ucb1:radius=2"]
    styles = line_styles(everyone)
    assert {name: styles[name] for name in KNOWN} == KNOWN
    for policy in everyone:
        assert line_styles([policy])[policy] == styles[policy], policy
        assert line_styles(reversed(everyone))[policy] == styles[policy], policy


def test_no_two_policies_look_alike_even_in_grey_print() -> None:
    plugins = ["my-plugin", "other", "third", "fourth", "fifth"]
    variants = [f"cascade-lin-ts:sigma={sigma}" for sigma in (0.1, 0.5, 2, 10)]
    styles = line_styles([*KNOWN, *plugins, *variants])
    assert len({(style.color, style.dash) for style in styles.values()}) == len(styles)
    assert len({styles[name].color for name in [*KNOWN, *plugins]}) == len(KNOWN) + len(plugins)
    assert {styles[name].color for name in variants} == {KNOWN["cascade-lin-ts"].color}
    assert len({style.marker for style in KNOWN.values()}) == len(KNOWN)


def test_colours_follow_from_the_family_and_no_two_policies_look_alike() -> None:
    classes = {n: cls for n, cls in policy_classes().items() if cls.__module__.startswith("firstclick.")}
    styles = line_styles(classes)
    assert len({(style.color, style.dash) for style in styles.values()}) == len(classes)
    # The default is beside the others in every picture, and has a colour that no family has.
    default = styles[DEFAULT_POLICY].color
    for family in filter(None, FAMILIES):
        colors = {look.color for look in family_looks(family)}
        assert default not in colors
        own = {styles[name].color for name, cls in classes.items() if cls.family == family}
        assert own - {default} <= colors
        others = {styles[name].color for name, cls in classes.items() if cls.family != family}
        assert not others & colors
        # There is room for plug-ins.
        assert len({(look.color, look.dash) for look in family_looks(family)}) >= 18


def test_variants_keep_clear_of_the_family() -> None:
    # Six dashes of blue are left beside the plain one; two other policies have some of them.
    variants = [f"cascade-lin-ts:sigma={sigma}" for sigma in (0.1, 0.5, 2)]
    styles = line_styles(["cascade-lin-ts", "lin-ts-cascade", "logistic-ts", *variants])
    assert len({(style.color, style.dash) for style in styles.values()}) == len(styles)
