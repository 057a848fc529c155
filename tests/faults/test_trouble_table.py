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
from tests.faults.crash import ServerUnderTest

PAGE = Path(__file__).parents[2] / "docs" / "troubleshooting.md"
MODEL = "/v1/models/shop"
HEALTH = ("/health/live", "/health/ready", "/health/ready/recommend", "/health/ready/feedback")


def click(server, times=1):
    """Send feedback, so many times, or until it is refused; return the last code."""
    code = 0
    for _ in range(times):
        token = server.ask("POST", f"{MODEL}/recommend", {}).body["token"]
        code = server.ask("POST", f"{MODEL}/feedback", {"token": token, "click": 0}).code
        if code == 503:
            break
    return code


def healthy(server):
    """nothing is wrong"""
    server.start_ready(probe_seconds=0.05)
    yield


def full_disk(server):
    """full disk, or quota"""
    pid = server.start(file_most=300_000, checkpoint_pages=100_000, probe_seconds=0.05)
    assert click(server, 1000) == 503
    yield
    assert server.stop(pid) == 0


def read_only(server):
    """read-only disk"""
    pid = server.start_ready(broken=["read_only_while_a_file_says_so"], probe_seconds=0.05)
    mark = Path(server.url).with_name("read-only")
    mark.touch()
    yield
    mark.unlink()
    # By itself, and not because a client sends feedback.
    server.wait_until(200, "/health/ready/feedback")
    assert click(server) == 201
    assert server.stop(pid) == 0


def foreign_lock(server):
    """another program holds the write lock"""
    server.start_ready(busy_seconds=0.1, probe_seconds=0.05)
    foreign = sqlite3.connect(server.url, isolation_level=None)
    foreign.execute("BEGIN IMMEDIATE")
    yield
    foreign.close()


def missing_store(server):
    """store's file removed while in use (the server ends with code 74 after the refused feedback)"""
    pid = server.start_ready(probe_seconds=0.05)
    Path(server.url).unlink()
    yield
    assert server.wait(pid) == STORE_BROKEN


def second_server(server):
    """second server on the file (it does not start; the first)"""
    pid = server.start_ready(probe_seconds=0.05)
    assert server.wait(server.start()) == 70
    assert f"in use by process {pid}" in server.said()
    yield


def damaged_snapshot(server):
    """damaged snapshots (the log is replayed instead, with a warning)"""
    pid = server.start()
    assert click(server, 45) == 201
    assert server.stop(pid) == 0
    with sqlite3.connect(server.url) as connection:
        changed = connection.execute("UPDATE snapshot SET content = zeroblob(100)").rowcount
    connection.close()
    assert changed > 0
    server.start_ready(probe_seconds=0.05)
    assert "is not used" in server.said()
    assert server.ask("GET", f"{MODEL}/audit").body["equal"]
    yield


def cut_wal(server):
    """write-ahead log cut short (what was in the rest is gone)"""
    assert server.stop(server.start_ready()) == 0
    pid = server.start(checkpoint_pages=100_000)
    assert click(server, 20) == 201
    server.kill(pid)
    log = Path(f"{server.url}-wal")
    os.truncate(log, log.stat().st_size // 2)
    server.start_ready(probe_seconds=0.05)
    audit = server.ask("GET", f"{MODEL}/audit").body
    assert audit["equal"]
    assert audit["seq"] < 21
    yield


ON_SQLITE = [
    healthy, full_disk, read_only, foreign_lock, missing_store, second_server, damaged_snapshot, cut_wal,
]  # fmt: skip


def no_database(server, postgresql):
    """PostgreSQL is away"""
    server.start_ready(probe_seconds=0.05)
    postgresql.stop()
    server.wait_until(503)
    yield
    postgresql.start()
    server.wait_until(200, seconds=30)


def check_line(server, trouble, request, *arguments):
    """Compare a line of the table with what a server in this trouble answers."""
    about = trouble.__doc__
    with contextmanager(trouble)(server, *arguments):
        feedback_works = about.startswith(("nothing", "second", "damaged", "write-ahead"))
        # No client sends feedback meanwhile: the server finds out by itself.
        server.wait_until(200 if feedback_works else 503, HEALTH[-1])
        replies = [server.ask("GET", path) for path in HEALTH]
        slate = server.ask("POST", f"{MODEL}/recommend", {})
        metrics = httpx.get(f"http://127.0.0.1:{server.port}/metrics").status_code
        feedback = {"token": slate.body["token"], "click": None}
        replies += [slate, server.ask("POST", f"{MODEL}/feedback", feedback)]
    cells = [f"{reply.code} {reply.body.get('error', {}).get('reason', '')}".strip() for reply in replies]
    line = f"| {' | '.join([about, *cells, str(metrics)])} |"
    page = PAGE.read_text(encoding="utf-8")
    (written,) = (written for written in page.splitlines() if written.startswith(f"| {about} |"))
    if request.config.getoption("--update-messages"):
        PAGE.write_text(page.replace(written, line), encoding="utf-8")
        written = line
    assert line == written, "write the table again by --update-messages"


@pytest.mark.parametrize("trouble", ON_SQLITE, ids=lambda trouble: trouble.__name__)
def test_table_has_what_a_server_answers(trouble, server, request):
    check_line(server, trouble, request)


@pytest.mark.long
def test_table_has_what_is_answered_without_the_database(zygote, postgresql, tmp_path, request):
    with ServerUnderTest(zygote, postgresql.new_database(), tmp_path) as server:
        check_line(server, no_database, request, postgresql)


def test_table_has_no_other_lines():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    table = lines[next(number for number, line in enumerate(lines) if line.startswith("| trouble |")) :]
    assert [line.split(" | ")[0] for line in table[2 : table.index("")]] == [
        f"| {trouble.__doc__}" for trouble in (*ON_SQLITE, no_database)
    ]
