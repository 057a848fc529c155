"""What commands that play into a folder share: options, progress, how to go on, and the last words."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from firstclick.cli.console import Interrupted, page
from firstclick.cli.options import count, processes
from firstclick.cli.progress_bar import ProgressBar, progress_bar
from firstclick.data.sources import Source
from firstclick.errors import InvalidInput
from firstclick.experiments import Comparison, Dataset
from firstclick.experiments.engines import Engine, engine_named
from firstclick.experiments.folder import check_folder
from firstclick.experiments.results import MEASURES
from firstclick.experiments.runner import Watch

SECONDS_BETWEEN_LINES = 30.0

# Options of all of them.
Overwrite = Annotated[
    bool, Option("--overwrite", help="Replace the results of another run in --out; finished cells are kept.")
]
Out = Annotated[Path, Option(metavar="FOLDER", help="Folder for the report, figures, tables and cells.")]
Jobs = Annotated[int, count("Number of processes; 0: one per processor. Results do not depend on it.")]
EngineName = Annotated[
    str,
    Option(
        metavar="ENGINE",
        help="local (processes), dask (a local dask cluster), or tcp://host:port of a cluster.",
    ),
]


@contextmanager
def at_work(folder: Path, engine: str, jobs: int) -> Iterator[tuple[Engine, ProgressBar]]:
    """An engine, and a progress bar; Ctrl-C says what is kept in the folder and how to go on."""
    runner = engine_named(engine, processes(jobs))
    check_folder(folder)
    try:
        with progress_bar(every=SECONDS_BETWEEN_LINES) as progress:
            yield runner, progress
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted; finished cells are kept in {folder}, the same command goes on"
        ) from None


def watch(progress: ProgressBar) -> Watch:
    """The bar, and a line on how much there is to do."""

    def begins(finished: int, cells: int) -> None:
        progress.opening += f"{cells} cells" + (
            f", {finished} of them finished already\n" if finished else "\n"
        )

    return Watch(begins, progress)


def to_repeat(*words: str, **options: str | int | bool | Sequence[str] | None) -> str:
    """The call that gives the same files, with the options that are given."""
    call = ["firstclick", *words]
    for name, value in options.items():
        if value is True:
            call.append(f"--{name}")
        elif value is not None and value is not False:
            for one in [value] if isinstance(value, str | int) else value:
                call += [f"--{name}", str(one)]
    return shlex.join(call)


def load(source: Source, path: Path | None, progress: ProgressBar) -> Dataset:
    """The data set, with progress while its files are read."""
    if path is None and not source.synthetic:
        raise InvalidInput(f"{source.title} needs its files; say where they are with --data")
    return Dataset.load(source, path, progress.doing(f"reading {source.title}"))


def print_regret(comparisons: Sequence[Comparison]) -> None:
    """The regret of every policy, data set by data set."""
    from firstclick.report.tables import comparison_table

    for number, dataset in enumerate(dict.fromkeys(one.dataset for one in comparisons)):
        page().print(("\n" if number else "") + f"{dataset.title}, expected regret")
        page().print(comparison_table([one for one in comparisons if one.dataset is dataset]))


def print_speed(comparisons: Sequence[Comparison]) -> None:
    """How fast each policy was played."""
    from firstclick.report.tables import speed_table

    if speeds := speed_table(comparisons):
        page().print("\nSpeed against the same algorithm in plain NumPy, timed as each cell was played:\n")
        page().print(speeds)


def as_plain(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """The comparisons for `--json`: settings, and every measure after the last step."""
    return [
        {
            **asdict(one.setting),
            "runs": one.results.runs,
            "optimal_reward": one.results.optimal_reward,
            "results": [
                {"policy": result.policy, **{measure: result.final(measure) for measure in MEASURES}}
                for result in one.results.results
            ],
        }
        for one in comparisons
    ]
