"""Too many, too slow and too silly clients: others are served, refusals are honest, memory does not grow."""

import json
import random
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.clients import Caller, LoadClients
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


def bad_requests(server, n, seed):
    """All kinds of them, none like another."""
    draw = random.Random(seed)
    caller = Caller(server.port)

    def cut_off(odd):
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as raw:
            raw.sendall(HEAD + f"X-{odd}: {odd * 20}\r\n".encode() + b"Content-Length: 500\r\n\r\n{")

    kinds = [
        lambda odd: caller.post("/v1/models/shop/feedback", {"token": odd * 4, "click": 0}),
        lambda odd: caller.post(f"/v1/models/{odd}/feedback", {"token": odd, "click": 0}),
        lambda odd: caller.ask("GET", f"/{odd}/{odd}"),
        lambda odd: caller.post(RECOMMEND, {odd: 1}),
        lambda odd: caller.post(RECOMMEND, {"candidates": [odd] * 50}),
        lambda odd: caller.ask("DELETE", f"/v1/models/shop/items/{odd}"),
        lambda odd: caller.ask(odd.upper()[:8], RECOMMEND),
        cut_off,
    ]
    for number in range(n):
        kinds[number % len(kinds)]("".join(draw.choices("abcdefghij0123456789", k=30)))
    caller.close()


def memory(pid):
    """Bytes of a process."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        pytest.skip("the memory of a process is known from /proc alone")
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmRSS:"))
    return 1024 * int(line.split()[1])


@pytest.mark.long
def test_bad_requests_leave_no_memory_behind(server):
    pid = server.start(settings={"requests_per_second": 1e6})
    server.wait_until(200)
    bad_requests(server, 1000, seed=1)
    before = memory(pid)
    bad_requests(server, 4000, seed=2)
    grown = memory(pid) - before
    # A kilobyte kept of each would be four megabytes.
    assert grown < 3_000_000, grown
    view = server.ask("GET", "/v1/models/shop/view").body
    assert json.dumps(view).count("unknown") == 1
    assert server.stop(pid) == 0
    assert "Traceback" not in server.said()
