"""The one server of the tests: a service on a temporary file, its application in process, a server on a port.

Tests of what the application answers reach it through this file.
"""

import asyncio
import time
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import numpy as np

from firstclick.serve import Item, Service, open_service
from firstclick.serve.config import Settings
from firstclick.serve.http.app import App
from firstclick.serve.http.auth import new_key
from firstclick.serve.http.server import Server
from tests.support.seam import Model

# Seconds, long enough for any machine; no test waits for it unless it fails.
AT_LAST = 30.0
ADDRESS = "http://127.0.0.1"
RECOMMEND = "/v1/models/shop/recommend"
FEEDBACK = "/v1/models/shop/feedback"
ITEMS = [
    Item("espresso", "Espresso", "coffee", np.array([1.0, 0.0])),
    Item("tea", "Tea", "leaves", np.array([0.0, 1.0])),
    Item(7, "Seven", "", np.array([0.6, 0.8])),
    Item("cake", "<b>Cake</b>", "sweets", np.array([0.8, 0.6])),
]


@contextmanager
def a_service(folder, **settings):
    """A service with the model 'shop': four items, slates of 3."""
    with open_service(str(folder / "shop.db"), **settings) as service:
        if "shop" not in service.names():
            service.create("shop", policy="cascade-lin-ts", k=3, items=ITEMS, seed=1)
        yield service


def add_key(service, role, model=None):
    """Add a key of this role, as another process does, and return its text."""
    text, digest = new_key()
    service.store.add_api_key(role, role, digest, 0.0, model)
    service.maintenance.reload_api_keys()
    return text


@dataclass
class Site:
    """The application, with methods that send requests to it."""

    service: Service
    app: App
    runner: asyncio.Runner
    headers: dict[str, str] = field(default_factory=dict)

    def ask(self, method, path, body=None, **more):
        """Send one request; `body` is sent as JSON."""
        if body is not None:
            more["json"] = body
        more["headers"] = self.headers | dict(more.get("headers", {}))
        return self.runner.run(self._ask(method, path, **more))

    async def _ask(self, method, path, **more):
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url=ADDRESS) as client:
            return await client.request(method, path, **more)

    def post_bytes(self, path, content, media="application/json"):
        """Send a body as it is."""
        return self.ask("POST", path, content=content, headers={"content-type": media})

    def raw(self, method, path, *pieces, gone=False, **headers):
        """Send one request by hand, see `Exchange`; `content_length="9"` is the header `content-length`."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.runner.run(Exchange(self.app, pieces or (b"",), gone=gone).ask(method, path, headers))

    @property
    def shop(self):
        return Model(self.service, "shop")

    def add_key(self, role, model=None):
        return add_key(self.service, role, model)

    def bearer(self, role, model=None):
        """The headers of a request with a new key of this role."""
        return {"authorization": f"Bearer {self.add_key(role, model)}"}

    def recommend(self):
        return self.ask("POST", RECOMMEND, {}).json()

    def feedback(self, token, **report):
        return self.ask("POST", FEEDBACK, {"token": token, **report})


@contextmanager
def a_site(folder, *, of_service=None, **settings):
    """The application on a service of its own."""
    with a_service(folder, **(of_service or {})) as service, asyncio.Runner() as runner:
        app = App(service, Settings(**settings))
        try:
            yield Site(service, app, runner)
        finally:
            app.close()


def serve(service, *, port=0, **settings):
    """A server at a port of this machine; `with` starts and stops it."""
    return Server(service, Settings(port=port, **settings))


@contextmanager
def a_server(folder, *, of_service=None, **settings):
    """A server on a service of its own."""
    with a_service(folder, **(of_service or {})) as service, serve(service, **settings) as server:
        yield server


class Exchange:
    """One request by hand: any path, any headers, a body in pieces; counts the pieces that were read."""

    def __init__(self, app, pieces=(b"",), *, gone=False):
        self.app = app
        self.pieces = list(pieces)
        self.gone = gone
        self.n_read = 0
        self.sent = []

    async def _receive(self):
        if self.n_read == len(self.pieces):
            return {"type": "http.disconnect"}
        self.n_read += 1
        more = self.n_read < len(self.pieces) or self.gone
        return {"type": "http.request", "body": self.pieces[self.n_read - 1], "more_body": more}

    async def _send(self, message):
        self.sent.append(message)

    async def ask(self, method, raw_path, headers=None):
        """Return the exchange after its answer."""
        given = {"host": "127.0.0.1", "content-type": "application/json"} | (headers or {})
        path, _, query = raw_path.partition("?")
        await self.app(
            {
                "type": "http",
                "method": method,
                "raw_path": path.encode("latin-1"),
                "query_string": query.encode(),
                "headers": [(name.encode(), value.encode()) for name, value in given.items()],
                "client": ("127.0.0.1", 5000),
            },
            self._receive,
            self._send,
        )
        return self

    @property
    def code(self):
        return int(self.sent[0]["status"])

    @property
    def headers(self):
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self):
        return bytes(self.sent[1]["body"])


def comes_to(value, expected):
    """Wait until `value()` is this."""
    end = time.monotonic() + AT_LAST
    while value() != expected and time.monotonic() < end:
        time.sleep(0.02)
    assert value() == expected
