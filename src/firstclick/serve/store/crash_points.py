"""Named steps at which a test can kill the process, to see what is left.

`FIRSTCLICK_KILL_AT="after commit:17"` ends the process with SIGKILL when it comes to that step for the
17th time. Without the variable a step costs one look-up.
"""

import os
import signal
from collections.abc import Mapping

STEPS = (
    "before begin",
    "after begin",
    "after insert",
    "after commit",
    "after apply",
    "after reply",
    "before snapshot",
    "after snapshot insert",
    "after snapshot",
    "after checkpoint",
    "after migration step",
)


class _Fuse:
    """How many more times a step may be passed."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        name, _, times = environment.get("FIRSTCLICK_KILL_AT", "").partition(":")
        self.name = name
        self.left = int(times or 1)

    def burn(self) -> None:
        self.left -= 1
        if self.left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)


_fuse = _Fuse(os.environ)


def step(name: str) -> None:
    """The process is here now."""
    if name == _fuse.name:
        _fuse.burn()


def kill_at(name: str, times: int) -> None:
    """As the variable does, for a process that was forked from a running one."""
    _fuse.name, _fuse.left = name, times
