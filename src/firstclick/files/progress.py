"""How far a long piece of work is."""

from collections.abc import Callable
from typing import Any

# progress(done, total), in bytes of the files read, or in rows made.
Progress = Callable[[int, int], Any]


def silent(done: int, total: int) -> None:
    """No progress is shown."""
