"""A benchmark as a page of Markdown."""

from collections.abc import Callable, Sequence

from benchmarks.bench.measure import MOST_STEPS, ROUNDS
from benchmarks.bench.peers.process import PEERS
from benchmarks.bench.results import SCAN, Bench, Measured, PeerMeasured
from benchmarks.bench.slopes import FEWEST_POINTS, MANY_ITEMS, growth
from benchmarks.bench.tables import (
    CONTENDERS,
    MAIN_POLICY,
    RATIOS,
    Value,
    has_main,
    headline,
    slower_than_us,
    times,
)
from firstclick.rounding import MISSING, microseconds, whole


def bench_page(bench: Bench, picture: str) -> str:
    """The page in Markdown; `picture` is the name of the picture beside it."""
    lines = [
        "<!-- The benchmarks: written by python -m benchmarks.bench. -->",
        "",
        "# Benchmarks",
        "",
        "```",
        bench.command,
        "```",
        "",
        *([headline(bench), ""] if headline(bench) else []),
        "A step is recommend, click, learn. L: items, d: features, K: places of a slate.",
        "",
        f"![Time per step]({picture})",
        "",
        f"One core of {bench.machine}; {bench.date}; "
        + ", ".join(f"{name} {version}" for name, version in bench.versions.items())
        + ". Times differ between machines: compare ratios.",
        "",
        f"## Policies, d = {bench.n_features}, K = {bench.k}",
        "",
        "Microseconds per step.",
        "",
        *_by_items(bench.main, lambda cell: microseconds(cell.seconds)),
    ]
    for ratio in RATIOS:
        # A policy without features has no floor and no pass; one without a NumPy version has no such row.
        having = [cell for cell in bench.main if ratio.value(cell) is not None]
        if having:
            lines += [ratio.title + ".", "", *_by_items(having, _as_times(ratio.value))]
    lines += [*_other_features(bench), *_other_places(bench), *_growth(bench), *_peers(bench), *_how(bench)]
    return "\n".join(lines)


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
        "Microseconds per step; in brackets, times faster than the scan.",
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
        "Microseconds per step; in brackets, times its floor.",
        "",
        *_markdown(["K =", *map(str, places)], rows),
    ]


def _growth(bench: Bench) -> list[str]:
    found = growth(bench.cells, bench.n_features, bench.k)
    if not found:
        return []
    rows = [
        [f"`{one.policy}`", one.size, f"{whole(one.sizes[0])} to {whole(one.sizes[-1])}; {one.where}",
         *(f"{round(p, 2) + 0.0:.2f}".replace("-", "−") for p in (one.exponent, one.scan_exponent))]
        for one in found
    ]  # fmt: skip
    return [
        "## How cost grows",
        "",
        "Time grows like size^p: 0 is no growth, 1 is in proportion. Fitted on a log-log scale to "
        f"{FEWEST_POINTS} or more sizes, from {MANY_ITEMS} items on.",
        "",
        *_markdown(["policy", "size", "from, to", "policy's p", "scan's p"], rows),
    ]


def _peers(bench: Bench) -> list[str]:
    if not bench.peers:
        return []
    brackets = f"; in brackets, times as long as `{MAIN_POLICY}`" if has_main(bench) else ""
    lines = [
        "## Peers",
        "",
        f"Microseconds per step with d = {bench.n_features}, K = {bench.k}{brackets}. Each library is used "
        "as its documentation recommends.",
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
        f"World `long-tail`. Up to {MOST_STEPS:,} steps from the first one on, {ROUNDS} rounds in turn; the "
        "best mean counts, in processor time. Compiling and building the index do not count. The scan showed "
        f"the same slates: {sum(compared):,} compared, all equal.",
        "",
        f"Fewest steps in a cell: {', '.join(f'{said} {fewest:,}' for said, fewest in steps.items())}."
        + (" A peer has one thread, and limits of time and memory." if bench.peers else ""),
        "",
    ]  # fmt: skip
