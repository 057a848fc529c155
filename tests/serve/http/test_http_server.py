"""A real server: slow and silent clients, bad bytes, signals, exit codes."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest

from firstclick.errors import InvalidInput
from firstclick.serve.config import Settings
from firstclick.serve.http import server as server_module
from firstclick.serve.http.auth import new_key
from firstclick.serve.http.connection import MOST_HEAD, GuardedConnection
from firstclick.serve.http.server import STOPPED, STORE_BROKEN, Server
from firstclick.wire.errors import StoreBroken
from tests.support.serving import a_server, a_service

# Long enough for any machine; no test waits for it unless it fails.
AT_LAST = 30.0


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setattr(GuardedConnection, "arrive_within", 0.3)
    monkeypatch.setattr(server_module, "KEEP_ALIVE", 0.3)
    with a_server(tmp_path) as server:
        yield server


def connected(server):
    host, port = server.address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=AT_LAST)


def is_cut_off(connection):
    """Whether the other side ends it before long, having said nothing."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def everything(connection):
    told = b""
    try:
        while piece := connection.recv(65_536):
            told += piece
    except ConnectionResetError:
        pass
    return told


HEAD = b"POST /v1/empty HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"P",
        HEAD,
        HEAD + b"x-a: ",
        HEAD + b"content-length: 10\r\n\r\n",
        HEAD + b"content-length: 10\r\n\r\n{",
    ],
    ids=["nothing", "one byte", "no end of headers", "half a header", "no body", "half a body"],
)
def test_a_request_that_does_not_arrive_is_cut_off(server, sent):
    with connected(server) as connection:
        connection.sendall(sent)
        assert is_cut_off(connection)


def test_dripping_does_not_keep_a_connection(server):
    with connected(server) as connection:
        connection.sendall(HEAD)
        started = time.monotonic()
        try:
            while time.monotonic() - started < AT_LAST:
                connection.sendall(b"x-drip: 1\r\n")
                time.sleep(0.02)
        except (BrokenPipeError, ConnectionResetError):
            return
        pytest.fail("the connection was kept")


def test_a_client_that_comes_in_pieces_in_time_is_answered(server):
    with connected(server) as connection:
        for piece in (HEAD[:10], HEAD[10:], b"content-length: 2\r\n", b"\r\n{", b"}"):
            connection.sendall(piece)
            time.sleep(0.01)
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        # Its timer is gone with it: only silence ends the connection now.
        connection.sendall(HEAD + b"content-length: 2\r\n\r\n{}")
        assert b"200 OK" in everything(connection)


def test_headers_without_end_are_refused(tmp_path):
    # A few bytes too many, so that none is left unread: the answer would be lost with the connection.
    with a_server(tmp_path) as server, connected(server) as connection:
        connection.sendall(HEAD + b"x-long: " + b"a" * MOST_HEAD)
        assert connection.recv(100).startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize(
    "sent", [b"\x16\x03\x01\x00\xa5\x01\x00", b"GET\r\n\r\n", b"G\x00T / HTTP/1.1\r\n\r\n"]
)
def test_what_is_not_http_gets_a_sentence(server, sent):
    with connected(server) as connection:
        connection.sendall(sent)
        head, _, body = everything(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert json.loads(body)["error"]["status"] == "bad-request"


def test_another_protocol_that_is_offered_is_not_taken_up(server):
    with connected(server) as connection:
        connection.sendall(
            b"GET /health/live HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\n"
            b"upgrade: websocket\r\n\r\n"
        )
        assert everything(connection).startswith(b"HTTP/1.1 200")


def test_too_many_connections_are_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(server_module, "MOST_CONNECTIONS", 3)
    with a_server(tmp_path) as server:
        held = [connected(server) for _ in range(3)]
        for connection in held:
            connection.sendall(b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert connection.recv(20).startswith(b"HTTP/1.1 200")
        with connected(server) as one_more, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            one_more.sendall(b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert is_cut_off(one_more)
        for connection in held:
            connection.close()


def test_an_answer_that_nobody_takes_is_dropped(server, monkeypatch):
    monkeypatch.setattr(server._app.site, "openapi", b"x" * 50_000_000)
    with connected(server) as connection:
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n")
        deadline = time.monotonic() + AT_LAST
        while server._uvicorn.server_state.connections and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not server._uvicorn.server_state.connections
        assert len(everything(connection)) < 50_000_000


def test_a_large_body_that_is_refused_leaves_the_connection_usable(server):
    with httpx.Client(base_url=server.address) as client:
        headers = {"content-type": "application/json"}
        assert client.post("/v1/empty", content=b" " * 2_000_000, headers=headers).status_code == 413
        assert client.post("/v1/empty", json={}).status_code == 200


def test_a_running_request_is_answered_before_the_end(tmp_path):
    with a_service(tmp_path) as service:
        with Server(service, Settings(port=0)) as server, connected(server) as connection:
            connection.sendall(HEAD + b"content-length: 2\r\n\r\n{")
            time.sleep(0.2)
            server.stop()
            time.sleep(0.2)
            connection.sendall(b"}")
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        with pytest.raises(OSError):  # noqa: PT011
            connected(server)


def test_a_broken_store_ends_the_server_with_its_own_code(tmp_path, caplog):
    with a_service(tmp_path) as service:
        server = Server(service, Settings(port=0))
        service.writer.broken = StoreBroken("the disk lost what was written")
        assert server.run() == STORE_BROKEN
    assert "the disk lost what was written" in caplog.text


def test_an_address_that_others_can_reach_needs_a_key(tmp_path):
    with a_service(tmp_path) as service:
        with pytest.raises(InvalidInput, match="the store has no API keys"):
            Server(service, Settings(host="0.0.0.0", port=0))
        with Server(service, Settings(port=0)) as first:
            port = int(first.address.rpartition(":")[2])
            with pytest.raises(InvalidInput, match=rf"127.0.0.1, port {port}: something else listens"):
                Server(service, Settings(port=port))
        service.store.add_api_key("me", "admin", new_key()[1], 0.0)
        service.maintenance.reload_api_keys()
        with pytest.raises(InvalidInput, match=r"192.0.2.1, port 0: this machine has no such address"):
            Server(service, Settings(host="192.0.2.1", port=0))


def test_a_server_behind_a_proxy_needs_a_key(tmp_path):
    with a_service(tmp_path) as service:
        settings = Settings(port=0, behind_proxy=True, store="shop.db")
        with pytest.raises(
            InvalidInput, match=r"firstclick keys create NAME --role admin --store shop\.db"
        ) as said:
            Server(service, settings)
        assert "--behind-proxy" in str(said.value)
        service.store.add_api_key("me", "admin", new_key()[1], 0.0)
        service.maintenance.reload_api_keys()
        with Server(service, settings):
            pass


PROGRAM = """
import sys
from pathlib import Path
from firstclick.serve.config import Settings
from firstclick.serve.http import server
from firstclick.serve.service import open_service
service = open_service(sys.argv[1])
bound = server.Server(service, Settings(port=0))
print(bound.address, flush=True)
code = bound.run()
service.close()
print("closed" if service.store._file._closed else "open", flush=True)
sys.exit(code)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_a_signal_ends_it_well(tmp_path, number):
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "shop.db")], stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONWARNINGS": "error"},
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert httpx.get(f"{address}/health/ready", timeout=AT_LAST).status_code == 200
        process.send_signal(number)
        assert process.stdout.read().strip() == "closed"
        assert process.wait(AT_LAST) == STOPPED
