"""Which policies tests compile: `make test` compiles four of them and runs all in plain Python."""

import os

import pytest

# Numba's own rule for NUMBA_DISABLE_JIT, without importing Numba.
PLAIN = bool(int(os.environ.get("NUMBA_DISABLE_JIT") or "0"))

# The default, one that learns from features, one that counts and one that does not learn. Each other policy
# takes up to 20 seconds to compile.
COMPILED = ("cascade-mixed", "cascade-lin-ts", "cascade-ts", "random")

# The mark of tests of other policies: make test runs them in plain Python only, make test-long compiled.
OTHERS = pytest.mark.others if PLAIN else pytest.mark.long


def policies(names):
    """Policies as parameters of a test; each runs in one pass of `make test`, compiled or in plain Python."""
    return [
        pytest.param(name, marks=[] if name.partition(":")[0] in COMPILED else [OTHERS]) for name in names
    ]
