"""How long do others wait beside a large request?

    python -m benchmarks.waits [--items 100000] [--events 100000] [--seconds 5] [--only 'put;audit']

A server process with two models: `small`, 1,000 items, and `large`, with a long log. Steady requests go to
`small` (recommend) and to /health/live; a few recommends go to `large`, because its users do not stop either.
Beside them another process sends one large request after the other for some seconds. Latency counts from
when a request was due, if the server left no connection free to send it. `alone` is measured before each
large request, so that a machine that others use slows both.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import multiprocessing
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import deque
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from benchmarks.loadtest.generator import Connection, Target, percentile, run
from firstclick.catalog.item import Item
from firstclick.registry import DEFAULT_POLICY
from firstclick.serve.log.events import Kind, NewEvent, feedback_payload
from firstclick.serve.log.token import new_nonce
from firstclick.serve.service import open_service
from firstclick.streams import stream

N_SMALL, N_FEATURES, K = 1000, 6, 10
SEED = 1
RATES = {"live": 50.0, "small": 200.0, "large": 5.0}  # requests a second
CONNECTIONS = 32
ALONE = 3.0
CANDIDATES = 20_001
MEGABYTES = 60
JSON, OCTETS = "application/json", "application/octet-stream"


# The store


def features(n, name):
    """Rows of a norm of about 1, in three digits: 20,001 of them fit into a megabyte."""
    rows = stream(SEED, "waits", name).normal(0, N_FEATURES**-0.5, (n, N_FEATURES))
    return rows.round(2)


def make_store(place, policy, n_items, n_events):
    """Two models; the large one has answered so many slates."""
    with open_service(str(place)) as service:
        for name, n in (("small", N_SMALL), ("large", n_items)):
            items = [Item(f"i{row}", f"Item {row}", "", one) for row, one in enumerate(features(n, name))]
            service.create(name, policy=policy, k=K, items=items, seed=SEED)
        model = service.model("large")
        slates = [model.recommend(number).rows.astype("<u4").tobytes() for number in range(100)]
        draw = stream(SEED, "waits", "clicks")
        for start in range(0, n_events, 5000):
            now = time.time()
            ms = int(now * 1000)
            clicks = draw.integers(-1, K, 5000).tolist()
            service.store.append(
                [
                    (model.id, NewEvent(Kind.FEEDBACK, new_nonce(ms), feedback_payload(click, ms, rows), now))
                    for rows, click in zip(
                        itertools.islice(itertools.cycle(slates), min(5000, n_events - start)),
                        [None if click < 0 else click for click in clicks],
                        strict=False,
                    )
                ]
            )


# Steady requests


class Steady:
    """Requests at fixed times, each over a free connection, or as soon as there is one."""

    def __init__(self, request, rate):
        self.request, self.rate = request, rate
        self.latencies, self.refused = [], 0
        self._due = time.perf_counter()
        self._waiting, self._idle, self._busy = deque(), deque(), set()

    async def connect(self, target):
        loop = asyncio.get_running_loop()
        for _ in range(CONNECTIONS):
            _, made = await loop.create_connection(
                lambda: Connection(self.answered), target.host, target.port
            )
            self._idle.append(made)

    def tick(self, now):
        while self._due <= now:
            # The client's own delay is no fault of the server's: what can be sent counts from now.
            self._waiting.append(self._due if not self._idle else now)
            self._due += 1 / self.rate
        self._send()
        return self._due

    def _send(self):
        while self._waiting and self._idle:
            connection = self._idle.popleft()
            self._busy.add(connection)
            connection.send(self.request, self._waiting.popleft())

    def answered(self, connection, code, body):
        self.latencies.append(time.perf_counter() - connection.since)
        self.refused += code >= 300
        self._busy.discard(connection)
        self._idle.append(connection)
        self._send()

    def close(self):
        now = time.perf_counter()
        # They took at least so long: to leave them out would flatter the server.
        self.latencies += [now - since for since in (*(one.since for one in self._busy), *self._waiting)]
        for connection in (*self._idle, *self._busy):
            connection.close()


async def play(target, done, grace=10.0):
    """The steady requests until `done()`, and until all are answered."""
    slate = b"{}"
    host = f"Host: {target.host}:{target.port}\r\n\r\n"
    steady = {
        "live": Steady(f"GET /health/live HTTP/1.1\r\n{host}".encode(), RATES["live"]),
        "small": Steady(target.post("/v1/models/small/recommend", slate), RATES["small"]),
        "large": Steady(target.post("/v1/models/large/recommend", slate), RATES["large"]),
    }
    for one in steady.values():
        await one.connect(target)
    while not done():
        next_due = min(one.tick(time.perf_counter()) for one in steady.values())
        await asyncio.sleep(max(0.0, min(next_due - time.perf_counter(), 0.05)))
    end = time.perf_counter() + grace
    while any(one._busy for one in steady.values()) and time.perf_counter() < end:
        await asyncio.sleep(0.01)
    for one in steady.values():
        one.close()
    return {name: sorted(one.latencies) for name, one in steady.items()}


# Large requests, from a process of its own


def asker(pipe, host, port, place):
    """Sends what it is told to send, and tells the codes and seconds."""
    while (told := pipe.recv()) is not None:
        what, seconds = told
        began, codes = time.perf_counter(), []
        while time.perf_counter() - began < seconds:
            codes.append(SCENARIOS[what](host, port, place))
        pipe.send((codes, (time.perf_counter() - began) / len(codes)))


def send(host, port, method, path, body=None, media=JSON):
    """The code and the body of the answer; 0 if the connection ends."""
    connection = HTTPConnection(host, port, timeout=300)
    try:
        with contextlib.suppress(OSError):  # Refused before all of it was sent.
            connection.request(method, path, body, {"Content-Type": media} if body is not None else {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, HTTPException):
        return 0, b""
    finally:
        connection.close()


def batch_of_60_mb(host, port, place):
    return send(host, port, "POST", "/v1/models/large/feedback:batch", place.joinpath("batch").read_bytes())[
        0
    ]


def batch_of_1000(host, port, place):
    return send(host, port, "POST", "/v1/models/large/feedback:batch", place.joinpath("small").read_bytes())[
        0
    ]


def put(host, port, place):
    return send(host, port, "POST", "/v1/models/large/items:bulk", place.joinpath("put").read_bytes())[0]


def malformed_put(host, port, place):
    """60 MB, the last item of which is wrong."""
    return send(host, port, "POST", "/v1/models/large/items:bulk", place.joinpath("wrong").read_bytes())[0]


def candidates(host, port, place):
    return send(host, port, "POST", "/v1/models/large/recommend", place.joinpath("candidates").read_bytes())[
        0
    ]


def audit(host, port, place):
    return send(host, port, "GET", "/v1/models/large/audit")[0]


def export(host, port, place):
    code, content = send(host, port, "GET", "/v1/models/large/export")
    place.joinpath("exported").write_bytes(content)
    return code


def import_(host, port, place):
    name = f"imported-{time.time_ns()}"
    content = place.joinpath("exported").read_bytes()
    return send(host, port, "POST", f"/v1/models/{name}/import", content, OCTETS)[0]


def snapshot(host, port, place):
    """An event every half second: this server makes a snapshot after each, at most one a second."""
    token = json.loads(send(host, port, "POST", "/v1/models/large/recommend", b"{}")[1])["token"]
    body = json.dumps({"token": token, "click": 0}).encode()
    time.sleep(0.5)
    return send(host, port, "POST", "/v1/models/large/feedback", body)[0]


def fold(host, port, place):
    """A model appears in the store, as another process would have made it, and is taken up."""
    name = f"copy-{time.time_ns()}"
    connection = sqlite3.connect(place / "shop.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "INSERT INTO model (name, head) SELECT ?, head FROM model WHERE name = 'large'", (name,)
    )
    connection.execute(
        "INSERT INTO event SELECT (SELECT id FROM model WHERE name = ?), seq, kind, nonce, payload, received "
        "FROM event WHERE model = (SELECT id FROM model WHERE name = 'large')",
        (name,),
    )
    connection.execute("COMMIT")
    connection.close()
    while (code := send(host, port, "GET", f"/v1/models/{name}")[0]) == 404:
        time.sleep(0.1)
    return code


SCENARIOS = {
    "batch body of 60 MB": batch_of_60_mb,
    "batch of 1,000": batch_of_1000,
    "put": put,
    "malformed put of 60 MB": malformed_put,
    "20,001 candidates": candidates,
    "audit": audit,
    "export": export,
    "import": import_,
    "fold": fold,
    "snapshot": snapshot,
}


def make_bodies(place, n_items):
    entry = {"token": "A" * 160, "click": 3}
    n = MEGABYTES * 1_000_000 // (len(json.dumps(entry)) + 2)
    place.joinpath("batch").write_text(json.dumps({"feedback": [entry] * n}))
    place.joinpath("small").write_text(json.dumps({"feedback": [entry] * 1000}))
    table = stream(SEED, "waits", "put").normal(0, N_FEATURES**-0.5, (n_items, N_FEATURES))
    items = [
        {"id": f"i{row}", "name": f"Item {row}, put again", "group": f"group {row % 50}", "features": one}
        for row, one in enumerate(table.tolist())
    ]
    text = json.dumps({"put": items})
    place.joinpath("put").write_text(text)
    times = MEGABYTES * 1_000_000 // len(text)
    place.joinpath("wrong").write_text(json.dumps({"put": [*items * times, {"id": []}]}))
    chosen = features(CANDIDATES, "candidates").tolist()
    asked = {"candidates": [f"i{row}" for row in range(CANDIDATES)], "features": chosen}
    place.joinpath("candidates").write_text(json.dumps(asked, separators=(",", ":")))


# The server


class Served:
    """`firstclick serve` on the store, in a process of its own."""

    def __init__(self, place, *flags):
        self.child = subprocess.Popen(
            [sys.executable, "-m", "firstclick", "serve", "--store", str(place), "--port", "0", *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )
        said = []
        while not (found := re.search(r"http://([\d.]+):(\d+)", "".join(said))):
            line = self.child.stdout.readline()
            if not line:
                raise SystemExit(f"the server did not start: {''.join(said)}")
            said.append(line)
        self.target = Target(found[1], int(found[2]))

    def stop(self):
        self.child.send_signal(signal.SIGTERM)
        self.child.communicate(timeout=60)


def measure(what, target, place, seconds):
    """The latencies alone and beside it, its codes, and its seconds."""
    spawn = multiprocessing.get_context("spawn")
    mine, its = spawn.Pipe()
    child = spawn.Process(target=asker, args=(its, target.host, target.port, place), daemon=True)
    child.start()
    # Its imports are over when it can answer.
    mine.send(("batch of 1,000", 0.01))
    mine.recv()
    end = time.perf_counter() + ALONE
    alone = run(play(target, lambda: time.perf_counter() >= end))
    mine.send((what, seconds))
    beside = run(play(target, mine.poll))
    codes, each = mine.recv()
    mine.send(None)
    child.join()
    return alone, beside, codes, each


def shown(what, alone, beside, codes, each):
    """A line of the table."""
    p99 = [percentile(one["small"], 0.99) for one in (alone, beside)]
    return (
        f"| {what} | {sorted(set(codes))} x {len(codes)}, {each:.2f} s | "
        f"{1e3 * alone['live'][-1]:.0f}, {1e3 * beside['live'][-1]:.0f} | "
        f"{1e3 * percentile(alone['small'], 0.5):.1f} / {1e3 * p99[0]:.1f} | "
        f"{1e3 * percentile(beside['small'], 0.5):.1f} / {1e3 * p99[1]:.1f} | {p99[1] / p99[0]:.1f} | "
        f"{1e3 * beside['large'][-1]:.0f} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policy", default=DEFAULT_POLICY)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--only", default="", help="names of large requests, with semicolons")
    given = parser.parse_args()
    chosen = given.only.split(";") if given.only else list(SCENARIOS)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        make_bodies(place, given.items)
        make_store(place / "shop.db", given.policy, given.items, given.events)
        print(
            f"{given.policy}, {given.items:,} items and {given.events:,} events in the large model; ms\n\n"
            "| beside | answered | longest /health/live alone, beside | recommend alone, p50 / p99 "
            "| beside, p50 / p99 | p99, ratio | longest recommend of the large model |\n"
            "|---|---|---|---|---|---|---|",
            flush=True,
        )
        for flags, its in (((), chosen[:]), (("--snapshot-events", "1"), ["snapshot"])):
            names = [what for what in its if what in chosen and (what == "snapshot") == bool(flags)]
            if names:
                served = Served(place / "shop.db", *flags)
                try:
                    for what in names:
                        print(shown(what, *measure(what, served.target, place, given.seconds)), flush=True)
                finally:
                    served.stop()


if __name__ == "__main__":
    main()
