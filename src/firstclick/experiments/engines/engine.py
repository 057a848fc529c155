"""What an engine is, and the simplest one."""

from collections.abc import Callable, Iterator
from typing import Any

from firstclick.experiments.loop import Record, Task

POLL_SECONDS = 0.1

# Called with each number of steps played.
Report = Callable[[int], Any]
# The number of a task and what it gave.
Played = tuple[int, Record]
# Plays all tasks and gives their results as they end, in any order.
Engine = Callable[[Iterator[Task], Report], Iterator[Played]]


def play_here(tasks: Iterator[Task], report: Report) -> Iterator[Played]:
    """Play one task after the other in this process."""
    for task in tasks:
        yield task.play(report)
