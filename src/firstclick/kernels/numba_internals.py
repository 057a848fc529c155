"""Everything we use of Numba that Numba does not promise to keep.

Three things: how a function is named in machine code, what becomes machine code at all, and where it is kept.
tests/kernels/test_numba_internals.py checks them; pyproject.toml names the last version that was tried.
"""

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from filelock import lock_descriptor, unlock_descriptor
from llvmlite import binding
from numba.core import sigutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator
from numba.core.codegen import JITCodeLibrary, RuntimeLinker
from numba.core.compiler import Compiler, CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.targetconfig import ConfigStack


class KernelCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler, but for names and parts.

    **Names.** Numba names a function by its module, its qualified name, the names of its argument types, and
    a number that it counts up from 1 in each process. Functions made by one factory, and types of one name,
    differ in the number alone. Two such functions, compiled by different processes and loaded into one, could
    get the same name, and then the second would run the code of the first. So the number is drawn at random.

    **Parts.** A kernel that is compiled because another function calls it is linked into that function, and
    optimised and translated with it. Numba would also optimise it and translate it to machine code by itself,
    with a wrapper to call it from Python. Nobody runs that code, and it is half of the time. We leave it out.
    """

    library_class: Any
    is_part = False

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile a Python function."""
        self.is_part = _wanted_as_part(func)
        return super().compile_extra(func)

    def define_pipelines(self) -> Any:
        """The usual passes. Numba calls this once for each function, before the first pass."""
        function, flags = self.state.func_id, self.state.flags
        function.unique_id = secrets.randbits(63)
        function.unique_name = f"{function.func_qualname}${function.unique_id}"
        if self.is_part:
            flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
            self.state.library = self.library_class(self.state.targetctx.codegen(), function.func_qualname)
        return super().define_pipelines()

    def _compile_core(self) -> Any:
        result = super()._compile_core()
        if self.is_part:
            result = result._replace(entry_point=_Part().update)
            self.state.targetctx.insert_user_function(result.entry_point, result.fndesc, [result.library])
            _define(result.environment, result.library.codegen)
        return result


class SharedKernelCompiler(KernelCompiler):
    """As a part of many functions, a shared kernel is optimised by itself, once for all of them."""


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A kernel. If it was compiled as a part, it is compiled again when Python calls it."""

    def compile(self, sig: Any) -> Any:
        """What to call for this signature."""
        arguments = tuple(sigutils.normalize_signature(sig)[0])
        with global_compiler_lock:  # Another thread may be about to link the part.
            known = self.overloads.get(arguments)
            if known is not None and _is_part(known) and not _wanted_as_part(self.py_func):
                del self.overloads[arguments]
            return super().compile(sig)

    def _compile_for_args(self, *arguments: Any, **options: Any) -> Any:
        # Numba calls this when Python calls us, and that may be while something else is compiled.
        before, _python.calls = getattr(_python, "calls", None), self.py_func
        try:
            return super()._compile_for_args(*arguments, **options)
        finally:
            _python.calls = before

    def add_overload(self, cres: Any) -> None:
        """Take up what was compiled. Python does not get to see a part."""
        if _is_part(cres):
            self.overloads[tuple(cres.signature.args)] = cres
        else:
            super().add_overload(cres)


class _Part(dict[None, None]):
    """Stands for a function that has no machine code of its own.

    Numba wants a built-in function, and another one for each. The `update` of an empty dictionary is one, and
    does no harm.
    """


_python = threading.local()


def _wanted_as_part(function: Callable[..., Any]) -> bool:
    """Whether Numba is compiling something that calls the function, not Python calling it."""
    return ConfigStack.top_or_none() is not None and getattr(_python, "calls", None) is not function


def _is_part(result: Any) -> bool:
    return isinstance(getattr(result.entry_point, "__self__", None), _Part)


class _PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a part, as it comes from Numba: to be linked, not to be run."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        if any(each.name.startswith(RuntimeLinker.PREFIX) for each in self._final_module.global_variables):
            super()._finalize_final_module()  # A function that calls itself needs an address.
            return
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        raise NotImplementedError(f"{self.name} is a kernel: kernels can be called, but not passed as values")


class _OptimisedPartLibrary(_PartLibrary):
    def _optimize_final_module(self) -> None:
        JITCodeLibrary._optimize_final_module(self)


KernelCompiler.library_class = _PartLibrary
SharedKernelCompiler.library_class = _OptimisedPartLibrary

# By name. Machine code has the addresses of environments, which nobody else may keep alive.
_defined: dict[str, Any] = {}


def _define(environment: Any, codegen: Any) -> None:
    """Define the variable in which a function's machine code finds its environment, wherever it is linked."""
    name = environment.env_name
    if name not in _defined:
        _defined[name] = environment
        empty = str(codegen._create_empty_module(name))
        codegen._add_module(binding.parse_assembly(f'{empty}\n@"{name}" = common global i8* null\n'))
        codegen._engine.finalize_object()
        codegen.set_env(name, environment)


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
        # A folder that can only be read gives what it has and keeps nothing more.
        if self._keeps(sig):
            with suppress(OSError):
                super().save_overload(sig, data)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        # A kernel that Python calls is not loaded as a part, and a part not with a wrapper.
        return *super()._index_key(sig, codegen), _wanted_as_part(self._py_func)


class _Code(CompileResultCacheImpl):  # type: ignore[misc]
    """How a compiled function becomes bytes, and the names of its files."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        code = function.__code__
        self._lineno = code.co_firstlineno
        self._locator = _Locator(folder, code.co_filename, code.co_firstlineno)
        self._filename_base = self.get_filename_base(
            f"{Path(code.co_filename).stem}.{function.__qualname__}", ""
        )

    def reduce(self, cres: Any) -> Any:
        """What is to be saved: of a part its code before it is translated, else what Numba saves."""
        if not _is_part(cres):
            return super().reduce(cres)
        cres.fndesc.typemap = cres.fndesc.calltypes = (
            None  # as Numba does: not needed, and not always to be saved
        )
        code = cres.library._get_module_for_linking().as_bitcode()
        environments = [cres.environment, *cres._find_referenced_environments()]
        return "part", cres.library.name, code, cres.fndesc, cres.signature, environments

    def rebuild(self, target_context: Any, reduced_data: Any) -> Any:
        """What was saved, ready to be called or linked."""
        if reduced_data[0] != "part":
            return super().rebuild(target_context, reduced_data)
        _, name, code, function, signature, environments = reduced_data
        library = _PartLibrary(target_context.codegen(), name)
        library._final_module = binding.parse_bitcode(code)
        library._finalize_final_module()
        for environment in environments:
            _define(environment, library.codegen)
        return CompileResult(**dict.fromkeys(CompileResult._fields))._replace(
            target_context=target_context,
            typing_context=target_context.typing_context,
            library=library,
            environment=environments[0],
            entry_point=_Part().update,
            fndesc=function,
            signature=signature,
            objectmode=False,
            lifted=(),
            reload_init=(),
            referenced_envs=environments,
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
            lock_descriptor(file.fileno(), poll_interval=0.001)
            # Closing is not enough if the process was forked meanwhile.
            stack.callback(unlock_descriptor, file.fileno())
        yield
