"""How a function becomes a kernel, and where its machine code is kept between processes.

A policy's `recommend`, `learn` and `estimate` are found by the type of the numbers they are called with, so
that one loop, written once, is compiled for every policy. Each policy gets its own dispatcher and
its own cache folder: Numba keeps all signatures of a cached function in one index, and an index
that names an uninstalled plug-in can no longer be read by anybody. The folder's name holds a hash
of our kernel sources and of the policy's file, because Numba only notices changes in one file.
"""

import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import types
from numba.extending import overload

# `error_model` lets a division by zero give inf, as in NumPy, so that loops stay vectorised.
# No `fastmath`: sums keep their order, so that results do not depend on the machine's vectors.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}

kernel = numba.njit(**OPTIONS)

_changing_cache_dir = threading.Lock()

POLICY_OF_NUMBERS: dict[Any, Any] = {}


def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
    """Fill `slate` with rows of the catalog, best first, and return how many were found."""
    policy = POLICY_OF_NUMBERS[type(numbers)]
    return policy.recommend(numbers, state, catalog, request, key, noise, slate)


def learn(numbers, state, catalog, slate, examined, clicks):  # type: ignore[no-untyped-def]
    """Update `state` with the first `examined` positions of `slate` and their `clicks`."""
    POLICY_OF_NUMBERS[type(numbers)].learn(numbers, state, catalog, slate, examined, clicks)


def estimate(numbers, state, catalog, rows, means, deviations):  # type: ignore[no-untyped-def]
    """Fill `means` and `deviations` with what is held for the attraction of each of the `rows`, or NaN."""
    POLICY_OF_NUMBERS[type(numbers)].estimate(numbers, state, catalog, rows, means, deviations)


def _policy_of(numbers: types.Type) -> Any:
    return POLICY_OF_NUMBERS.get(getattr(numbers, "instance_class", None))


@overload(recommend, jit_options=OPTIONS)
def _recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
    policy = _policy_of(numbers)
    return None if policy is None else policy.recommend


@overload(learn, jit_options=OPTIONS)
def _learn(numbers, state, catalog, slate, examined, clicks):  # type: ignore[no-untyped-def]
    policy = _policy_of(numbers)
    return None if policy is None else policy.learn


@overload(estimate, jit_options=OPTIONS)
def _estimate(numbers, state, catalog, rows, means, deviations):  # type: ignore[no-untyped-def]
    policy = _policy_of(numbers)
    return None if policy is None else policy.estimate


@cache
def compiled(function: Callable[..., Any], policy: type) -> Callable[..., Any]:
    """`function` as a kernel of its own for this policy, loaded from the cache where it can be."""
    dispatcher = numba.njit(**OPTIONS)(function)
    folder = _cache_folder(function, policy)
    if folder is not None and not numba.config.DISABLE_JIT:
        # The setting is Numba's own and global: one thread at a time, and put back at once.
        with _changing_cache_dir:
            before = numba.config.CACHE_DIR
            numba.config.CACHE_DIR = str(folder)
            try:
                dispatcher.enable_caching()
            finally:
                numba.config.CACHE_DIR = before
    return dispatcher


def findable(cls: type) -> bool:
    """Whether another process can import the class; one typed into a notebook or a function cannot be."""
    module = sys.modules.get(cls.__module__)
    return getattr(module, cls.__qualname__, None) is cls and getattr(module, "__file__", None) is not None


def cache_root() -> Path:
    """The folder of compiled kernels: `FIRSTCLICK_CACHE_DIR`, or `firstclick` in the user's cache."""
    if chosen := os.environ.get("FIRSTCLICK_CACHE_DIR"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "firstclick" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "firstclick"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "firstclick"


def _cache_folder(function: Callable[..., Any], policy: type) -> Path | None:
    """Where to keep `function` compiled for `policy`; None when it cannot be kept or found again."""
    if not findable(policy) or policy.__module__ in ("__main__", "__mp_main__"):
        return None
    sources = {
        file
        for base in policy.__mro__
        if (file := getattr(sys.modules.get(base.__module__), "__file__", None)) and base is not object
    }
    sources.add(function.__code__.co_filename)
    sources.update(str(path) for path in Path(__file__).parent.glob("*.py"))
    digest = hashlib.sha256()
    try:
        for source in sorted(sources):
            digest.update(Path(source).read_bytes())
        folder = cache_root() / f"{policy.__module__}.{policy.__name__}-{digest.hexdigest()[:16]}"
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None  # A home that cannot be written is no reason to fail: the kernel is compiled again.
    return folder
