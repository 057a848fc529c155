"""What `make test` compiles, and sizes of tests that it runs in plain Python."""

import os
from collections.abc import Iterable
from typing import Any

import pytest

# Numba's own rule for NUMBA_DISABLE_JIT, without importing Numba.
PLAIN = bool(int(os.environ.get("NUMBA_DISABLE_JIT") or "0"))


def size(compiled: int, *, plain: int) -> int:
    """So many steps where kernels are compiled, and so many where they are plain Python, which is slow."""
    return plain if PLAIN else compiled


# The default, one that learns from features and one that counts. Each other would take up to 20 seconds to
# compile.
COMPILED = ("cascade-mixed", "cascade-lin-ts", "cascade-ts")


def policies(names: Iterable[str]) -> list[Any]:
    """Parameters of a test: `make test` runs three policies compiled, and all others in plain Python."""
    return [
        pytest.param(name, marks=[] if name.partition(":")[0] in COMPILED else [pytest.mark.plain])
        for name in names
    ]
