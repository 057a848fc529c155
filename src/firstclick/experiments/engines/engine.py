"""What an engine is, what it plays, and the simplest one."""

from collections.abc import Callable, Iterator
from dataclasses import Field
from typing import Any, ClassVar, Protocol, TypeVar

POLL_SECONDS = 0.1

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Report = Callable[[int], Any]


class Playable(Protocol[T_co]):
    """A piece of work that needs nobody else: a dataclass.

    Its field `stage` is the large part, which many share and none changes.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def stage(self) -> Any: ...

    def play(self, report: Report) -> T_co:
        """The result; `report` is called with each number of steps played."""


class Engine(Protocol):
    """Plays all tasks and gives their results as they end, in any order."""

    def __call__(self, tasks: Iterator[Playable[T]], report: Report) -> Iterator[T]: ...


def play_here(tasks: Iterator[Playable[T]], report: Report) -> Iterator[T]:
    """Play one task after the other in this process."""
    for task in tasks:
        yield task.play(report)
