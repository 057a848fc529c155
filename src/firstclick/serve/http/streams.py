"""Bodies that do not fit into the memory: files that are sent and taken piece by piece.

Pieces are made and written in a thread. The next one is made when the connection has taken the last, so that
a slow client holds up nobody but himself.
"""

import asyncio
import logging
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, BinaryIO

from firstclick.wire.errors import TooLarge

log = logging.getLogger("firstclick.serve")

# Bytes that are gathered before a thread is asked to write them.
WRITTEN_AT_ONCE = 1 << 20
# Seconds for which a client may take nothing of what is sent.
TAKEN_WITHIN = 60.0

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
InThread = Callable[[Callable[[], Any]], Awaitable[Any]]


class Gone(Exception):
    """The client went away before its request was whole."""


async def send_pieces(pieces: Iterator[bytes], receive: Receive, send: Send, in_thread: InThread) -> None:
    """Send a body to its end. If it cannot be made, or nobody takes it, the connection is closed before: what
    was sent then lacks its end."""
    gone = asyncio.ensure_future(_gone(receive))
    try:
        while not gone.done() and (piece := await in_thread(lambda: next(pieces, b""))):
            await asyncio.wait_for(
                send({"type": "http.response.body", "body": piece, "more_body": True}), TAKEN_WITHIN
            )
        if not gone.done():
            await send({"type": "http.response.body", "body": b""})
    except TimeoutError:
        log.warning("a client took nothing of a file for %g s, and was cut off", TAKEN_WITHIN)
    except Exception:
        log.exception("a file could not be sent to its end")
    finally:
        gone.cancel()
        close = getattr(pieces, "close", None)
        if close is not None:
            await in_thread(close)


async def _gone(receive: Receive) -> None:
    """Nothing tells a sender that nobody listens any more, but what comes from there."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def read_to_file(
    headers: dict[bytes, bytes], receive: Receive, most: int, in_thread: InThread
) -> BinaryIO:
    """The body as a file without a name, gone when it is closed; TooLarge as soon as that is known."""
    length = headers.get(b"content-length", b"")
    size = told = int(length[:20]) if length.isdigit() else 0
    file: BinaryIO = tempfile.TemporaryFile(prefix="firstclick-")  # noqa: SIM115, closed by who asked
    try:
        waiting, arrived, more = bytearray(), 0, True
        while more and size <= most:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Gone
            waiting += message.get("body", b"")
            arrived += len(message.get("body", b""))
            size, more = max(told, arrived), message.get("more_body", False)
            if len(waiting) >= WRITTEN_AT_ONCE or not more:
                part, waiting = waiting, bytearray()
                await in_thread(partial(file.write, part))
        if size > most:
            raise TooLarge(f"the file may have {most} bytes (--max-import); import it by the command line")
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file
