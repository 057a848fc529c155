"""Which policies tests compile: `make test` compiles four of them and plays all in plain Python."""

import os

import pytest

# Numba's own rule for NUMBA_DISABLE_JIT, without importing Numba.
PLAIN = bool(int(os.environ.get("NUMBA_DISABLE_JIT") or "0"))

# The default, one that learns from features, one that counts and one that does not learn. Each other policy
# takes up to 20 seconds to compile.
COMPILED = ("cascade-mixed", "cascade-lin-ts", "cascade-ts", "random")

# Mark of tests of other policies: compiled, they are long. In plain Python such warnings are ignored anyway.
OTHERS = pytest.mark.filterwarnings("ignore::RuntimeWarning") if PLAIN else pytest.mark.long


def policies(names):
    """Policies as parameters of a test, those that `make test` does not compile marked."""
    return [
        pytest.param(name, marks=[] if name.partition(":")[0] in COMPILED else [OTHERS]) for name in names
    ]


def size(compiled, *, plain):
    """So many steps where kernels are compiled, and so many where they are plain Python, which is slow."""
    return plain if PLAIN else compiled
