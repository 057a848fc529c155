"""Too many, too slow and too silly clients: others are served, refusals are honest, memory does not grow."""

import socket
import time
from contextlib import ExitStack

import pytest

from tests.faults.clients import LoadClients
from tests.faults.crash import ServerUnderTest
from tests.faults.oracle import ClientHistory

RECOMMEND = "/v1/models/shop/recommend"
HEAD = b"POST /v1/models/shop/recommend HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.fixture
def server(zygote, tmp_path):
    with ServerUnderTest(zygote, str(tmp_path / "shop.db"), tmp_path) as made:
        yield made


def connected(server, n, opened):
    return [
        opened.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=30))
        for _ in range(n)
    ]


def drip(connections, piece):
    """Send a little on each; how many are still open."""
    left = 0
    for connection in connections:
        try:
            connection.sendall(piece)
            left += 1
        except OSError:
            pass
    return left


def served(server, history):
    """Ordinary clients get ordinary answers now."""
    with LoadClients([server.port], history, clients=4) as load:
        time.sleep(0.3)
    assert load.codes <= {200, 201, 404, 409, 422}, load.codes


def test_hundreds_of_dripping_clients_are_cut_off(server):
    """Of some the headers never end, of others the body."""
    history = ClientHistory()
    pid = server.start(patience=1.0)
    server.wait_until(200)
    with ExitStack() as opened:
        slow = {piece: connected(server, 100, opened) for piece in (b"x-slow: 1\r\n", b" ")}
        begun = [HEAD, HEAD + b"Content-Length: 100000\r\n\r\n"]
        for connections, first in zip(slow.values(), begun, strict=True):
            assert drip(connections, first) == 100
        served(server, history)
        until = time.monotonic() + 20
        while sum(drip(connections, piece) for piece, connections in slow.items()):
            assert time.monotonic() < until, "dripping must not keep a connection"
            time.sleep(0.1)
        served(server, history)
    server.audit(history)
    assert server.stop(pid) == 0
    assert not server.check(history).complaints


# So little that a few clients are too many: requests at once, or events that wait.
@pytest.mark.parametrize(
    "most", [{"max_requests": 6}, {"max_queue": 4, "max_batch": 2}], ids=["requests", "events"]
)
def test_more_than_it_can_take_is_refused_and_all_is_well_at_once_afterwards(server, most):
    history = ClientHistory()
    pid = server.start(settings=most)
    server.wait_until(200)
    with LoadClients([server.port], history, clients=24, changes=False) as load:
        time.sleep(2.0)
    assert load.codes <= {200, 201, 409, 429, 503}, load.codes
    assert 429 in load.codes
    reply = server.ask("POST", RECOMMEND, {})
    assert reply.code == 200
    said = {"token": reply.body["token"], "click": None}
    history.record_sent("shop", said["token"], None)
    reply = server.ask("POST", "/v1/models/shop/feedback", said)
    assert reply.code == 201
    history.record_answer(said["token"], None, "accepted", reply.body["seq"])
    assert server.ask("GET", "/health/ready").code == 200
    server.audit(history)
    assert server.stop(pid) == 0
    found = server.check(history)
    assert not found.complaints, str(found)
    assert history.statuses["overloaded"] > 20
    assert found.acked > 50
