"""Disks that are full, locked or failing: no acknowledgement is false, slates are still recommended."""

import sqlite3
import subprocess
import time

import pytest

from firstclick.errors import InvalidInput
from firstclick.serve.http.server import STORE_BROKEN
from firstclick.serve.store import open_store
from tests.faults.clients import CODES, REFUSALS, Caller, Crowd
from tests.faults.crash import Stage
from tests.faults.oracle import Ledger

FEEDBACK = "/v1/models/shop/feedback"


@pytest.fixture
def ledger():
    return Ledger()


def report(caller, ledger, click=None):
    """Ask for a slate and report it; return the answer, None if none came."""
    shown = caller.post("/v1/models/shop/recommend", {})
    if shown is None:
        return None
    assert shown.code == 200, "recommendations go on whatever becomes of the store"
    token = shown.body["token"]
    ledger.send("shop", token, click)
    reply = caller.post(FEEDBACK, {"token": token, "click": click})
    if reply is not None:
        answer = reply.body.get("error", reply.body)
        ledger.hear(token, click, answer["status"], answer.get("seq"))
    return reply


def fill(stage, ledger, most=3000):
    """Send feedback, one at a time, until it is refused ten times; return the last code."""
    caller, refused = Caller(stage.port), 0
    for _ in range(most):
        code = report(caller, ledger).code
        refused += code == 503
        if refused == 10:
            break
    caller.close()
    return code


def finish(stage, pid, ledger):
    """The oracle finds nothing; both kinds of answer must have been given."""
    stage.finish(pid, ledger)
    assert ledger.statuses["accepted"] > 5
    assert ledger.statuses["unavailable"] >= 5


# A write-ahead log that is never carried over is what grows; or else the file itself.
@pytest.mark.parametrize(
    ("pages", "room"), [pytest.param(100_000, 300_000, marks=pytest.mark.long), (10, 80_000)]
)
def test_no_room_for_a_file_to_grow(stage, ledger, pages, room):
    pid = stage.start()
    fill(stage, ledger, 10)
    stage.stop(pid)
    pid = stage.start(file_most=room, checkpoint_pages=pages)
    assert fill(stage, ledger) == 503
    stage.audit(ledger)
    assert stage.stop(pid) == 0, stage.said()
    pid = stage.start()
    assert fill(stage, ledger, 5) == 201
    finish(stage, pid, ledger)


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


def test_a_full_disk(zygote, small_disk, tmp_path, ledger):
    with Stage(zygote, str(small_disk / "shop.db"), tmp_path) as stage:
        pid = stage.start(checkpoint_pages=100_000)
        assert fill(stage, ledger) == 503
        stage.audit(ledger)
        with Crowd([stage.port], ledger) as crowd:
            time.sleep(0.5)
        assert crowd.codes <= REFUSALS
        # Room is made, and it goes on by itself.
        subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
        with Crowd([stage.port], ledger) as crowd:
            time.sleep(0.5)
        assert crowd.codes <= CODES, crowd.codes
        finish(stage, pid, ledger)


def test_a_foreign_program_that_holds_the_write_lock(stage, ledger):
    pid = stage.start(busy_seconds=0.2)
    fill(stage, ledger, 20)
    foreign = sqlite3.connect(stage.url, isolation_level=None)
    foreign.execute("BEGIN IMMEDIATE")
    assert fill(stage, ledger) == 503
    reply = stage.ask("POST", FEEDBACK, {"token": "x", "click": 0})
    assert (reply.code, reply.body["error"]["status"]) == (404, "unknown"), "what needs no store is answered"
    with Crowd([stage.port], ledger, changes=False) as crowd:
        time.sleep(1.0)
    assert crowd.codes <= REFUSALS - {404, 409, 422}
    foreign.execute("ROLLBACK")
    foreign.close()
    assert fill(stage, ledger, 20) in (200, 201)
    finish(stage, pid, ledger)


def test_a_second_service_on_the_file_is_refused_and_harms_nothing(stage, ledger):
    pid = stage.start()
    fill(stage, ledger, 10)
    with pytest.raises(InvalidInput, match=f"in use by process {pid}"):
        open_store(stage.url)
    assert stage.wait(stage.start()) == 70
    assert f"in use by process {pid}" in stage.said()
    fill(stage, ledger, 10)
    stage.finish(pid, ledger)


@pytest.mark.parametrize("outcome", ["lost", pytest.param("written", marks=pytest.mark.long)])
def test_an_fsync_that_fails_ends_all_writing_until_a_restart(stage, ledger, outcome):
    pid = stage.start(broken=[f"fsync_fails_and_it_is_{outcome}"])
    caller, codes = Caller(stage.port, timeout=3.0), []
    # Until the server notices, a few times a second, that its store must not be believed any more.
    while (reply := report(caller, ledger, 0)) is not None:
        codes.append(reply.code)
        if reply.code == 503:
            if (ready := caller.ask("GET", "/health/ready")) is None:
                break
            assert ready.code == 503
    caller.close()
    first = codes.index(503)
    assert set(codes[:first]) == {201}
    assert set(codes[first:]) == {503}, "nothing is acknowledged after a failed fsync"
    assert stage.wait(pid) == STORE_BROKEN
    # Sent while the server was stopping: the next one may find it, and write it.
    unanswered = sum(not slate.answers for slate in ledger.slates.values())
    pid = stage.start()
    assert fill(stage, ledger, 5) == 201
    failed = int(outcome == "written")
    assert failed <= stage.finish(pid, ledger).unacked <= failed + unanswered
