"""A clock that only a test moves, and waiting by the clock on the wall."""

import time


class Clock:
    """The clock of a service under test; it stands still between two calls.

    >>> clock = Clock()
    >>> clock.move(90)
    >>> clock.time() - clock.start
    90.0
    """

    def __init__(self, start=1_790_000_000.0):
        self.start = start
        self._wall = self._monotonic = start

    def time(self):
        return self._wall

    def monotonic(self):
        return self._monotonic

    def move(self, seconds):
        """Let time pass."""
        self._wall += seconds
        self._monotonic += seconds

    def set(self, seconds):
        """Set the clock on the wall to a time; durations are not changed by that."""
        self._wall = seconds


def wait_for(condition, seconds=20.0, *, pause=0.01):
    """Return what `condition` returns, as soon as that is true."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {seconds} s"
        time.sleep(pause)
    return value
