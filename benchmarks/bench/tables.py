"""What a benchmark compares, in numbers: tables for the terminal, one sentence, and JSON."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from benchmarks.bench.peers.process import PEERS
from benchmarks.bench.results import FLOOR, PASS, PLAIN, POLICY, SCAN, TUNED, Bench, Measured, PeerMeasured
from benchmarks.bench.slopes import growth
from firstclick.rounding import MISSING, microseconds, whole

FORMAT = "firstclick bench 2"
MAIN_POLICY = "cascade-lin-ts"

Value = Callable[[Measured], float | None]


def times(ratio: float | None) -> str:
    """A ratio as people read it, two digits: '0.93', '1.0', '2.7', '55', '1,325'."""
    if ratio is None or not ratio > 0:
        return MISSING
    decimals = _second_digit(round(ratio, _second_digit(ratio)))  # 0.996 rounds up to 1.0, one digit longer
    return f"{ratio:,.{max(0, decimals)}f}"


def _second_digit(ratio: float) -> int:
    return 1 - math.floor(math.log10(ratio))


@dataclass(frozen=True)
class Ratio:
    """One comparison: its heading in the terminal, its name in JSON, its heading on the page, its value."""

    short: str
    name: str
    title: str
    value: Value


RATIOS = (
    Ratio("x floor", "times_floor",
          "Times its floor (draw and learn, without ranking): lower is better",
          lambda cell: cell.times_floor),
    Ratio("scan", "times_faster_than_scan",
          "Times faster than the compiled dense scan",
          lambda cell: cell.ratio(SCAN)),
    Ratio("1 pass", "times_faster_than_one_pass",
          "Times faster than one pass over the features, the limit of any scan",
          lambda cell: cell.ratio(PASS)),
    Ratio("NumPy", "times_faster_than_plain_numpy",
          "Times faster than plain NumPy, the paper's pseudo-code",
          lambda cell: cell.ratio(PLAIN)),
    Ratio("tuned", "times_faster_than_tuned_numpy",
          "Times faster than tuned NumPy",
          lambda cell: cell.ratio(TUNED)),
)  # fmt: skip

# As the page calls them.
CONTENDERS = {
    POLICY: "policy", FLOOR: "floor", SCAN: "scan", PASS: "one pass", PLAIN: PLAIN, TUNED: TUNED,
}  # fmt: skip


def how_to_read(bench: Bench) -> str:
    """What stands above the tables of the terminal."""
    return (
        f"One core of '{bench.machine}'.\n"
        "Lower is better: µs/step, and x floor, how many times as long as its floor.\n"
        "Higher is better: how many times faster than the scan, 1 pass over the features,\n"
        "plain NumPy and tuned NumPy; below 1 is slower."
    )


def bench_tables(bench: Bench) -> list[tuple[str, Table]]:
    """For the terminal, 80 columns: a heading and a table for each number of features and places."""
    found = []
    for d, k in dict.fromkeys((cell.n_features, cell.k) for cell in bench.cells):
        table = _table("policy")
        for heading in ("items", "µs/step", *(ratio.short for ratio in RATIOS)):
            table.add_column(heading, justify="right", no_wrap=True)
        for cell in sorted(bench.cells, key=lambda cell: (cell.policy, cell.n_items)):
            if (cell.n_features, cell.k) == (d, k):
                ratios = [times(ratio.value(cell)) for ratio in RATIOS]
                table.add_row(Text(cell.policy), whole(cell.n_items), microseconds(cell.seconds), *ratios)
        found.append((f"{d} features, {k} places", table))
    if bench.peers:
        against = has_main(bench)
        table = _table("peer")
        for heading in ("items", "µs/step", *["slower"] * against):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("", overflow="fold")
        for peer in bench.peers:
            shown = microseconds(peer.seconds) if peer.seconds else MISSING
            slower = [times(slower_than_us(bench, peer))] * against
            table.add_row(
                Text(PEERS[peer.peer].title), whole(peer.n_items), shown, *slower, Text(peer.failure)
            )
        words = f" (slower: times as long as {MAIN_POLICY})" if against else ""
        found.append((f"Peers, {bench.n_features} features, {bench.k} places{words}", table))
    return found


def has_main(bench: Bench) -> bool:
    """Whether there is a time of CascadeLinTS to compare peers with."""
    return any(cell.policy == MAIN_POLICY for cell in bench.main)


def _table(first: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(first, overflow="fold")
    return table


def slower_than_us(bench: Bench, peer: PeerMeasured) -> float | None:
    """How many times as long as CascadeLinTS the peer takes on the same catalog."""
    cell = bench.cell(MAIN_POLICY, peer.n_items)
    return None if cell is None or peer.seconds is None else peer.seconds / cell.seconds


def headline(bench: Bench, n_items: int = 3000) -> str:
    """CascadeLinTS against NumPy and the fastest peer, in a sentence; '' where it was not measured."""
    cell = bench.cell(MAIN_POLICY, n_items)
    if cell is None:
        return ""
    said = (
        f"{MAIN_POLICY} with {n_items:,} items takes {microseconds(cell.seconds)} µs a step: "
        f"{times(cell.times_floor)} times its floor, {times(cell.ratio(SCAN))} times faster than the scan, "
        f"{times(cell.ratio(PLAIN))} than plain NumPy, {times(cell.ratio(TUNED))} than tuned NumPy"
    )
    timed = [peer for peer in bench.peers if peer.n_items == n_items and peer.seconds]
    if timed:
        nearest = min(timed, key=lambda peer: peer.seconds or 0.0)
        said += (
            f", {times(slower_than_us(bench, nearest))} than the fastest peer, {PEERS[nearest.peer].title}"
        )
    return said + "."


def as_plain(bench: Bench) -> dict[str, Any]:
    """Everything, for JSON."""
    return {
        "format": FORMAT,
        **{name: value for name, value in asdict(bench).items() if name not in ("cells", "peers")},
        "cells": [
            asdict(cell) | {"ratios": {ratio.name: ratio.value(cell) for ratio in RATIOS}}
            for cell in bench.cells
        ],
        "peers": [
            asdict(peer) | {"times_as_long_as_cascade_lin_ts": slower_than_us(bench, peer)}
            for peer in bench.peers
        ],
        "growth": [asdict(one) for one in growth(bench.cells, bench.n_features, bench.k)],
    }
