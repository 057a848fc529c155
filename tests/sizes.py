"""Sizes of tests that `make test` runs in plain Python and `make test-long` compiled."""

import os

# Numba's own rule for NUMBA_DISABLE_JIT, without importing Numba.
PLAIN = bool(int(os.environ.get("NUMBA_DISABLE_JIT") or "0"))


def size(compiled: int, *, plain: int) -> int:
    """So many steps where kernels are compiled, and so many where they are plain Python, which is slow."""
    return plain if PLAIN else compiled
