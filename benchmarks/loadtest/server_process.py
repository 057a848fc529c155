"""The load test's own shop: made-up items in a temporary store, served by a child process.

python -m benchmarks.loadtest.server_process serve STORE MAX_BATCH  # says its address, ends with stdin
python -m benchmarks.loadtest.server_process recover STORE [TAIL]        # says how long it took
"""

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from benchmarks.loadtest.generator import Target
from firstclick.catalog.item import Item
from firstclick.errors import WorkFailed
from firstclick.registry import make_world
from firstclick.serve.config import Settings
from firstclick.serve.http.server import Server
from firstclick.serve.log.events import Kind, NewEvent, feedback_payload
from firstclick.serve.log.token import Token, new_nonce
from firstclick.serve.model.replay import catch_up, recover
from firstclick.serve.service import Service, open_service
from firstclick.serve.store import open_store
from firstclick.streams import stream

MODEL = "shop"
POLICY = "cascade-lin-ts"
N_ITEMS, N_FEATURES, K = 10_000, 32, 10
SEED = 1
# Slates that the untaught policy recommends; each is answered many times, under a new nonce each time.
N_SLATES = 1000
# Events in one transaction while a long log is made.
TOGETHER = 5000


class Answered(NamedTuple):
    """A token, and which position was clicked first."""

    token: str
    click: int | None


class Shop:
    """A model in a store, as the load test knows it: what it recommends, and what people click."""

    def __init__(self, path: str, *, n_items: int = N_ITEMS, k: int = K) -> None:
        """Make the store. It is closed then, for a server to open; a closed service can still recommend."""
        world = make_world(f"long-tail:n_items={n_items},n_features={N_FEATURES}").build(SEED)
        features = world.features
        assert features is not None
        self.path = path
        items = [Item(f"i{row}", f"Item {row}", "", features[row]) for row in range(n_items)]
        with open_service(path) as service:
            service.create(MODEL, policy=POLICY, k=k, items=items, seed=SEED, scale=False)
            self._service: Service = service
            self._model = service.model(MODEL)
        self._draw = stream(SEED, "load", "clicks")
        slates = np.array([self._model.recommend(number).rows for number in range(N_SLATES)])
        self._slates = [rows.astype("<u4").tobytes() for rows in slates]
        attraction: NDArray[np.float64] = np.maximum(features @ world.theta, 0.0)  # type: ignore[attr-defined]
        self._attraction = attraction[slates]

    def slates(self) -> Iterator[tuple[bytes, int | None]]:
        """Rows of a recommended slate, and the position that somebody clicked first: none, mostly."""
        while True:
            chosen = self._draw.integers(0, N_SLATES, TOGETHER)
            attracted = self._draw.random((TOGETHER, self._attraction.shape[1])) < self._attraction[chosen]
            first = np.where(attracted.any(axis=1), attracted.argmax(axis=1), -1)
            for slate, click in zip(chosen.tolist(), first.tolist(), strict=True):
                yield self._slates[slate], None if click < 0 else click

    def tokens(self, n: int) -> list[Answered]:
        """Fresh tokens for slates that were recommended in this process, signed as the service signs them."""
        issued_ms = int(time.time() * 1000)
        return [
            Answered(
                self._service.keys.sign(Token(self._model.id, issued_ms, new_nonce(issued_ms), rows)), click
            )
            for rows, click in itertools.islice(self.slates(), n)
        ]

    def lengthen(self, n: int, progress: Callable[[int, int], None] = lambda done, total: None) -> None:
        """Put `n` pieces of feedback into the log, without a server."""
        store = open_store(self.path)
        slates = self.slates()
        try:
            for done in range(0, n, TOGETHER):
                now = time.time()
                ms = int(now * 1000)
                store.append(
                    [
                        (
                            self._model.id,
                            NewEvent(Kind.FEEDBACK, new_nonce(ms), feedback_payload(click, ms, rows), now),
                        )
                        for rows, click in itertools.islice(slates, min(TOGETHER, n - done))
                    ]
                )
                progress(min(n, done + TOGETHER), n)
        finally:
            store.close()


def _child(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.loadtest.server_process", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


def _told(child: "subprocess.Popen[str]", what: str) -> Any:
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        raise WorkFailed(f"{what} ended with code {child.wait()} before it said anything; see above")
    return json.loads(line)


@contextmanager
def served(path: str, max_batch: int) -> Iterator[Target]:
    """A server of its own process on this store."""
    child = _child("serve", path, str(max_batch))
    try:
        yield Target(*_told(child, "the server"))
    finally:
        _end(child)


def _end(child: "subprocess.Popen[str]") -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.close()
    try:
        child.wait(timeout=20)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    child.stdout.close()


class Recovered(NamedTuple):
    """How long a new process took to read the log."""

    seconds: float
    events: int


def recovered(path: str, tail: int | None = None) -> Recovered:
    """Recovery in a new process: with the snapshots there are, or, with `tail`, without any.

    In the second case a snapshot is kept in the end, as it would have been made `tail` events before.
    """
    child = _child("recover", path, *([] if tail is None else [str(tail)]))
    try:
        seconds, events = _told(child, "recovery")
        return Recovered(seconds, events)
    finally:
        _end(child)


# In the child


def _serve(path: str, max_batch: int) -> None:
    settings = Settings(store=path, port=0, max_batch=max_batch)
    with open_service(path, max_batch=max_batch) as service:
        server = Server(service, settings)

        def wait_for_the_end() -> None:
            sys.stdin.read()
            server.stop()

        threading.Thread(target=wait_for_the_end, daemon=True).start()
        address = urlsplit(server.address)
        _say((address.hostname, address.port))
        server.run()


def _recover(path: str, tail: int | None) -> None:
    began = time.perf_counter()
    if tail is None:
        with open_service(path) as service:
            seconds, seq = time.perf_counter() - began, service.model(MODEL).seq
    else:
        store = open_store(path)
        (stored,) = store.models()
        model = recover(store, stored._replace(head=max(1, stored.head - tail)), use_snapshots=False)
        seconds = time.perf_counter() - began
        snapshot = model.snapshot()
        again = time.perf_counter()
        catch_up(store, model, stored.head)
        seconds, seq = seconds + time.perf_counter() - again, model.seq
        store.save_snapshot(stored.id, *snapshot)
        store.close()
    _say((seconds, seq))


def _say(told: Any) -> None:
    os.write(sys.stdout.fileno(), json.dumps(told).encode() + b"\n")


if __name__ == "__main__":
    what, store_path, *numbers = sys.argv[1:]
    if what == "serve":
        _serve(store_path, int(numbers[0]))
    else:
        _recover(store_path, int(numbers[0]) if numbers else None)
