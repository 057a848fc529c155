"""A peer in a process of its own, with a limit of time and of memory."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.bench.peers.bayesianbandits import BayesianBandits
from benchmarks.bench.peers.contextualbandits import ContextualBandits
from benchmarks.bench.peers.mab2rec import Mab2Rec
from benchmarks.bench.peers.mabwiser import MABWiser
from benchmarks.bench.peers.peer import installed
from benchmarks.bench.peers.vowpal_wabbit import VowpalWabbit

PEERS: dict[str, Any] = {
    peer.package: peer for peer in (BayesianBandits, ContextualBandits, VowpalWabbit, MABWiser, Mab2Rec)
}
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")

NOT_INSTALLED = "not installed (make peers)"

# How the libraries, and those below them, say that memory has run out.
OUT_OF_MEMORY = ("MemoryError", "bad_alloc", "Unable to allocate", "Cannot allocate", "out of memory")

# Between two looks at whether somebody wants to stop.
PATIENCE = 0.2


def play_peer(
    name: str, n_items: int, n_features: int, k: int, *, seconds: float, memory: int,
    report: Callable[[], Any] = lambda: None,
) -> dict[str, Any]:  # fmt: skip
    """What the peer's process says: {'seconds', 'steps', 'memory'}, or {'failure': why there is none}."""
    if installed(PEERS[name]) is None:
        return {"failure": NOT_INSTALLED}
    arguments = [name, n_items, n_features, k, seconds, memory]
    command = [sys.executable, "-m", "benchmarks.bench.peers", *map(str, arguments)]
    return within_limits(command, seconds=seconds, memory=memory, report=report)


def within_limits(
    command: Sequence[str], *, seconds: float, memory: int, report: Callable[[], Any] = lambda: None
) -> dict[str, Any]:
    """What the command prints, one line of JSON; or how it failed.

    It has these seconds, and limits its memory itself. `report` is called meanwhile, and may raise to stop.
    """
    # A group of its own: Ctrl-C is for us, and what the peer starts ends with it.
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | dict.fromkeys(THREADS, "1") | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    left = seconds
    try:
        while True:
            report()
            try:
                out, err = process.communicate(timeout=min(PATIENCE, left))
                break
            except subprocess.TimeoutExpired:
                left -= PATIENCE
                if left <= 0:
                    return {"failure": f"ran out of its {seconds:g} s"}
    finally:
        _end(process)
    try:
        said = json.loads(out.splitlines()[-1])
        if process.returncode == 0 and isinstance(said, dict):
            return said
    except (ValueError, IndexError):
        pass
    if process.returncode == -signal.SIGKILL or any(words in err for words in OUT_OF_MEMORY):
        return {"failure": f"ran out of its {gigabytes(memory)}"}
    last = (err.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
    return {"failure": f"failed: {last[:200]}"}


def end_with_parent() -> None:
    """Have this process end soon after the one that started it, should that be killed."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def gigabytes(memory: int) -> str:
    """'4 GB'."""
    return f"{memory / 1e9:g} GB"


def _end(process: subprocess.Popen[str]) -> None:
    """Nothing of it is left."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
