"""Fits of click models: seconds for millions of sessions, and beside clax-models on the same file.

    python -m benchmarks.click_models [--slates 10000000] [--clax PYTHON] [--clax-slates 1000000]

Sessions are made up: 100 queries with 100 items each, 10 positions, clicks of a DBN with gamma 0.85,
attraction Beta(1.5, 6) and satisfaction Beta(3, 3). They are written to Parquet in a temporary folder;
reading them into memory is timed apart from the fits. Seconds depend on what else runs, those of the
processor less.

--clax is a Python that has clax-models (0.1.1 works with jax 0.7.2, not with 0.10). Both fit the sessions of
a second file that are not held out, and predict the others: log-likelihood a slate, perplexity and
conditional perplexity, means over ranks. `truth` is what the parameters that made the clicks get.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from firstclick.click_models import FITTED_MODELS, ClickFit, Sessions, fit_sessions, read_sessions
from firstclick.click_models.quality import quality
from firstclick.click_models.verdict import FOLDS, HELD_OUT
from firstclick.files.duck import connected
from firstclick.logs.open_log import open_ranked_log

QUERIES = ITEMS = 100
K = 10
GAMMA = 0.85
ORDERS = 100_000


def made_up(n, seed=1):
    """Queries, items and clicks of n sessions, and the parameters that made them."""
    generator = np.random.default_rng(seed)
    queries = generator.integers(0, QUERIES, n).astype(np.int32)
    orders = np.argsort(generator.random((ORDERS, ITEMS)), axis=1)[:, :K].astype(np.int32)
    items = orders[generator.integers(0, ORDERS, n)]
    cells = items + queries[:, None] * ITEMS
    attraction, satisfaction = generator.beta(1.5, 6, QUERIES * ITEMS), generator.beta(3, 3, QUERIES * ITEMS)
    clicks, looking = np.zeros((n, K), np.uint8), np.ones(n, np.bool_)
    for position in range(K):
        cell = cells[:, position]
        clicked = looking & (generator.random(n) < attraction[cell])
        clicks[:, position] = clicked
        looking &= ~(clicked & (generator.random(n) < satisfaction[cell])) & (generator.random(n) < GAMMA)
    truth = ClickFit(
        model="dbn", items=tuple(range(ITEMS)), segments=tuple(map(str, range(QUERIES))),
        shares=np.full(QUERIES, 1 / QUERIES), attraction=attraction.reshape(QUERIES, ITEMS),
        satisfaction=satisfaction.reshape(QUERIES, ITEMS), chances=np.array([GAMMA]),
        looks=np.zeros((QUERIES, ITEMS)), k=K,
    )  # fmt: skip
    return queries, items, clicks, truth


def write_parquet(path, queries, items, clicks):
    """One row a slate."""
    columns = {"segment": queries}
    columns |= {f"i{place}": items[:, place].copy() for place in range(K)}
    columns |= {f"c{place}": clicks[:, place].copy() for place in range(K)}
    listed = [f"[{', '.join(f'{letter}{place}' for place in range(K))}]" for letter in "ic"]
    with connected() as db:
        db.register("made_up", columns)
        db.execute(
            f"COPY (SELECT segment::VARCHAR AS segment, {listed[0]} AS items, {listed[1]} AS clicks "
            f"FROM made_up) TO '{path}' (FORMAT parquet)"
        )


@contextmanager
def timed(what):
    began, cpu = time.perf_counter(), time.process_time()
    yield
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    print(f"{what:40} {wall:8.1f} s {cpu:8.1f} s of processor", flush=True)


def in_memory(queries, items, clicks):
    n = len(items)
    return Sessions(
        "made-up", tuple(range(ITEMS)), tuple(map(str, range(QUERIES))), K,
        np.ascontiguousarray(items + queries[:, None] * ITEMS, np.int32), clicks, np.full(n, -1, np.int32),
        queries, np.arange(n), np.arange(QUERIES * ITEMS), 0,
    )  # fmt: skip


def speed(n, folder):
    path = folder / "slates.parquet"
    print(f"{n:,} sessions of {K} positions, {QUERIES * ITEMS:,} items of queries", flush=True)
    with timed("made and written"):
        made = made_up(n)
        write_parquet(path, *made[:3])
    fit_sessions(in_memory(*made_up(100)[:3]), "dbn")  # Kernels are compiled now.
    fit_sessions(in_memory(*made_up(100)[:3]), "pbm")
    truth = made[3]
    del made
    with timed(f"read, {path.stat().st_size / 1e6:,.0f} MB of Parquet"):
        log = open_ranked_log(path, clicks_as="marks")
        sessions = read_sessions(log, by_segment=True)
    # Ids come in the order of the log's lists.
    rows = [truth.segments.index(name) for name in log.segments]
    places = [truth.items.index(int(item)) for item in log.items]
    known = truth.attraction[np.ix_(rows, places)]
    for model in FITTED_MODELS:
        with timed(f"fit {model}"):
            found = fit_sessions(sessions, model)
        error = np.sqrt(((found.attraction - known) ** 2).mean())
        print(
            f"    root mean squared error of attraction {error:.4f}; chances {found.chances.round(3)}",
            flush=True,
        )


def beside_clax(n, python, folder):
    queries, items, clicks, truth = made_up(n)
    sessions = in_memory(queries, items, clicks)
    held_out = sessions.folds(FOLDS) == HELD_OUT
    chosen = np.flatnonzero(held_out)
    path = folder / "sessions.npz"
    np.savez(path, cells=sessions.cells, clicks=clicks, held_out=held_out, n_cells=sessions.n_cells)
    print(f"\n{n:,} sessions, {len(chosen):,} held out: log-likelihood, perplexity, conditional", flush=True)

    def line(name, likelihood, plain, given, seconds, cpu):
        numbers = f"{likelihood:9.4f} {plain:8.4f} {given:8.4f}"
        print(f"{name:20} {numbers} {seconds:8.1f} s {cpu:8.1f} s of processor", flush=True)

    def ours(name, fit, seconds=0.0, cpu=0.0):
        one = quality(fit, sessions, chosen)
        line(name, one.log_likelihood, one.perplexity.mean(), one.conditional_perplexity.mean(), seconds, cpu)

    ours("truth (dbn)", truth)
    for model in FITTED_MODELS:
        began, cpu = time.perf_counter(), time.process_time()
        found = fit_sessions(sessions, model, np.where(held_out, 0.0, 1.0))
        ours(f"firstclick {model}", found, time.perf_counter() - began, time.process_time() - cpu)
        if python:
            script = Path(__file__).with_name("clax_click_models.py")
            done = subprocess.run([python, script, path, model], capture_output=True, text=True)
            if done.returncode:
                print(f"clax {model} failed: {done.stderr.splitlines()[-1]}")
                continue
            told = json.loads(done.stdout.splitlines()[-1])
            measured = [told[f"test_{name}"] for name in ("ppl", "cond_ppl")]
            line(f"clax {model}", told["test_ll"] * K, *measured, told["seconds"], told["cpu"])
            print(f"    {told['epochs']} epochs, batches of {told['batch']}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--slates", type=int, default=10_000_000)
    parser.add_argument("--clax", metavar="PYTHON")
    parser.add_argument("--clax-slates", type=int, default=1_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.slates:
            speed(given.slates, Path(folder))
        if given.clax_slates:
            beside_clax(given.clax_slates, given.clax, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
