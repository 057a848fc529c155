"""Contestants of a load test: kinds of requests, each measured in turn with the others.

Machines are noisy, and neighbours come and go: so all run in turn, for several rounds. Throughput is measured
in a closed loop, latency in an open one at a part of that throughput (`generator` says why).
"""

import itertools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.loadtest.generator import ClosedLoop, OpenLoop, Sample, Target, load, run
from benchmarks.loadtest.server_process import Answered
from firstclick.errors import WorkFailed

EMPTY, RECOMMEND, FEEDBACK = "empty", "recommend", "feedback"
SINGLE, BATCH = "feedback, commit batch 1", "feedback, batch call"

FEW, MANY = 64, 256  # connections: of most contestants, and of feedback, so that commits have company
BATCH_CALLS = 8
ENTRIES = 500  # in one batch call
WARM_UP, WARM_UP_DONE = 0.3, 2000  # seconds, and things done, at most
# Tokens made for one measurement at most: it ends early when they are used up.
MOST_TOKENS = 400_000
MOST_GATHERED = 20_000  # the same of a server elsewhere, which has to recommend each of them
GATHER_SECONDS = 60.0

Progress = Callable[[str, int, int], None]
Tokens = Callable[[int], list[Answered]]


@dataclass
class Contestant:
    """One kind of request, and what was measured of it in each round."""

    name: str
    target: Target
    connections: int
    requests: Callable[[int], Iterator[bytes]]  # so many; those that can be repeated give more
    worth: Callable[[int, bytes], int]
    entries: int = 1  # things that one request does
    limit: int = 10**9  # requests that can be made for one measurement
    closed: list[Sample] = field(default_factory=list)
    opened: list[Sample] = field(default_factory=list)
    offered: float = 0.0  # requests a second in the open loop

    @property
    def rate(self) -> float:
        """Things done a second in the best round."""
        return max(sample.rate for sample in self.closed)

    @property
    def best(self) -> Sample:
        """The open loop's round with the lowest p99."""
        return min(self.opened, key=lambda sample: sample.percentile(0.99))

    def as_json(self) -> dict[str, Any]:
        p99 = [_ms(sample.percentile(0.99)) for sample in self.opened]
        return {
            "name": self.name,
            "connections": self.connections,
            "rate": round(self.rate, 1),
            "rates": [round(sample.rate, 1) for sample in self.closed],
            "offered": round(self.offered * self.entries, 1),
            "p50_ms": _ms(self.best.percentile(0.5)),
            "p99_ms": _ms(self.best.percentile(0.99)),
            "p999_ms": _ms(self.best.percentile(0.999)),
            "p99s_ms": p99,
            "refused": sum(sample.refused for sample in (*self.closed, *self.opened)),
            "unanswered": sum(sample.unanswered for sample in (*self.closed, *self.opened)),
        }


def _done(code: int, body: bytes) -> int:
    return int(code < 300)


def _accepted(code: int, body: bytes) -> int:
    return body.count(b'"accepted"') if code < 300 else 0


def _repeated(target: Target, path: str) -> Callable[[int], Iterator[bytes]]:
    request = target.post(path, b"{}")
    return lambda n: itertools.repeat(request)


def _entry(answered: Answered) -> dict[str, Any]:
    return {"token": answered.token, "click": answered.click}


def _feedback(target: Target, path: str, tokens: Tokens) -> Callable[[int], Iterator[bytes]]:
    def requests(n: int) -> Iterator[bytes]:
        return iter([target.post(path, json.dumps(_entry(one)).encode()) for one in tokens(n)])

    return requests


def _batches(target: Target, path: str, tokens: Tokens) -> Callable[[int], Iterator[bytes]]:
    def requests(n: int) -> Iterator[bytes]:
        entries = [_entry(one) for one in tokens(n * ENTRIES)]
        parts = [entries[at : at + ENTRIES] for at in range(0, len(entries), ENTRIES)]
        return iter([target.post(path, json.dumps({"feedback": part}).encode()) for part in parts])

    return requests


def reading(target: Target, model: str) -> list[Contestant]:
    """Those that write nothing."""
    return [
        Contestant(EMPTY, target, FEW, _repeated(target, "/v1/empty"), _done),
        Contestant(RECOMMEND, target, FEW, _repeated(target, f"/v1/models/{model}/recommend"), _done),
    ]


def writing(target: Target, model: str, tokens: Tokens, most: int = MOST_TOKENS) -> list[Contestant]:
    """Those that send feedback."""
    path = f"/v1/models/{model}/feedback"
    return [
        Contestant(FEEDBACK, target, MANY, _feedback(target, path, tokens), _accepted, limit=most),
        Contestant(
            BATCH, target, BATCH_CALLS, _batches(target, f"{path}:batch", tokens), _accepted,
            entries=ENTRIES, limit=most // ENTRIES,
        ),
    ]  # fmt: skip


def gathered(target: Target, model: str) -> Tokens:
    """Tokens of a server that is not ours: it recommends each of them, while nothing is measured."""
    request = target.post(f"/v1/models/{model}/recommend", b"{}")

    def tokens(n: int) -> list[Answered]:
        found: list[Answered] = []

        def keep(code: int, body: bytes) -> int:
            if code != 200:
                raise_later.append(body[:200].decode("utf-8", "replace"))
                return 0
            found.append(Answered(json.loads(body)["token"], None))
            return 1

        raise_later: list[str] = []
        run(load(ClosedLoop(itertools.repeat(request, n), keep), target, FEW, GATHER_SECONDS))
        if raise_later:
            raise WorkFailed(f"the server recommends nothing: {raise_later[0]}")
        return found

    return tokens


# Measurements


def measure(
    contestants: Sequence[Contestant], *, seconds: float, rounds: int, share: float, rate: float | None,
    progress: Progress,
) -> None:  # fmt: skip
    """All contestants in turn: first as fast as they go, then at their part of that, or at `rate`."""
    n_steps = len(contestants) * (2 * rounds + 1)
    steps = itertools.count(1)
    for one in contestants:
        progress(f"warming up: {one.name}", next(steps), n_steps)
        one.closed = [_closed(one, min(WARM_UP, seconds), WARM_UP_DONE // one.entries)]
        _refuse_failures(one)
    guesses = {one.name: one.closed.pop().rate for one in contestants}
    for _ in range(rounds):
        for one in contestants:
            progress(one.name, next(steps), n_steps)
            # Half as much again as the best so far: the warm-up was no good guess.
            best = max([guesses[one.name] * 2, *(sample.rate for sample in one.closed)])
            one.closed.append(_closed(one, seconds, math.ceil(1.5 * best * seconds / one.entries)))
    for one in contestants:
        one.offered = one.rate * share / one.entries if rate is None else rate / one.entries
        one.offered = min(one.offered, one.limit / seconds)
    for _ in range(rounds):
        for one in contestants:
            progress(f"{one.name}, latency", next(steps), n_steps)
            one.opened.append(_opened(one, seconds))


def _closed(one: Contestant, seconds: float, n: int) -> Sample:
    requests = one.requests(max(1, min(n, one.limit)))
    return run(load(ClosedLoop(requests, one.worth), one.target, one.connections, seconds))


def _opened(one: Contestant, seconds: float) -> Sample:
    requests = one.requests(math.ceil(one.offered * seconds) + 1)
    return run(load(OpenLoop(requests, one.worth, one.offered), one.target, one.connections, seconds))


def _refuse_failures(one: Contestant) -> None:
    sample = one.closed[-1]
    if not sample.done:
        codes = ", ".join(f"{n} x {code}" for code, n in sample.codes.items()) or "no answer"
        raise WorkFailed(f"{one.name}: nothing was done; the server answered {codes}")


def _ms(seconds: float) -> float | None:
    return None if math.isnan(seconds) else round(seconds * 1000, 3)
