"""The ASGI application: find the route, let in or refuse, read the body, call, answer."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from firstclick.errors import FirstclickError
from firstclick.serve.config import Settings
from firstclick.serve.dashboard.data import OUTCOMES
from firstclick.serve.http.auth import (
    RateLimit,
    caller_of,
    check_host,
    check_model,
    check_no_proxy,
    check_page,
    check_role,
    is_loopback,
    is_page_key,
    key_of,
)
from firstclick.serve.http.body_pieces import warm_up
from firstclick.serve.http.decoding import decode_large
from firstclick.serve.http.errors import Failed, UnsupportedMedia, as_answer
from firstclick.serve.http.messages import JSON, Answer, Asked, Headers, Site
from firstclick.serve.http.metrics import Durations
from firstclick.serve.http.openapi import document
from firstclick.serve.http.routes import ROUTES, Matcher, Route
from firstclick.serve.http.streams import Gone, read_to_file, send_pieces
from firstclick.serve.model.model import Model
from firstclick.serve.model_set import NoModel
from firstclick.serve.service import Service
from firstclick.wire.errors import Malformed, Overloaded, Refused, TooLarge, Unknown

log = logging.getLogger("firstclick.serve")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# Threads for what is slow or waits for the store.
POOL_SIZE = 8
LONG_POOL_SIZE = 2
# Bytes of JSON that are decoded on the event loop, in less than a millisecond.
SMALL = 16_384
# Seconds for which the event loop waits for the lock of a model.
PATIENCE = 0.002
OCTETS = b"application/octet-stream"
NO_GUESSING = (b"x-content-type-options", b"nosniff")
EXPOSED = b"firstclick-seq, firstclick-age, retry-after"

encode = msgspec.json.Encoder().encode


class App:
    """A service as an ASGI application. Close it when the server has stopped; the service stays open."""

    def __init__(self, service: Service, settings: Settings) -> None:
        self._pool = ThreadPoolExecutor(POOL_SIZE, thread_name_prefix="firstclick-http")
        self._long_pool = ThreadPoolExecutor(LONG_POOL_SIZE, thread_name_prefix="firstclick-long")
        # A thread for each model that was ever locked or slow: whoever asks for another one does not wait for
        # it. One is enough, because a model is locked while it recommends.
        self._slow_pools: dict[str, ThreadPoolExecutor] = {}
        # Models whose last recommendation had to wait, or was slow.
        self._slow: set[str] = set()
        warm_up()
        self.site = Site(service, settings, msgspec.json.encode(document()), self._pool)
        self._metrics = self.site.metrics
        self._matcher = Matcher(ROUTES)
        self._may_be_open = is_loopback(settings.host) and not settings.behind_proxy
        self._rate = RateLimit(settings.requests_per_second) if settings.requests_per_second else None
        per_visitor = settings.page_requests_per_second
        self._page_rate = RateLimit(per_visitor) if per_visitor else None
        self._settings = settings
        self._origins = frozenset(origin.encode() for origin in settings.allow_origin)
        self._metrics.durations = {route.path: Durations() for route in ROUTES if route.timed}

    def close(self) -> None:
        """Let go of the threads."""
        self._pool.shutdown()
        self._long_pool.shutdown()
        for pool in self._slow_pools.values():
            pool.shutdown()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            raise ValueError(f"only HTTP is served here, got {scope['type']!r}")
        headers: dict[bytes, bytes] = dict(scope["headers"])
        method: str = scope["method"]
        raw_path: str = scope["raw_path"].decode("latin-1")  # as it was sent, escapes and all
        route: Route | None = None
        path: tuple[str, ...] = ()
        extra: Headers = self._cross_origin(headers) if self._origins else []
        started = time.perf_counter()
        self._metrics.running += 1
        try:
            if method == "OPTIONS" and self._is_preflight(headers):
                answer = self._preflight(raw_path)
            else:
                route, path = self._matcher.match(method, raw_path)
                answer = await self._answer(route, path, scope, headers, receive)
        except Gone:
            return
        except Refused as refusal:
            answer = self._refused(refusal, route, path)
        except FirstclickError as error:
            answer = self._refused(Malformed.of(error), route, path)
        except Exception:
            log.exception("%s %s failed", method, route.path if route else "?")
            sentence = "the server failed on this request, and its log says why; send it again later"
            answer = self._refused(Failed(sentence), route, path)
        finally:
            self._metrics.running -= 1
        content, code, own_headers, media, pieces, cache = answer
        self._metrics.requests[method if route else "?", route.path if route else "?", code] += 1
        if route is not None and route.timed:
            self._metrics.durations[route.path].note(time.perf_counter() - started)
        # In a 304 a length would have to be that of the whole file (RFC 9110).
        size = [(b"content-length", b"%d" % len(content))] if pieces is None and code != 304 else []
        always = [(b"cache-control", cache), NO_GUESSING]
        await send(
            {
                "type": "http.response.start",
                "status": code,
                "headers": [(b"content-type", media), *size, *always, *own_headers, *extra],
            }
        )
        if pieces is None or method == "HEAD":
            await send({"type": "http.response.body", "body": b"" if method == "HEAD" else content})
        else:
            await send_pieces(pieces, receive, send, self._in_thread)

    async def _answer(
        self,
        route: Route,
        path: tuple[str, ...],
        scope: Scope,
        headers: dict[bytes, bytes],
        receive: Receive,
    ) -> Answer:
        of_page = self._let_in(route, path, scope, headers)
        asked = Asked(self.site, path, of_page=of_page)
        asked.known_tags = headers.get(b"if-none-match", b"")
        try:
            return await self._done(route, asked, scope, headers, receive)
        except NoModel as refusal:
            if not of_page:
                raise
            # Any visitor would read the names of all models.
            raise Unknown(refusal.unlisted, "model") from None

    async def _done(
        self, route: Route, asked: Asked, scope: Scope, headers: dict[bytes, bytes], receive: Receive
    ) -> Answer:
        large = False
        if route.body is bytes:
            return await self._answer_file(route, asked, headers, receive)
        if route.body is not None:
            _check_media(headers, JSON)
            parts = await _read(headers, receive, self._largest_body(route))
            large = sum(map(len, parts)) > SMALL
            if large:
                asked.body = await self._in_pool(route, partial(_decoded, route, parts))
            else:
                asked.body = _decoded(route, parts)
        if route.query:
            asked.query = _query(route, scope["query_string"])
        if route.awaited:
            told = await route.handler(asked)
        elif route.in_pool:
            told = await self._in_pool(route, partial(route.handler, asked))
        elif route.locks:
            told = await self._unless_it_waits(route, asked, large)
        else:
            told = route.handler(asked)
        return told if type(told) is Answer else Answer(encode(told))

    def _largest_body(self, route: Route) -> int:
        most = self._settings.max_bulk_body if route.bulk else self._settings.max_body
        return most if route.largest_body is None else min(most, route.largest_body)

    async def _answer_file(
        self, route: Route, asked: Asked, headers: dict[bytes, bytes], receive: Receive
    ) -> Answer:
        """To a file, which may be larger than the memory."""
        _check_media(headers, OCTETS)
        with await read_to_file(headers, receive, self._settings.max_import, self._in_thread) as asked.body:
            answer: Answer = await self._in_pool(route, partial(route.handler, asked))
            return answer

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def _in_pool(self, route: Route, work: Callable[[], Any]) -> Any:
        pool = self._long_pool if route.long else self._pool
        return await asyncio.get_running_loop().run_in_executor(pool, work)

    async def _unless_it_waits(self, route: Route, asked: Asked, large: bool) -> Any:
        """On the event loop, where it is quickest, if the model is free and its last answer was quick."""
        (name,) = asked.path
        model = self.site.service.model(name)
        if not large and name not in self._slow:
            # Twice, because it takes longer to ask for a lock with a time than without.
            if model.lock.acquire(blocking=False) or model.lock.acquire(timeout=PATIENCE):
                try:
                    if model.engine.is_prepared():
                        return self._timed(route, asked)
                finally:
                    model.lock.release()
            self._slow.add(name)
        pool = self._slow_pools.get(name)
        if pool is None:
            pool = self._slow_pools[name] = ThreadPoolExecutor(1, thread_name_prefix="firstclick-slow")
        work = partial(self._when_free, route, asked, model)
        return await asyncio.get_running_loop().run_in_executor(pool, work)

    def _when_free(self, route: Route, asked: Asked, model: Model) -> Any:
        # What it waits for is not timed.
        with model.lock:
            return self._timed(route, asked)

    def _timed(self, route: Route, asked: Asked) -> Any:
        started = time.perf_counter()
        try:
            return route.handler(asked)
        finally:
            slow = time.perf_counter() - started > self.site.service.tuning.slow_request_seconds
            (self._slow.add if slow else self._slow.discard)(asked.path[0])

    def _let_in(self, route: Route, path: tuple[str, ...], scope: Scope, headers: dict[bytes, bytes]) -> bool:
        """Whether a page asks, by a key that any visitor knows; a Refused for who may not, or not now."""
        keys = self.site.service.maintenance.api_keys
        if not keys:
            check_host(headers.get(b"host", b""))
            check_no_proxy(headers)
        if not route.always and self._metrics.running > self._settings.max_requests:
            raise Overloaded(
                f"{self._settings.max_requests} requests are being answered, and no more are taken; "
                "send the same again after a while"
            )
        authorization = headers.get(b"authorization")
        key = key_of(authorization, keys) if authorization is not None else None
        of_page = is_page_key(key)
        if of_page and self._page_rate is not None:
            # All visitors have one key: their addresses tell them apart.
            self._page_rate.take(self._address(scope, headers))
        elif not of_page and self._rate is not None and not route.always:
            self._rate.take(key.id if key else self._address(scope, headers))
        # Without keys it is open to its own machine, and to nobody else.
        if route.roles and (keys or not self._may_be_open):
            check_role(route.roles, key, sent=authorization is not None)
        if of_page and route.roles:
            check_model(key, path[0])  # pages may use routes of a model only
            check_page(headers.get(b"origin"), headers.get(b"host", b""), self._origins)
        return of_page

    def _address(self, scope: Scope, headers: dict[bytes, bytes]) -> str:
        """Where a request comes from; behind a proxy, where the proxy says."""
        if self._settings.behind_proxy:
            # The last one is the proxy's own word. Those before it are what the caller says of itself.
            forwarded = headers.get(b"x-forwarded-for", b"").rpartition(b",")[2].strip()
            if forwarded:
                return caller_of(forwarded[:50].decode("latin-1"))
        client = scope.get("client")
        return caller_of(client[0] if client else None)

    def _refused(self, refusal: Refused, route: Route | None, path: tuple[str, ...]) -> Answer:
        service = self.site.service
        counts = route is not None and route.counts and path[0] in service.outcomes
        if counts and refusal.status in OUTCOMES:
            service.count(path[0], refusal.status)
        return as_answer(refusal)

    # Pages of other origins

    def _cross_origin(self, headers: dict[bytes, bytes]) -> Headers:
        """What lets a page of an allowed origin read the answer; nothing for others."""
        origin = headers.get(b"origin")
        if origin not in self._origins:
            return [(b"vary", b"origin")]
        return [
            (b"vary", b"origin"),
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", EXPOSED),
        ]

    def _is_preflight(self, headers: dict[bytes, bytes]) -> bool:
        return headers.get(b"origin") in self._origins and b"access-control-request-method" in headers

    def _preflight(self, raw_path: str) -> Answer:
        methods, _ = self._matcher.methods(raw_path)
        return Answer(
            b"",
            204,
            [
                (b"access-control-allow-methods", ", ".join(sorted(methods)).encode()),
                (b"access-control-allow-headers", b"authorization, content-type"),
                (b"access-control-max-age", b"600"),
            ],
        )


def _decoded(route: Route, parts: list[bytes]) -> Any:
    body = b"".join(parts)
    return body if route.decoder is None else decode_large(route.decoder, body)


def _check_media(headers: dict[bytes, bytes], wanted: bytes) -> None:
    """One form of body for each route: a page of a stranger cannot send JSON without asking first."""
    given = headers.get(b"content-type", b"")
    if given != wanted:
        kind, _, parameters = given.lower().partition(b";")
        charset = parameters.replace(b" ", b"").replace(b'"', b"")
        if kind.strip() != wanted or (charset and charset != b"charset=utf-8"):
            raise UnsupportedMedia(
                f"Content-Type must be {wanted.decode()}, got {given[:60].decode('latin-1')!r}"
            )
    coding = headers.get(b"content-encoding")
    if coding is not None and coding.strip().lower() not in (b"", b"identity"):
        raise UnsupportedMedia(
            f"a body is taken as it is, got Content-Encoding {coding[:60].decode('latin-1')!r}; "
            "send it uncompressed"
        )


async def _read(headers: dict[bytes, bytes], receive: Receive, most: int) -> list[bytes]:
    """The body in parts, or TooLarge as soon as that is known."""
    length = headers.get(b"content-length", b"")
    told = int(length[:20]) if length.isdigit() else 0
    parts: list[bytes] = []
    size, more = 0, True
    while more and max(told, size) <= most:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        parts.append(message.get("body", b""))
        size, more = size + len(parts[-1]), message.get("more_body", False)
    if max(told, size) > most:
        raise TooLarge(f"the body may have {most} bytes; send less at once")
    return parts


def _query(route: Route, raw: bytes) -> dict[str, int]:
    """The parameters behind the question mark, each once and known; defaults for the others."""
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError:
        raise Malformed("what is behind the ? cannot be read; write it as name=value&name=value") from None
    found: dict[str, int] = {}
    for name, text in pairs:
        if name not in route.query:
            known = ", ".join(route.query)
            raise Malformed(f"is not a parameter; there are {known}", name[:60])
        if name in found:
            raise Malformed("is given twice; give it once", name)
        found[name] = route.query[name].read(name, text)
    return {name: query.default for name, query in route.query.items()} | found
