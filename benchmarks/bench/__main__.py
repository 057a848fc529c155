"""`python -m benchmarks.bench`: how fast the policies are, against all that they could be compared with."""

import json as json_format
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from typer import Option

from benchmarks.bench.cells import (
    LONG_FEATURES,
    LONG_ITEMS,
    SHORT_FEATURES,
    SHORT_ITEMS,
    K,
    grid,
    main_features,
)
from benchmarks.bench.machine import machine, versions
from benchmarks.bench.peer_runs import measure_peers
from benchmarks.bench.peers.peer import installed
from benchmarks.bench.peers.process import PEERS
from benchmarks.bench.results import Bench, Kept
from benchmarks.bench.run import already_measured, measure_cells, now
from firstclick.cli.command_line import CommandLine
from firstclick.cli.console import Interrupted, page, print_json, talk
from firstclick.cli.main import run_command_line
from firstclick.cli.options import count, number
from firstclick.cli.progress_bar import ProgressBar, progress_bar
from firstclick.errors import InvalidInput
from firstclick.files.writing import write_whole
from firstclick.policies.base import Policy
from firstclick.registry import USUAL_POLICIES, make_policy
from firstclick.validation.quoting import quoted

# For each contender of a cell.
SHORT_SECONDS, LONG_SECONDS = 0.4, 2.0
SECONDS_BETWEEN_LINES = 30.0

CELLS, OUTPUTS = "cells.jsonl", ("bench.json", "bench.md", "bench.svg", "bench.png")


def bench(
    policy: Annotated[
        list[str] | None,
        Option(metavar="SPEC", help="Policy NAME[:param=value,...]; again for more; the usual by default."),
    ] = None,
    n_items: Annotated[
        str | None, Option("--items", metavar="N,N,...", help="Numbers of items; 16,256,3000 by default.")
    ] = None,
    n_features: Annotated[
        str | None, Option("--features", metavar="N,N,...", help="Numbers of features; 20 by default.")
    ] = None,
    k: Annotated[int, count("Items shown at a time.")] = K,
    long: Annotated[
        bool,
        Option(
            "--long",
            help="Up to a million items and 64 features, K from 1 to 32, and longer for each: half an hour.",
        ),
    ] = False,
    peers: Annotated[bool, Option("--peers", help="Time other libraries too: make peers.")] = False,
    peer_seconds: Annotated[float, number("Time that a peer has, for its start and its steps.")] = 60.0,
    peer_memory: Annotated[str, Option(metavar="SIZE", help="Memory that a peer has: 4GB, 500MB.")] = "4GB",
    folder: Annotated[
        Path | None,
        Option(
            "--out",
            metavar="FOLDER",
            help="Folder for bench.json, bench.md, bench.svg, bench.png and cells.jsonl, the finished cells.",
        ),
    ] = None,
    overwrite: Annotated[
        bool, Option("--overwrite", help="Forget all finished cells in --out, and measure anew.")
    ] = False,
    json: Annotated[bool, Option("--json", help="Print JSON instead of the tables.")] = False,
) -> None:
    """Measure the time of a step of policies, on one core, against what it could be compared with.

    Its own floor (drawing and learning alone), the dense scan, one pass over the features, NumPy plain and
    tuned, and with --peers other libraries. Interrupted, the same command with --out goes on. The first call
    compiles for some minutes.

    \b
    The short form, about a minute once all is compiled:
      python -m benchmarks.bench --out results

    \b
    One policy with a large catalog:
      python -m benchmarks.bench --policy cascade-lin-ts --items 100000 --features 32
    """
    if overwrite and folder is None:
        raise InvalidInput("--overwrite goes with --out")
    policies = _policies(policy)
    sizes = _sizes("--items", n_items, LONG_ITEMS if long else SHORT_ITEMS)
    dimensions = _sizes("--features", n_features, LONG_FEATURES if long else SHORT_FEATURES)
    cells = grid(policies, sizes, dimensions, k, sweep=long)
    if not peer_seconds > 0:
        raise InvalidInput(f"--peer-seconds must be above 0, got {peer_seconds:g}")
    memory = _bytes(peer_memory)
    if peers and sys.platform == "win32":
        raise InvalidInput("--peers needs Linux or macOS, which can limit the memory of a process")
    missing = _missing_peers() if peers else []
    kept = _kept(folder, overwrite)
    seconds = LONG_SECONDS if long else SHORT_SECONDS
    finished = len(already_measured(cells, kept, seconds=seconds))
    words = f"{len(cells)} cell{'s' * (len(cells) > 1)}"
    talk.print(words + (f", {finished} of them measured already" if finished else ""))
    if missing:
        talk.print(f"peers that are not installed (make peers): {', '.join(missing)}")
    with _measuring(folder) as progress:
        measured = measure_cells(cells, kept, seconds=seconds, report=progress.doing("measuring"))
        others = [] if not peers else measure_peers(
            sizes, main_features(dimensions), k, kept, seconds=peer_seconds, memory=memory,
            report=progress.doing("peers"),
        )  # fmt: skip
    result = Bench(
        machine=machine(), versions=versions(), date=now(), command=_command(),
        n_features=main_features(dimensions), k=k, cells=tuple(measured),
        peers=tuple(one for one in others if one.version),
    )  # fmt: skip
    hand_over(result, folder, as_json=json)


def hand_over(result: Bench, folder: Path | None, *, as_json: bool) -> None:
    """The files, then the tables, then where the files are."""
    from benchmarks.bench.figure import bench_figure
    from benchmarks.bench.page import bench_page
    from benchmarks.bench.tables import as_plain, bench_tables, headline, how_to_read
    from firstclick.report.figures import figure_bytes

    plain = as_plain(result)
    if folder is not None:
        figure = bench_figure(result)
        write_whole(folder / "bench.svg", figure_bytes(figure, "svg"))
        write_whole(folder / "bench.png", figure_bytes(figure, "png"))
        write_whole(folder / "bench.md", bench_page(result, "bench.png").encode())
        write_whole(folder / "bench.json", (json_format.dumps(plain, indent=1) + "\n").encode())
    if as_json:
        print_json(plain)
    else:
        page().print(how_to_read(result))
        for heading, table in bench_tables(result):
            page().print("\n" + heading)
            page().print(table)
        if headline(result):
            page().print("\n" + headline(result))
    if folder is not None:
        talk.print(f"page: {folder / 'bench.md'}")


@contextmanager
def _measuring(folder: Path | None) -> Iterator[ProgressBar]:
    """A progress bar; Ctrl-C says what is kept and how to go on."""
    try:
        with progress_bar(every=SECONDS_BETWEEN_LINES) as progress:
            yield progress
    except KeyboardInterrupt:
        if folder is None:
            raise
        raise Interrupted(
            f"interrupted; finished cells are kept in {folder}, the same command goes on"
        ) from None


def _policies(specs: list[str] | None) -> list[Policy]:
    policies = [make_policy(spec) for spec in specs or sorted(USUAL_POLICIES)]
    for label in (policy.label for policy in policies):
        if sum(policy.label == label for policy in policies) > 1:
            raise InvalidInput(f"policy {label!r} is given twice")
    return policies


def _missing_peers() -> list[str]:
    """The peers that are not installed; refuses where none is."""
    missing = [peer.title for peer in PEERS.values() if installed(peer) is None]
    if len(missing) == len(PEERS):
        raise InvalidInput(
            f"--peers needs one of {', '.join(missing)}, and none is installed; "
            "say make peers, or leave --peers out"
        )
    return missing


def _sizes(option: str, text: str | None, default: tuple[int, ...]) -> tuple[int, ...]:
    if text is None:
        return default
    try:
        numbers = [float(part) for part in text.split(",")]
        if not all(number.is_integer() for number in numbers):
            raise ValueError
    except ValueError:
        raise InvalidInput(
            f"{option} must be whole numbers separated by commas, got {quoted(text)}"
        ) from None
    return tuple(int(number) for number in numbers)


def _bytes(text: str) -> int:
    found = re.fullmatch(r"\s*([\d.]+)\s*(GB|MB)\s*", text, re.IGNORECASE)
    try:
        size = 0 if found is None else int(float(found[1]) * {"GB": 1e9, "MB": 1e6}[found[2].upper()])
    except ValueError:
        size = 0
    if size <= 0:
        raise InvalidInput(f"--peer-memory must be a size such as 4GB or 500MB, got {quoted(text)}")
    return size


def _kept(folder: Path | None, overwrite: bool) -> Kept:
    """The file of finished cells in the folder; a folder of other things is refused."""
    if folder is None:
        return Kept(None)
    try:
        if folder.exists() and not folder.is_dir():
            raise InvalidInput(f"{folder} is a file; --out names a folder")
        folder.mkdir(parents=True, exist_ok=True)
        others = sorted(path.name for path in folder.iterdir() if path.name not in (CELLS, *OUTPUTS))
        if others:
            raise InvalidInput(
                f"--out {folder} holds other files ({others[0]}); name a new folder, or an empty one"
            )
        if overwrite:
            (folder / CELLS).unlink(missing_ok=True)
    except OSError as error:
        raise InvalidInput(f"--out {folder} cannot be written: {error.strerror or error}") from None
    return Kept(folder / CELLS)


def _command() -> str:
    """The call that measures the same; where its files went is for the reader to say."""
    words = ["python", "-m", "benchmarks.bench"]
    for before, word in pairwise(sys.argv):
        if before == "--out":
            words.append("OUT")
        elif word.startswith("--out="):
            words.append("--out=OUT")
        elif word not in ("--json", "--overwrite"):
            words.append(word)
    return shlex.join(words)


app = CommandLine()
app.command()(bench)

if __name__ == "__main__":
    run_command_line(app)
