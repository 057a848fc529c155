"""The clock of a service, and its sizes and pauses that operators do not set."""

from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """The clock of a service. The module `time` is one."""

    def time(self) -> float:
        """Return the seconds since the epoch, by a clock that can be set."""

    def monotonic(self) -> float:
        """Return seconds that only grow; they measure durations."""


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Sizes and pauses of a service that operators do not set, and tests do.

    Args:
        background_threads: Whether threads do the work in the background. Without them, it is done only by
            `Service.run_background`.
        seldom_seconds: Seconds between two readings of keys, archives and other processes; also the shortest
            pause between two checks of a store of one process.
        probe_seconds: A store without a write for this long gets a test write.
        timeout_pause: Seconds between two searches for slates without feedback.
        timeouts_at_once: Slates that time out in one commit.
        count_seconds: Seconds between two events that count recommended slates.
        chunk_events: Events read by one query. Few: a reader keeps SQLite's write-ahead log from being
            reused.
        chunk_bytes: Bytes of events read by one query, about.
        events_at_once: Events that an import adds, or a deletion removes, in one transaction.
        checkpoint_pages: Pages of SQLite's write-ahead log, about, before they are written to the file: 8 MB.
        busy_seconds: Seconds to wait for another program that locks an SQLite file.
        lock_seconds: Seconds to wait for a lock of PostgreSQL.
        idle_seconds: Seconds after which PostgreSQL ends a transaction of a process that is stopped.
        slow_request_seconds: A model whose recommendation took longer gets a thread of its own.

    Example:
        >>> from firstclick.serve import Tuning, open_service
        >>> with open_service("shop.db", tuning=Tuning(background_threads=False)) as service:
        ...     service.run_background()  # once, in this thread: what is due by now
    """

    background_threads: bool = True
    seldom_seconds: float = 1.0
    probe_seconds: float = 5.0
    timeout_pause: float = 1.0
    timeouts_at_once: int = 256
    count_seconds: float = 60.0
    chunk_events: int = 4096
    chunk_bytes: int = 16_000_000
    events_at_once: int = 2000
    checkpoint_pages: int = 2000
    busy_seconds: float = 2.0
    lock_seconds: float = 5.0
    idle_seconds: float = 10.0
    slow_request_seconds: float = 0.005


DEFAULT = Tuning()
