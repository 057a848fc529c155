"""Load on a server: raw HTTP/1.1 over connections that are kept open, and how long the answers take.

Closed loop: each connection asks again when it has its answer, as fast as it goes; that gives the throughput.
Open loop: requests are due at fixed times, whether or not earlier ones were answered, and an answer's
latency counts from when its request was due. A server that stalls for a second so has a second's worth of
late answers, and not one (what is called coordinated omission).
"""

import asyncio
import contextlib
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, cast

from firstclick.errors import WorkFailed

# How long an open loop waits for answers after its last request was due.
GRACE = 5.0
HEAD_END = b"\r\n\r\n"
LENGTH = b"content-length:"
T = TypeVar("T")


class Target(NamedTuple):
    """Where a server listens, and the key to send if it needs one."""

    host: str
    port: int
    key: str | None = None

    def post(self, path: str, body: bytes) -> bytes:
        """A request as it goes over the wire."""
        key = "" if self.key is None else f"Authorization: Bearer {self.key}\r\n"
        host = f"[{self.host}]" if ":" in self.host else self.host
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {host}:{self.port}\r\n{key}"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


@dataclass
class Sample:
    """What came of a load: things done a second, and the latencies in seconds, in rising order."""

    seconds: float
    done: int
    latencies: list[float]
    codes: Counter[int] = field(default_factory=Counter)
    unanswered: int = 0

    @property
    def rate(self) -> float:
        return self.done / self.seconds

    @property
    def refused(self) -> int:
        """Answers that were no success."""
        return sum(n for code, n in self.codes.items() if code >= 300)

    def percentile(self, share: float) -> float:
        """The latency that this share of the requests did not exceed."""
        return percentile(self.latencies, share)


def percentile(rising: Sequence[float], share: float) -> float:
    """The smallest of the values that at least this share of them does not exceed; NaN of none."""
    return rising[max(0, math.ceil(share * len(rising)) - 1)] if rising else math.nan


class Schedule:
    """`n` requests due at fixed times, `rate` a second."""

    def __init__(self, start: float, rate: float, n: int) -> None:
        self.start, self.rate, self.n = start, rate, n

    def due(self, i: int) -> float:
        """When request `i`, from 0, is due."""
        return self.start + i / self.rate

    def due_by(self, now: float) -> int:
        """How many are due by now."""
        return max(0, min(self.n, math.floor((now - self.start) * self.rate) + 1))


class Connection(asyncio.Protocol):
    """One request at a time; `answered(connection, code, body)` is called for each answer."""

    def __init__(self, answered: Callable[["Connection", int, bytes], None]) -> None:
        self.since = 0.0  # when the request was due, or sent
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._answered = answered
        self._heard = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not an instance of it under uvloop.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(None)

    def send(self, request: bytes, since: float) -> None:
        assert self._transport is not None
        self.since = since
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._heard = heard = self._heard + data if self._heard else data
        end = heard.find(HEAD_END)
        if end < 0:
            return
        head = heard[:end].lower()
        at = head.find(LENGTH)
        if at < 0:
            # Kept for who waits: what is raised in here the event loop would print and forget.
            self.lost.set_exception(WorkFailed("an answer has no Content-Length; is it a firstclick server?"))
            return
        length = int(head[at + len(LENGTH) :].partition(b"\r\n")[0])
        if len(heard) < end + len(HEAD_END) + length:
            return
        self._heard = b""
        self._answered(self, int(head[9:12]), heard[end + len(HEAD_END) :])

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class Loop:
    """What both loops share: requests go out over connections, answers are counted and timed.

    `worth(code, body)` says how many things an answer did. Without more requests the load ends early.
    """

    def __init__(
        self,
        requests: Iterator[bytes],
        worth: Callable[[int, bytes], int],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.requests, self.worth, self.clock = requests, worth, clock
        self.latencies: list[float] = []
        self.codes: Counter[int] = Counter()
        self.done = 0
        self.last = 0.0  # when the last answer came
        self.at_work = 0
        self.finished = False
        self.checked = 0.0

    def send(self, connection: Connection, since: float) -> bool:
        """Whether there was another request to send."""
        request = next(self.requests, None)
        if request is None:
            return False
        self.at_work += 1
        connection.send(request, since)
        return True

    def note(self, connection: Connection, code: int, body: bytes) -> float:
        """Count an answer; the time now."""
        self.last = now = self.clock()
        self.at_work -= 1
        self.latencies.append(now - connection.since)
        self.codes[code] += 1
        self.done += self.worth(code, body)
        return now

    def check(self, connections: Sequence[Connection]) -> None:
        """Now and then: whether all connections are still there."""
        if self.clock() - self.checked > 0.05:
            self.checked = self.clock()
            for connection in connections:
                if connection.lost.done():
                    connection.lost.result()
                    raise WorkFailed("the server closed a connection under load; its log may say why")

    def sample(self, seconds: float, unanswered: int = 0) -> Sample:
        return Sample(seconds, self.done, sorted(self.latencies), self.codes, unanswered)


class ClosedLoop(Loop):
    """Each connection asks again when it has its answer, until the time is over."""

    end = math.inf

    def answered(self, connection: Connection, code: int, body: bytes) -> None:
        if self.note(connection, code, body) < self.end and self.send(connection, self.last):
            return
        self.finished = self.at_work == 0

    async def run(self, connections: Sequence[Connection], seconds: float) -> Sample:
        start = self.clock()
        self.end = start + seconds
        for connection in connections:
            if not self.send(connection, self.clock()):
                break
        while not self.finished and self.clock() < self.end + GRACE:
            self.check(connections)
            await asyncio.sleep(min(0.01, seconds / 10))
        # What was under way at the end is answered and counted, in the time that it took.
        return self.sample(max(self.last - start, 1e-9), self.at_work)


class OpenLoop(Loop):
    """Requests go out when they are due, or as soon after it as a connection is free."""

    schedule: Schedule

    def __init__(
        self,
        requests: Iterator[bytes],
        worth: Callable[[int, bytes], int],
        rate: float,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        super().__init__(requests, worth, clock)
        self.rate = rate

    def begin(self, connections: Sequence[Connection], schedule: Schedule) -> None:
        self.schedule = schedule
        self._idle = deque(connections)
        self._waiting: deque[float] = deque()  # when each was due
        self._n_due = 0

    def tick(self) -> None:
        """Send what is due."""
        n_due = self.schedule.due_by(self.clock())
        if n_due > self._n_due:
            self._waiting.extend(map(self.schedule.due, range(self._n_due, n_due)))
            self._n_due = n_due
            self._send_waiting()

    def _send_waiting(self) -> None:
        while self._waiting and self._idle:
            if not self.send(self._idle[0], self._waiting[0]):
                self.finished = True
                return
            self._idle.popleft()
            self._waiting.popleft()

    def answered(self, connection: Connection, code: int, body: bytes) -> None:
        self.note(connection, code, body)
        self._idle.append(connection)
        if self._waiting:
            self._send_waiting()
        elif self._n_due == self.schedule.n and not self.at_work:
            self.finished = True

    def unanswered(self, connections: Sequence[Connection]) -> list[float]:
        """How long those have waited by now that got no answer."""
        now = self.clock()
        idle = set(self._idle)
        asked = [connection.since for connection in connections if connection not in idle]
        return [now - due for due in (*asked, *self._waiting)]

    async def run(self, connections: Sequence[Connection], seconds: float) -> Sample:
        start = self.clock() + 0.01
        self.begin(connections, Schedule(start, self.rate, max(1, round(self.rate * seconds))))
        while not self.finished and self.clock() < start + seconds + GRACE:
            self.tick()
            # Timers of event loops are a millisecond coarse: between two requests the loop is turned.
            wait = self.schedule.due(self._n_due) - self.clock() if self._n_due < self.schedule.n else 0.01
            await asyncio.sleep(0 if wait < 0.002 else min(wait - 0.001, 0.05))
            self.check(connections)
        missing = self.unanswered(connections)
        # They took at least so long: to leave them out would flatter the server.
        self.latencies += missing
        return self.sample(max(self.last - start, 1e-9), len(missing))


async def _connect(
    target: Target, n: int, answered: Callable[[Connection, int, bytes], None]
) -> list[Connection]:
    loop = asyncio.get_running_loop()
    connections: list[Connection] = []
    try:
        for _ in range(n):
            _, connection = await loop.create_connection(
                lambda: Connection(answered), target.host, target.port
            )
            connections.append(connection)
    except OSError as error:
        raise WorkFailed(
            f"no connection to {target.host}:{target.port}: {error.strerror or error}; "
            "is a server running there?"
        ) from None
    return connections


async def load(loop: ClosedLoop | OpenLoop, target: Target, connections: int, seconds: float) -> Sample:
    """Put a server under load, over so many connections, for so long."""
    opened = await _connect(target, connections, loop.answered)
    try:
        return await loop.run(opened, seconds)
    finally:
        await _close(opened)


async def _close(connections: Sequence[Connection]) -> None:
    for connection in connections:
        connection.close()
    await asyncio.gather(*(connection.lost for connection in connections), return_exceptions=True)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run it on the fastest event loop there is."""
    factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with contextlib.suppress(ImportError):
        from uvloop import new_event_loop as factory
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)
