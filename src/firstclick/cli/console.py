"""What commands share: the progress bar, the seed, the output folder, the last words."""

import json
import os
import secrets
import shutil
import signal
import sys
import time
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Timer
from types import FrameType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from typer import TyperException

from firstclick.errors import FirstclickError, InvalidInput, WorkFailed
from firstclick.experiments import Results
from firstclick.experiments.folder import names_in
from firstclick.experiments.results import as_csv
from firstclick.extras import MissingExtra
from firstclick.files.writing import drafting_process, folder_draft
from firstclick.validation.whole_number import whole_number

# No markup: a path or a note may hold brackets.
talk = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
OUR_FILES = {"report.html", "results.json", "results.csv", "regret.svg", "regret.png"}

# Lines for a pipe or a file are not folded: what reads them counts lines, not columns.
UNFOLDED = 10_000

# Called back from C, or when an object is thrown away; what is raised in there Python prints and forgets.
CALLS_BACK = ("llvmlite.binding.executionengine", "llvmlite.binding.ffi")


def page() -> Console:
    """Where results are printed: stdout, as wide as the terminal if it is one."""
    width = None if sys.stdout.isatty() else UNFOLDED
    return Console(highlight=False, markup=False, emoji=False, width=width)


def processes(jobs: int) -> int:
    """As many as asked for; for 0 as many as there are processors this process may use."""
    if jobs := whole_number("jobs", jobs, at_least=0):
        return jobs
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def drawn_seed() -> int:
    """A fresh seed, short enough to be typed."""
    return secrets.randbelow(2**31)


class Interrupted(TyperException):
    """Ctrl-C where something was kept after all."""

    exit_code = 130


class ProgressBar:
    """The `progress(done, total)` of a simulation, drawn as a bar with the time left.

    `opening`, whole lines, is said at the first call: by then all that was asked for has been found right.
    """

    def __init__(self, bar: Progress, every: float | None) -> None:
        self.opening = ""
        self.every, self._next = every, time.monotonic() + (every or 0)
        self._interrupted = False
        self._again: Timer | None = None
        self._bar = bar
        self._task = bar.add_task("preparing", total=None, steps="")

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Answer Ctrl-C; where the answer would get lost, a moment later."""
        self._interrupted = True
        while frame is not None:
            if frame.f_globals.get("__name__") in CALLS_BACK:
                self._again = Timer(0.05, interrupt_main)
                self._again.start()
                return
            frame = frame.f_back
        raise KeyboardInterrupt

    def forget(self) -> None:
        """Nothing is to be answered any more."""
        if self._again is not None:
            self._again.cancel()

    def doing(self, what: str) -> Callable[[int, int], None]:
        """Another `progress(done, total)`, for work before the first step."""

        def progress(done: int, total: int) -> None:
            if self._interrupted:
                raise KeyboardInterrupt
            self._bar.update(self._task, description=what, completed=done, total=total or None, steps="")
            self._line(what, done, total)

        return progress

    def _line(self, what: str, done: int, total: int, steps: str = "") -> None:
        """For a log file, which shows no bar: now and then a line."""
        if self._bar.disable and self.every and time.monotonic() >= self._next:
            self._next = time.monotonic() + self.every
            talk.print(f"{what}: {done / max(total, 1):.0%}{steps and ', ' + steps}")

    def __call__(self, done: int, total: int) -> None:
        if self._interrupted:
            raise KeyboardInterrupt
        if self.opening:
            talk.print(self.opening, end="")
            self.opening = ""
        if done == 0:
            self._bar.update(
                self._task, description="loading kernels (compiled the first time)", completed=0, total=None
            )
            return
        steps = f"{done / 1e6:.1f} of {total / 1e6:.1f} M steps" if total > 1e6 else f"{total:,} steps"
        self._bar.update(self._task, completed=done, total=total, description="playing", steps=steps)
        self._line("playing", done, total, steps)


@contextmanager
def progress_bar(
    *, every: float | None = None, amount: ProgressColumn | None = None
) -> Iterator[ProgressBar]:
    """A bar on stderr, from now to the end, if that is a terminal; nothing stays of it.

    With `every`, a file or pipe gets a line at least that many seconds apart instead. `amount` shows how much
    is done, by default in percent.
    """
    columns = (
        TextColumn("{task.description}"), BarColumn(30), amount or TaskProgressColumn(),
        TextColumn("{task.fields[steps]}"), TimeRemainingColumn(),
    )  # fmt: skip
    # Not `talk.is_terminal`, which is true of a log file wherever FORCE_COLOR is set.
    with Progress(*columns, console=talk, transient=True, disable=not sys.stderr.isatty()) as bar:
        steps = ProgressBar(bar, every)
        before = signal.signal(signal.SIGINT, steps.interrupt)
        try:
            yield steps
        finally:
            steps.forget()
            signal.signal(signal.SIGINT, before)


def check_output(folder: Path | None, *, overwrite: bool) -> None:
    """Refuse a folder that holds something or cannot be written, before any work is done."""
    if folder is None:
        return
    # A command that was killed while it wrote its report has left a draft, which goes with the next one.
    found = names_in(folder, f"--out {folder}", "--out names a folder")
    held = {name for name in found if drafting_process(name) is None}
    if held and not (overwrite and held <= OUR_FILES):
        what = f"other files ({min(held - OUR_FILES)})" if held - OUR_FILES else "results"
        way_out = "or an empty one" if held - OUR_FILES else "or say --overwrite"
        raise InvalidInput(f"--out {folder} holds {what} already; name a new folder, {way_out}")


def write_output(results: Results, folder: Path, *, title: str, subtitle: str, command: str) -> None:
    """Fill the folder with tables, figures and a report; all of them, or none and an error.

    Without the packages of a report the tables are written, and MissingExtra is raised.
    """
    # Within the folder if there is one: it may be the current folder or a mounted one, which cannot be
    # replaced as a whole.
    draft = folder_draft(folder) if folder.exists() else folder_draft(folder.parent, folder.name)
    try:
        draft.mkdir(parents=True)
        results.save(draft / "results.json")
        (draft / "results.csv").write_bytes(as_csv(results.rows()))
        missing = None
        try:
            from firstclick.report import regret_figure, save_figure, write_report

            figure = regret_figure(results)
            for kind in ("svg", "png"):
                save_figure(figure, draft / f"regret.{kind}")
            write_report(results, draft / "report.html", title=title, subtitle=subtitle, command=command)
        except MissingExtra as error:
            missing = error
        if draft.parent == folder:
            for name in OUR_FILES:
                if (draft / name).exists():
                    (draft / name).replace(folder / name)
                else:  # the report of other results
                    (folder / name).unlink(missing_ok=True)
        else:
            draft.replace(folder)
    except (OSError, FirstclickError) as error:
        # Our own sentence names a file of the draft, which is gone: its end is the system's reason.
        reason = getattr(error, "strerror", None) or str(error).rpartition(": ")[2]
        raise WorkFailed(f"{folder} cannot be written: {reason}; the results are on stdout alone") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    if missing is not None:
        raise missing


def print_json(value: Any) -> None:
    """One line for programs, several for people."""
    print(json.dumps(value, allow_nan=False, indent=2 if sys.stdout.isatty() else None))


def hand_over(results: Results, folder: Path | None, *, as_json: bool, **heading: str) -> None:
    """The results on stdout, the report in its folder, and where it is on stderr.

    What took long to compute is printed even where the folder cannot be written after all.
    """
    failure = told = None
    if folder is not None:
        told = f"report: {folder / 'report.html'}"
        try:
            with talk.status("writing the report") if sys.stderr.isatty() else nullcontext():
                write_output(results, folder, **heading)
        except MissingExtra as error:
            told = f"results: {folder} (no report: {error})"
        except WorkFailed as error:
            failure = error
    for note in results.notes:
        talk.print(f"note: {note}")
    if as_json:
        print_json(results.summary())
    else:
        from firstclick.report import results_table

        page().print(results_table(results))
    if failure is not None:
        raise failure
    if told is not None:
        talk.print(told)
