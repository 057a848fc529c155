"""Everything about one simulation on one page that needs nothing else."""

import json
import os
from pathlib import Path
from typing import Any

from firstclick.experiments.results import Results
from firstclick.files.writing import write_whole
from firstclick.report.comparisons import caption, regret_figure
from firstclick.report.page import FigureBlock, LearnedBlock, Page, html_page
from firstclick.report.style import display_name
from firstclick.report.tables import results_block
from firstclick.report.winner import final_with_error, headline, ranked
from firstclick.rounding import whole

FIGURES = (
    ("expected_regret", "linear", "Expected regret against step, linear axes. Total regret"),
    ("expected_regret", "log", "Expected regret against step, logarithmic axes. Total regret"),
    ("reward", "linear", "Clicks per step against step, linear axes. Total clicks"),
)


def html_report(
    results: Results, *, title: str, command: str | None = None, subtitle: str | None = None,
    default: str = "",
) -> str:  # fmt: skip
    """The results as one HTML page: who won, table, figures, slates, and how to repeat it.

    >>> from firstclick import make_world, simulate
    >>> results = simulate(["random"], make_world("blb:n_items=8,k=2"), k=2, steps=100, runs=2, seed=1)
    >>> "<title>Random order" in html_report(results, title="Random order")
    True

    The page loads nothing and runs no script. The same results give the same text.

    Args:
        results: From `simulate`.
        title: The title of the page.
        command: The command that repeats it, to print on the page.
        subtitle: A line below the title.
        default: The name of the policy to mark as the default.
    """
    order = ranked(results)
    known = ("k", "steps", "runs", "seed", "n_items")
    sizes = {name: getattr(results, name) for name in known if name not in results.settings}
    return html_page(
        Page(
            title=title,
            subtitle=subtitle or "",
            facts=(
                f"{whole(results.n_items)} items",
                f"slates of {results.k}",
                f"{whole(results.steps)} steps",
                "1 run" if results.runs == 1 else f"{whole(results.runs)} runs",
                "1 policy" if len(order) == 1 else f"{len(order)} policies",
            ),
            headline=headline(results, default=default).replace(
                " ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}"
            ),
            notes=results.notes,
            overview=results_block(results),
            figures=tuple(_figure(results, *kind, default) for kind in FIGURES),
            learned=(
                LearnedBlock(
                    "", results.k, results.optimal_items, {result.policy: result.shown for result in order}
                ),
            ),
            settings={name: _plain(value) for name, value in (sizes | dict(results.settings)).items()},
            versions=results.versions,
            command=command or "",
            default=default,
        )
    )


def write_report(
    results: Results, path: str | os.PathLike[str], *, title: str, command: str | None = None,
    subtitle: str | None = None, default: str = "",
) -> Path:  # fmt: skip
    """Write `html_report` to a file. An older file is replaced as a whole.

    >>> from firstclick import make_world, simulate
    >>> results = simulate(["random"], make_world("blb:n_items=8,k=2"), k=2, steps=100, runs=2, seed=1)
    >>> write_report(results, "report.html", title="Random order").name
    'report.html'

    Args:
        results: From `simulate`.
        path: The file to write.
        title: The title of the page.
        command: The command that repeats it, to print on the page.
        subtitle: A line below the title.
        default: The name of the policy to mark as the default.

    Returns:
        The path.
    """
    page = html_report(results, title=title, command=command, subtitle=subtitle, default=default)
    write_whole(path, page.encode())
    return Path(path)


def _figure(results: Results, measure: str, scale: str, what: str, default: str) -> FigureBlock:
    ends = "; ".join(
        f"{display_name(result.policy, default)} {final_with_error(result, measure)}"
        for result in ranked(results)
    )
    figure = regret_figure(results, measure=measure, scale=scale, default=default)
    said = caption(results, measure=measure, scale=scale)
    return FigureBlock("", "", figure, said, f"{what} after the last step: {ends}.")


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(_plain(part) for part in value)
    return json.dumps(value, default=str, ensure_ascii=False)
