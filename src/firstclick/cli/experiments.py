"""What `firstclick reproduce` and `firstclick run` share: loading with progress, and the last words."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from firstclick.cli.console import Steps, page, progress_bar, talk
from firstclick.data.sources import Source
from firstclick.errors import InvalidInput
from firstclick.experiment import Comparison, Dataset
from firstclick.experiment.conduct import CELLS
from firstclick.experiment.play import Watch

INTERRUPTED = 130
SECONDS_BETWEEN_LINES = 30.0


@contextmanager
def progress_and_resumption(folder: Path) -> Iterator[Steps]:
    """A progress bar; Ctrl-C says what is kept and how to go on."""
    try:
        with progress_bar(every=SECONDS_BETWEEN_LINES) as progress:
            yield progress
    except KeyboardInterrupt:
        kept = len(list((folder / CELLS).glob("*.json")))
        talk.print(f"interrupted; {kept} finished cells are kept in {folder}, the same command goes on")
        # Not Typer's Exit, after which the command line says that nothing was written.
        raise SystemExit(INTERRUPTED) from None


def watch(progress: Steps) -> Watch:
    """The bar, and a line on how much there is to do."""

    def begins(finished: int, cells: int) -> None:
        progress.opening = f"{cells} cells" + (
            f", {finished} of them finished already\n" if finished else "\n"
        )

    return Watch(begins, progress)


def load(source: Source, path: Path | None, progress: Steps) -> Dataset:
    """The data set, with progress while its files are read."""
    if path is None and not source.synthetic:
        raise InvalidInput(f"{source.title} needs its files; say where they are with --data")
    return Dataset.load(source, path, progress.doing(f"reading {source.title}"))


def print_tables(comparisons: Sequence[Comparison]) -> None:
    """The regret of every learner, and how fast it was played."""
    from firstclick.report.tables import comparison_table, speed_table

    page().print(comparison_table(comparisons))
    if speeds := speed_table(comparisons):
        page().print("\nSpeed against the same algorithm in plain NumPy, timed side by side in this run:\n")
        page().print(speeds)
