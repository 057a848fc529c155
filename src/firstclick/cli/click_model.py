"""`firstclick click-model`: which click model fits a page, and its numbers."""

import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from typer import Argument, Option

from firstclick.cli.command_line import command_group
from firstclick.cli.console import page, print_json, talk
from firstclick.cli.log_argument import (
    ColumnOption,
    LogArchiveOption,
    LogArgument,
    LogModelOption,
    LogOptionOption,
    open_log,
)
from firstclick.cli.options import check_output_file, choice
from firstclick.cli.progress_bar import progress_bar
from firstclick.click_models.click_fit import FITTED_MODELS, load_click_fit
from firstclick.click_models.fit_summary import FitSummary, summarise
from firstclick.click_models.fitting import fit_sessions
from firstclick.click_models.quality import Quality
from firstclick.click_models.sessions import read_sessions
from firstclick.click_models.verdict import Comparison, Verdict, compare_models, verdict
from firstclick.errors import InvalidInput
from firstclick.extras import needed_by
from firstclick.files.writing import write_whole

click_model_app = command_group("Click models: find the one that fits a log, and fit it.")

ALL = "all"

JsonOption = Annotated[bool, Option("--json", help="Print JSON.")]
OutOption = Annotated[
    Path | None,
    Option("--out", metavar="FILE", help="Write the model, fitted to all slates, to this file (.npz)."),
]


@click_model_app.command(short_help="Fit click models to a log and find the one that fits.")
def fit(
    log: LogArgument,
    click_model: Annotated[str, choice("The click model to fit, or all of them.", *FITTED_MODELS, ALL)] = ALL,
    by_segment: Annotated[
        bool, Option("--by-segment", help="Fit an attraction per item and segment (or query) of the log.")
    ] = False,
    counts: Annotated[
        bool,
        Option("--counts", help="LOG has counts: columns item, position, impressions, clicks, and segment."),
    ] = False,
    out: OutOption = None,
    html: Annotated[
        Path | None, Option("--page", metavar="FILE", help="Also write everything to an HTML page.")
    ] = None,
    json: JsonOption = False,
    model: LogModelOption = None,
    archive: LogArchiveOption = None,
    column: ColumnOption = None,
    log_option: LogOptionOption = None,
) -> None:
    """Fit click models to a log, find the one that fits, and say whether a cascade is good enough.

    Models are fitted to four fifths of the slates and compared on the rest, chosen by a hash of the slate's
    number. With --out the best model is fitted again to all slates.

    \b
    Examples:
      firstclick click-model fit slates.csv
      firstclick click-model fit a.csv --by-segment --out fit.npz --page fit.html
      firstclick click-model fit counts.csv --counts --out fit.npz
    """
    check_output_file("--page", html, ".html", ".htm")
    check_output_file("--out", out)
    if counts:
        _fit_counts(Path(log), click_model, html, out, json)
        return
    with progress_bar() as progress:
        opened = open_log(
            log, model=model, archive=archive, column=column, log_option=log_option,
            progress=progress.doing(f"reading {log}"),
        )  # fmt: skip
        sessions = read_sessions(opened, by_segment=by_segment, progress=progress.doing(f"reading {log}"))
        chosen = FITTED_MODELS if click_model == ALL else (click_model,)
        progress.doing("fitting")(0, 0)
        compared = compare_models(sessions, chosen)
        said = verdict(compared)
        best = said.take or chosen[0]
        # Of all slates for the file, of the others for what is printed beside their predictions.
        fitted = fit_sessions(sessions, best) if out else compared.fits[best]
    for note in opened.notes:
        talk.print(f"note: {note}")
    for skipped in (*opened.skipped, *opened.doubtful):
        talk.print(f"note: {skipped}")
    if sessions.unreported:
        talk.print(f"note: {sessions.unreported:,} slates without a reported outcome are left out")
    summary = summarise(fitted)
    if json:
        print_json(_as_json(opened.name, sessions.n, compared, said, summary))
    else:
        _print(compared, said, summary)
    if html is not None:
        with needed_by("--page"):
            from firstclick.report.click_models import click_model_page
        command = shlex.join(["firstclick", *sys.argv[1:]])
        write_whole(html, click_model_page(opened.name, compared, said, summary, command=command).encode())
        talk.print(f"page: {html}")
    if out is not None:
        fitted.save(out)
        talk.print(f"{best} fitted to {sessions.n:,} slates: {out}")


@click_model_app.command(short_help="Print a fitted click model.")
def describe(
    file: Annotated[
        Path, Argument(metavar="FILE", help="File that `firstclick click-model fit --out` wrote.")
    ],
    json: JsonOption = False,
) -> None:
    """Print a fitted click model: its probabilities by position and its most attractive items.

    \b
    Example:
      firstclick click-model describe fit.npz
    """
    summary = summarise(load_click_fit(file))
    if json:
        print_json(asdict(summary))
    else:
        _print_fit(summary)


def _fit_counts(path: Path, click_model: str, html: Path | None, out: Path | None, json: bool) -> None:
    from firstclick.click_models.count_table import fit_counts, read_counts

    if click_model not in ("pbm", ALL):
        raise InvalidInput(f"--counts are enough for pbm alone, got --click-model {click_model}")
    if html is not None:
        raise InvalidInput("--page shows how models predict held-out slates, which --counts do not have")
    with progress_bar() as progress:
        table = read_counts(path, progress.doing(f"reading {path.name}"))
        fitted = fit_counts(table)
    for skipped in table.skipped:
        talk.print(f"note: {skipped}")
    for capped in table.capped:
        talk.print(f"note: {capped}: they count as clicked each time")
    talk.print(f"note: positions count from {table.first_position}; counts cannot tell which model fits")
    summary = summarise(fitted)
    if json:
        print_json({"log": table.name, "fit": asdict(summary)})
    else:
        _print_fit(summary)
    if out is not None:
        fitted.save(out)
        talk.print(f"pbm: {out}")


def _print(compared: Comparison, said: Verdict, summary: FitSummary) -> None:
    from firstclick.report.click_model_tables import model_block, rank_block
    from firstclick.report.tables import terminal_table

    for sentence in said.sentences:
        page().print(sentence)
    if said.sentences:
        page().print()
    page().print(terminal_table(model_block(compared, said)))
    page().print("\nconditional perplexity by rank")
    page().print(terminal_table(rank_block(compared)))
    page().print()
    _print_fit(summary)


def _print_fit(summary: FitSummary) -> None:
    from firstclick.report.click_model_tables import fit_block, item_block
    from firstclick.report.tables import terminal_table

    segments = f"{summary.segments:,} segments, " if summary.segments > 1 else ""
    page().print(
        f"{summary.model}: {summary.slates:,.0f} slates, {segments}{summary.shown:,} of {summary.items:,} "
        f"items shown, mean attraction {summary.attraction:.4f}"
        + (f", mean satisfaction {summary.satisfaction:.4f}" if summary.satisfaction is not None else "")
    )
    if not summary.converged:
        talk.print("note: EM took its largest number of steps; the numbers may still be some way off")
    for block in (fit_block(summary), item_block(summary)):
        if block is not None:
            page().print("\n" + block.caption)
            page().print(terminal_table(block))


def _as_json(
    name: str, slates: int, compared: Comparison, said: Verdict, summary: FitSummary
) -> dict[str, Any]:
    return {
        "log": name,
        "slates": slates,
        "unreported": compared.unreported,
        "held_out": {
            "slates": compared.slates,
            "clicked": compared.clicked,
            "clicks": compared.clicks,
            "second_clicks": compared.second_clicks,
        },
        "models": [_model_json(one, said) for one in compared.qualities.values()],
        "verdict": None
        if len(compared.qualities) == 1
        else {
            "best": said.best or None,
            "take": said.take or None,
            "cascade_enough": said.cascade_enough,
            "policy": said.policy or None,
            "examined": said.examined or None,
            "sentences": said.sentences,
        },
        "fit": asdict(summary),
    }


def _model_json(one: Quality, said: Verdict) -> dict[str, Any]:
    page, first = said.pages.get(one.model), said.first_clicks.get(one.model)
    return {
        "model": one.model,
        "log_likelihood": one.log_likelihood,
        "worse": asdict(page) if page else None,
        "worse_to_first_click": asdict(first) if first else None,
        "perplexity": float(np.nanmean(one.perplexity)),
        "conditional_perplexity": float(np.nanmean(one.conditional_perplexity)),
        "perplexity_by_rank": [None if value != value else value for value in one.perplexity.tolist()],
        "conditional_perplexity_by_rank": [
            None if value != value else value for value in one.conditional_perplexity.tolist()
        ],
    }
