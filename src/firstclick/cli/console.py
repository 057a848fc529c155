"""What commands share: the progress bar, the seed, the output folder, the last words."""

import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from firstclick.errors import InvalidInput, WorkFailed
from firstclick.simulate import Results
from firstclick.whole_number import whole_number

# No markup: a path or a note may hold brackets.
talk = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
out = Console(highlight=False, markup=False, emoji=False)

OUR_FILES = {"report.html", "results.json", "results.csv", "regret.svg", "regret.png"}

# What is not read by a person is not folded.
UNFOLDED = 10_000


def processes(jobs: int) -> int:
    """As many as asked for; for 0 as many as there are processors this process may use."""
    if jobs := whole_number("jobs", jobs, at_least=0):
        return jobs
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def drawn_seed() -> int:
    """A fresh seed, short enough to be typed."""
    return secrets.randbelow(2**31)


class Steps:
    """The `progress(done, total)` of a simulation, drawn as a bar with the time left.

    `opening`, whole lines, is said at the first call: by then all that was asked for has been found right.
    """

    def __init__(self, bar: Progress) -> None:
        self.opening = ""
        self.interrupted = False
        self._bar = bar
        self._task = bar.add_task("preparing", total=None, steps="")

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Answer Ctrl-C, twice if need be: what is raised inside of a compiler may get lost there."""
        self.interrupted = True
        raise KeyboardInterrupt

    def __call__(self, done: int, total: int) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        if self.opening:
            talk.print(self.opening, end="")
            self.opening = ""
        if done == 0:
            self._bar.update(self._task, description="loading kernels (compiled the first time)")
            return
        steps = f"{done / 1e6:.1f} of {total / 1e6:.1f} M steps" if total > 1e6 else f"{total:,} steps"
        self._bar.update(self._task, completed=done, total=total, description="playing", steps=steps)


@contextmanager
def progress_bar() -> Iterator[Steps]:
    """A bar on stderr, from now to the end, if that is a terminal; nothing stays of it."""
    columns = (
        TextColumn("{task.description}"), BarColumn(30), TaskProgressColumn(),
        TextColumn("{task.fields[steps]}"), TimeRemainingColumn(),
    )  # fmt: skip
    # Not `talk.is_terminal`, which is true of a log file wherever FORCE_COLOR is set.
    with Progress(*columns, console=talk, transient=True, disable=not sys.stderr.isatty()) as bar:
        steps = Steps(bar)
        before = signal.signal(signal.SIGINT, steps.interrupt)
        try:
            yield steps
        finally:
            signal.signal(signal.SIGINT, before)


def check_output(folder: Path | None, *, overwrite: bool) -> None:
    """Refuse a folder that holds something or cannot be written, before any work is done."""
    if folder is None:
        return
    try:
        if folder.exists() and not folder.is_dir():
            raise InvalidInput(f"{folder} is a file; --out names a folder")
        held = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        if held and not (overwrite and set(held) <= OUR_FILES):
            ours = set(held) <= OUR_FILES
            what = "results" if ours else f"other files ({min(set(held) - OUR_FILES)})"
            way_out = "or say --overwrite" if ours else "or an empty one"
            raise InvalidInput(f"--out {folder} holds {what} already; name a new folder, {way_out}")
        parent = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        # Tried, because permissions alone do not tell: a file system may be read-only, or not a real one.
        tempfile.TemporaryDirectory(dir=parent).cleanup()
    except OSError as error:
        raise InvalidInput(f"--out {folder} cannot be written: {error.strerror or error}") from None


def write_output(results: Results, folder: Path, *, title: str, subtitle: str, command: str) -> Path:
    """Fill the folder with report, figures and tables; all of them, or none and an error."""
    from firstclick.report import regret_figure, save_figure, write_report

    # Within the folder if there is one: it may be the current folder or a mounted one, which cannot be
    # replaced as a whole.
    draft = folder / f".{os.getpid()}.part" if folder.exists() else _beside(folder)
    try:
        draft.mkdir(parents=True)
        results.save(draft / "results.json")
        _write_csv(results, draft / "results.csv")
        figure = regret_figure(results)
        for kind in ("svg", "png"):
            save_figure(figure, draft / f"regret.{kind}")
        write_report(results, draft / "report.html", title=title, subtitle=subtitle, command=command)
        if draft.parent == folder:
            for name in OUR_FILES:
                (draft / name).replace(folder / name)
        else:
            draft.replace(folder)
    except OSError as error:
        raise WorkFailed(
            f"{folder} cannot be written: {error.strerror or error}; the results are on stdout alone"
        ) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder / "report.html"


def _beside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.{os.getpid()}.part")


def _write_csv(results: Results, path: Path) -> None:
    rows = results.rows()
    lines = [",".join(rows[0]), *(",".join(str(value) for value in row.values()) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def print_json(value: Any) -> None:
    """One line for programs, several for people."""
    print(json.dumps(value, allow_nan=False, indent=2 if sys.stdout.isatty() else None))


def hand_over(results: Results, folder: Path | None, *, as_json: bool, **page: str) -> None:
    """The results on stdout, the report in its folder, and where it is on stderr.

    What took long to compute is printed even where the folder cannot be written after all.
    """
    failure = report = None
    if folder is not None:
        try:
            report = write_output(results, folder, **page)
        except WorkFailed as error:
            failure = error
    for note in results.notes:
        talk.print(f"note: {note}")
    if as_json:
        print_json(results.summary())
    else:
        _print_table(results)
    if failure is not None:
        raise failure
    if report is not None:
        talk.print(f"report: {report}")


def _print_table(results: Results) -> None:
    from firstclick.report import results_table

    out.print(results_table(results), width=None if out.is_terminal else UNFOLDED, crop=False)
