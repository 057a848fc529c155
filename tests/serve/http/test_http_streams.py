"""Files over HTTP: sent and taken in pieces, off the event loop, no faster than the other side."""

import asyncio
import socket
import threading
from contextlib import closing

import httpx
import pytest

from firstclick.serve import Service
from firstclick.serve.store.store import Base
from tests.support.serving import Exchange, a_server, comes_to

EXPORT, IMPORT = "/v1/models/shop/export", "/v1/models/new/import"
OCTETS = "application/octet-stream"


@pytest.fixture
def site(open_site):
    return open_site(max_body=1000, max_bulk_body=1000, max_import=20_000)


class Pieces:
    """A file of 100 pieces in place of an export, and the threads that asked for them."""

    def __init__(self, monkeypatch, *, size=40_000, broken_at=None):
        monkeypatch.setattr(Service, "export", lambda service, name: self.export())
        self.made = 0
        self.closed = False
        self.threads = set()
        self._piece, self._broken_at = b"x" * size, broken_at

    def export(self):
        try:
            while self.made < 100:
                if self.made == self._broken_at:
                    raise OSError("no more")
                self.made += 1
                self.threads.add(threading.current_thread().name)
                yield self._piece
        finally:
            self.closed = True


def test_an_export_is_made_in_threads_and_sent_in_pieces(site, monkeypatch):
    pieces = Pieces(monkeypatch)
    answer = site.ask("GET", EXPORT)
    assert (answer.status_code, len(answer.content)) == (200, 100 * 40_000)
    assert "content-length" not in answer.headers
    assert all(name.startswith("firstclick-http") for name in pieces.threads)
    assert pieces.closed
    head = site.ask("HEAD", EXPORT)
    assert (head.status_code, head.content) == (200, b"")


def test_the_next_piece_is_made_when_the_last_is_taken(site, monkeypatch):
    monkeypatch.setattr("firstclick.serve.http.streams.TAKEN_WITHIN", 0.3)
    pieces = Pieces(monkeypatch)

    class TakesThree(Exchange):
        async def _receive(self):
            await asyncio.Event().wait()

        async def _send(self, message):
            await super()._send(message)
            if len(self.sent) == 1 + 3:
                await asyncio.Event().wait()

    exchange = site.runner.run(TakesThree(site.app).ask("GET", EXPORT))
    assert (pieces.made, len(exchange.sent), pieces.closed) == (3, 4, True)


@pytest.mark.parametrize("leaves", [True, False])
def test_no_more_is_made_than_is_taken(tmp_path, monkeypatch, leaves):
    monkeypatch.setattr("firstclick.serve.http.streams.TAKEN_WITHIN", 3600 if leaves else 0.3)
    pieces = Pieces(monkeypatch, size=1_000_000)
    with a_server(tmp_path) as server, closing(socket.socket()) as connection:
        connection.connect(("127.0.0.1", int(server.address.rpartition(":")[2])))
        connection.sendall(b"GET %b HTTP/1.1\r\nhost: localhost\r\n\r\n" % EXPORT.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        if leaves:
            connection.close()
        comes_to(lambda: pieces.closed, True)
    # The buffers of both sides have some megabytes.
    assert pieces.made < 50


def test_a_file_that_cannot_be_made_to_its_end_has_none(tmp_path, monkeypatch, caplog):
    with a_server(tmp_path) as server:
        Pieces(monkeypatch, broken_at=50)
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(server.address + EXPORT)
        assert "a file could not be sent to its end" in caplog.text
        assert httpx.get(server.address + "/health/live").status_code == 200


def test_a_log_with_archived_events_is_not_exported(site):
    for _ in range(4):
        site.feedback(site.recommend()["token"], click=0)
    model = site.shop.internals
    site.service.store.set_base(model.id, Base(3, 0, model.snapshot()[1]), 1)
    refused = site.ask("GET", EXPORT)
    assert refused.status_code == 409
    assert "events 2 to 2 of model 'shop' are archived" in refused.json()["error"]["message"]


def test_an_import_may_be_larger_than_other_bodies_but_has_a_limit_of_its_own(site):
    for _ in range(60):
        site.feedback(site.recommend()["token"], click=0)
    content = site.ask("GET", EXPORT).content
    assert 20_000 > len(content) > 1000
    assert site.post_bytes("/v1/models/copy/import", content, OCTETS).status_code == 201
    for headers, n_read in (({}, 5), ({"content_length": "20001"}, 0)):
        exchange = site.raw("POST", IMPORT, *[b"x" * 5000] * 10, content_type=OCTETS, **headers)
        assert (exchange.code, exchange.n_read) == (413, n_read)
        assert b"20000 bytes (--max-import)" in exchange.body
    # A client that leaves in the middle is forgotten.
    assert site.raw("POST", IMPORT, *[b"x" * 5000] * 2, gone=True, content_type=OCTETS).sent == []
    assert site.service.names() == ["copy", "shop"]
