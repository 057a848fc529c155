"""The table of docs/troubleshooting.md: what each endpoint answers in trouble, asked of real servers.

`pytest --update-messages` writes its lines again.
"""

import os
import sqlite3
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from firstclick.serve.http.server import STORE_BROKEN
from tests.faults.crash import Stage

PAGE = Path(__file__).parents[2] / "docs" / "troubleshooting.md"
MODEL = "/v1/models/shop"
HEALTH = ("/health/live", "/health/ready", "/health/ready/recommend", "/health/ready/feedback")


def click(stage, times=1):
    """Send feedback, so many times, or until it is refused; return the last code."""
    code = 0
    for _ in range(times):
        token = stage.ask("POST", f"{MODEL}/recommend", {}).body["token"]
        code = stage.ask("POST", f"{MODEL}/feedback", {"token": token, "click": 0}).code
        if code == 503:
            break
    return code


def all_is_well(stage):
    """nothing is wrong"""
    stage.start_ready(probe_seconds=0.05)
    yield


def full_disk(stage):
    """full disk, or quota"""
    pid = stage.start(file_most=300_000, checkpoint_pages=100_000, probe_seconds=0.05)
    assert click(stage, 1000) == 503
    yield
    assert stage.stop(pid) == 0


def read_only(stage):
    """read-only disk"""
    pid = stage.start_ready(broken=["read_only_while_a_file_says_so"], probe_seconds=0.05)
    mark = Path(stage.url).with_name("read-only")
    mark.touch()
    yield
    mark.unlink()
    # By itself, and not because a client sends feedback.
    stage.wait_until(200, "/health/ready/feedback")
    assert click(stage) == 201
    assert stage.stop(pid) == 0


def foreign_lock(stage):
    """another program holds the write lock"""
    stage.start_ready(busy_seconds=0.1, probe_seconds=0.05)
    foreign = sqlite3.connect(stage.url, isolation_level=None)
    foreign.execute("BEGIN IMMEDIATE")
    yield
    foreign.close()


def missing_store(stage):
    """store's file removed while in use (the server ends with code 74 after the refused feedback)"""
    pid = stage.start_ready(probe_seconds=0.05)
    Path(stage.url).unlink()
    yield
    assert stage.wait(pid) == STORE_BROKEN


def second_server(stage):
    """second server on the file (it does not start; the first)"""
    pid = stage.start_ready(probe_seconds=0.05)
    assert stage.wait(stage.start()) == 70
    assert f"in use by process {pid}" in stage.said()
    yield


def damaged_snapshot(stage):
    """damaged snapshots (the log is replayed instead, with a warning)"""
    pid = stage.start()
    assert click(stage, 45) == 201
    assert stage.stop(pid) == 0
    with sqlite3.connect(stage.url) as connection:
        changed = connection.execute("UPDATE snapshot SET content = zeroblob(100)").rowcount
    connection.close()
    assert changed > 0
    stage.start_ready(probe_seconds=0.05)
    assert "is not used" in stage.said()
    assert stage.ask("GET", f"{MODEL}/audit").body["equal"]
    yield


def cut_wal(stage):
    """write-ahead log cut short (what was in the rest is gone)"""
    assert stage.stop(stage.start_ready()) == 0
    pid = stage.start(checkpoint_pages=100_000)
    assert click(stage, 20) == 201
    stage.kill(pid)
    log = Path(f"{stage.url}-wal")
    os.truncate(log, log.stat().st_size // 2)
    stage.start_ready(probe_seconds=0.05)
    audit = stage.ask("GET", f"{MODEL}/audit").body
    assert audit["equal"]
    assert audit["seq"] < 21
    yield


ON_SQLITE = [
    all_is_well, full_disk, read_only, foreign_lock, missing_store, second_server, damaged_snapshot, cut_wal,
]  # fmt: skip


def no_database(stage, server):
    """PostgreSQL is away"""
    stage.start_ready(probe_seconds=0.05)
    server.stop()
    stage.wait_until(503)
    yield
    server.start()
    stage.wait_until(200, seconds=30)


def check_line(stage, trouble, request, *arguments):
    """Compare a line of the table with what a server in this trouble answers."""
    about = trouble.__doc__
    with contextmanager(trouble)(stage, *arguments):
        feedback_works = about.startswith(("nothing", "second", "damaged", "write-ahead"))
        # No client sends feedback meanwhile: the server finds out by itself.
        stage.wait_until(200 if feedback_works else 503, HEALTH[-1])
        replies = [stage.ask("GET", path) for path in HEALTH]
        slate = stage.ask("POST", f"{MODEL}/recommend", {})
        metrics = httpx.get(f"http://127.0.0.1:{stage.port}/metrics").status_code
        feedback = {"token": slate.body["token"], "click": None}
        replies += [slate, stage.ask("POST", f"{MODEL}/feedback", feedback)]
    cells = [f"{reply.code} {reply.body.get('error', {}).get('reason', '')}".strip() for reply in replies]
    line = f"| {' | '.join([about, *cells, str(metrics)])} |"
    page = PAGE.read_text(encoding="utf-8")
    (written,) = (written for written in page.splitlines() if written.startswith(f"| {about} |"))
    if request.config.getoption("--update-messages"):
        PAGE.write_text(page.replace(written, line), encoding="utf-8")
        written = line
    assert line == written, "write the table again by --update-messages"


@pytest.mark.parametrize("trouble", ON_SQLITE, ids=lambda trouble: trouble.__name__)
def test_the_table_says_what_a_server_answers(trouble, stage, request):
    check_line(stage, trouble, request)


@pytest.mark.long
def test_the_table_says_what_is_answered_without_the_database(zygote, postgresql, tmp_path, request):
    with Stage(zygote, postgresql.new_database(), tmp_path) as stage:
        check_line(stage, no_database, request, postgresql)


def test_the_table_has_no_other_lines():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    table = lines[next(number for number, line in enumerate(lines) if line.startswith("| trouble |")) :]
    assert [line.split(" | ")[0] for line in table[2 : table.index("")]] == [
        f"| {trouble.__doc__}" for trouble in (*ON_SQLITE, no_database)
    ]
