"""Results as tables for the terminal."""

from collections.abc import Sequence

import numpy as np
from rich.table import Table
from rich.text import Text

from firstclick.experiments import Comparison
from firstclick.experiments.results import PolicyResult, Results
from firstclick.report.comparisons import setting_words, short_words
from firstclick.report.headline import leaders, ranked
from firstclick.rounding import microseconds, percent, with_error


def results_table(results: Results) -> Table:
    """One row per policy, least expected regret first, those that lead in bold; fits 80 columns."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("policy", overflow="fold")
    for heading in ("expected regret", "realised regret", "of best", "µs/step"):
        table.add_column(heading, justify="right", no_wrap=True)
    lead = {result.policy for result in leaders(results)}
    for result in ranked(results):
        table.add_row(
            Text(result.policy),  # Text, not markup: a label may hold brackets
            final_with_error(result, "expected_regret"),
            final_with_error(result, "regret"),
            percent(share_of_best(result)),
            microseconds(result.seconds_per_step),
            style="bold" if result.policy in lead else None,
        )
    return table


def final_with_error(result: PolicyResult, measure: str) -> str:
    """'812 ± 31': a measure after the last step."""
    return with_error(float(result.mean(measure)[-1]), float(result.stderr(measure)[-1]))


def share_of_best(result: PolicyResult) -> float:
    """The policy's clicks over those the best fixed slate got from the same users; NaN if it got none."""
    clicks = float(np.sum(result.reward[:, -1]))
    best = clicks + float(np.sum(result.regret[:, -1]))
    return clicks / best if best > 0 else float("nan")


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """Expected regret after the last step on one data set, a row per setting and policy; fits 80 columns."""
    table = _table("experiment", "setting", "policy")
    table.add_column("expected regret", justify="right", no_wrap=True)
    for one in comparisons:
        for result in one.results.results:
            table.add_row(
                one.experiment.name,
                short_words(one),
                Text(result.policy, no_wrap=True),
                final_with_error(result, "expected_regret"),
            )
    return table


def speed_table(comparisons: Sequence[Comparison]) -> Table | None:
    """Each cell against the same algorithm in plain NumPy, timed in the same process right after it."""
    table = _table("data", "setting", "policy")
    for heading in ("µs/step", "NumPy µs/step", "times faster"):
        table.add_column(heading, justify="right", no_wrap=True)
    seen = set()
    for one in comparisons:
        for policy, speed in one.speeds.items():
            if speed.numpy_seconds is None or (one.setting, policy) in seen:
                continue
            seen.add((one.setting, policy))
            table.add_row(
                one.dataset.title,
                setting_words(one),
                policy,
                microseconds(speed.seconds),
                microseconds(speed.numpy_seconds),
                f"{speed.numpy_seconds / speed.seconds:.0f}",
            )
    return table if seen else None


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table
