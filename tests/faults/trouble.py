"""What each endpoint answers in trouble: real servers, one kind each; the table of docs/troubleshooting.md.

python -m tests.faults.trouble    # writes the table
"""

import os
import re
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

from firstclick.serve.http.server import STORE_BROKEN
from tests.faults.crash import Stage, Zygote
from tests.support.stores import Server

PAGE = Path(__file__).parents[2] / "docs" / "troubleshooting.md"
MODEL = "/v1/models/shop"
HEALTH = ("/health/live", "/health/ready", "/health/ready/recommend", "/health/ready/feedback")
COLUMNS = (
    "trouble", "`live`", "`ready`", "`ready/recommend`", "`ready/feedback`", "recommend", "feedback",
    "`/metrics`",
)  # fmt: skip
Trouble = Callable[[Stage], Iterator[None]]


def click(stage, times=1):
    """Feedback, so many times, or until it is refused; the last code."""
    code = 0
    for _ in range(times):
        token = stage.ask("POST", f"{MODEL}/recommend", {}).body["token"]
        code = stage.ask("POST", f"{MODEL}/feedback", {"token": token, "click": 0}).code
        if code == 503:
            break
    return code


def all_is_well(stage):
    """nothing is wrong"""
    stage.start(probe_seconds=0.05)
    stage.wait_until(200)
    yield


def full_disk(stage):
    """full disk, or quota"""
    pid = stage.start(file_most=300_000, checkpoint_pages=100_000, probe_seconds=0.05)
    assert click(stage, 1000) == 503
    yield
    assert stage.stop(pid) == 0


def read_only(stage):
    """read-only disk"""
    pid = stage.start(broken=["read_only_while_a_file_says_so"], probe_seconds=0.05)
    stage.wait_until(200)
    mark = Path(stage.url).with_name("read-only")
    mark.touch()
    yield
    mark.unlink()
    # By itself, and not because somebody sends feedback.
    stage.wait_until(200, "/health/ready/feedback")
    assert click(stage) == 201
    assert stage.stop(pid) == 0


def foreign_lock(stage):
    """another program holds the write lock"""
    stage.start(busy_seconds=0.1, probe_seconds=0.05)
    stage.wait_until(200)
    foreign = sqlite3.connect(stage.url, isolation_level=None)
    foreign.execute("BEGIN IMMEDIATE")
    yield
    foreign.close()


def missing_store(stage):
    """store's file removed while in use (the server ends with code 74 after the refused feedback)"""
    pid = stage.start(probe_seconds=0.05)
    stage.wait_until(200)
    Path(stage.url).unlink()
    yield
    assert stage.wait(pid) == STORE_BROKEN


def second_server(stage):
    """second server on the file (it does not start; the first)"""
    pid = stage.start(probe_seconds=0.05)
    stage.wait_until(200)
    assert stage.wait(stage.start()) == 70
    assert f"in use by process {pid}" in stage.said()
    yield


def damaged_snapshot(stage):
    """damaged snapshots (the log is folded instead, with a warning)"""
    pid = stage.start()
    assert click(stage, 45) == 201
    assert stage.stop(pid) == 0
    with sqlite3.connect(stage.url) as connection:
        changed = connection.execute("UPDATE snapshot SET content = zeroblob(100)").rowcount
    connection.close()
    assert changed > 0
    stage.start(probe_seconds=0.05)
    stage.wait_until(200)
    assert "is not used" in stage.said()
    assert stage.ask("GET", f"{MODEL}/audit").body["equal"]
    yield


def cut_wal(stage):
    """write-ahead log cut short (what was in the rest is gone)"""
    pid = stage.start()
    stage.wait_until(200)
    assert stage.stop(pid) == 0
    pid = stage.start(checkpoint_pages=100_000)
    assert click(stage, 20) == 201
    os.kill(pid, signal.SIGKILL)
    assert stage.wait(pid) == -signal.SIGKILL
    log = Path(f"{stage.url}-wal")
    os.truncate(log, log.stat().st_size // 2)
    stage.start(probe_seconds=0.05)
    stage.wait_until(200)
    told = stage.ask("GET", f"{MODEL}/audit").body
    assert told["equal"]
    assert told["seq"] < 21
    yield


ON_SQLITE = [
    all_is_well, full_disk, read_only, foreign_lock, missing_store, second_server, damaged_snapshot, cut_wal,
]  # fmt: skip


def no_database(stage, server):
    """PostgreSQL is away"""
    stage.start(probe_seconds=0.05)
    stage.wait_until(200)
    server.stop()
    stage.wait_until(503)
    yield
    server.start()
    stage.wait_until(200, seconds=30)


def line(stage, trouble, about):
    """The line of the table: what a server in this trouble answers."""
    with contextmanager(trouble)():
        feedback_works = about.startswith(("nothing", "second", "damaged", "write-ahead"))
        # Nobody sends feedback meanwhile: the server finds out by itself.
        stage.wait_until(200 if feedback_works else 503, HEALTH[-1])
        replies = [stage.ask("GET", path) for path in HEALTH]
        shown = stage.ask("POST", f"{MODEL}/recommend", {})
        metrics = _code(stage, "/metrics")
        told = stage.ask("POST", f"{MODEL}/feedback", {"token": shown.body["token"], "click": None})
        cells = []
        for reply in (*replies, shown, told):
            reason = reply.body.get("error", {}).get("reason", "")
            cells.append(f"{reply.code} {reason}".strip())
    return f"| {' | '.join([about, *cells, str(metrics)])} |"


def _code(stage, path):
    """Of an answer that is no JSON."""
    connection = HTTPConnection("127.0.0.1", stage.port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def of_sqlite(trouble, zygote, folder):
    """The line of a trouble with a file."""
    with Stage(zygote, str(folder / "shop.db"), folder) as stage:
        return line(stage, lambda: trouble(stage), str(trouble.__doc__))


def of_postgresql(zygote, server, folder):
    """The line of a database that is away."""
    with Stage(zygote, server.new_database(), folder) as stage:
        return line(stage, lambda: no_database(stage, server), str(no_database.__doc__))


def main():
    zygote, server = Zygote(), Server()
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    try:
        for trouble in ON_SQLITE:
            with tempfile.TemporaryDirectory() as folder:
                lines.append(of_sqlite(trouble, zygote, Path(folder)))
        with tempfile.TemporaryDirectory() as folder:
            lines.append(of_postgresql(zygote, server, Path(folder)))
    finally:
        zygote.close()
        server.close()
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(
        re.sub(r"\| trouble \|.*?\n\n", lambda _: "\n".join(lines) + "\n\n", text, flags=re.DOTALL),
        encoding="utf-8",
    )
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
