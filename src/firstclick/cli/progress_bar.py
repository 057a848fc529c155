"""How far a command is, drawn as a bar on stderr, and what Ctrl-C does meanwhile."""

import signal
import sys
import time
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from types import FrameType

from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from firstclick.cli.console import talk

# Called back from C, or when an object is thrown away; what is raised in there Python prints and forgets.
CALLS_BACK = ("llvmlite.binding.executionengine", "llvmlite.binding.ffi")


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
