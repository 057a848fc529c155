"""Comparisons of an experiment as plots: which of its settings become panels, and which become curves."""

from collections.abc import Sequence

import numpy as np

from firstclick.errors import InvalidInput
from firstclick.experiments import Comparison
from firstclick.experiments.results import PolicyResult
from firstclick.report.panel import Curve, Plot, ceiling_for
from firstclick.rounding import whole

# What may vary within an experiment, and how a title or a curve's end calls it.
VARIED = {"n_items": "L", "rank": "d", "k": "K"}


def plots_of(comparisons: Sequence[Comparison], measure: str = "expected_regret") -> list[Plot]:
    """One experiment on one data set: a panel per setting, or one panel if it has a single learner.

    With several learners each panel has one curve per learner. A single learner has all its settings in
    one panel, one curve each.
    """
    if len(comparisons) > 1 and all(len(one.results.results) == 1 for one in comparisons):
        return [_in_one(comparisons, measure)]
    return [_of_learners(one, _name(one, comparisons), measure) for one in comparisons]


def sweep_plot(comparison: Comparison, parameter: str, measure: str = "expected_regret") -> Plot:
    """Variants of learners against one of their parameters, after the last step."""
    by_learner: dict[str, list[tuple[float, PolicyResult]]] = {}
    for policy in comparison.experiment.policies:
        value = policy.settings.get(parameter)
        if not isinstance(value, float):
            raise InvalidInput(f"{policy.label} has no number {parameter!r} to draw against")
        by_learner.setdefault(policy.name, []).append((value, comparison.results[policy.label]))
    curves = []
    for name, points in by_learner.items():
        points.sort(key=lambda point: point[0])
        finals = [result.final(measure) for _, result in points]
        curves.append(
            Curve(
                label=name,
                policy=name,
                x=np.array([value for value, _ in points]),
                mean=np.array([final["mean"] for final in finals], np.float64),
                stderr=np.array([final["stderr"] for final in finals], np.float64),
            )
        )
    return Plot(_name(comparison, [comparison]), tuple(curves), measure)


def _of_learners(comparison: Comparison, title: str, measure: str) -> Plot:
    curves = tuple(
        _curve(comparison, result, result.policy, measure) for result in comparison.results.results
    )
    return Plot(title, curves, measure, ceiling_for(curves))


def _in_one(comparisons: Sequence[Comparison], measure: str) -> Plot:
    curves = tuple(
        _curve(one, one.results.results[0], _name(one, comparisons), measure, variant=place)
        for place, one in enumerate(comparisons)
    )
    group = comparisons[0].setting.group
    return Plot(group or comparisons[0].experiment.title, curves, measure)


def _curve(
    comparison: Comparison, result: PolicyResult, label: str, measure: str, variant: int | None = None
) -> Curve:
    return Curve(
        label=label,
        policy=result.policy,
        x=comparison.results.step,
        mean=result.mean(measure),
        stderr=result.stderr(measure),
        variant=variant,
    )


def _name(comparison: Comparison, among: Sequence[Comparison]) -> str:
    """What tells a setting from the others: 'L = 256', 'd = 20'; all of it where there is no other."""
    setting = comparison.setting
    varied = [name for name in VARIED if len({getattr(one.setting, name) for one in among}) > 1]
    return ", ".join(f"{VARIED[name]} = {getattr(setting, name):,}" for name in varied or ("n_items", "k"))


def setting_words(comparison: Comparison) -> str:
    """'256 items, d = 20, K = 4'."""
    setting = comparison.setting
    of = f" of {setting.group}" if setting.group else ""
    features = f", d = {setting.rank}" if setting.rank is not None else ""
    return f"{whole(setting.n_items)} items{of}{features}, K = {setting.k}"


def short_words(comparison: Comparison) -> str:
    """'L=256 d=20 K=4', and the group."""
    setting = comparison.setting
    features = f" d={setting.rank}" if setting.rank is not None else ""
    return f"L={setting.n_items}{features} K={setting.k}" + (f" {setting.group}" if setting.group else "")
