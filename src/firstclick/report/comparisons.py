"""Results as figures, and what a comparison is called: which settings become panels, which curves."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from firstclick.errors import InvalidInput
from firstclick.experiments import Comparison
from firstclick.experiments.results import PolicyResult, Results
from firstclick.report.figures import check_choice
from firstclick.report.grid import grid_figure
from firstclick.report.panel import Curve, Plot, ceiling_for
from firstclick.report.style import display_name

# What may vary within an experiment, and how a title or a curve's end calls it.
VARIED = {"n_items": "L", "rank": "d", "k": "K"}
# The first steps of a rate are a few coin tosses, and on a linear axis a stroke up and down the left edge.
UNSETTLED = 0.02


def regret_figure(
    results: Results, *, measure: str = "expected_regret", scale: str = "linear", default: str = ""
) -> Figure:
    """Draw the mean over runs against the step, with a band of one standard error.

    >>> from firstclick import make_world, simulate
    >>> results = simulate(["random"], make_world("blb:n_items=8,k=2"), k=2, steps=100, runs=2, seed=1)
    >>> len(regret_figure(results).axes)
    1

    Args:
        results: From `simulate`.
        measure: `"expected_regret"`, `"regret"`, or `"reward"` for clicks per step.
        scale: `"linear"`, or `"log"` for both axes.
        default: The name of the policy to mark as the default.
    """
    return grid_figure([[_plot(results, measure, scale, default)]], row_titles=[""])


def caption(results: Results, *, measure: str = "expected_regret", scale: str = "linear") -> str:
    """What a reader must know of `regret_figure` with the same arguments."""
    if measure == "reward":
        text = "Clicks so far divided by steps so far; the dashed line is the best fixed slate."
        if scale == "linear":
            text += f" The first {UNSETTLED:.0%} of the steps are left out."
    elif scale == "log":
        text = "Both axes logarithmic, which gives early steps room: a curve that bends down is learning."
    else:
        text = (
            "Clicks lost to the best fixed slate: a straight climb is no learning, a flat curve has learned."
        )
    if near := _plot(results, measure, scale).linear_within:
        text += (
            f" The vertical axis is linear between −{near:g} and {near:g}, to show zero and negative values."
        )
    if results.runs == 1:
        return f"{text} One run, so no bands."
    return f"{text} Lines are means of {results.runs} runs, bands one standard error either side."


def plots_of(comparisons: Sequence[Comparison], measure: str = "expected_regret") -> list[Plot]:
    """One experiment on one data set: a panel per setting, or one panel if it has a single policy.

    With several policies each panel has one curve per policy. A single policy has all its settings in
    one panel, one curve each.
    """
    if len(comparisons) > 1 and all(len(one.results.results) == 1 for one in comparisons):
        return [_in_one(comparisons, measure)]
    drawn = [(one, _curves(one.results, measure)) for one in comparisons]
    return [Plot(_name(one, comparisons), curves, measure, ceiling_for(curves)) for one, curves in drawn]


def sweep_plot(comparison: Comparison, parameter: str) -> Plot:
    """Return the final expected regret of variants of policies against one of their parameters."""
    by_policy: dict[str, list[tuple[float, PolicyResult]]] = {}
    for policy in comparison.experiment.policies:
        value = policy.settings.get(parameter)
        if not isinstance(value, float):
            raise InvalidInput(f"{policy.label} has no number {parameter!r} to draw against")
        by_policy.setdefault(policy.name, []).append((value, comparison.results[policy.label]))
    curves = []
    for name, points in by_policy.items():
        points.sort(key=lambda point: point[0])
        values = np.array([value for value, _ in points])
        mean, stderr = (
            np.array([result.final("expected_regret")[which] for _, result in points], np.float64)
            for which in ("mean", "stderr")
        )
        curves.append(Curve(name, name, values, mean, stderr))
    return Plot(_name(comparison, [comparison]), tuple(curves))


def _plot(results: Results, measure: str, scale: str, default: str = "") -> Plot:
    check_choice("measure", measure, ("expected_regret", "regret", "reward"))
    check_choice("scale", scale, ("linear", "log"))
    curves = _curves(results, measure, default)
    if measure != "reward":
        return Plot("", curves, measure, log=scale == "log")
    settled = results.step >= (UNSETTLED * results.step[-1] if scale == "linear" else 0)
    step = results.step[settled]
    rates = tuple(
        replace(curve, x=step, mean=curve.mean[settled] / step, stderr=curve.stderr[settled] / step)
        for curve in curves
    )
    return Plot("", rates, "rate", log=scale == "log", level=results.optimal_reward)


def _in_one(comparisons: Sequence[Comparison], measure: str) -> Plot:
    curves = []
    for place, one in enumerate(comparisons):
        (curve,) = _curves(one.results, measure)
        curves.append(replace(curve, label=_name(one, comparisons), variant=place))
    group = comparisons[0].setting.group
    return Plot(group or comparisons[0].experiment.title, tuple(curves), measure)


def _curves(results: Results, measure: str, default: str = "") -> tuple[Curve, ...]:
    return tuple(
        Curve(
            display_name(one.policy, default),
            one.policy,
            results.step,
            one.mean(measure),
            one.stderr(measure),
        )
        for one in results.results
    )


def _name(comparison: Comparison, among: Sequence[Comparison]) -> str:
    """What tells a setting from the others: 'L = 256', 'd = 20'; all of it where there is no other."""
    setting = comparison.setting
    varied = [name for name in VARIED if len({getattr(one.setting, name) for one in among}) > 1]
    return ", ".join(f"{VARIED[name]} = {getattr(setting, name):,}" for name in varied or ("n_items", "k"))
