"""What a handler is given, and what it gives back."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from firstclick.serve.config import Settings
from firstclick.serve.dashboard.data import Views
from firstclick.serve.http.metrics import Metrics
from firstclick.serve.service import Service

JSON = b"application/json"
T = TypeVar("T")
Headers = list[tuple[bytes, bytes]]


class LoopInbox:
    """Results from the writer's thread for the event loop. Waking it is slow: it is woken once for many."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[asyncio.Future[Any], Any]] = deque()
        self._woken = False

    def post(self, future: "asyncio.Future[Any]", result: Any) -> None:
        """Have the future's loop set this result; from any thread."""
        self._waiting.append((future, result))
        # No lock: the result is in the queue before the flag is read, and `_empty` clears the flag before it
        # reads the queue. Either it sees the result, or we see the cleared flag and wake it again.
        if not self._woken:
            self._woken = True
            try:
                future.get_loop().call_soon_threadsafe(self._empty)
            except RuntimeError:
                # The loop is closed, and with it everyone who waited. The writer has to go on.
                self._woken = False

    def _empty(self) -> None:
        self._woken = False
        while self._waiting:
            future, result = self._waiting.popleft()
            if not future.done():
                future.set_result(result)


class Site:
    """What all requests share."""

    def __init__(self, service: Service, settings: Settings, openapi: bytes, pool: Executor) -> None:
        self.service, self.settings, self.openapi = service, settings, openapi
        self._pool = pool
        self.inbox = LoopInbox()
        self.metrics = Metrics(service)
        self.views = Views(service, settings.durability)

    async def in_pool(self, work: Callable[[], T]) -> T:
        """What would keep the event loop from others, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)


@dataclass(slots=True)
class Asked:
    """A request that was let in: its parameters, and its body (a Struct, or a file)."""

    site: Site
    path: tuple[str, ...]
    body: Any = None
    query: Mapping[str, int] = field(default_factory=dict)
    of_page: bool = False  # by a key that stands in a web page
    known_tags: bytes = b""  # If-None-Match: what the browser has kept

    @property
    def service(self) -> Service:
        return self.site.service


class Answer(NamedTuple):
    """An answer that is more than a Struct with code 200."""

    content: bytes
    code: int = 200
    headers: Sequence[tuple[bytes, bytes]] = ()
    media: bytes = JSON
    pieces: Iterator[bytes] | None = None  # of a file, in the place of the content
    cache: bytes = b"no-store"
