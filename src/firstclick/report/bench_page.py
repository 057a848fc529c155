"""A benchmark as tables: in the terminal, as a page of Markdown and as JSON."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from firstclick.bench.measure import MOST_STEPS, ROUNDS
from firstclick.bench.peers.process import PEERS
from firstclick.bench.results import FLOOR, LEARNER, PASS, PLAIN, SCAN, TUNED, Bench, Measured, PeerMeasured
from firstclick.bench.slopes import FEWEST_POINTS, MANY_ITEMS, growth
from firstclick.report.rounding import MISSING, microseconds, whole

FORMAT = "firstclick bench 1"
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
          "Times its floor (drawing its thetas and learning, without ranking anything): lower is better",
          lambda cell: cell.times_floor),
    Ratio("scan", "times_faster_than_scan",
          "Times faster than the compiled dense scan, which shows the same slates",
          lambda cell: cell.ratio(SCAN)),
    Ratio("1 pass", "times_faster_than_one_pass",
          "Times faster than one pass over the feature matrix, the limit of any scan",
          lambda cell: cell.ratio(PASS)),
    Ratio("NumPy", "times_faster_than_plain_numpy",
          "Times faster than plain NumPy, written line by line from the paper's pseudo-code",
          lambda cell: cell.ratio(PLAIN)),
    Ratio("tuned", "times_faster_than_tuned_numpy",
          "Times faster than tuned NumPy: Cholesky factors of LAPACK, partition, nothing computed twice",
          lambda cell: cell.ratio(TUNED)),
)  # fmt: skip

# As the page calls them.
CONTENDERS = {
    LEARNER: "learner", FLOOR: "floor", SCAN: "scan", PASS: "one pass", PLAIN: PLAIN, TUNED: TUNED,
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
        table = _table("learner")
        for heading in ("items", "µs/step", *(ratio.short for ratio in RATIOS)):
            table.add_column(heading, justify="right", no_wrap=True)
        for cell in sorted(bench.cells, key=lambda cell: (cell.policy, cell.n_items)):
            if (cell.n_features, cell.k) == (d, k):
                ratios = [times(ratio.value(cell)) for ratio in RATIOS]
                table.add_row(Text(cell.policy), whole(cell.n_items), microseconds(cell.seconds), *ratios)
        found.append((f"{d} features, {k} places", table))
    if bench.peers:
        against = _has_main(bench)
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


def _has_main(bench: Bench) -> bool:
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


def bench_page(bench: Bench, picture: str) -> str:
    """The page in Markdown; `picture` is the name of the picture beside it."""
    lines = [
        "# Benchmarks",
        "",
        f"Measured on {bench.date}: {bench.machine}; "
        + ", ".join(f"{name} {version}" for name, version in bench.versions.items())
        + ". One core. The command:",
        "",
        "```",
        bench.command,
        "```",
        "",
        "L is the number of items, d the number of features of each, K the number of places of a slate. "
        "Times differ between machines; the ratios are what to compare.",
        *(["", headline(bench)] if headline(bench) else []),
        "",
        f"![The time of a step, drawn]({picture})",
        "",
        f"## Learners, d = {bench.n_features}, K = {bench.k}",
        "",
        "Microseconds of a step: recommend, click, learn.",
        "",
        *_by_items(bench.main, lambda cell: microseconds(cell.seconds)),
        *_without_features(bench),
    ]
    for ratio in RATIOS:
        if any(ratio.value(cell) is not None for cell in bench.main):
            lines += [ratio.title + ".", "", *_by_items(bench.main, _as_times(ratio.value))]
    lines += [*_other_features(bench), *_other_places(bench), *_growth(bench), *_peers(bench), *_how(bench)]
    return "\n".join(lines)


def _without_features(bench: Bench) -> list[str]:
    """Why some learners have no ratio to a floor and to one pass."""
    names = dict.fromkeys(cell.policy for cell in bench.main if not cell.reads_features)
    if not names:
        return []
    return [
        f"Without features are {', '.join(f'`{name}`' for name in names)}. Who reads none has nothing to do "
        f"with one pass over them, and a floor of a few nanoseconds of counting: {MISSING} stands for both.",
        "",
    ]


def _as_times(value: Value) -> Callable[[Measured], str]:
    return lambda cell: times(value(cell))


def _markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table whose first column is words and whose others are numbers."""
    rule = ["---", *["---:"] * (len(headings) - 1)]
    return [f"| {' | '.join(row)} |" for row in (headings, rule, *rows)] + [""]


def _by_items(cells: Sequence[Measured], text: Callable[[Measured], str]) -> list[str]:
    sizes = sorted({cell.n_items for cell in cells})
    rows = []
    for policy in dict.fromkeys(cell.policy for cell in cells):
        own = {cell.n_items: text(cell) for cell in cells if cell.policy == policy}
        rows.append([f"`{policy}`", *(own.get(size, MISSING) for size in sizes)])
    return _markdown(["L =", *(whole(size) for size in sizes)], rows)


def _other_features(bench: Bench) -> list[str]:
    cells = [cell for cell in bench.cells if cell.k == bench.k]
    varied = [p for p in dict.fromkeys(cell.policy for cell in cells)
              if len({cell.n_features for cell in cells if cell.policy == p}) > 1]  # fmt: skip
    if not varied:
        return []
    lines = [
        "## Other numbers of features",
        "",
        "Microseconds of a step; in brackets, times faster than the scan.",
    ]
    for policy in varied:
        own = [cell for cell in cells if cell.policy == policy]
        sizes = sorted({cell.n_items for cell in own})
        rows = []
        for d in sorted({cell.n_features for cell in own}):
            found = {cell.n_items: cell for cell in own if cell.n_features == d}
            rows.append([f"{d}", *(
                _in_brackets(found[size].seconds, found[size].ratio(SCAN)) if size in found else MISSING
                for size in sizes
            )])  # fmt: skip
        lines += ["", f"`{policy}`:", "", *_markdown(["d \\ L", *(whole(size) for size in sizes)], rows)[:-1]]
    return [*lines, ""]


def _other_places(bench: Bench) -> list[str]:
    swept = [cell for cell in bench.cells if cell.n_features == bench.n_features]
    n_items = {cell.n_items for cell in swept if cell.k != bench.k}
    if not n_items:
        return []
    swept = [cell for cell in swept if cell.n_items in n_items]
    places = sorted({cell.k for cell in swept})
    rows = []
    for policy in dict.fromkeys(cell.policy for cell in swept):
        own = {cell.k: cell for cell in swept if cell.policy == policy}
        rows.append([f"`{policy}`", *(
            _in_brackets(own[k].seconds, own[k].times_floor) if k in own else MISSING
            for k in places
        )])  # fmt: skip
    return [
        f"## Other numbers of places, L = {whole(min(n_items))}, d = {bench.n_features}",
        "",
        "Microseconds of a step; in brackets, times its floor.",
        "",
        *_markdown(["K =", *map(str, places)], rows),
    ]


def _growth(bench: Bench) -> list[str]:
    found = growth(bench.cells, bench.n_features, bench.k)
    if not found:
        return []
    rows = [
        [f"`{one.policy}`", one.size, f"{whole(one.sizes[0])} to {whole(one.sizes[-1])}; {one.where}",
         *(f"{round(p, 2) + 0.0:.2f}".replace("-", "−") for p in (one.learner, one.scan))]
        for one in found
    ]  # fmt: skip
    return [
        "## How cost grows",
        "",
        "The p of time = constant x size^p, fitted to all points on a log-log scale: 0 is no growth, 1 is in "
        f"proportion. Only from {FEWEST_POINTS} sizes or more, and from {MANY_ITEMS} items or more. A scan's "
        "p in L may exceed 1, because a catalog that has outgrown a cache is read more slowly.",
        "",
        *_markdown(["learner", "size", "from, to", "learner's p", "scan's p"], rows),
    ]


def _peers(bench: Bench) -> list[str]:
    if not bench.peers:
        return []
    brackets = f"; in brackets, how many times as long as `{MAIN_POLICY}`" if _has_main(bench) else ""
    lines = [
        "## Peers",
        "",
        f"A step with the same L, d = {bench.n_features} and K = {bench.k}, in the same world, each library "
        f"used as its own documentation recommends. Microseconds of a step{brackets}.",
        "",
    ]
    sizes = sorted({peer.n_items for peer in bench.peers})
    names = list(dict.fromkeys(peer.peer for peer in bench.peers))
    rows = []
    for name in names:
        own = {peer.n_items: peer for peer in bench.peers if peer.peer == name}
        rows.append([PEERS[name].title, *(_of_peer(bench, own[size]) for size in sizes)])
    lines += _markdown(["L =", *(whole(size) for size in sizes)], rows)
    for name in names:
        version = next(peer.version for peer in bench.peers if peer.peer == name)
        remark = f"; {PEERS[name].remark}" if PEERS[name].remark else ""
        steps = [peer.steps for peer in bench.peers if peer.peer == name and peer.seconds is not None]
        played = f"; at least {min(steps):,} step{'s' * (min(steps) > 1)}" if steps else ""
        lines.append(f"- **{PEERS[name].title}** {version}: {PEERS[name].used}{remark}{played}.")
    return [*lines, ""]


def _of_peer(bench: Bench, peer: PeerMeasured) -> str:
    if peer.seconds is None:
        return peer.failure
    return _in_brackets(peer.seconds, slower_than_us(bench, peer))


def _in_brackets(seconds: float, ratio: float | None) -> str:
    """'6.6 (2.1)', or the time alone."""
    return microseconds(seconds) + ("" if ratio is None else f" ({times(ratio)})")


def _how(bench: Bench) -> list[str]:
    compared = [cell.slates_compared for cell in bench.cells]
    steps = {
        said: min(cell.timings[name].steps for cell in bench.cells if name in cell.timings)
        for name, said in CONTENDERS.items() if any(name in cell.timings for cell in bench.cells)
    }  # fmt: skip
    return [
        "## How it was measured",
        "",
        "The world is `long-tail`, one of those that `firstclick simulate` plays in: a catalog with a few "
        "popular items, a long tail and features that fade. Everybody plays from the first step: "
        f"{MOST_STEPS:,} steps, or as many as fit into a share of time, and the mean over them counts. The "
        f"contenders of a cell (one learner with one L, d and K) take turns, {ROUNDS} rounds, and the best "
        "of each counts. Compiling, building the index and making the world are not part of a step. The scan "
        "is the same loop on a catalog without shortcuts; its slates were compared with the learner's, "
        f"{min(compared):,} or more in each cell, {sum(compared):,} in all, and all are equal.",
        "",
        "Steps that each contender played at least, in any cell: "
        + ", ".join(f"{said} {fewest:,}" for said, fewest in steps.items())
        + ".",
        "",
        "Times are the processor's, so that others on the machine count little."
        + (" A peer has a process of its own with one thread, a limit of time for its start and its steps "
           "together, and a limit of address space." if bench.peers else ""),
        "",
    ]  # fmt: skip
