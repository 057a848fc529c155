"""Figures draw every curve, and look the same in any company."""

from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from firstclick import make_policy, policy_classes
from firstclick.data import Interactions
from firstclick.data.sources import Source
from firstclick.errors import InvalidInput
from firstclick.experiments import Comparison, Dataset, Experiment, Setting, Training
from firstclick.experiments.results import PolicyResult, Results
from firstclick.report.comparisons import caption, plots_of, regret_figure, sweep_plot
from firstclick.report.figures import figure_bytes, save_figure
from firstclick.report.grid import grid_figure
from firstclick.report.panel import Curve, Plot, ceiling_for
from firstclick.report.style import FREE, LOOKS, dark_colors, line_styles

STEP = np.array([1, 10, 100, 1_000, 20_000, 50_000, 100_000], np.int64)
OURS = [name for name, cls in policy_classes().items() if cls.__module__.startswith("firstclick.")]
FINALS = {"cascade-ucb1": 55_512.0, "cascade-kl-ucb": 31_000.0, "cascade-ts": 16_000.0,
          "cascade-lin-ts": 1_400.0, "ranked-lin-ts": 3_100.0, "cascade-lin-ucb": 1_700.0}  # fmt: skip


def curve(label, final, variant=None, policy=""):
    mean = final * np.sqrt(STEP / STEP[-1])
    return Curve(label, policy or label, STEP, mean, 0.05 * np.abs(mean), variant)


def policies():
    curves = tuple(curve(name, final) for name, final in FINALS.items())
    return Plot("L = 3,706 (all)", curves, ceiling=ceiling_for(curves))


def paper_figure():
    names = ("K = 4", "K = 8", "K = 12")
    settings = Plot("K", tuple(curve(name, 90.0 + i, i, "cascade-lin-ts") for i, name in enumerate(names)))
    plots = [[policies(), settings, policies()], [None, settings, policies()]]
    return grid_figure(plots, row_titles=["MovieLens 1M", "A data set with a long name, " * 4])


def sweep_figure(step):
    values = np.geomspace(0.1, 10, step)
    plot = Plot("t", (Curve("a", "a", values, 10 + values, values),))
    return grid_figure([[plot] * 3], row_titles=["r"], parameter="sigma")


def texts(figure):
    """Every visible text: titles, names of curves, axes, ticks and legends."""
    found = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    for axes in figure.axes:
        found += [*axes.texts, axes.xaxis.label]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True)
            found += [label for place, label in ticks if low <= place <= high]
    return [text for text in found if text.get_text()]


def test_no_word_covers_another(make_results):
    long = {f"cascade-lin-ts:sigma={sigma},prior=0.25": (float(sigma), 2.0) for sigma in range(1, 15)}
    for figure in (paper_figure(), sweep_figure(3), sweep_figure(60), regret_figure(make_results(long))):
        FigureCanvasAgg(figure).draw()
        boxes = {text: text.get_window_extent().padded(-0.5) for text in texts(figure)}
        inside = figure.bbox.padded(1.0)
        assert len(boxes) > 8
        for text, box in boxes.items():
            assert inside.contains(box.x0, box.y0), text
            assert inside.contains(box.x1, box.y1), text
        for (one, box), (other, second) in combinations(boxes.items(), 2):
            assert not box.overlaps(second), (one.get_text(), other.get_text())


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("measure", ["expected_regret", "regret", "reward"])
def test_every_policy_is_drawn_and_named(results, measure, scale):
    figure = regret_figure(results, measure=measure, scale=scale, default="my-plugin")
    (axes,) = figure.axes
    labels = [(line.get_label().partition(",")[0], line) for line in axes.lines]
    lines = {label: line for label, line in labels if label and not label.startswith("_")}
    named = [text.get_text().replace("\n", "") for text in axes.texts]
    assert sorted(lines) == sorted(result.policy for result in results.results)
    assert {name + ",the default" * (name == "my-plugin") for name in lines} <= set(named)
    for name, line in lines.items():
        mean = results[name].mean(measure) / (results.step if measure == "reward" else 1)
        # A linear axis of clicks per step leaves out the first steps, which are noise.
        steps = len(line.get_xdata())
        assert steps > len(mean) / 2
        np.testing.assert_allclose(line.get_ydata(), mean[-steps:])
        points = axes.transData.transform(np.column_stack([results.step, mean]))[-steps:]
        # Regret may be negative, on a logarithmic axis too.
        assert np.isfinite(points).all()
        low, high = axes.get_ylim()
        assert low <= mean[-steps:].min() <= mean[-steps:].max() <= high
    assert ("best fixed slate" in named) == (measure == "reward")
    assert axes.get_xscale() == scale
    negative = scale == "log" and measure != "reward"
    assert ("negative" in caption(results, measure=measure, scale=scale)) == negative
    zero = np.zeros((1, 1))
    one_step = replace(
        results, steps=1, runs=1, step=np.array([1]), results=(PolicyResult("a", zero, zero, zero, 1e-6, ()),)
    )
    assert figure_bytes(regret_figure(one_step, measure=measure, scale=scale), "svg")


def test_scale_is_logarithmic_where_values_differ_tenfold_and_linear_near_zero(make_results):
    negative, positive = make_results(), make_results({"random": (90.0, 110.0, 100.0)})
    for results, wanted in ((negative, "symlog"), (positive, "log")):
        assert regret_figure(results, scale="log").axes[0].get_yscale() == wanted
    for last, wanted in ((30.0, "linear"), (300.0, "log")):
        values = np.array([1.0, 3.0, 9.0])
        plot = Plot("t", (Curve("a", "a", values, np.array([10.0, 20.0, last]), values / 9),))
        figure = grid_figure([[plot]], row_titles=["r"], parameter="sigma")
        assert figure.axes[0].get_yscale() == wanted


def test_grid_draws_every_curve_in_its_panel():
    figure = paper_figure()
    curves = policies().curves
    for axes in figure.axes[::2]:
        lines = [line for line in axes.lines if len(line.get_xdata()) == len(STEP)]
        for line, one in zip(lines, curves, strict=True):
            np.testing.assert_allclose(line.get_ydata(), one.mean)
    # The axis is named below the lowest panel of each column.
    assert [axes.get_xlabel() for axes in figure.axes] == ["Step", "", "", "Step", "Step"]
    # Few large curves do not flatten the others.
    assert ceiling_for(curves) == pytest.approx(1.5 * 3_100)
    assert "cascade-ucb1 55.5k ↑" in [text.get_text() for text in figure.axes[0].texts]
    for finals in ((1_400.0, 3_000.0, 17_000.0), (-50.0, 100.0), ()):
        assert ceiling_for([curve(str(final), final) for final in finals]) is None


def test_band_is_one_standard_error_and_one_run_has_none(make_results):
    (band,) = regret_figure(make_results({"random": (90.0, 110.0, 100.0)})).axes[0].collections
    outline = np.asarray(band.get_paths()[0].vertices)
    ends, stderr = outline[outline[:, 0] == 500, 1], 10 / np.sqrt(3)
    assert (min(ends), max(ends)) == pytest.approx((100 - stderr, 100 + stderr))
    alone = make_results({"random": (90.0,)})
    assert not regret_figure(alone).axes[0].collections
    assert "no bands" in caption(alone)


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_figure_has_the_same_bytes_whatever_the_settings(kind, results, tmp_path):
    before = dict(matplotlib.rcParams)
    for draw in (paper_figure, lambda: regret_figure(results, scale="log")):
        save_figure(draw(), tmp_path / f"first.{kind}")
        assert dict(matplotlib.rcParams) == before
        with matplotlib.rc_context({"font.size": 20, "axes.linewidth": 5, "svg.hashsalt": None}):
            save_figure(draw(), tmp_path / f"second.{kind}")
        first = (tmp_path / f"first.{kind}").read_bytes()
        assert first == (tmp_path / f"second.{kind}").read_bytes()
        assert b"Date" not in first


def test_names_are_text_not_mathematics_or_markup():
    plot = Plot("my $title$", (curve("a$b$", 3.0), curve("c$d$", 4.0, 1, "cascade-lin-ts")))
    root = ElementTree.fromstring(figure_bytes(grid_figure([[plot]], row_titles=["$x$ <b>"]), "svg"))
    written = [element.text for element in root.iter() if str(element.tag).endswith("}text")]
    assert {"my $title$", "a$b$", "c$d$", "$x$ <b>"} <= set(written)


def test_policies_and_variants_have_their_own_style_in_any_company():
    variants = [f"cascade-lin-ts:sigma={sigma}" for sigma in (0.1, 0.5, 2)]
    for company in (OURS, ["cascade-lin-ts", "lin-ts-cascade", "logistic-ts", *variants]):
        styles = line_styles(company)
        assert len({(style.color, style.dash) for style in styles.values()}) == len(company)
    everyone = [*OURS, "softmax-rank", "cascade-exp3", "cascade-ucb1:radius=0.5", "cascade-ucb1:radius=2"]
    styles = line_styles(everyone)
    for policy in everyone:
        assert line_styles([policy])[policy] == line_styles(reversed(everyone))[policy] == styles[policy]
    dark = dark_colors()
    for style in (*LOOKS.values(), *FREE, *styles.values()):
        assert dark[style.color] == style.on_dark


def test_wrong_arguments_are_refused(results):
    with pytest.raises(InvalidInput, match=r"measure must be .*mean 'regret'"):
        regret_figure(results, measure="regrets")
    with pytest.raises(InvalidInput, match="scale must be"):
        regret_figure(results, scale="cubic")
    with pytest.raises(InvalidInput, match=r"figure\.gif: .*must end in"):
        save_figure(regret_figure(results), "figure.gif")


class Shelf(Source):
    """Two users and three books."""

    name = "shelf"
    title = "Shelf"

    def load(self, path, progress=None):
        return Interactions(
            np.array([0, 1, 1]), np.array([0, 1, 2]), np.ones(3, np.bool_), ("u", "v"), ("a", "b", "c")
        )


def result(policy, last):
    curves = np.outer([0.9, 1.1], [last / 4, last / 2, last])
    return PolicyResult(policy, curves, curves, 100 - curves, float("nan"), ())


def comparison(policies, *, items=256, rank=20, k=4, group=""):
    made = tuple(make_policy(label) for label in policies)
    return Comparison(
        experiment=Experiment("1", "Shelves", (Shelf(),), made),
        dataset=Dataset.load(Shelf(), None),
        setting=Setting("shelf", group, items, rank, k, 400, 1, Training()),
        results=Results(
            k=k, steps=400, runs=2, seed=1, n_items=items, optimal_reward=0.5, optimal_items=(),
            step=np.array([100, 200, 400]), results=tuple(result(*one) for one in policies.items()),
            settings={},
        ),
        optimal_rewards=np.array([0.4, 0.6]),
        speeds={},
    )  # fmt: skip


def test_several_learners_have_a_panel_for_each_setting():
    learners = {"cascade-ucb1": 900.0, "cascade-lin-ts": 20.0, "ranked-lin-ts": 30.0}
    plots = plots_of([comparison(learners, items=items) for items in (16, 256, 3706)])
    assert [plot.title for plot in plots] == ["L = 16", "L = 256", "L = 3,706"]
    for plot in plots:
        assert [curve.label for curve in plot.curves] == list(learners)
        assert plot.ceiling < 900
    assert plots[1].curves[2].mean.tolist() == pytest.approx([7.5, 15, 30])


def test_one_learner_has_all_its_settings_in_one_panel():
    comparisons = [comparison({"cascade-lin-ts": 10.0 * rank}, rank=rank) for rank in (10, 20, 40)]
    (plot,) = plots_of(comparisons, "reward")
    assert [curve.label for curve in plot.curves] == ["d = 10", "d = 20", "d = 40"]
    assert [curve.variant for curve in plot.curves] == [0, 1, 2]
    assert [curve.mean[-1] for curve in plot.curves] == pytest.approx([0, -100, -300])
    # All that varies is named.
    (plot,) = plots_of([comparison({"random": 1.0}, k=k, items=items) for k in (2, 3) for items in (9, 10)])
    labels = ["L = 9, K = 2", "L = 10, K = 2", "L = 9, K = 3", "L = 10, K = 3"]
    assert [curve.label for curve in plot.curves] == labels


def test_a_sweep_is_drawn_against_its_parameter_in_order():
    swept = {"cascade-lin-ts:sigma=3": 30.0, "cascade-lin-ts:sigma=0.1": 50.0, "cascade-lin-ts": 10.0}
    plot = sweep_plot(comparison(swept), "sigma")
    (curve,) = plot.curves
    assert curve.x.tolist() == [0.1, 1.0, 3.0]
    assert curve.mean.tolist() == pytest.approx([50, 10, 30])
    assert curve.stderr.tolist() == pytest.approx([5, 1, 3])
    with pytest.raises(InvalidInput, match="cascade-lin-ts:sigma=3 has no number 'c'"):
        sweep_plot(comparison(swept), "c")
