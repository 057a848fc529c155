"""Clients in Python: `Client`, and `AsyncClient` for asyncio.

    from firstclick.client import Client

    with Client("http://127.0.0.1:8000", model="shop") as shop:
        shown = shop.recommend(k=3)
        ...                                     # show shown.items, wait for the first click
        shop.feedback(shown, click=1)           # the second item; None for no click

What can be sent twice without harm is sent again when no answer came, the server was overloaded (after the
time that it names) or could not write: a token counts once however often it arrives, so nothing is lost
and nothing is counted twice. Creating, forking, deleting and rolling back are sent once. What the server
refuses is raised as the error of `firstclick.wire.errors` that it stands for, with the server's sentence.
"""

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import ExitStack
from functools import update_wrapper
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, get_args

import httpx

from firstclick._version import __version__
from firstclick.client.flow import Answer, Call, Flow, Patience, Steps
from firstclick.errors import InvalidInput
from firstclick.files.writing import whole_file, write_whole

TIMEOUT = 10.0
PIECE = 1 << 20
T = TypeVar("T")
P = ParamSpec("P")


def _waiting(said: Callable[Concatenate[Flow, P], Steps[T]]) -> "Callable[Concatenate[Client, P], T]":
    """A method of `Client`, from the one of `Flow`."""

    def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(said(self._flow, *args, **kwargs))

    return _documented(method, said)


def _awaited(
    said: Callable[Concatenate[Flow, P], Steps[T]],
) -> "Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]":
    """A method of `AsyncClient`, from the one of `Flow`."""

    async def method(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(said(self._flow, *args, **kwargs))

    return _documented(method, said)


def _documented(method: T, said: Callable[..., Any]) -> T:
    """The method, with the docstring and the arguments of `said`, and what its steps come to."""
    signature = inspect.signature(said)
    result = get_args(signature.return_annotation)[-1]
    update_wrapper(method, said)  # type: ignore[arg-type]
    method.__signature__ = signature.replace(return_annotation=result)  # type: ignore[attr-defined]
    return method


class Client:
    """A client of the service. It retries, and never counts a click twice.

    >>> import httpx
    >>> def server(request):
    ...     if request.url.path.endswith("/feedback"):
    ...         return httpx.Response(201, json={"status": "accepted", "seq": 2})
    ...     slate = {"items": ["tea"], "scores": [0.5], "token": "AwEA", "seq": 1}
    ...     return httpx.Response(200, json=slate)
    >>> with Client("http://127.0.0.1:8000", "shop", transport=httpx.MockTransport(server)) as client:
    ...     slate = client.recommend()
    ...     print(slate.items, client.feedback(slate, click=0).status)
    ['tea'] accepted

    The client retries if no answer came, or if the server is overloaded or cannot write. It retries only
    calls that are safe to repeat; the others say "not retried". A client keeps its connections open and is
    safe to use from several threads. Close it, or use it in a `with` block.

    If the server refuses a request, the call raises an error of `firstclick.wire.errors` with the server's
    message: `Malformed`, `Unknown`, `Conflict`, `Unavailable`, ...

    Args:
        url: The server, such as `http://127.0.0.1:8000`.
        model: The model that calls are about. Only `models` works without it.
        key: An API key, if the server needs one.
        timeout: Seconds to wait for one attempt; 10 by default.
        attempts: The largest number of attempts per call; 8 by default.
        patience: Seconds for all attempts of a call together; 30 by default.
        transport: An httpx transport, for tests and proxies.
        sleep: Waits between attempts, for tests.

    Raises:
        InvalidInput: The url is not an address, or a number is out of range.
    """

    def __init__(
        self,
        url: str,
        model: str | None = None,
        *,
        key: str | None = None,
        timeout: float = TIMEOUT,
        attempts: int = Patience.attempts,
        patience: float | Patience = Patience.seconds,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._flow = Flow(url, model, attempts, patience)
        self._http = httpx.Client(**_options(url, key, timeout), transport=transport)
        self._sleep = sleep

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    recommend = _waiting(Flow.recommend)
    feedback = _waiting(Flow.feedback)
    feedback_batch = _waiting(Flow.feedback_batch)
    put_items = _waiting(Flow.put_items)
    withdraw_items = _waiting(Flow.withdraw_items)
    set_available = _waiting(Flow.set_available)
    put_list = _waiting(Flow.put_list)
    remove_list = _waiting(Flow.remove_list)
    set_explore = _waiting(Flow.set_explore)
    set_baseline = _waiting(Flow.set_baseline)
    warm_start = _waiting(Flow.warm_start)
    remove_baseline = _waiting(Flow.remove_baseline)
    baseline = _waiting(Flow.baseline)
    start_trial = _waiting(Flow.start_trial)
    change_trial_shares = _waiting(Flow.change_trial_shares)
    stop_trial = _waiting(Flow.stop_trial)
    trial_report = _waiting(Flow.trial_report)
    set_no_click_after = _waiting(Flow.set_no_click_after)
    models = _waiting(Flow.models)
    describe = _waiting(Flow.describe)
    create = _waiting(Flow.create)
    delete = _waiting(Flow.delete)
    audit = _waiting(Flow.audit)
    export = _waiting(Flow.export)
    export_to = _waiting(Flow.export_to)
    import_from = _waiting(Flow.import_from)
    fork = _waiting(Flow.fork)
    roll_back = _waiting(Flow.roll_back)

    def _run(self, steps: Steps[T]) -> T:
        answer: Answer | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            if not isinstance(step, Call):
                self._sleep(step)
                answer = None
                continue
            try:
                answer = self._send(step)
            except httpx.TransportError as error:
                answer = error

    def _send(self, call: Call) -> httpx.Response:
        with ExitStack() as stack:
            told = call.content()
            if call.upload is not None:
                told["content"] = stack.enter_context(call.upload.open("rb"))
            if call.download is None:
                return self._http.request(call.method, call.path, **told)
            answer = stack.enter_context(self._http.stream(call.method, call.path, **told))
            if answer.status_code < 300:
                write_whole(call.download, answer.iter_bytes())
            else:
                answer.read()
            return answer


class AsyncClient:
    """`Client` for asyncio. It has the same methods: await them, and use `async with`.

    >>> import asyncio, httpx
    >>> def server(request):
    ...     return httpx.Response(200, json={"items": ["tea"], "scores": [0.5], "token": "AwEA", "seq": 1})
    >>> async def main():
    ...     transport = httpx.MockTransport(server)
    ...     async with AsyncClient("http://127.0.0.1:8000", "shop", transport=transport) as client:
    ...         return (await client.recommend()).items
    >>> asyncio.run(main())
    ['tea']

    Args:
        url: The server, such as `http://127.0.0.1:8000`.
        model: The model that calls are about. Only `models` works without it.
        key: An API key, if the server needs one.
        timeout: Seconds to wait for one attempt; 10 by default.
        attempts: The largest number of attempts per call; 8 by default.
        patience: Seconds for all attempts of a call together; 30 by default.
        transport: An httpx transport, for tests and proxies.
        sleep: Waits between attempts, for tests.

    Raises:
        InvalidInput: The url is not an address, or a number is out of range.
    """

    def __init__(
        self,
        url: str,
        model: str | None = None,
        *,
        key: str | None = None,
        timeout: float = TIMEOUT,
        attempts: int = Patience.attempts,
        patience: float | Patience = Patience.seconds,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._flow = Flow(url, model, attempts, patience)
        self._http = httpx.AsyncClient(**_options(url, key, timeout), transport=transport)
        self._sleep = sleep

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    recommend = _awaited(Flow.recommend)
    feedback = _awaited(Flow.feedback)
    feedback_batch = _awaited(Flow.feedback_batch)
    put_items = _awaited(Flow.put_items)
    withdraw_items = _awaited(Flow.withdraw_items)
    set_available = _awaited(Flow.set_available)
    put_list = _awaited(Flow.put_list)
    remove_list = _awaited(Flow.remove_list)
    set_explore = _awaited(Flow.set_explore)
    set_baseline = _awaited(Flow.set_baseline)
    warm_start = _awaited(Flow.warm_start)
    remove_baseline = _awaited(Flow.remove_baseline)
    baseline = _awaited(Flow.baseline)
    start_trial = _awaited(Flow.start_trial)
    change_trial_shares = _awaited(Flow.change_trial_shares)
    stop_trial = _awaited(Flow.stop_trial)
    trial_report = _awaited(Flow.trial_report)
    set_no_click_after = _awaited(Flow.set_no_click_after)
    models = _awaited(Flow.models)
    describe = _awaited(Flow.describe)
    create = _awaited(Flow.create)
    delete = _awaited(Flow.delete)
    audit = _awaited(Flow.audit)
    export = _awaited(Flow.export)
    export_to = _awaited(Flow.export_to)
    import_from = _awaited(Flow.import_from)
    fork = _awaited(Flow.fork)
    roll_back = _awaited(Flow.roll_back)

    async def _run(self, steps: Steps[T]) -> T:
        answer: Answer | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            if not isinstance(step, Call):
                await self._sleep(step)
                answer = None
                continue
            try:
                answer = await self._send(step)
            except httpx.TransportError as error:
                answer = error

    async def _send(self, call: Call) -> httpx.Response:
        told = call.content()
        if call.upload is not None:
            told["content"] = _pieces(call.upload)
        if call.download is None:
            return await self._http.request(call.method, call.path, **told)
        async with self._http.stream(call.method, call.path, **told) as answer:
            if answer.status_code < 300:
                with whole_file(call.download) as file:
                    async for piece in answer.aiter_bytes():
                        await asyncio.to_thread(file.write, piece)
            else:
                await answer.aread()
            return answer


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece


def _options(url: str, key: str | None, timeout: float) -> dict[str, Any]:
    """The options of httpx, or InvalidInput."""
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        parts = httpx.URL("")
    if parts.scheme not in ("http", "https") or not parts.host:
        raise InvalidInput(
            f"must be the address of a server, such as http://127.0.0.1:8000, got {url!r}", "url"
        )
    if not timeout > 0:
        raise InvalidInput(f"must be above 0 seconds, got {timeout}", "timeout")
    headers = {"User-Agent": f"firstclick/{__version__}"}
    if key is not None:
        if not (key.isascii() and key.isprintable() and " " not in key):
            raise InvalidInput(
                "must be an API key as 'firstclick keys' makes it, fc_...; this one is not", "key"
            )
        headers["Authorization"] = f"Bearer {key}"
    return {"base_url": parts, "headers": headers, "timeout": timeout}
