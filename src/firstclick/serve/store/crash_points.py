"""Named steps at which a test can kill the process, to see what is left.

`FIRSTCLICK_KILL_AT="after commit:17"` ends the process with SIGKILL when it comes to that step for the
17th time. Without the variable a step costs one look-up.
"""

import os
import signal


class _Kill:
    """The step at which the process ends, and how many more times it is passed before."""

    step, _, _times = os.environ.get("FIRSTCLICK_KILL_AT", "").partition(":")
    left = int(_times or 1)


def step(name: str) -> None:
    """The process is here now."""
    if name == _Kill.step:
        _Kill.left -= 1
        if _Kill.left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)


def kill_at(name: str, times: int) -> None:
    """As the variable does, for a process that was forked from a running one."""
    _Kill.step, _Kill.left = name, times
