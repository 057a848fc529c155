"""Where and with what something was measured."""

import hashlib
import importlib.metadata
import os
import platform
from functools import cache
from pathlib import Path

from firstclick._version import __version__

LIBRARIES = ("numpy", "scipy", "numba")

# What the time of a step depends on. Pages and commands may change without touching it.
TIMED = (
    "kernels", "policies", "worlds", "simulate/loop.py", "index.py", "protocol.py", "streams.py",
    "experiment/plain_numpy.py", "bench/contenders.py", "bench/measure.py", "bench/tuned_numpy.py",
)  # fmt: skip
PEERS = ("bench/peers", "worlds/long_tail.py")


@cache
def machine() -> str:
    """'2 cores, x86-64, AMD EPYC'."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    kind = platform.machine().lower().replace("amd64", "x86_64").replace("_", "-")
    words = [f"{cores} core{'s' * (cores > 1)}", kind, _processor()]
    return ", ".join(filter(None, words))


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


@cache
def versions() -> dict[str, str]:
    """Of Python, firstclick and the libraries that the times depend on."""
    found = {"python": platform.python_version(), "firstclick": __version__}
    return found | {name: importlib.metadata.version(name) for name in LIBRARIES}


@cache
def hash_of(parts: tuple[str, ...]) -> str:
    """Twelve digits that change with these files or folders of the package."""
    package = Path(__file__).parents[1]
    content = hashlib.sha256()
    for part in parts:
        path = package / part
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            content.update(file.relative_to(package).as_posix().encode() + file.read_bytes())
    return content.hexdigest()[:12]
