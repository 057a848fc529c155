"""Disks that are full, locked or failing: no acknowledgement is false, slates are still recommended."""

import sqlite3
import subprocess
import time

import pytest

from firstclick.errors import InvalidInput
from firstclick.serve.http.server import STORE_BROKEN
from firstclick.serve.store import open_store
from tests.faults.clients import Caller, Crowd
from tests.faults.crash import Stage
from tests.faults.oracle import Ledger

FEEDBACK = "/v1/models/shop/feedback"
RECOMMEND = "/v1/models/shop/recommend"


@pytest.fixture
def stage(zygote, tmp_path):
    with Stage(zygote, str(tmp_path / "shop.db"), tmp_path) as made:
        yield made


def fill(stage, ledger, most=3000):
    """Send feedback, one at a time, until it is refused ten times; the last code."""
    caller, refused, code = Caller(stage.port), 0, 0
    for _ in range(most):
        shown = caller.post(RECOMMEND, {})
        assert shown is not None
        assert shown.code == 200, "recommendations go on whatever becomes of the store"
        ledger.send("shop", shown.body["token"], None)
        reply = caller.post(FEEDBACK, {"token": shown.body["token"], "click": None})
        assert reply is not None
        told = reply.body.get("error", reply.body)
        ledger.hear(shown.body["token"], None, told["status"], told.get("seq"))
        code = reply.code
        refused += code == 503
        if refused == 10:
            break
    caller.close()
    return code


def check(stage, ledger):
    """The oracle; both kinds of answer must have been given."""
    found = stage.judge(ledger)
    assert not found.complaints, str(found)
    assert ledger.statuses["accepted"] > 5
    assert ledger.statuses["unavailable"] >= 5


# A write-ahead log that is never carried over is what grows; or else the file itself.
@pytest.mark.parametrize(
    ("pages", "room"), [pytest.param(100_000, 300_000, marks=pytest.mark.long), (10, 80_000)]
)
def test_no_room_for_a_file_to_grow(stage, pages, room):
    ledger = Ledger()
    pid = stage.start()
    fill(stage, ledger, 10)
    stage.stop(pid)
    pid = stage.start(file_most=room, checkpoint_pages=pages)
    assert fill(stage, ledger) == 503
    stage.audit(ledger)
    assert stage.stop(pid) == 0, stage.said()
    pid = stage.start()
    assert fill(stage, ledger, 5) == 201
    stage.audit(ledger)
    stage.stop(pid)
    check(stage, ledger)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of a megabyte, or skip."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("no file system can be mounted here: this takes an administrator on Linux")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk(zygote, small_disk, tmp_path):
    ledger = Ledger()
    with Stage(zygote, str(small_disk / "shop.db"), tmp_path) as stage:
        pid = stage.start(checkpoint_pages=100_000)
        assert fill(stage, ledger) == 503
        stage.audit(ledger)
        with Crowd([stage.port], ledger) as crowd:
            time.sleep(0.5)
        assert crowd.codes <= {200, 201, 404, 409, 422, 429, 503}
        # Room is made, and it goes on by itself.
        subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
        with Crowd([stage.port], ledger) as crowd:
            time.sleep(0.5)
        assert crowd.codes <= {200, 201, 404, 409, 422}, crowd.codes
        stage.audit(ledger)
        assert stage.stop(pid) == 0
        check(stage, ledger)


def test_a_foreign_program_that_holds_the_write_lock(stage):
    ledger = Ledger()
    pid = stage.start(busy_seconds=0.2)
    fill(stage, ledger, 20)
    foreign = sqlite3.connect(stage.url, isolation_level=None)
    foreign.execute("BEGIN IMMEDIATE")
    assert fill(stage, ledger) == 503
    reply = stage.ask("POST", FEEDBACK, {"token": "x", "click": 0})
    assert (reply.code, reply.body["error"]["status"]) == (404, "unknown"), "what needs no store is answered"
    with Crowd([stage.port], ledger, changes=False) as crowd:
        time.sleep(1.0)
    assert crowd.codes <= {201, 200, 429, 503}
    foreign.execute("ROLLBACK")
    foreign.close()
    assert fill(stage, ledger, 20) in (200, 201)
    assert stage.wait_until(200).body["status"] == "ready"
    stage.audit(ledger)
    assert stage.stop(pid) == 0
    check(stage, ledger)


def test_a_second_service_on_the_file_is_refused_and_harms_nothing(stage, tmp_path):
    ledger = Ledger()
    pid = stage.start()
    fill(stage, ledger, 10)
    with pytest.raises(InvalidInput, match=f"in use by process {pid}"):
        open_store(stage.url)
    second = stage.start()
    assert stage.wait(second) == 70
    assert f"in use by process {pid}" in stage.said()
    fill(stage, ledger, 10)
    stage.audit(ledger)
    assert stage.stop(pid) == 0
    assert not stage.judge(ledger).complaints


@pytest.mark.parametrize("outcome", ["lost", pytest.param("written", marks=pytest.mark.long)])
def test_an_fsync_that_fails_ends_all_writing_until_a_restart(stage, outcome):
    ledger = Ledger()
    pid = stage.start(broken=[f"fsync_fails_and_it_is_{outcome}"])
    caller = Caller(stage.port, timeout=3.0)
    codes = []
    unanswered = 0
    # Until the server notices, a few times a second, that its store must not be believed any more.
    while (shown := caller.post(RECOMMEND, {})) is not None:
        said = shown.body["token"]
        ledger.send("shop", said, 0)
        reply = caller.post(FEEDBACK, {"token": said, "click": 0})
        if reply is None:
            unanswered = 1  # Sent while the server was stopping: the next one may find it, and write it.
            break
        told = reply.body.get("error", reply.body)
        ledger.hear(said, 0, told["status"], told.get("seq"))
        codes.append(reply.code)
        if reply.code == 503:
            ready = caller.ask("GET", "/health/ready")
            if ready is None:
                break
            assert ready.code == 503
    caller.close()
    assert 503 in codes
    assert set(codes[: codes.index(503)]) == {201}
    assert set(codes[codes.index(503) :]) == {503}, "nothing is acknowledged after a failed fsync"
    assert stage.wait(pid) == STORE_BROKEN
    pid = stage.start()
    assert fill(stage, ledger, 5) == 201
    stage.audit(ledger)
    assert stage.stop(pid) == 0
    found = stage.judge(ledger)
    assert not found.complaints, str(found)
    failed = int(outcome == "written")
    assert failed <= found.unacked <= failed + unanswered
