"""Everything about one simulation on one page that needs nothing else."""

import json
import os
from pathlib import Path
from typing import Any

from firstclick.experiments.results import PolicyResult, Results
from firstclick.files.writing import write_whole
from firstclick.report.figures import caption, regret_figure
from firstclick.report.headline import headline, leaders, ranked
from firstclick.report.page import rendered, slate_entries, swatch, themed_svg
from firstclick.report.style import LineStyle, line_styles
from firstclick.report.tables import final_with_error, share_of_best
from firstclick.rounding import microseconds, percent, rounded, whole

FIGURES = (("expected_regret", "linear"), ("expected_regret", "log"), ("reward", "linear"))


def html_report(
    results: Results, *, title: str, command: str | None = None, subtitle: str | None = None
) -> str:
    """The report as one HTML page: who won, the table, the figures, the slates, how to repeat it.

    It loads nothing from anywhere and runs no script. Same results on the same installation, same text.
    """
    order, lead = ranked(results), {result.policy for result in leaders(results)}
    styles = line_styles(result.policy for result in results.results)
    best_items = {shown.item for shown in results.optimal_items}
    return rendered(
        "report.html",
        colors=dict.fromkeys(style.color for style in styles.values()),
        title=title,
        subtitle=subtitle,
        command=command,
        headline=headline(results).replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}"),
        facts=_facts(results),
        rows=[
            _row(result, styles[result.policy], leads=result.policy in lead, alone=len(lead) == 1)
            for result in order
        ],
        compared=results.runs > 1 and len(order) > 1,
        runs=results.runs,
        figures=[_figure(results, measure, scale) for measure, scale in FIGURES],
        best=slate_entries(results.optimal_items, results.k, best_items),
        slates=[
            {
                "policy": result.policy,
                "swatch": swatch(styles[result.policy]),
                "slate": slate_entries(result.shown, results.k, best_items),
            }
            for result in order
        ],
        notes=results.notes,
        settings=[*_sizes(results), *((name, _plain(value)) for name, value in results.settings.items())],
        versions=results.versions.items(),
    )


def write_report(
    results: Results,
    path: str | os.PathLike[str],
    *,
    title: str,
    command: str | None = None,
    subtitle: str | None = None,
) -> Path:
    """Write `html_report` to a file; an older file is replaced whole. Returns the path."""
    write_whole(path, html_report(results, title=title, command=command, subtitle=subtitle).encode())
    return Path(path)


def _facts(results: Results) -> list[str]:
    runs = "1 run" if results.runs == 1 else f"{whole(results.runs)} runs"
    learners = "1 learner" if len(results.results) == 1 else f"{len(results.results)} learners"
    return [
        f"{whole(results.n_items)} items",
        f"slates of {results.k}",
        f"{whole(results.steps)} steps",
        runs,
        learners,
    ]


def _row(result: PolicyResult, style: LineStyle, *, leads: bool, alone: bool) -> dict[str, Any]:
    return {
        "policy": result.policy,
        "swatch": swatch(style),
        "badge": ("lowest" if alone else "tied for lowest") if leads else "",
        "regrets": [
            rounded(float(result.mean(measure)[-1]), float(result.stderr(measure)[-1]))
            for measure in ("expected_regret", "regret")
        ],
        "share": percent(share_of_best(result)),
        "time": microseconds(result.seconds_per_step),
    }


def _figure(results: Results, measure: str, scale: str) -> dict[str, Any]:
    kind = {"expected_regret": "Expected regret", "regret": "Realised regret", "reward": "Clicks per step"}
    axes = "logarithmic axes" if scale == "log" else "linear axes"
    ends = "; ".join(f"{end.policy} {final_with_error(end, measure)}" for end in ranked(results))
    what = "clicks" if measure == "reward" else "regret"
    return {
        "svg": themed_svg(
            regret_figure(results, measure=measure, scale=scale),
            prefix=f"{measure}-{scale}-",
            label=f"{kind[measure]} against step, {axes}. Total {what} after the last step: {ends}.",
        ),
        "caption": caption(results, measure=measure, scale=scale),
    }


def _sizes(results: Results) -> list[tuple[str, str]]:
    known = ("k", "steps", "runs", "seed", "n_items")
    return [(name, str(getattr(results, name))) for name in known if name not in results.settings]


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(_plain(part) for part in value)
    return json.dumps(value, default=str, ensure_ascii=False)
