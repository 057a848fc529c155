"""What it costs to record in each token what its slate was drawn from.

    python -m benchmarks.recording

One service in this process, 1,500 items with 8 features, slates of 6, the default policy. Blocks of requests
that record and blocks that do not take turns; a ratio is that of two neighbouring blocks, in processor time.
"""

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import typer

from firstclick.catalog.item import Item
from firstclick.serve.log.drawn import Drawn
from firstclick.serve.service import Service, open_service

N_ITEMS, N_FEATURES, K = 1500, 8, 6
BLOCK = 300


def main(rounds: int = 40) -> None:
    """Print one line for each kind of request."""
    draw = np.random.default_rng(1)
    features = draw.normal(size=(N_ITEMS, N_FEATURES))
    items = [Item(f"item {n}", "", "", features[n].tolist()) for n in range(N_ITEMS)]
    some = random.Random(1).sample([str(item.id) for item in items], 200)
    with tempfile.TemporaryDirectory() as folder, open_service(str(Path(folder) / "shop.db")) as service:
        service.create("shop", policy="cascade-mixed", k=K, items=items, seed=1)
        for _ in range(300):
            service.feedback("shop", service.recommend("shop"), 0)
        service.put_list("shop", "some", some)
        print(f"{'request':30} {'us':>6} {'ratio':>6}   quartiles   token")
        for title, asked in (
            ("plain", {}),
            ("k and a request id", {"k": 5}),
            ("200 candidates by id", {"candidates": some}),
            ("200 candidates by name", {"candidates": "some"}),
            ("200 items excluded by id", {"exclude": some}),
        ):
            _line(service, title, asked, rounds)


def _line(service: Service, title: str, asked: dict[str, Any], rounds: int) -> None:
    numbers = iter(range(10**9))
    named = "request id" in title

    def ask() -> None:
        given = asked | ({"request_id": f"{title} {next(numbers)}"} if named else {})
        service.recommend("shop", **given)

    ratios, best = [], float("inf")
    for turn in range(rounds):
        seconds = {}
        for recorded in (True, False) if turn % 2 else (False, True):
            with patch.object(Drawn, "packed", Drawn.packed if recorded else lambda self, n: (b"", "")):
                service.model("shop")._ready.clear()  # They were made ahead, in the block before.
                seconds[recorded] = _seconds(ask)
        ratios.append(seconds[True] / seconds[False])
        best = min(best, seconds[True])
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    service.model("shop")._ready.clear()
    token = len(service.recommend("shop", **asked).token)
    print(f"{title:30} {best / BLOCK * 1e6:6.0f} {middle:6.2f}   {low:.2f} to {high:.2f}  {token:6}")


def _seconds(ask: Callable[[], None]) -> float:
    started = time.thread_time()
    for _ in range(BLOCK):
        ask()
    return time.thread_time() - started


if __name__ == "__main__":
    typer.run(main)
