"""Disks that are full, locked or failing: no acknowledgement is false, slates are still recommended."""

import sqlite3
import subprocess
import time

import pytest

from firstclick.serve.http.server import STORE_BROKEN
from tests.faults.clients import CODES, REFUSALS, Caller, LoadClients
from tests.faults.crash import ServerUnderTest
from tests.faults.oracle import ClientHistory

FEEDBACK = "/v1/models/shop/feedback"


@pytest.fixture
def history():
    return ClientHistory()


def report(caller, history, click=None):
    """Ask for a slate and report it; return the answer, None if none came."""
    shown = caller.post("/v1/models/shop/recommend", {})
    if shown is None:
        return None
    assert shown.code == 200, "recommendations go on whatever becomes of the store"
    token = shown.body["token"]
    history.record_sent("shop", token, click)
    reply = caller.post(FEEDBACK, {"token": token, "click": click})
    if reply is not None:
        answer = reply.body.get("error", reply.body)
        history.record_answer(token, click, answer["status"], answer.get("seq"))
    return reply


def fill(server, history, most=3000):
    """Send feedback, one at a time, until it is refused ten times; return the last code."""
    caller, refused = Caller(server.port), 0
    for _ in range(most):
        code = report(caller, history).code
        refused += code == 503
        if refused == 10:
            break
    caller.close()
    return code


def finish(server, pid, history):
    """The oracle finds nothing; both kinds of answer must have been given."""
    server.finish(pid, history)
    assert history.statuses["accepted"] > 5
    assert history.statuses["unavailable"] >= 5


# A write-ahead log that is never carried over is what grows; or else the file itself.
@pytest.mark.parametrize(
    ("pages", "room"), [pytest.param(100_000, 300_000, marks=pytest.mark.long), (10, 80_000)]
)
def test_no_room_for_a_file_to_grow(server, history, pages, room):
    pid = server.start()
    fill(server, history, 10)
    server.stop(pid)
    pid = server.start(file_most=room, checkpoint_pages=pages)
    assert fill(server, history) == 503
    server.audit(history)
    assert server.stop(pid) == 0, server.said()
    pid = server.start()
    assert fill(server, history, 5) == 201
    finish(server, pid, history)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of a megabyte, or skip."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here: this takes an administrator on Linux")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk(zygote, small_disk, tmp_path, history):
    with ServerUnderTest(zygote, str(small_disk / "shop.db"), tmp_path) as server:
        pid = server.start(checkpoint_pages=100_000)
        assert fill(server, history) == 503
        server.audit(history)
        with LoadClients([server.port], history) as load:
            time.sleep(0.5)
        assert load.codes <= REFUSALS
        # Room is made, and it goes on by itself.
        subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
        with LoadClients([server.port], history) as load:
            time.sleep(0.5)
        assert load.codes <= CODES, load.codes
        finish(server, pid, history)


def test_foreign_write_lock(server, history):
    pid = server.start(busy_seconds=0.2)
    fill(server, history, 20)
    foreign = sqlite3.connect(server.url, isolation_level=None)
    foreign.execute("BEGIN IMMEDIATE")
    assert fill(server, history) == 503
    reply = server.ask("POST", FEEDBACK, {"token": "x", "click": 0})
    assert (reply.code, reply.body["error"]["status"]) == (404, "unknown"), "what needs no store is answered"
    with LoadClients([server.port], history, changes=False) as load:
        time.sleep(1.0)
    assert load.codes <= REFUSALS - {404, 409, 422}
    foreign.execute("ROLLBACK")
    foreign.close()
    assert fill(server, history, 20) in (200, 201)
    finish(server, pid, history)


@pytest.mark.parametrize("outcome", ["lost", pytest.param("written", marks=pytest.mark.long)])
def test_failed_fsync_ends_all_writing_until_a_restart(server, history, outcome):
    pid = server.start(broken=[f"fsync_fails_and_it_is_{outcome}"])
    caller, codes = Caller(server.port, timeout=3.0), []
    # Until the server notices, a few times a second, that its store must not be believed any more.
    while (reply := report(caller, history, 0)) is not None:
        codes.append(reply.code)
        if reply.code == 503:
            if (ready := caller.ask("GET", "/health/ready")) is None:
                break
            assert ready.code == 503
    caller.close()
    first = codes.index(503)
    assert set(codes[:first]) == {201}
    assert set(codes[first:]) == {503}, "nothing is acknowledged after a failed fsync"
    assert server.wait(pid) == STORE_BROKEN
    # Sent while the server was stopping: the next one may find it, and write it.
    unanswered = sum(not slate.answers for slate in history.slates.values())
    pid = server.start()
    assert fill(server, history, 5) == 201
    failed = int(outcome == "written")
    assert failed <= server.finish(pid, history).unacked <= failed + unanswered
