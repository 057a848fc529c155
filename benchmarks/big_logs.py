"""How long a long log takes, and how much memory: export, import, audit, archive, and the log as a file.

    python -m benchmarks.big_logs [--events 10000000] [--policy cascade-mixed] [--all] [--folder FOLDER]

A made-up log is put into an SQLite store: slates of 6 of 1,000 items with 10 features, half of them clicked.
Then each command runs in a process of its own. The peak memory is the resident set that the system has seen
of it; on a busy machine the seconds of the processor say more than those of the clock. 10 million events take
about 3 GB on the disk; all of it is removed afterwards. `--all` also writes the log as .jsonl and .parquet.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

K, N_ITEMS, N_FEATURES = 6, 1000, 10
AT_ONCE = 20_000
# Long ago, so that no token of these slates is good any more; four slates a second.
BEGAN, PER_SECOND = 1_600_000_000, 4


def make(store: str, events: int, policy: str) -> None:
    """Fill a new store; late imports, because what the process that measures uses counts for all."""
    import numpy as np

    from firstclick.catalog.item import Item
    from firstclick.serve.log.events import NO_CLICK, NONCE_SIZE, Event, Kind, packed
    from firstclick.serve.model.new_events import first_event
    from firstclick.serve.store import open_store

    draw = np.random.default_rng(1)
    features = draw.normal(size=(N_ITEMS, N_FEATURES))
    items = [Item(f"item-{row}", features=features[row]) for row in range(N_ITEMS)]
    created = first_event(
        "shop", policy=policy, k=K, items=items, seed=1, feature_names=(), scale=True, encoder=None
    )
    with open_store(store) as there:
        model = there.reserve()
        there.load(model, [Event(1, Kind.CREATED, bytes(16), packed(created), float(BEGAN))])
        for first in range(2, events + 1, AT_ONCE):
            n = min(AT_ONCE, events + 1 - first)
            at = BEGAN * 1000 + np.arange(first, first + n) * 1000 // PER_SECOND
            # As in a token's nonce: the time, then chance.
            nonces = draw.integers(0, 256, (n, NONCE_SIZE), np.uint8)
            nonces[:, :6] = at.astype(">i8").view(np.uint8).reshape(n, 8)[:, 2:]
            # Steps of at most 50 from item to item: none comes twice in a slate.
            steps = draw.integers(1, 51, (n, K)).cumsum(axis=1) + draw.integers(0, N_ITEMS, (n, 1))
            told = np.empty(n, [("click", "<i2"), ("issued", "<i8"), ("rows", "<u4", K)])
            told["click"] = np.where(draw.random(n) < 0.5, draw.integers(0, K, n), NO_CLICK)
            told["issued"], told["rows"] = at, steps % N_ITEMS
            content, names, size = told.tobytes(), nonces.tobytes(), told.itemsize
            there.load(
                model,
                [
                    Event(
                        first + i,
                        Kind.FEEDBACK,
                        names[NONCE_SIZE * i : NONCE_SIZE * (i + 1)],
                        content[size * i : size * (i + 1)],
                        received,
                    )
                    for i, received in enumerate((at / 1000 + 3.0).tolist())
                ],
            )
        there.publish(model, "shop", events)


def run(*command: str) -> tuple[float, float, float]:
    """Seconds, seconds of the processor and peak megabytes of a process."""
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed: {said.decode()[-500:]}")
    return time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def measure(folder: Path, events: int, policy: str, *, logs: bool) -> None:
    """Make the log, run the commands, print a line for each."""
    store, other, exported, archived = (str(folder / name) for name in ("a.db", "b.db", "model", "archive"))
    before = str(events * 9 // 10)
    of_store = ("shop", "--store", store)
    table = {
        "made": ("-m", __spec__.name, "--make", store, "--events", str(events), "--policy", policy),
        "export": ("export", *of_store, "--out", exported),
        "import": ("import", exported, "--store", other),
        "audit": ("audit", *of_store),
        f"archive --before {before}": ("archive", *of_store, "--before", before, "--out", archived),
        "audit, archived": ("audit", *of_store),
        "audit --archive": ("audit", *of_store, "--archive", archived),
    }
    if logs:
        for kind in (".jsonl", ".parquet"):
            written = ("--archive", archived, "--out", str(folder / f"log{kind}"))
            table[f"log --out {kind}"] = ("log", *of_store, *written)
    print(f"{events:,} events, {policy}")
    print(f"{'':28}{'seconds':>9}{'of CPU':>9}{'events/s':>11}{'peak MB':>9}{'file MB':>9}")
    for name, command in table.items():
        command = command if name == "made" else ("-m", "firstclick", *command)
        seconds, busy, peak = run(*command)
        file = Path(command[command.index("--out") + 1] if "--out" in command else store)
        print(
            f"{name:28}{seconds:9.1f}{busy:9.1f}{events / seconds:11,.0f}{peak:9.0f}"
            f"{file.stat().st_size / 1e6:9.0f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--policy", default="cascade-mixed")
    parser.add_argument("--all", action="store_true", help="also write the log as .jsonl and .parquet")
    parser.add_argument("--folder", help="for the temporary files; by default where the system has them")
    parser.add_argument("--make", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make:
        make(given.make, given.events, given.policy)
        return
    with tempfile.TemporaryDirectory(prefix="firstclick-big-", dir=given.folder) as folder:
        measure(Path(folder), given.events, given.policy, logs=given.all)


if __name__ == "__main__":
    main()
