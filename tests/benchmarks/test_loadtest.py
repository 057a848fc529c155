"""The load test: percentiles and schedules against hand-made times, and short runs against real servers."""

import asyncio
import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import a_server

from benchmarks.loadtest import server_process as load_shop
from benchmarks.loadtest.generator import (
    ClosedLoop,
    OpenLoop,
    Sample,
    Schedule,
    Target,
    load,
    percentile,
    run,
)
from benchmarks.loadtest.run import demands, own_server, recovery, running_server, target_of
from benchmarks.loadtest.scenarios import BATCH, EMPTY, FEEDBACK, RECOMMEND, SINGLE, Contestant, writing
from benchmarks.loadtest.server_process import Recovered, Shop
from firstclick.errors import InvalidInput, WorkFailed
from firstclick.serve.service import open_service

QUICK = {"seconds": 0.05, "rounds": 1, "share": 0.5, "rate": None}


def no_progress(what: str, done: int, total: int) -> None:
    """Nobody looks."""


# Percentiles and schedules


def test_a_percentile_is_a_value_that_the_share_does_not_exceed() -> None:
    thousand = [float(i) for i in range(1, 1001)]
    assert [percentile(thousand, share) for share in (0.5, 0.99, 0.999, 1.0)] == [500, 990, 999, 1000]
    assert [percentile([1.0, 2.0, 9.0], share) for share in (0.0, 0.33, 0.34, 0.5, 0.99)] == [1, 1, 2, 2, 9]
    assert percentile([7.0], 0.999) == 7.0
    assert math.isnan(percentile([], 0.5))


def test_requests_are_due_at_fixed_times() -> None:
    schedule = Schedule(start=100.0, rate=4.0, n=6)
    assert [schedule.due(i) for i in range(6)] == [100.0, 100.25, 100.5, 100.75, 101.0, 101.25]
    times = [99.0, 100.0, 100.2, 100.25, 100.9, 101.25, 500.0]
    assert [schedule.due_by(now) for now in times] == [0, 1, 1, 2, 4, 6, 6]


class HandMade:
    """A connection to nobody: what is sent is written down."""

    def __init__(self) -> None:
        self.since = 0.0
        self.sent: list[bytes] = []

    def send(self, request: bytes, since: float) -> None:
        self.since = since
        self.sent.append(request)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def numbered() -> Iterator[bytes]:
    return (b"%d" % i for i in itertools.count())


def worth_one(code: int, body: bytes) -> int:
    return int(code < 300)


def test_an_open_loop_counts_from_when_a_request_was_due_however_long_the_server_stalls() -> None:
    clock = Clock()
    loop = OpenLoop(numbered(), worth_one, 10.0, clock)
    first, second = HandMade(), HandMade()
    loop.begin([first, second], Schedule(0.0, 10.0, 5))  # type: ignore[list-item]
    loop.tick()
    assert (first.sent, second.sent) == ([b"0"], [])
    clock.now = 0.02
    loop.answered(first, 200, b"")  # type: ignore[arg-type]
    # The server stalls for a second: requests 1 to 4 are due meanwhile, for two of them there is room.
    for clock.now in (0.1, 0.25, 0.5, 0.9):
        loop.tick()
    assert [first.sent, second.sent] == [[b"0", b"2"], [b"1"]]
    clock.now = 1.0
    loop.answered(first, 200, b"")  # type: ignore[arg-type]
    loop.answered(second, 503, b"")  # type: ignore[arg-type]
    assert not loop.finished
    clock.now = 1.01
    loop.answered(first, 200, b"")  # type: ignore[arg-type]
    loop.answered(second, 200, b"")  # type: ignore[arg-type]
    assert loop.finished
    # Request 0 took 0.02 s; 1 and 2 were due at 0.1 and 0.2 and answered at 1; 3 and 4 sent late at that.
    assert sorted(loop.latencies) == pytest.approx([0.02, 0.61, 0.71, 0.8, 0.9])
    assert (loop.done, dict(loop.codes)) == (4, {200: 4, 503: 1})
    sample = loop.sample(1.0)
    assert (sample.rate, sample.refused) == (4.0, 1)


def test_what_is_never_answered_counts_for_as_long_as_it_was_waited_for() -> None:
    clock = Clock()
    loop = OpenLoop(numbered(), worth_one, 10.0, clock)
    connections = [HandMade()]
    loop.begin(connections, Schedule(0.0, 10.0, 3))  # type: ignore[arg-type]
    clock.now = 5.0
    loop.tick()
    assert sorted(loop.unanswered(connections)) == pytest.approx([4.8, 4.9, 5.0])  # type: ignore[arg-type]


# A small server by hand


class Odd(asyncio.Protocol):
    """Answers in pieces, or not at all, or closes."""

    way = "pieces"

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self.way == "close":
            self.transport.close()
        elif self.way == "headless":
            self.transport.write(b"HTTP/1.1 200 OK\r\n\r\n")
        elif self.way == "pieces":
            for piece in (b"HTTP/1.1 201 Created\r\nConte", b"nt-LENGTH: 4\r", b"\n\r\n{", b'"a"'):
                asyncio.get_running_loop().call_soon(self.transport.write, piece)


async def against(way: str, loop: ClosedLoop | OpenLoop, seconds: float) -> Sample:
    server = await asyncio.get_running_loop().create_server(type("Way", (Odd,), {"way": way}), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        return await load(loop, Target("127.0.0.1", port), 3, seconds)


def test_answers_in_pieces_are_put_together() -> None:
    bodies: set[bytes] = set()

    def worth(code: int, body: bytes) -> int:
        bodies.add(body)
        return 2

    sample = run(against("pieces", ClosedLoop(iter([b"x"] * 7), worth), 5.0))
    assert (sample.done, dict(sample.codes), bodies) == (14, {201: 7}, {b'{"a"'})
    assert len(sample.latencies) == 7
    assert sample.unanswered == 0


@pytest.mark.parametrize(
    ("way", "sentence"), [("close", "closed a connection"), ("headless", "Content-Length")]
)
def test_a_server_that_is_none_ends_the_load(way: str, sentence: str) -> None:
    with pytest.raises(WorkFailed, match=sentence):
        run(against(way, ClosedLoop(numbered(), worth_one), 5.0))


def test_a_silent_server_gives_unanswered_requests_and_no_endless_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("benchmarks.loadtest.generator.GRACE", 0.05)
    sample = run(against("silent", OpenLoop(numbered(), worth_one, 100.0), 0.05))
    assert (sample.done, sample.unanswered) == (0, 5)
    assert sample.percentile(0.5) >= 0.05
    assert run(against("silent", ClosedLoop(numbered(), worth_one), 0.05)).unanswered == 3


def test_nobody_listening_is_said() -> None:
    with pytest.raises(WorkFailed, match=r"no connection to 127\.0\.0\.1:1: "):
        run(load(ClosedLoop(numbered(), worth_one), Target("127.0.0.1", 1), 1, 0.1))


# What is asked of the numbers


def contestant(name: str, *rates: float) -> Contestant:
    closed = [Sample(1.0, round(rate), [0.1]) for rate in rates]
    return Contestant(name, Target("h", 1), 1, lambda n: iter(()), worth_one, closed=closed, opened=closed)


def test_demands_are_medians_of_the_ratios_of_each_round() -> None:
    told = {
        one.name: one
        for one in demands(
            [contestant(EMPTY, 1000, 900, 800), contestant(RECOMMEND, 400, 540, 400),
             contestant(FEEDBACK, 300, 200, 200), contestant(SINGLE, 100, 50, 50),
             contestant(BATCH, 999, 450, 450)]
        )
    }  # fmt: skip
    recommend = told["recommend / empty"]
    assert (recommend.value, recommend.spread, recommend.met) == (0.5, (0.4, 0.6), True)
    assert told["feedback / commit batch 1"].value == 4.0
    assert told["feedback / commit batch 1"].met is None
    # Half of empty is 500, and 5 times one by one is 500 too; in the other rounds 250 is lower than 450.
    lower = told["feedback / lower of (5 x commit batch 1, half of empty)"]
    assert (lower.value, lower.spread, lower.met) == (0.8, (0.6, 0.8), False)
    assert told["batch call / commit batch 1"].met is False
    assert [one.name for one in demands([contestant(EMPTY, 10), contestant(RECOMMEND, 4)])] == [
        "recommend / empty"
    ]


def test_recovery_is_asked_for_a_million_events() -> None:
    quick, slow = Recovered(2.5, 4.0, 10**6), Recovered(41.0, 42.0, 10**6)
    assert [one.met for one in recovery(10**6, [quick, slow], [slow])] == [True, False]
    assert [one.met for one in recovery(1000, [quick], [slow])] == [None, None]


# Real servers


def check(found: dict[str, Any], names: list[str]) -> None:
    assert [one["name"] for one in found["contestants"]] == names
    for one in found["contestants"]:
        assert one["rate"] == max(one["rates"]) > 0
        assert len(one["rates"]) == len(one["p99s_ms"]) == QUICK["rounds"]
        assert 0 < one["p50_ms"] <= one["p99_ms"] <= one["p999_ms"]
        assert one["refused"] == one["unanswered"] == 0
        assert one["offered"] > 0


@pytest.mark.long
def test_a_running_server(tmp_path: Path) -> None:
    with a_server(tmp_path) as server:
        how: dict[str, Any] = {**QUICK, "model": "shop", "key": None, "anywhere": False}
        before = server._service.model("shop").seq
        found = running_server(server.address, feedback=False, progress=no_progress, **how).as_json()
        check(found, [EMPTY, RECOMMEND])
        assert [one["name"] for one in found["demands"]] == ["recommend / empty"]
        assert server._service.model("shop").seq == before
        found = running_server(server.address, feedback=True, progress=no_progress, **how).as_json()
        check(found, [EMPTY, RECOMMEND, FEEDBACK, BATCH])
        # All that was counted as done is in the log.
        assert (
            server._service.outcomes["shop"]["accepted"] == server._service.model("shop").seq - before > 500
        )
        with pytest.raises(WorkFailed, match=r"recommend: nothing was done; the server answered .* x 404"):
            running_server(server.address, feedback=False, progress=no_progress, **how | {"model": "none"})


@pytest.mark.long
def test_servers_of_our_own_and_recovery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_shop, "N_SLATES", 20)
    monkeypatch.setattr("benchmarks.loadtest.run.TRIES", 1)
    steps: list[tuple[str, int, int]] = []
    found = own_server(
        **QUICK, events=300, n_items=120, folder=str(tmp_path),
        progress=lambda *step: steps.append(step),
    ).as_json()  # fmt: skip
    check(found, [EMPTY, RECOMMEND, FEEDBACK, SINGLE, BATCH])
    assert [one["name"] for one in found["demands"]] == [
        "recommend / empty",
        "feedback / commit batch 1",
        "feedback / empty",
        "feedback / lower of (5 x commit batch 1, half of empty)",
        "batch call / commit batch 1",
        "recovery of 300 events with a snapshot, s",
        "recovery of 300 events without a snapshot, s",
    ]
    assert all(one["value"] > 0 for one in found["demands"])
    assert ("feedback, batch call, latency", 15, 15) in steps
    assert list(tmp_path.iterdir()) == []


def test_a_long_log_is_what_the_service_would_have_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_shop, "N_SLATES", 20)
    monkeypatch.setattr(load_shop, "TOGETHER", 40)
    shop = Shop(str(tmp_path / "shop.db"), n_items=120)
    shop.lengthen(100)
    tokens = shop.tokens(3)
    without = load_shop.recovered(shop.path, tail=30)
    assert without.events == 101
    assert 0 < without.seconds < without.with_start
    with open_service(shop.path) as service:
        model = service.model("shop")
        assert (model.seq, model.click_stats.slates) == (101, 100)
        assert [seq for seq, _ in service.store.snapshots(model.id)] == [71]
        assert {service.feedback("shop", *one).status for one in tokens} == {"accepted"}


# Bad input


@pytest.mark.parametrize(
    "url",
    ["https://127.0.0.1:8000", "127.0.0.1:8000", "http://", "http://127.0.0.1:x", "http://localhost/v1"],
)
def test_an_address_is_http_host_and_port(url: str) -> None:
    with pytest.raises(InvalidInput, match="--url must be http://host:port, got"):
        target_of(url, None, anywhere=True)


@pytest.mark.parametrize(
    "host", ["example.com", "10.0.0.1", "0.0.0.0", "[2001:db8::1]", "localhost.example.com"]
)
def test_load_does_not_hit_strangers(host: str) -> None:
    with pytest.raises(InvalidInput, match="is not on this machine; say --anywhere"):
        target_of(f"http://{host}:8000", None, anywhere=False)
    assert target_of(f"http://{host}:8000", None, anywhere=True).port == 8000
    assert target_of("http://[::1]:8000", "fc_x", anywhere=False) == Target("::1", 8000, "fc_x")
    assert b"Host: [::1]:8000\r\nAuthorization: Bearer fc_x\r\n" in Target("::1", 8000, "fc_x").post("/", b"")


def test_only_what_was_accepted_counts_as_done() -> None:
    single, batch = writing(Target("127.0.0.1", 1), "shop", lambda n: [], most=5000)
    assert single.worth(201, b'{"status":"accepted","seq":4}') == 1
    assert single.worth(200, b'{"status":"duplicate","seq":4}') == 0
    assert (
        batch.worth(200, b'{"results":[{"status":"accepted"},{"status":"expired"},{"status":"accepted"}]}')
        == 2
    )
    assert batch.worth(503, b'{"error":{"status":"accepted"}}') == 0
    # No measurement takes more tokens than there may be.
    assert (single.limit, batch.limit * batch.entries) == (5000, 5000)
