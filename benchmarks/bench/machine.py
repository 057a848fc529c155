"""Where and with what something was measured."""

import importlib.metadata
import os
import platform
from functools import cache
from pathlib import Path

from firstclick._version import __version__

LIBRARIES = ("numpy", "scipy", "numba")


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
