"""Connections: uvicorn's, with an end to those that are slow, silent or too many."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from firstclick.serve.http.errors import as_answer
from firstclick.wire.errors import Refused

# Seconds from the first byte of a request to its last.
ARRIVE_WITHIN = 30.0
# A request of many bytes, a file, may take longer: so many have to arrive in this time, again and again.
STEADY_BYTES = 1_000_000
# Bytes of a request line and headers; what comes in one piece may be a little more.
MOST_HEAD = 65_536
MOST_CONNECTIONS = 10_000


class BadRequest(Refused):
    """Not HTTP."""

    status, code = "bad-request", 400


class HeadTooLarge(Refused):
    """More headers than anyone needs."""

    status, code = "too-large", 431


class GuardedConnection(HttpToolsProtocol):
    """One connection. A request has to arrive in time, an answer has to be taken, silence ends."""

    arrive_within = ARRIVE_WITHIN
    most_connections = MOST_CONNECTIONS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._arriving = False
        self._in_head = False
        self._head_size = 0
        self._too_late: asyncio.TimerHandle | None = None
        self._unsent = 0
        self._arrived = 0  # bytes, since `_too_late` was set

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            transport.abort()
            return
        # Uvicorn waits for ever for the first byte.
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._arriving:
            # Nearly always: a request comes in one piece, and no timer is ever set.
            if self._too_late is not None:
                self._in_time()
            return
        if self._in_head:
            self._head_size += len(data)
            if self._head_size > MOST_HEAD and not self.transport.is_closing():
                self._refuse(HeadTooLarge(f"a request's headers may have {MOST_HEAD} bytes; send fewer"))
                return
        self._arrived += len(data)
        if self._too_late is None:
            self._expect_rest()

    def on_message_begin(self) -> None:
        self._arriving = self._in_head = True
        self._head_size = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._arriving = False
        super().on_message_complete()

    def _in_time(self) -> None:
        if self._too_late is not None:
            self._too_late.cancel()
            self._too_late = None

    def _cut_off(self) -> None:
        self._too_late = None
        # While reading is paused we are the slow ones: the rest was not asked for yet.
        if self.flow.read_paused or self._arrived >= STEADY_BYTES:
            self._expect_rest()
        elif self._arriving:
            self.transport.abort()

    def _expect_rest(self) -> None:
        self._arrived = 0
        self._too_late = self.loop.call_later(self.arrive_within, self._cut_off)

    def timeout_keep_alive_handler(self) -> None:
        """Close what is idle; an answer that nobody takes is dropped with its connection."""
        unsent = self.transport.get_write_buffer_size()
        if not unsent:
            super().timeout_keep_alive_handler()
        elif unsent == self._unsent:
            self.transport.abort()
        else:
            self._unsent = unsent
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def send_400_response(self, msg: str) -> None:
        """Uvicorn's word for a request that cannot be parsed."""
        self._refuse(BadRequest("this is not a request in HTTP/1.1; use a client that speaks it"))

    def _unsupported_upgrade_warning(self) -> None:
        """Somebody offered another protocol, which is his right: he is answered in this one."""

    def _refuse(self, refusal: Refused) -> None:
        content, code, _, media, *_ = as_answer(refusal)
        self.transport.write(
            STATUS_LINE[code]
            + b"content-type: %b\r\ncache-control: no-store\r\n" % media
            + b"x-content-type-options: nosniff\r\nconnection: close\r\n"
            + b"content-length: %d\r\n\r\n" % len(content)
            + content
        )
        self.transport.close()
