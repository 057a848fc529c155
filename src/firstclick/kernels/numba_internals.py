"""Everything we use of Numba that Numba does not promise to keep.

Two things: how a function is named in machine code, and where machine code is kept.
tests/test_numba_internals.py checks both; pyproject.toml says up to which version of Numba that was tried.
"""

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator
from numba.core.compiler import Compiler

try:
    import fcntl
except ImportError:  # Windows: code that two processes compile at the same moment may be compiled again.
    fcntl = None  # type: ignore[assignment]


class KernelCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler, with a name in machine code that no other function has in any process.

    Numba names a function by its module, its qualified name, the names of its argument types, and a number
    that it counts up from 1 in each process. Functions made by one factory, and types of one name, differ in
    the number alone. Two such functions, compiled by different processes and loaded into one, could get the
    same name, and then the second would run the code of the first. So the number is drawn at random.
    """

    def define_pipelines(self) -> Any:
        """The usual passes. Numba calls this once for each function, before the first pass."""
        function = self.state.func_id
        function.unique_id = secrets.randbits(63)
        function.unique_name = f"{function.func_qualname}${function.unique_id}"
        return super().define_pipelines()


def keep(dispatcher: Any, folder: Path, keeps: Callable[[Any], bool] = lambda signature: True) -> None:
    """Load the machine code of a kernel from this folder, and save it there if `keeps` accepts the signature.

    The folder's name must change with the kernel's source.
    """
    dispatcher._cache = _KernelCache(dispatcher.py_func, folder, keeps)


class _KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function, in a given folder."""

    def __init__(self, function: Callable[..., Any], folder: Path, keeps: Callable[[Any], bool]) -> None:
        self._keeps = keeps
        self._impl_class = partial(_Code, folder=folder)
        super().__init__(function)
        self._cache_file = _Files(
            str(folder), self._impl.filename_base, self._impl.locator.get_source_stamp()
        )

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save what was compiled for this signature."""
        if self._keeps(sig):
            super().save_overload(sig, data)


class _Code(CompileResultCacheImpl):  # type: ignore[misc]
    """How a compiled function becomes bytes, and the names of its files."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        code = function.__code__
        self._lineno = code.co_firstlineno
        self._locator = _Locator(folder, code.co_filename, code.co_firstlineno)
        self._filename_base = self.get_filename_base(
            f"{Path(code.co_filename).stem}.{function.__qualname__}", ""
        )


class _Locator(_CacheLocator):  # type: ignore[misc]
    """The given folder. Its name stands for the source, so the source needs no further stamp."""

    def __init__(self, folder: Path, file: str, line: int) -> None:
        self._folder, self._py_file, self._line = folder, file, line

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return ""

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Files(IndexDataCacheFile):  # type: ignore[misc]
    """Numba's files of one function, used by one process at a time.

    Numba reads an index, adds a name to it and writes a file of that name. If two processes do so together
    for different signatures, one signature gets the code of the other.
    """

    def save(self, key: Any, data: Any) -> None:
        with _locked(Path(self._cache_path)):
            super().save(key, data)

    def load(self, key: Any) -> Any:
        with _locked(Path(self._cache_path)):
            return super().load(key)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with ExitStack() as stack:
        # Whoever cannot write here cannot spoil it either; and not every file system has locks.
        with suppress(OSError):
            file = stack.enter_context((folder / "lock").open("ab"))
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
                # Closing is not enough if the process was forked meanwhile.
                stack.callback(fcntl.flock, file, fcntl.LOCK_UN)
        yield
