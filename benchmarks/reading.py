"""How long a log takes to read, and how much memory, beside plain DuckDB and pandas on the same file.

python -m benchmarks.reading --rows 5000000

Each reader has a process of its own. All give NumPy arrays: a code of the user, a code of the item, and
whether the value is above 3. Processor time is of all threads together, and tells more where others work on
the machine too.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

USERS, ITEMS = 400_000, 10_000


def write(rows: int, folder: Path) -> list[Path]:
    """A log of texts, halves of stars and a time, as CSV and as Parquet."""
    query = (
        f"SELECT 'u' || (hash(i) % {USERS})::INT AS user, 'SO' || (hash(i * 7 + 1) % {ITEMS})::INT AS item, "
        f"(hash(i * 13 + 5) % 11) / 2.0 AS stars, 1700000000 + i AS at FROM range({rows}) AS t(i)"
    )
    paths = [folder / "log.csv", folder / "log.parquet"]
    with duckdb.connect() as db:
        for path in paths:
            db.execute(f"COPY ({query}) TO '{path}' ({'HEADER, ' if path.suffix == '.csv' else ''}"
                       f"FORMAT {path.suffix[1:]})")  # fmt: skip
    return paths


def by_firstclick(path: Path) -> int:
    from firstclick.data import read_interactions

    read = read_interactions(path, user_column="user", item_column="item", value_column="stars", above=3)
    return len(read.users)


def source_of(path: Path) -> str:
    kinds = "{'user': 'VARCHAR', 'item': 'VARCHAR', 'stars': 'DOUBLE', 'at': 'BIGINT'}"
    if path.suffix == ".csv":
        return f"read_csv('{path}', header = true, delim = ',', auto_detect = false, columns = {kinds})"
    return f"read_parquet('{path}')"


def by_duckdb(path: Path) -> int:
    """The shortest way to sorted codes in the order of the file: two ENUM types."""
    source = source_of(path)
    with duckdb.connect() as db:
        for kind in ("user", "item"):
            db.execute(f'CREATE TYPE {kind}s AS ENUM (SELECT DISTINCT "{kind}" FROM {source} ORDER BY 1)')
        read = db.execute(
            'SELECT enum_code("user"::users)::INT AS u, enum_code(item::items)::INT AS i, stars > 3 AS a '
            f"FROM {source}"
        ).fetchnumpy()
    return len(read["u"])


def by_duckdb_join(path: Path) -> int:
    """Faster, but rows come out in any order: joins with tables of the ids."""
    source = source_of(path)
    with duckdb.connect() as db:
        for kind in ("user", "item"):
            db.execute(
                f'CREATE TABLE {kind}s AS SELECT "{kind}" AS id, '
                f'(row_number() OVER (ORDER BY "{kind}"))::INT AS code '
                f'FROM (SELECT DISTINCT "{kind}" FROM {source})'
            )
        read = db.execute(
            f"SELECT users.code AS u, items.code AS i, stars > 3 AS a FROM {source} AS log "
            'JOIN users ON log."user" = users.id JOIN items ON log.item = items.id'
        ).fetchnumpy()
    return len(read["u"])


def by_pandas(path: Path) -> int:
    import pandas as pd

    if path.suffix != ".csv":  # Needs pyarrow, which is not installed with us.
        return 0
    frame = pd.read_csv(path, usecols=["user", "item", "stars"], dtype={"user": str, "item": str})
    codes = [pd.factorize(frame[kind], sort=True)[0] for kind in ("user", "item")]
    return len(codes[0]) if len(frame["stars"] > 3) else 0


READERS: dict[str, Callable[[Path], int]] = {
    "firstclick": by_firstclick,
    "duckdb": by_duckdb,
    "duckdb, joins": by_duckdb_join,
    "pandas": by_pandas,
}


def measure(reader: str, path: Path) -> None:
    if reader == "firstclick":
        import firstclick.data  # noqa: F401
    before, processor = time.perf_counter(), time.process_time()
    rows = READERS[reader](path)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    spent = time.perf_counter() - before, time.process_time() - processor
    print(json.dumps([rows, *spent, peak]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--only", nargs="*", default=list(READERS), choices=list(READERS))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        measure(asked.one[0], Path(asked.one[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        for path in write(asked.rows, Path(folder)):
            print(f"{asked.rows:,} rows, {path.suffix[1:]}, {path.stat().st_size / 1e6:,.0f} MB")
            print(
                f"{'':14} {'seconds':>8} {'of duckdb':>10} {'processor':>10} {'of duckdb':>10} {'peak MB':>8}"
            )
            found = {}
            for reader in asked.only:
                call = [sys.executable, "-m", "benchmarks.reading", "--one", reader, str(path)]
                done = subprocess.run(call, check=True, capture_output=True, text=True)
                found[reader] = json.loads(done.stdout)
            for reader, (rows, seconds, processor, peak) in found.items():
                if rows:
                    base = found.get("duckdb", found[reader])
                    print(
                        f"{reader:14} {seconds:8.1f} {seconds / base[1]:10.2f} {processor:10.1f} "
                        f"{processor / base[2]:10.2f} {peak:8,.0f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
