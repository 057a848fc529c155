"""A real server: slow and silent clients, bad bytes, signals, exit codes."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from io import BytesIO

import httpx
import pytest

from firstclick import InvalidInput
from firstclick.wire.errors import StoreBroken
from tests.support.serving import AT_LAST, a_server, a_service, add_key, comes_to, serve

# Bytes of a request line and headers.
MOST_HEAD = 65_536
CONNECTION = "firstclick.serve.http.connection.GuardedConnection"
HEAD = b"POST /v1/empty HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
LIVE = b"GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n"


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{CONNECTION}.arrive_within", 0.3)
    monkeypatch.setattr("firstclick.serve.http.server.KEEP_ALIVE", 0.3)
    with a_server(tmp_path) as server:
        yield server


def connect(server):
    host, port = server.address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=AT_LAST)


def is_cut_off(connection):
    """Whether the other side ends it before long, without an answer."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def everything(connection):
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65_536):
            received += piece
    return received


def test_a_request_that_does_not_arrive_is_cut_off(server):
    begun = HEAD + b"content-length: 10\r\n\r\n"
    with contextlib.ExitStack() as opened:
        connections = []
        for sent in (b"", b"P", HEAD, HEAD + b"x-a: ", begun, begun + b"{"):
            connections.append(opened.enter_context(connect(server)))
            connections[-1].sendall(sent)
        assert all(is_cut_off(connection) for connection in connections)


def test_a_client_that_comes_in_pieces_in_time_is_answered(server):
    with connect(server) as connection:
        for piece in (HEAD[:10], HEAD[10:], b"content-length: 2\r\n", b"\r\n{", b"}"):
            connection.sendall(piece)
            time.sleep(0.01)
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        # Its timer is gone with it: only silence ends the connection now.
        connection.sendall(HEAD + b"content-length: 2\r\n\r\n{}")
        assert b"200 OK" in everything(connection)


class SlowFile(BytesIO):
    def write(self, content):
        time.sleep(0.7)
        return super().write(content)


@pytest.mark.parametrize("we_are_slow", [False, True])
def test_a_file_may_take_longer_to_arrive_while_much_of_it_comes(server, monkeypatch, we_are_slow):
    # Longer than other tests have it: on a busy machine a client may pause.
    monkeypatch.setattr(f"{CONNECTION}.arrive_within", 0.5)
    if we_are_slow:
        monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: SlowFile())
    begun = HEAD.replace(b"/v1/empty", b"/v1/models/new/import").replace(b"json", b"octet-stream")
    with connect(server) as connection:
        n = 3 if we_are_slow else 8
        connection.sendall(begun + b"content-length: %d\r\n\r\n" % (n * 1_000_000))
        for _ in range(n):
            connection.sendall(b"x" * 1_000_000)
            time.sleep(0 if we_are_slow else 0.1)
        assert connection.recv(100).startswith(b"HTTP/1.1 422")


def test_headers_without_end_are_refused(tmp_path):
    # A few bytes too many, so that none is left unread: the answer would be lost with the connection.
    with a_server(tmp_path) as server, connect(server) as connection:
        connection.sendall(HEAD + b"x-long: " + b"a" * MOST_HEAD)
        assert connection.recv(100).startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize(
    "sent", [b"\x16\x03\x01\x00\xa5\x01\x00", b"GET\r\n\r\n", b"G\x00T / HTTP/1.1\r\n\r\n"]
)
def test_bytes_that_are_not_http_get_a_sentence(server, sent):
    with connect(server) as connection:
        connection.sendall(sent)
        head, _, body = everything(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert json.loads(body)["error"]["status"] == "bad-request"


def test_another_protocol_that_is_offered_is_not_taken_up(server):
    with connect(server) as connection:
        connection.sendall(LIVE[:-2] + b"connection: upgrade\r\nupgrade: websocket\r\n\r\n")
        assert everything(connection).startswith(b"HTTP/1.1 200")


def test_too_many_connections_are_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("firstclick.serve.http.server.MOST_CONNECTIONS", 3)
    with a_server(tmp_path) as server, contextlib.ExitStack() as opened:
        for _ in range(3):
            connection = opened.enter_context(connect(server))
            connection.sendall(LIVE)
            assert connection.recv(20).startswith(b"HTTP/1.1 200")
        with connect(server) as another, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            another.sendall(LIVE)
            assert is_cut_off(another)


def test_an_answer_that_is_not_taken_is_dropped(server, monkeypatch):
    monkeypatch.setattr(server._app.site, "openapi", b"x" * 50_000_000)
    with connect(server) as connection:
        connection.sendall(LIVE.replace(b"/health/live", b"/openapi.json"))
        comes_to(lambda: len(server._uvicorn.server_state.connections), 0)
        assert len(everything(connection)) < 50_000_000


def test_a_large_body_that_is_refused_leaves_the_connection_usable(server):
    with httpx.Client(base_url=server.address) as client:
        headers = {"content-type": "application/json"}
        assert client.post("/v1/empty", content=b" " * 2_000_000, headers=headers).status_code == 413
        assert client.post("/v1/empty", json={}).status_code == 200


def test_a_running_request_is_answered_before_the_end(tmp_path):
    with a_server(tmp_path) as server, connect(server) as connection:
        connection.sendall(HEAD + b"content-length: 2\r\n\r\n{")
        time.sleep(0.2)
        server.stop()
        time.sleep(0.2)
        connection.sendall(b"}")
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    with pytest.raises(ConnectionRefusedError):
        connect(server)


def test_a_broken_store_ends_the_server_with_its_own_code(tmp_path, caplog):
    with a_service(tmp_path) as service:
        server = serve(service)
        service.writer.broken = StoreBroken("the disk lost what was written")
        assert server.run() == 74
    assert "the disk lost what was written" in caplog.text


def test_an_address_that_others_can_reach_needs_a_key(tmp_path):
    def refuses(word, **settings):
        with pytest.raises(InvalidInput, match=word):
            serve(service, **settings)

    with a_service(tmp_path) as service:
        for host in ("0.0.0.0", "::"):
            refuses("the store has no API keys", host=host)
        advice = r"--behind-proxy .*firstclick keys create NAME --role admin --store shop\.db"
        refuses(advice, behind_proxy=True, store="shop.db")
        with serve(service) as first:
            port = int(first.address.rpartition(":")[2])
            refuses(rf"127.0.0.1, port {port}: something else listens", port=port)
        add_key(service, "admin")
        refuses(r"192.0.2.1, port 0: this machine has no such address", host="192.0.2.1")
        with serve(service, behind_proxy=True):
            pass


PROGRAM = """
import sys
from pathlib import Path
from tests.support.serving import a_service, serve
with a_service(Path(sys.argv[1])) as service:
    server = serve(service)
    print(server.address, flush=True)
    code = server.run()
print("closed", flush=True)
sys.exit(code)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_a_signal_ends_it_well(tmp_path, number):
    environment = os.environ | {"PYTHONWARNINGS": "error", "PYTHONPATH": os.pathsep.join(sys.path)}
    call = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True, env=environment) as process:
        address = process.stdout.readline().strip()
        assert httpx.get(f"{address}/health/ready", timeout=AT_LAST).status_code == 200
        process.send_signal(number)
        assert process.stdout.read().strip() == "closed"
        assert process.wait(AT_LAST) == 0
