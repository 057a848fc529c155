"""A load test: what the service does in a second, how long answers take, and how that compares.

Everything is compared with an empty request to the same server in the same run. Of rates the best of some
rounds is told, of ratios the median, and the spread of both.
"""

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from benchmarks.loadtest.generator import Target
from benchmarks.loadtest.scenarios import (
    BATCH,
    EMPTY,
    FEEDBACK,
    MOST_GATHERED,
    RECOMMEND,
    SINGLE,
    Contestant,
    Progress,
    gathered,
    measure,
    reading,
    writing,
)
from benchmarks.loadtest.server_process import MODEL, Recovered, Shop, recovered, served
from firstclick.errors import InvalidInput
from firstclick.serve.http.auth import is_loopback

MAX_BATCH = 512  # events in one commit, as `firstclick serve` has it
TAIL = 10_000  # events after the last snapshot, as `firstclick serve` makes them
MILLION = 1_000_000
TRIES = 3  # of a recovery with a snapshot, which is short

Rates = Mapping[str, float]


class Demand(NamedTuple):
    """A number, what it was in each round (or at each try), and what is asked of it, if anything."""

    name: str
    value: float
    spread: tuple[float, float]
    at_least: float | None = None
    at_most: float | None = None

    @property
    def met(self) -> bool | None:
        if self.at_least is not None:
            return self.value >= self.at_least
        return None if self.at_most is None else self.value <= self.at_most

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": round(self.value, 4),
            "spread": [round(end, 4) for end in self.spread],
            "at_least": self.at_least,
            "at_most": self.at_most,
            "met": self.met,
        }


@dataclass
class LoadTest:
    """What was measured."""

    contestants: list[Contestant]
    demands: list[Demand]
    notes: list[str]

    def as_json(self) -> dict[str, Any]:
        return {
            "contestants": [one.as_json() for one in self.contestants],
            "demands": [one.as_json() for one in self.demands],
            "notes": self.notes,
        }


class Ratio(NamedTuple):
    """How some contestants compare, from the rates of all, and what is asked of it, if anything."""

    name: str
    needs: frozenset[str]
    value: Callable[[Rates], float]
    at_least: float | None = None


RATIOS = (
    Ratio(
        "recommend / empty", frozenset({RECOMMEND, EMPTY}), lambda rate: rate[RECOMMEND] / rate[EMPTY], 0.5
    ),
    Ratio(
        "feedback / commit batch 1", frozenset({FEEDBACK, SINGLE}), lambda rate: rate[FEEDBACK] / rate[SINGLE]
    ),
    Ratio("feedback / empty", frozenset({FEEDBACK, EMPTY}), lambda rate: rate[FEEDBACK] / rate[EMPTY]),
    Ratio(
        "feedback / lower of (5 x commit batch 1, half of empty)",
        frozenset({FEEDBACK, SINGLE, EMPTY}),
        lambda rate: rate[FEEDBACK] / min(5 * rate[SINGLE], rate[EMPTY] / 2),
        1.0,
    ),
    Ratio(
        "batch call / commit batch 1",
        frozenset({BATCH, SINGLE}),
        lambda rate: rate[BATCH] / rate[SINGLE],
        10.0,
    ),
)


def demands(contestants: Sequence[Contestant]) -> list[Demand]:
    """The ratios that can be told from these contestants: of each round, and the median of these.

    Not of the best rounds: neighbours that come and go would favour one contestant and then another.
    """
    names = [one.name for one in contestants]
    rounds = [
        dict(zip(names, (sample.rate for sample in samples), strict=True))
        for samples in zip(*(one.closed for one in contestants), strict=True)
    ]
    told = []
    for ratio in RATIOS:
        if ratio.needs <= set(names):
            paired = [ratio.value(rates) for rates in rounds]
            told.append(Demand(ratio.name, median(paired), (min(paired), max(paired)), ratio.at_least))
    return told


def recovery(events: int, with_snapshot: Sequence[Recovered], without: Sequence[Recovered]) -> list[Demand]:
    """Seconds to know again what a log of so many events says; what is asked is for a million."""
    told = []
    for name, tries, million in (("with", with_snapshot, 3.0), ("without", without, 40.0)):
        seconds = [one.seconds for one in tries]
        limit = million if events >= MILLION else None
        told.append(
            Demand(
                f"recovery of {events:,} events {name} a snapshot, s", min(seconds),
                (min(seconds), max(seconds)), at_most=limit,
            )
        )  # fmt: skip
    return told


# Runs


def own_server(
    *, seconds: float, rounds: int, share: float, rate: float | None, events: int, folder: str | None,
    n_items: int, progress: Progress,
) -> LoadTest:  # fmt: skip
    """Everything, on servers of our own: one as it comes, and one whose commits hold one event."""
    with tempfile.TemporaryDirectory(prefix="firstclick-load-", dir=folder) as place:
        progress("making shops", 0, 0)
        grouped, single = (Shop(f"{place}/{name}.db", n_items=n_items) for name in ("grouped", "single"))
        notes = [
            f"{n_items:,} items; tokens were made in the load test's process from slates that the untaught "
            "policy recommends, signed as the service signs them",
            f"a write with fsync to {place} takes {fsync_ms(place):.2f} ms",
        ]
        with ExitStack() as servers:
            target = servers.enter_context(served(grouped.path, MAX_BATCH))
            other = servers.enter_context(served(single.path, 1))
            feedback, batch = writing(target, MODEL, grouped.tokens)
            one_by_one = writing(other, MODEL, single.tokens)[0]
            one_by_one.name = SINGLE
            # Feedback first: what is recommended then comes from a policy that has learned.
            contestants = [feedback, *reading(target, MODEL), one_by_one, batch]
            measure(contestants, seconds=seconds, rounds=rounds, share=share, rate=rate, progress=progress)
        told = demands(contestants)
        if events:
            told += _recover(Shop(f"{place}/long.db", n_items=n_items), events, progress)
    order = [EMPTY, RECOMMEND, FEEDBACK, SINGLE, BATCH]
    return LoadTest(sorted(contestants, key=lambda one: order.index(one.name)), told, notes)


def _recover(shop: Shop, events: int, progress: Progress) -> list[Demand]:
    shop.lengthen(events, lambda done, total: progress("making a long log", done, total))
    progress("recovery without a snapshot", 0, 0)
    without = [recovered(shop.path, min(TAIL, events))]
    progress("recovery with a snapshot", 0, 0)
    return recovery(events, [recovered(shop.path) for _ in range(TRIES)], without)


def running_server(
    url: str, *, model: str, key: str | None, feedback: bool, seconds: float, rounds: int, share: float,
    rate: float | None, anywhere: bool, progress: Progress,
) -> LoadTest:  # fmt: skip
    """A server that is there already; clicks are sent only if that is wanted, because it learns from them."""
    target = target_of(url, key, anywhere=anywhere)
    contestants = reading(target, model)
    notes = []
    if feedback:
        contestants += writing(target, model, gathered(target, model), MOST_GATHERED)
        notes.append("tokens were gathered from the server by recommend, before each measurement")
    measure(contestants, seconds=seconds, rounds=rounds, share=share, rate=rate, progress=progress)
    return LoadTest(contestants, demands(contestants), notes)


def target_of(url: str, key: str | None, *, anywhere: bool) -> Target:
    """The server at an address http://host:port; load must not hit strangers."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        parts, host, port = urlsplit(""), None, 0
    if parts.scheme != "http" or not host or parts.path not in ("", "/") or parts.query:
        raise InvalidInput(f"--url must be http://host:port, got {url!r}")
    if not is_loopback(host) and not anywhere:
        raise InvalidInput(
            f"--url {url} is not on this machine; say --anywhere if that server is yours to put under load"
        )
    return Target(host, port, key)


def fsync_ms(folder: str) -> float:
    """How long a small write takes to reach the disk: the median of some."""
    took = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(20):
            began = time.perf_counter()
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
            took.append(time.perf_counter() - began)
    return sorted(took)[len(took) // 2] * 1000
