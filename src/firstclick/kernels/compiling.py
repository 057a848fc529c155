"""How a function becomes a kernel, and where its machine code is kept between processes.

A policy's `recommend`, `learn` and `estimate` are found by the type of the numbers they are called with, so
that one loop, written once, is compiled for every policy. Each policy gets its own dispatcher and
its own cache folder: Numba keeps all signatures of a cached function in one index, and an index
that names an uninstalled plug-in can no longer be read by anybody. The folder's name holds a hash
of every source file that the code may depend on (`source_files.py`).
Large kernels that have nothing to do with a policy are kept by themselves, for all of them.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import types
from numba.extending import overload

from firstclick.kernels.numba_internals import Kernel, KernelCompiler, SharedKernelCompiler, keep
from firstclick.kernels.source_files import digest

# `error_model` lets a division by zero give inf, as in NumPy, so that loops stay vectorised.
# No `fastmath`: sums keep their order, so that results do not depend on the machine's vectors.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "pipeline_class": KernelCompiler}


def kernel(function: Callable[..., Any], compiler: type = KernelCompiler) -> Any:
    """The function, compiled by Numba when it is first called."""
    dispatcher = numba.njit(**{**OPTIONS, "pipeline_class": compiler})(function)
    if not numba.config.DISABLE_JIT:
        dispatcher.__class__ = Kernel
    return dispatcher


_shared: list[Any] = []

POLICY_OF_NUMBERS: dict[Any, Any] = {}


def shared_kernel(function: Callable[..., Any]) -> Any:
    """A kernel that takes long to compile, and whose arguments are all of our own types: compiled once on a
    machine, whatever policies call it."""
    dispatcher = kernel(function, SharedKernelCompiler)
    _shared.append(dispatcher)
    return dispatcher


def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
    """Fill `slate` with rows of the catalog, best first, and return how many were found."""
    policy = POLICY_OF_NUMBERS[type(numbers)]
    return policy.recommend(numbers, state, catalog, request, key, noise, slate)


def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
    """Update `state` with the first `examined` positions of `slate` and their `clicks`."""
    POLICY_OF_NUMBERS[type(numbers)].learn(numbers, state, catalog, request, slate, examined, clicks)


def estimate(numbers, state, catalog, request, rows, means, deviations):  # type: ignore[no-untyped-def]
    """Fill `means` and `deviations` with what is held for the attraction of each of the `rows`, or NaN."""
    POLICY_OF_NUMBERS[type(numbers)].estimate(numbers, state, catalog, request, rows, means, deviations)


def _policy_of(numbers: types.Type) -> Any:
    return POLICY_OF_NUMBERS.get(getattr(numbers, "instance_class", None))


@overload(recommend, jit_options=OPTIONS)
def _recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
    policy = _policy_of(numbers)
    return None if policy is None else policy.recommend


@overload(learn, jit_options=OPTIONS)
def _learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
    policy = _policy_of(numbers)
    return None if policy is None else policy.learn


@overload(estimate, jit_options=OPTIONS)
def _estimate(numbers, state, catalog, request, rows, means, deviations):  # type: ignore[no-untyped-def]
    policy = _policy_of(numbers)
    return None if policy is None else policy.estimate


@cache
def compiled(function: Callable[..., Any], policy: type) -> Callable[..., Any]:
    """`function` as a kernel of its own for this policy, loaded from the cache where it can be."""
    keep_shared_kernels()
    dispatcher = kernel(function)
    _keep(dispatcher, _cache_folder(function, policy))
    return dispatcher


def keep_shared_kernels() -> None:
    """Load shared kernels from the cache where they can be, and keep there what is compiled of them."""
    # Not when they are defined: importing us writes nothing.
    while _shared:
        dispatcher = _shared.pop()
        module = dispatcher.__module__
        folder = _folder_of(f"kernels.{module.rpartition('.')[2]}", {module})
        # The index of a shared kernel must not name a plug-in's type: without the plug-in it cannot be read.
        _keep(dispatcher, folder, lambda signature: all(map(_is_ours, getattr(signature, "args", signature))))


def _is_ours(of: types.Type) -> bool:
    made_by = getattr(of, "instance_class", None)
    ours = made_by is None or made_by.__module__.startswith("firstclick.kernels.")
    return ours and all(map(_is_ours, getattr(of, "types", ())))


def _keep(
    dispatcher: Any, folder: Path | None, keeps: Callable[[Any], bool] = lambda signature: True
) -> None:
    if folder is not None and not numba.config.DISABLE_JIT:
        keep(dispatcher, folder, keeps)


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
    file = getattr(sys.modules.get(function.__module__), "__file__", None)
    if file is None or os.path.abspath(file) != os.path.abspath(function.__code__.co_filename):
        return None  # Typed, or made elsewhere than in the module it names.
    modules = {base.__module__ for base in policy.__mro__} | {function.__module__}
    return _folder_of(f"{policy.__module__}.{policy.__name__}", modules)


def _folder_of(name: str, modules: set[str]) -> Path | None:
    """The folder for what is compiled from these modules; None if it cannot be kept."""
    try:
        folder = cache_root() / f"{name}-{digest({*modules, __name__})[:16]}"
    except OSError:
        return None  # A source file that was just edited: what is loaded may be older.
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        # A folder that can only be read, as in an image, still has the kernels that were compiled there. No
        # folder at all is no reason to fail: the kernel is compiled again by the next process.
        return folder if os.access(folder, os.R_OK | os.X_OK) else None
    return folder
