"""What an engine is, what it plays, and the simplest one."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

POLL_SECONDS = 0.1

# Called with each number of steps played.
Report = Callable[[int], Any]


class Playable(Protocol):
    """A dataclass that plays. Its field `stage` is the large part, which many share and none changes."""

    @property
    def stage(self) -> Any: ...

    def play(self, report: Report) -> Any: ...


# Plays all tasks and gives their results as they end, in any order.
Engine = Callable[[Iterator[Playable], Report], Iterator[Any]]


def play_here(tasks: Iterator[Playable], report: Report) -> Iterator[Any]:
    """Play one task after the other in this process."""
    for task in tasks:
        yield task.play(report)
