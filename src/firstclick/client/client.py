"""Clients in Python: `Client`, and `AsyncClient` for asyncio.

    from firstclick.client.client import Client

    with Client("http://127.0.0.1:8000", model="shop") as shop:
        shown = shop.recommend(k=3)
        ...                                     # show shown.items, wait for the first click
        shop.feedback(shown, click=1)           # the second item; None for no click

What can be sent twice without harm is sent again when no answer came, the server was overloaded (after the
time that it names) or could not write: a token counts once however often it arrives, so nothing is lost
and nothing is counted twice. Creating and rolling back are sent once. What the server refuses is raised as
the error of `firstclick.wire.errors` that it stands for, with the server's sentence.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import httpx

from firstclick._version import __version__
from firstclick.catalog.ids import ItemId
from firstclick.catalog.item import Item
from firstclick.client.encoding import encoded
from firstclick.client.flow import JSON, Call, Dialogue, Heard, More, NothingHeard, Patience, Steps
from firstclick.errors import InvalidInput
from firstclick.online.feedback import NOT_GIVEN, NotGiven
from firstclick.wire.errors import Refused
from firstclick.wire.feedback import ClickReport, Entry, MoreClicks, Receipt, ServedSlate

TIMEOUT = 10.0
ATTEMPTS = 8
PATIENCE = 30.0
T = TypeVar("T")


class Client:
    """Talks to a server, over connections that it keeps; safe for several threads. Close it, or use `with`.

    `timeout` is for one attempt, in seconds; `attempts` and `patience`, again seconds, for all of a call.
    """

    def __init__(
        self,
        url: str,
        model: str | None = None,
        *,
        key: str | None = None,
        timeout: float = TIMEOUT,
        attempts: int = ATTEMPTS,
        patience: float | Patience = PATIENCE,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._dialogue = Dialogue(_checked(url), model, _patience(attempts, patience))
        self._http = httpx.Client(
            base_url=url, headers=_headers(key), timeout=_positive(timeout), transport=transport
        )
        self._sleep = sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def recommend(
        self,
        k: int | None = None,
        candidates: Iterable[ItemId] | None = None,
        exclude: Iterable[ItemId] = (),
        pinned: Mapping[int, ItemId] | None = None,
        request_id: str | None = None,
        **more: Unpack[More],
    ) -> ServedSlate:
        """A slate, best first, and the token to send back. Feedback is counted once for a request id.

        There may be more to ask for: see `More`.
        """
        return self._run(self._dialogue.recommend(k, candidates, exclude, pinned, request_id, **more))

    def feedback(
        self, slate: str | ServedSlate, click: int | NotGiven | None = NOT_GIVEN, **more: Unpack[MoreClicks]
    ) -> Receipt:
        """Durable and counted once when this returns: the position clicked first, from 0, or None.

        `slate` is what `recommend` gave, or its token. Instead of `click` there may be `clicks`, and beside
        them `examined`: see `ClickReport`. A `duplicate` was in the log already.
        """
        return self._run(self._dialogue.feedback(ClickReport(slate, click, **more)))

    def feedback_batch(self, entries: Iterable[Entry]) -> list[Receipt | Refused]:
        """What became of each entry, as many as you like; errors of single entries are not raised."""
        return self._run(self._dialogue.feedback_batch(entries))

    def put_items(self, items: Iterable[Item]) -> int:
        """Add or change items; the place in the log. Equal features keep what was learned."""
        return self._run(self._dialogue.put_items(items))

    def withdraw_items(self, ids: Iterable[ItemId]) -> int:
        """Show these items no longer; the place in the log."""
        return self._run(self._dialogue.withdraw_items(ids))

    def models(self) -> list[dict[str, Any]]:
        """All models of the server, each as `describe` tells it."""
        return self._run(self._dialogue.models())

    def describe(self) -> dict[str, Any]:
        """The model in words and numbers: policy, k, items, seq, slates, clicks."""
        return self._run(self._dialogue.told(""))

    def create(
        self, *, policy: str, k: int, items: Iterable[Item], seed: int | None = None
    ) -> dict[str, Any]:
        """Make the model; Conflict if there is one of this name. Sent once."""
        return self._run(self._dialogue.create(policy, k, items, seed))

    def audit(self) -> dict[str, Any]:
        """Have the server fold the log anew and compare; `equal` says how it went."""
        return self._run(self._dialogue.told("/audit"))

    def export(self) -> bytes:
        """The model as a file that `firstclick import` reads."""
        return self._run(self._dialogue.export())

    def roll_back(self, seq: int) -> int:
        """Have the model know again what it knew after event `seq`; the place in the log. Sent once."""
        return self._run(self._dialogue.roll_back(seq))

    def _run(self, steps: Steps[T]) -> T:
        heard: Heard | NothingHeard | None = None
        while True:
            try:
                step = steps.send(heard)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, Call):
                heard = self._send(step)
            else:
                self._sleep(step)
                heard = None

    def _send(self, call: Call) -> Heard | NothingHeard:
        try:
            return _heard(self._http.request(call.method, call.path, **_content(call)))
        except httpx.TransportError as error:
            return NothingHeard(_reason(error))


class AsyncClient:
    """`Client` for asyncio: the same methods, to be awaited, and `async with`."""

    def __init__(
        self,
        url: str,
        model: str | None = None,
        *,
        key: str | None = None,
        timeout: float = TIMEOUT,
        attempts: int = ATTEMPTS,
        patience: float | Patience = PATIENCE,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._dialogue = Dialogue(_checked(url), model, _patience(attempts, patience))
        self._http = httpx.AsyncClient(
            base_url=url, headers=_headers(key), timeout=_positive(timeout), transport=transport
        )
        self._sleep = sleep

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def recommend(
        self,
        k: int | None = None,
        candidates: Iterable[ItemId] | None = None,
        exclude: Iterable[ItemId] = (),
        pinned: Mapping[int, ItemId] | None = None,
        request_id: str | None = None,
        **more: Unpack[More],
    ) -> ServedSlate:
        """As `Client.recommend`."""
        return await self._run(self._dialogue.recommend(k, candidates, exclude, pinned, request_id, **more))

    async def feedback(
        self, slate: str | ServedSlate, click: int | NotGiven | None = NOT_GIVEN, **more: Unpack[MoreClicks]
    ) -> Receipt:
        """As `Client.feedback`."""
        return await self._run(self._dialogue.feedback(ClickReport(slate, click, **more)))

    async def feedback_batch(self, entries: Iterable[Entry]) -> list[Receipt | Refused]:
        """As `Client.feedback_batch`."""
        return await self._run(self._dialogue.feedback_batch(entries))

    async def put_items(self, items: Iterable[Item]) -> int:
        """As `Client.put_items`."""
        return await self._run(self._dialogue.put_items(items))

    async def withdraw_items(self, ids: Iterable[ItemId]) -> int:
        """As `Client.withdraw_items`."""
        return await self._run(self._dialogue.withdraw_items(ids))

    async def models(self) -> list[dict[str, Any]]:
        """As `Client.models`."""
        return await self._run(self._dialogue.models())

    async def describe(self) -> dict[str, Any]:
        """As `Client.describe`."""
        return await self._run(self._dialogue.told(""))

    async def create(
        self, *, policy: str, k: int, items: Iterable[Item], seed: int | None = None
    ) -> dict[str, Any]:
        """As `Client.create`."""
        return await self._run(self._dialogue.create(policy, k, items, seed))

    async def audit(self) -> dict[str, Any]:
        """As `Client.audit`."""
        return await self._run(self._dialogue.told("/audit"))

    async def export(self) -> bytes:
        """As `Client.export`."""
        return await self._run(self._dialogue.export())

    async def roll_back(self, seq: int) -> int:
        """As `Client.roll_back`."""
        return await self._run(self._dialogue.roll_back(seq))

    async def _run(self, steps: Steps[T]) -> T:
        heard: Heard | NothingHeard | None = None
        while True:
            try:
                step = steps.send(heard)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, Call):
                heard = await self._send(step)
            else:
                await self._sleep(step)
                heard = None

    async def _send(self, call: Call) -> Heard | NothingHeard:
        try:
            return _heard(await self._http.request(call.method, call.path, **_content(call)))
        except httpx.TransportError as error:
            return NothingHeard(_reason(error))


def _checked(url: str) -> str:
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        parts = httpx.URL("")
    if parts.scheme not in ("http", "https") or not parts.host:
        raise InvalidInput(
            f"must be the address of a server, such as http://127.0.0.1:8000, got {url!r}", "url"
        )
    return str(parts)


def _positive(timeout: float) -> float:
    if not timeout > 0:
        raise InvalidInput(f"must be above 0 seconds, got {timeout}", "timeout")
    return timeout


def _patience(attempts: int, patience: float | Patience) -> Patience:
    return patience if isinstance(patience, Patience) else Patience(attempts=attempts, seconds=patience)


def _headers(key: str | None) -> dict[str, str]:
    headers = {"User-Agent": f"firstclick/{__version__}"}
    if key is None:
        return headers
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise InvalidInput("must be an API key as 'firstclick keys' makes it, fc_...; this one is not", "key")
    return headers | {"Authorization": f"Bearer {key}"}


def _content(call: Call) -> dict[str, Any]:
    told: dict[str, Any] = {} if call.timeout is None else {"timeout": call.timeout}
    if call.body is not None:
        told |= {"content": encoded(call.body), "headers": {"Content-Type": JSON}}
    return told


def _heard(answer: httpx.Response) -> Heard:
    return Heard(answer.status_code, answer.content, answer.headers.get("Retry-After"))


def _reason(error: httpx.TransportError) -> str:
    kind = "timed out" if isinstance(error, httpx.TimeoutException) else "connection failed"
    return f"{kind}: {error}" if str(error) else kind
