"""How a function becomes a kernel, and where its machine code is kept between processes.

A policy's `recommend`, `learn` and `estimate` are found by the type of the numbers they are called with, so
that one loop, written once, is compiled for every policy. Each policy gets its own dispatcher and
its own cache folder: Numba keeps all signatures of a cached function in one index, and an index
that names an uninstalled plug-in can no longer be read by anybody. The folder's name holds a hash
of the policy's file and of all kernels that it imports, because Numba only notices changes in one file.
Large kernels that have nothing to do with a policy are kept by themselves, for all of them.
"""

import hashlib
import os
import re
import secrets
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any

import numba
from numba import types
from numba.core.bytecode import FunctionIdentity
from numba.extending import overload

try:
    import fcntl
except ImportError:  # Windows: what two processes compile at the same instant may have to be compiled again.
    fcntl = None  # type: ignore[assignment]

# `error_model` lets a division by zero give inf, as in NumPy, so that loops stay vectorised.
# No `fastmath`: sums keep their order, so that results do not depend on the machine's vectors.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}

kernel = numba.njit(**OPTIONS)

# Functions that one factory made, and learners of one class name, have one name in machine code, but for a
# number that Numba counts up from 1 in every process. Two of them out of a cache that different processes
# filled may then have the same name and number, and of two such functions only the first is ever called.
FunctionIdentity._unique_ids = iter(lambda: secrets.randbits(63), None)

_changing_cache_dir = threading.Lock()
_shared: list[Any] = []

POLICY_OF_NUMBERS: dict[Any, Any] = {}


def shared_kernel(function: Callable[..., Any]) -> Any:
    """A kernel that takes long to compile, and whose arguments are all of our own types: compiled once on a
    machine, whatever policies call it."""
    dispatcher = kernel(function)
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
    _keep_shared_kernels()
    dispatcher = numba.njit(**OPTIONS)(function)
    _keep(dispatcher, _cache_folder(function, policy))
    return dispatcher


@cache
def _keep_shared_kernels() -> None:
    # Not when they are defined: importing us writes nothing.
    for dispatcher in _shared:
        source = dispatcher.__code__.co_filename
        _keep(dispatcher, _folder_of(f"kernels.{Path(source).stem}", {source}))
        _keep_for_our_types_alone(dispatcher)


def _keep_for_our_types_alone(dispatcher: Any) -> None:
    """A state of a plug-in's own type in the index of a shared kernel would be found when it is gone."""
    kept = getattr(dispatcher, "_cache", None)
    save = getattr(kept, "save_overload", None)
    if kept is None or save is None:
        return

    def save_ours(signature: Any, data: Any) -> None:
        if all(map(_is_ours, getattr(signature, "args", signature))):
            save(signature, data)

    kept.save_overload = save_ours


def _is_ours(of: types.Type) -> bool:
    made_by = getattr(of, "instance_class", None)
    ours = made_by is None or made_by.__module__.startswith("firstclick.kernels.")
    return ours and all(map(_is_ours, getattr(of, "types", ())))


def _keep(dispatcher: Any, folder: Path | None) -> None:
    """Have this kernel kept in the folder, and taken from there."""
    if folder is None or numba.config.DISABLE_JIT:
        return
    # The setting is Numba's own and global: one thread at a time, and put back at once. Wrapped within, too:
    # what two threads wrap together would wait for itself.
    with _changing_cache_dir:
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(folder)
        try:
            dispatcher.enable_caching()
        finally:
            numba.config.CACHE_DIR = before
        _let_one_in_at_a_time(dispatcher._cache._cache_file, folder)


def _let_one_in_at_a_time(files: Any, folder: Path) -> None:
    """Numba reads an index, adds a name to it and writes a file of that name: of two processes that do so
    together with different signatures, one would be kept under the name of the other."""

    def alone(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*arguments: Any) -> Any:
            with _locked(folder):
                return method(*arguments)

        return call

    files.save, files.load = alone(files.save), alone(files.load)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with ExitStack() as stack:
        # Whoever cannot write here cannot spoil it either; and not every file system knows locks.
        with suppress(OSError):
            file = stack.enter_context((folder / "lock").open("ab"))
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
                # Closing would not do, if the process was forked meanwhile.
                stack.callback(fcntl.flock, file, fcntl.LOCK_UN)
        yield


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
    return _folder_of(f"{policy.__module__}.{policy.__name__}", {*sources, function.__code__.co_filename})


def _folder_of(name: str, sources: set[str]) -> Path | None:
    """The folder for what is compiled from these files; None if it cannot be written."""
    digest = hashlib.sha256()
    try:
        for source in sorted(_with_kernels(sources | {__file__})):
            digest.update(Path(source).read_bytes())
        folder = cache_root() / f"{name}-{digest.hexdigest()[:16]}"
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None  # A home that cannot be written is no reason to fail: the kernel is compiled again.
    return folder


def _with_kernels(sources: set[str]) -> set[str]:
    """These files and every file of kernels and policies that one of them imports, however far away."""
    found, waiting = set(sources), list(sources)
    while waiting:
        for file in _imported_by(waiting.pop()):
            if file not in found:
                found.add(file)
                waiting.append(file)
    return found


@cache
def _imported_by(source: str) -> tuple[str, ...]:
    imports = re.findall(
        r"^from firstclick\.(kernels|policies)\.(\w+) import", Path(source).read_text("utf-8"), re.M
    )
    return tuple(str(Path(__file__).parents[1] / package / f"{name}.py") for package, name in imports)
