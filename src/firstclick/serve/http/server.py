"""Uvicorn around the application: bind, serve, and stop without losing an answer."""

import asyncio
import errno
import logging
import signal
import socket
import sys
import threading
from types import FrameType

import uvicorn

from firstclick.errors import InvalidInput
from firstclick.serve.config import Settings, shown_store
from firstclick.serve.http.app import App
from firstclick.serve.http.auth import is_loopback
from firstclick.serve.http.connection import MOST_CONNECTIONS, GuardedConnection
from firstclick.serve.http.garbage import Garbage
from firstclick.serve.service import Service

log = logging.getLogger("firstclick.serve")

# Seconds for which a silent connection is kept, and for which running requests are awaited at the end.
KEEP_ALIVE = 20
FINISH_WITHIN = 10
BACKLOG = 2048
# Files that are open beside connections.
OTHER_FILES = 64
SWITCH_EVERY = 0.0002
# Exit codes: stopped as asked; and, for a supervisor that restarts what failed, the store must not be
# written to any more (EX_IOERR of sysexits.h).
STOPPED = 0
STORE_BROKEN = 74
LOOK_EVERY = 0.5


class _Uvicorn(uvicorn.Server):
    """Uvicorn that ends with a signal as it ends without one: everything is closed, then we return."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Not kept for later: uvicorn would raise it again at its end, and we would die of it.
        # A second Ctrl-C does not wait for those who are being answered.
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


class Server:
    """A service at an address. `run` serves until it is stopped; `with` serves in a thread meanwhile."""

    def __init__(self, service: Service, settings: Settings) -> None:
        """Bind to the address; InvalidInput when that cannot be."""
        check_private(service, settings)
        self._service = service
        self._socket = _bound(settings.host, settings.port)
        self._app = App(service, settings)
        self._uvicorn = _Uvicorn(
            uvicorn.Config(
                self._app,
                http=_protocol(),
                ws="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                log_level=logging.ERROR,  # what strangers send is no news
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=KEEP_ALIVE,
                timeout_graceful_shutdown=FINISH_WITHIN,
                backlog=BACKLOG,
            )
        )
        self._thread: threading.Thread | None = None
        host, port = self._socket.getsockname()[:2]
        self.address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def run(self) -> int:
        """Serve until SIGTERM, SIGINT or `stop`; the exit code. The service is left open."""
        # The writer takes the interpreter's lock many times in a commit, and would wait for a busy event loop
        # the usual 5 ms each time.
        usual = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_EVERY)
        garbage = Garbage()
        try:
            # On uvloop where there is one.
            with asyncio.Runner(loop_factory=self._uvicorn.config.get_loop_factory()) as runner:
                runner.run(self._serve(garbage))
        finally:
            sys.setswitchinterval(usual)
            garbage.close()
            self._socket.close()
            self._app.close()
        return STORE_BROKEN if self._service.writer.broken is not None else STOPPED

    async def _serve(self, garbage: Garbage) -> None:
        watching = asyncio.create_task(self._watch(garbage))
        try:
            await self._uvicorn.serve(sockets=[self._socket])
        finally:
            watching.cancel()

    async def _watch(self, garbage: Garbage) -> None:
        """A store that refused to keep what was written cannot be trusted again before a restart."""
        while self._service.writer.broken is None:
            garbage.tidy()
            await asyncio.sleep(LOOK_EVERY)
        log.critical("stopping: %s", self._service.writer.broken)
        self._uvicorn.should_exit = True

    def stop(self) -> None:
        """Take no more requests, finish those that run, and end; from any thread."""
        self._uvicorn.should_exit = True

    def __enter__(self) -> "Server":
        self._thread = threading.Thread(target=self.run, name="firstclick-server", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        assert self._thread is not None
        self._thread.join()


def check_private(service: Service, settings: Settings) -> None:
    """Without keys nobody but this machine may reach the server."""
    if service.maintenance.api_keys:
        return
    if not is_loopback(settings.host):
        why, instead = f"host {settings.host!r} can be reached from other machines", "listen at 127.0.0.1"
    elif settings.behind_proxy:
        why, instead = "--behind-proxy lets other machines in", "leave it out and have no proxy"
    else:
        return
    raise InvalidInput(
        f"{why}, and the store has no API keys; make one with `firstclick keys create NAME --role admin "
        f"--store {shown_store(settings.store)}`, or {instead}"
    )


def _bound(host: str, port: int) -> socket.socket:
    """A socket that listens: connections that come before we serve wait a moment."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        reason = {
            errno.EADDRINUSE: "something else listens there; choose another port, or 0 for any",
            errno.EACCES: "ports below 1024 are for administrators; choose another",
            errno.EADDRNOTAVAIL: "this machine has no such address",
        }.get(error.errno or 0, str(error.strerror or error))
        raise InvalidInput(f"cannot listen at {host}, port {port}: {reason}") from None


def _protocol() -> type[GuardedConnection]:
    """Connections up to what the system lets this process open."""
    try:
        import resource
    except ImportError:  # Windows
        return GuardedConnection
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    most = MOST_CONNECTIONS if files == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, files - OTHER_FILES)
    return type("Protocol", (GuardedConnection,), {"most_connections": most})
