"""`firstclick evaluate run`: what other policies would have earned, from a log."""

import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from firstclick.cli.console import page, print_json, talk
from firstclick.cli.log_argument import (
    ColumnOption,
    LogArchiveOption,
    LogArgument,
    LogModelOption,
    LogOptionOption,
    open_log,
)
from firstclick.cli.options import check_output_file, choice, count, number, processes
from firstclick.cli.progress_bar import ProgressBar, progress_bar
from firstclick.errors import FirstclickError
from firstclick.extras import MissingExtra, needed_by

if TYPE_CHECKING:
    from firstclick.evaluation.result import Evaluation
    from firstclick.logs.ranked_log import RankedLog

# A pipe or a log file hears of long work this often.
SECONDS = 10.0


def evaluate_run(
    log: LogArgument,
    policy: Annotated[
        list[str],
        Option(
            metavar="SPEC",
            help="Policy to evaluate, see the list above; repeatable.",
        ),
    ],
    model: LogModelOption = None,
    archive: LogArchiveOption = None,
    column: ColumnOption = None,
    log_option: LogOptionOption = None,
    store: Annotated[
        str | None,
        Option(metavar="STORE", help="Store of the models in greedy:MODEL and sample:MODEL; LOG by default."),
    ] = None,
    logger: Annotated[
        str | None,
        choice("Whether the logging policy was learning; by default judged by the log.", "fixed", "learning"),
    ] = None,
    level: Annotated[float, number("Confidence level of the intervals.")] = 0.95,
    explore: Annotated[
        float, number("Largest share of uniform slates that the advice for a better log may ask for.")
    ] = 0.1,
    relative_error: Annotated[
        float, number("Relative standard error to aim for in the probabilities of a model's log.")
    ] = 0.05,
    refits: Annotated[
        int,
        count("Bootstrap refits of the click model, for learning policies."),
    ] = 20,
    steps: Annotated[
        int | None, count("Pages that each of them plays; by default as many as the log has.")
    ] = None,
    seed: Annotated[int, count("Random seed.")] = 0,
    page_file: Annotated[
        Path | None, Option("--page", metavar="FILE.html", help="Also write everything to an HTML page.")
    ] = None,
    figure: Annotated[
        Path | None, Option(metavar="FILE", help="Write the forest plot: .png, .svg or .pdf.")
    ] = None,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Estimate what policies would have earned instead of what was shown, in clicks per page.

    The exit code is 3 if the log cannot judge one of the policies. The others are printed all the same.

    \b
    Examples:
      firstclick evaluate run clicks.parquet --policy list:new-order.csv
      firstclick evaluate run a.csv --policy greedy:ranker.npz --policy random \\
        --page answer.html
      firstclick evaluate run shop.db --model shop --policy sample:shop,event=5000

    \b
    Policies:
      list:FILE           the items in a file, an id a line
      list:A,B,C          these items, in this order
      greedy:FILE.npz     the slate that a saved Ranker thinks best
      greedy:MODEL        of a model in --store; greedy:MODEL,event=N: as of then
      sample:FILE.npz     what a saved Ranker draws, frozen at its state
      sample:MODEL        what a model draws, frozen; sample:MODEL,event=N
      random              any order of what may be shown
      cascade-ts, ...     a policy that goes on learning: played in worlds
                          fitted to the log, model-based (`firstclick policies`)
    """
    from firstclick.evaluation.target_specs import make_target, read_specs

    specs = read_specs(policy)
    check_output_file("--page", page_file, ".html", ".htm")
    check_output_file("--figure", figure, ".png", ".svg", ".pdf")
    with progress_bar(every=SECONDS) as progress:
        opened = open_log(
            log, model=model, archive=archive, column=column, log_option=log_option,
            progress=progress.doing(f"opening {log}"),
        )  # fmt: skip
        opened = _with_propensities(opened, relative_error, seed, progress)
        models = store if store is not None else log if model is not None else None
        targets = {
            spec.label: make_target(
                spec, opened, store=models, archive=archive or (), seed=seed,
                progress=progress.doing(f"folding {spec.text}"),
            )
            for spec in specs
            if spec.kind != "learning"
        }  # fmt: skip
        from firstclick.evaluation.run import evaluate

        found = evaluate(
            opened, targets, learning=[spec.text for spec in specs if spec.kind == "learning"], refits=refits,
            steps=steps, logger=logger, level=level, explore=explore, seed=seed, doing=progress.doing,
        )  # fmt: skip
    command = "firstclick " + shlex.join(sys.argv[1:])
    failure = None
    try:
        _write(found, page_file, figure, command)
    except FirstclickError as error:
        failure = error  # What took long to compute is printed all the same.
    if json:
        print_json(found.as_json())
    else:
        from firstclick.evaluation.text import blocks

        out = page()
        for block in blocks(found):
            out.print(block)
    if failure is not None:
        raise failure
    for file in filter(None, (page_file, figure)):
        talk.print(f"written: {file}")
    if found.exit_code:
        raise typer.Exit(found.exit_code)


def _with_propensities(
    log: "RankedLog", relative_error: float, seed: int, progress: ProgressBar
) -> "RankedLog":
    """The log of a model has its probabilities from the fold; that of a file, in its columns."""
    with suppress(MissingExtra), needed_by("a model's log"):
        from firstclick.evaluation.own_log import OwnLog

        if isinstance(log, OwnLog):
            from firstclick.evaluation.own_propensities import OwnLogWithPropensities

            return OwnLogWithPropensities(
                log, relative_error=relative_error, jobs=processes(0), seed=seed,
                progress=progress.doing("propensities"),
            )  # fmt: skip
    return log


def _write(found: "Evaluation", page_file: Path | None, figure: Path | None, command: str) -> None:
    if page_file is not None:
        with needed_by("--page"):
            from firstclick.evaluation.page import write_page

        write_page(found, page_file, command=command)
    if figure is not None:
        with needed_by("--figure"):
            from firstclick.evaluation.figure import forest_plot
            from firstclick.report.figures import save_figure

        save_figure(forest_plot(found), figure)
