"""Reading ranked logs: time beside DuckDB's own on the same file, and the peak of memory.

    python -m benchmarks.ranked_logs                    # 10 million slates in Parquet, 1 million as text
    python -m benchmarks.ranked_logs --slates 1000000 --text-slates 100000

The yardstick is one query of DuckDB over the same columns: by position clicks, distinct items, the least
propensity. Ours opens the log and walks through all of its batches: codes, clicks and propensities as arrays,
every row checked. Each is run in a process of its own. Seconds by the clock suffer from what else runs on the
machine; those of the processor do less. Memory is the peak of the process, imports and machine code included.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

K, ITEMS = 10, 5_000

YARDSTICKS = {
    "parquet": "SELECT items, clicks, propensities FROM read_parquet('{path}')",
    "csv": "SELECT string_split(items, '|') AS items, string_split(clicks, '|')::BIGINT[] AS clicks, "
    "string_split(propensities, '|')::DOUBLE[] AS propensities FROM read_csv('{path}', header = true, "
    "columns = {{'items': 'VARCHAR', 'clicks': 'VARCHAR', 'propensities': 'VARCHAR'}})",
    "jsonl": "SELECT items, clicks, propensities FROM read_json('{path}', format = 'newline_delimited', "
    "columns = {{'items': 'VARCHAR[]', 'clicks': 'BIGINT[]', 'propensities': 'DOUBLE[]'}})",
}  # fmt: skip


def main() -> None:
    """Make the files, and measure each in processes of their own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--slates", type=int, default=10_000_000)
    parser.add_argument("--text-slates", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="parquet, csv or jsonl")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.measure:
        _measure(*chosen.measure)
        return
    with tempfile.TemporaryDirectory(prefix="firstclick-ranked-logs-") as folder:
        heads = f"{'seconds, DuckDB and ours':>26} {'of the processor':>26}"
        print(f"{'file':8} {'slates':>11} {'MB':>6} {heads} {'peak MB':>8}")
        sizes = {"parquet": chosen.slates, "csv": chosen.text_slates, "jsonl": chosen.text_slates}
        for kind, n in sizes.items():
            if chosen.only not in ("", kind):
                continue
            path = Path(folder) / f"log.{kind}"
            print(f"writing {path.name}", file=sys.stderr)
            _write(path, kind, n)
            runs: dict[str, list[dict[str, float]]] = {"yardstick": [], "ours": []}
            for _ in range(chosen.repeats):
                for who, found in runs.items():
                    print(f"reading {path.name}: {who}", file=sys.stderr)
                    found.append(_in_a_process(who, path))
            size, peak = path.stat().st_size / 1e6, max(run["peak"] for run in runs["ours"])
            times = f"{_beside(runs, 'seconds')} {_beside(runs, 'processor')}"
            print(f"{kind:8} {n:11,} {size:6,.0f} {times} {peak:8,.0f}", flush=True)
            path.unlink()


def _beside(runs: dict[str, list[dict[str, float]]], what: str) -> str:
    """The fastest run of each, and their ratio."""
    yardstick, ours = (min(run[what] for run in runs[who]) for who in ("yardstick", "ours"))
    return f"{yardstick:.2f} {ours:.2f} ratio {ours / yardstick:.2f}".rjust(26)


def _in_a_process(who: str, path: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.ranked_logs", "--measure", who, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _measure(who: str, path: str) -> None:
    if who == "ours":
        _compile()
    before = time.process_time()
    seconds = _yardstick(path) if who == "yardstick" else _ours(path)
    processor = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(json.dumps({"seconds": seconds, "processor": processor, "peak": peak}))


def _yardstick(path: str) -> float:
    import duckdb

    rows = YARDSTICKS[Path(path).suffix[1:]].format(path=path)
    with duckdb.connect() as db:
        started = time.perf_counter()
        db.execute(
            "SELECT place, count(*), count(DISTINCT item), count(*) FILTER (list_contains(clicks, place)), "
            "min(chance) FROM (SELECT unnest(items) AS item, unnest(propensities) AS chance, "
            "generate_subscripts(items, 1) - 1 AS place, clicks "
            f"FROM ({rows})) GROUP BY place"
        ).fetchall()
        return time.perf_counter() - started


def _ours(path: str) -> float:
    from firstclick.logs.open_log import open_ranked_log

    started = time.perf_counter()
    n = sum(batch.n for batch in open_ranked_log(path).batches())
    seconds = time.perf_counter() - started
    assert n
    return seconds


def _compile() -> None:
    """Compile, or load, the kernels before the clock runs, on a log of one slate."""
    from firstclick.logs.open_log import open_ranked_log

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.jsonl"
        path.write_text('{"items": ["a", "b"], "clicks": [1], "propensities": [0.5, 0.5]}\n')
        list(open_ranked_log(path).batches())


def _write(path: Path, kind: str, n: int) -> None:
    import duckdb

    # A place of a slate is drawn from its own tenth of the items: no slate has one twice.
    share = ITEMS // K
    items = f"list_transform(range({K}), lambda j: 'item-' || (j * {share} + hash(i * {K} + j) % {share}))"
    clicks = f"if(hash(i) % 10 < 3, [(hash(i + 7) % {K})::BIGINT], []::BIGINT[])"
    chances = f"list_transform(range(1, {K} + 1), lambda j: (1.0 / j)::DOUBLE)"
    if kind == "csv":
        items, clicks, chances = (f"array_to_string({one}, '|')" for one in (items, clicks, chances))
    with duckdb.connect() as db:
        db.execute("SET memory_limit = '2GB'")
        how = {"parquet": "FORMAT parquet", "csv": "FORMAT csv, HEADER", "jsonl": "FORMAT json"}[kind]
        db.execute(
            f"COPY (SELECT {items} AS items, {clicks} AS clicks, {chances} AS propensities "
            f"FROM range({n}) t(i)) TO '{path}' ({how})"
        )


if __name__ == "__main__":
    main()
