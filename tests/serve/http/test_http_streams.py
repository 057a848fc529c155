"""Files over HTTP: sent and taken in pieces, off the event loop, no faster than the other side."""

import asyncio
import threading
from io import BytesIO
from unittest.mock import Mock

import httpx
import pytest

from firstclick.serve.http import streams
from firstclick.serve.http.connection import STEADY_BYTES, GuardedConnection
from firstclick.serve.log.model_file import ModelFile
from firstclick.serve.service import Service
from firstclick.serve.store.store import Base
from tests.support.serving import Exchange, a_server, a_site

EXPORT = "/v1/models/shop/export"
OCTETS = {"content-type": "application/octet-stream"}


@pytest.fixture
def site(tmp_path):
    with a_site(tmp_path, max_body=1000, max_bulk_body=1000, max_import=20_000) as site:
        yield site


class Pieces:
    """A file of 100 pieces, and who asked for them."""

    def __init__(self, broken_at=None):
        self.made = 0
        self.closed = False
        self.threads = set()
        self._broken_at = broken_at

    def export(self, name):
        try:
            while self.made < 100:
                if self.made == self._broken_at:
                    raise OSError("no more")
                self.made += 1
                self.threads.add(threading.current_thread().name)
                yield b"%3d," % self.made * 10_000
        finally:
            self.closed = True


class Taker(Exchange):
    """A client that takes an answer only while it is told to, and leaves when it is told to."""

    def __init__(self, site, taken, *, leaves):
        super().__init__(site.app)
        self._left = taken
        self._leaves = leaves
        self.stuck = asyncio.Event()

    async def _receive(self):
        if self.n_read == 0:
            return await super()._receive()
        await self.stuck.wait()
        if not self._leaves:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def _send(self, message):
        await super()._send(message)
        self._left -= 1
        if self._left < 0:
            self.stuck.set()
            # Uvicorn lets a message go when nobody is there any more.
            await asyncio.sleep(0.01 if self._leaves else 3600)


def test_an_export_is_made_in_threads_and_sent_in_pieces(site, monkeypatch):
    pieces = Pieces()
    monkeypatch.setattr(Service, "export", pieces.export)
    answer = site.ask("GET", EXPORT)
    assert (answer.status_code, len(answer.content)) == (200, 100 * 40_000)
    assert "content-length" not in answer.headers
    assert all(name.startswith("firstclick-http") for name in pieces.threads)
    assert pieces.closed
    head = site.ask("HEAD", EXPORT)
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize("leaves", [True, False])
def test_no_more_is_made_than_is_taken(site, monkeypatch, leaves):
    pieces = Pieces()
    monkeypatch.setattr(Service, "export", pieces.export)
    monkeypatch.setattr(streams, "TAKEN_WITHIN", 3600 if leaves else 0.05)

    async def ask():
        await Taker(site, 5, leaves=leaves).ask("GET", EXPORT)

    site.runner.run(ask())
    # The start of the answer is a message too. One more may be made before it is known that nobody is there.
    assert 5 <= pieces.made <= 7
    assert pieces.closed


def test_a_file_that_cannot_be_made_to_its_end_has_none(tmp_path, monkeypatch, caplog):
    with a_server(tmp_path) as server:
        content = httpx.get(server.address + EXPORT).content
        assert ModelFile(BytesIO(content)).name == "shop"
        monkeypatch.setattr(Service, "export", Pieces(broken_at=50).export)
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(server.address + EXPORT)
        assert "a file could not be sent to its end" in caplog.text
        assert httpx.get(server.address + "/health/live").status_code == 200


def test_an_archived_log_is_not_exported_by_halves(site):
    store = site.service.store
    site.recommend()
    for _ in range(4):
        site.ask("POST", "/v1/models/shop/feedback", {"token": site.recommend()["token"], "click": 0})
    model = site.service.model("shop")
    store.set_base(model.id, Base(3, 0, model.snapshot()[1]), 1)
    refused = site.ask("GET", EXPORT)
    assert refused.status_code == 409
    assert "events 2 to 2 of model 'shop' are archived" in refused.json()["error"]["message"]


def test_an_import_may_be_larger_than_other_bodies_but_has_a_limit_of_its_own(site):
    content = b"".join(site.service.export("shop"))
    assert 1000 > len(content) > 300
    # Behind the end of the file nothing may come: so a longer one is made of more feedback.
    for _ in range(60):
        site.ask("POST", "/v1/models/shop/feedback", {"token": site.recommend()["token"], "click": 0})
    content = b"".join(site.service.export("shop"))
    assert 20_000 > len(content) > 1000
    assert site.post_bytes("/v1/models/copy/import", content, OCTETS["content-type"]).status_code == 201
    for headers, n_read in (({}, 5), ({"content-length": "20001"}, 0)):
        exchange = Exchange(site.app, [b"x" * 5000] * 10)
        site.runner.run(exchange.ask("POST", "/v1/models/new/import", OCTETS | headers))
        assert exchange.code == 413
        assert b"20000 bytes (--max-import)" in exchange.body
        assert exchange.n_read == n_read


def test_a_client_that_leaves_while_it_imports_is_forgotten(site):
    exchange = Exchange(site.app, [b"x" * 5000] * 2, gone=True)
    site.runner.run(exchange.ask("POST", "/v1/models/new/import", OCTETS))
    assert exchange.sent == []
    assert site.service.names() == ["shop"]


@pytest.mark.parametrize(
    ("arrived", "paused", "cut"),
    [(STEADY_BYTES, False, False), (STEADY_BYTES - 1, False, True), (0, True, False)],
)
def test_a_request_may_take_longer_while_much_of_it_arrives(arrived, paused, cut):
    connection = GuardedConnection.__new__(GuardedConnection)
    connection.loop, connection.transport, connection.flow = Mock(), Mock(), Mock(read_paused=paused)
    connection._arriving, connection._arrived, connection._too_late = True, arrived, Mock()
    connection._cut_off()
    assert connection.transport.abort.called == cut
    assert (connection._too_late is None) == cut
    assert connection._arrived == (arrived if cut else 0)
