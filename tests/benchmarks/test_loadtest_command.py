"""`python -m benchmarks.loadtest`: tables and JSON of a server, and what it refuses."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from firstclick.catalog.item import Item
from firstclick.serve.config import Settings
from firstclick.serve.http.server import Server
from firstclick.serve.service import open_service

QUICK = ("--seconds", 0.05, "--rounds", 1)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A server with a small shop."""
    items = [Item(f"i{i}", features=np.array([1.0, i / 9])) for i in range(9)]
    with open_service(str(tmp_path / "shop.db")) as service:
        service.create("shop", policy="cascade-lin-ts", k=3, items=items, seed=1)
        with Server(service, Settings(port=0)) as server:
            yield server.address


def test_a_table_of_a_server(run, address):
    seen = run("loadtest", "--url", address, "--model", "shop", *QUICK)
    assert seen.code == 0, seen.err
    assert seen.out.startswith("Throughput a second, and latency in ms at 50% of the throughput.")
    assert re.search(r"^ +a second +p50 +p99 +p99\.9", seen.out, re.M)
    assert re.search(r"^empty +[\d,]+ +\([\d,]+–[\d,]+\)( +[\d.]+){3} +\([\d.]+–[\d.]+\)", seen.out, re.M)
    assert re.search(r"^recommend / empty +\d\.\d\d +\(.*\) +at least 0\.5 +(yes|NO)", seen.out, re.M)
    assert "feedback" not in seen.out


def test_json_of_a_server_with_feedback(run, address):
    seen = run("loadtest", "--url", address, "--model", "shop", "--feedback", "--rate", 200, "--json", *QUICK)
    assert seen.code == 0, seen.err
    told = json.loads(seen.out)
    assert [one["name"] for one in told["contestants"]] == [
        "empty", "recommend", "feedback", "feedback, batch call",
    ]  # fmt: skip
    assert {one["offered"] for one in told["contestants"]} == {200}
    assert told["notes"] == ["tokens were gathered from the server by recommend, before each measurement"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--seconds", 0], "--seconds must be above 0 and at most 600, got 0"),
        (["--seconds", "nan"], "--seconds must be above 0 and at most 600, got nan"),
        (["--seconds", "soon"], "--seconds must be a number, got 'soon'"),
        (["--rounds", 0], "--rounds must be at least 1, got 0"),
        (["--events", -1], "--events must be at least 0, got -1"),
        (["--items", 5], "--items must be at least 100, got 5"),
        (["--share", 0], "--share must be above 0 and at most 2, got 0"),
        (["--rate", 0], "--rate must be above 0 and at most 1,000,000, got 0"),
        (["--folder", "nowhere"], "--folder nowhere is not there; name a folder that is"),
        (["--feedback"], "--feedback goes with --url, a server that is running"),
        (["--anywhere"], "--anywhere goes with --url, a server that is running"),
        (["--url", "ftp://localhost"], "--url must be http://host:port, got 'ftp://localhost'"),
        (
            ["--url", "http://example.com"],
            "--url http://example.com is not on this machine; say --anywhere if that server is yours to put "
            "under load",
        ),
        (
            ["--url", "http://localhost:1", "--folder", "."],
            "--folder goes with a server of our own; leave it out, or --url",
        ),
    ],
)
def test_bad_input_is_one_sentence(run, arguments, sentence):
    seen = run("loadtest", *arguments)
    assert (seen.code, seen.out, seen.err) == (2, "", f"error: {sentence}\n")


def test_a_server_that_is_not_there_is_failed_work(run):
    seen = run("loadtest", "--url", "http://127.0.0.1:1", *QUICK)
    assert seen.code == 1
    assert re.fullmatch(
        r"error: no connection to 127\.0\.0\.1:1: .*; is a server running there\?\n", seen.err
    )
