"""What kernels/numba_internals.py takes for granted of Numba.

If one of these fails after an upgrade of Numba: read the named part of Numba's source, adapt
kernels/numba_internals.py, then raise the bound of numba in pyproject.toml.
"""

import inspect
import re
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import bytecode, caching, compiler, funcdesc

from firstclick.kernels.compiling import OPTIONS, kernel, shared_kernel
from firstclick.kernels.numba_internals import KernelCompiler, SharedKernelCompiler, keep

TODO = f"; Numba {numba.__version__} changed this: adapt kernels/numba_internals.py"


def double(x):
    return 2 * x


def machine_name(dispatcher):
    (compiled,) = dispatcher.overloads.values()
    return compiled.fndesc.mangled_name


def test_the_number_in_a_name_is_ours():
    """Without it, functions out of the cache may be taken for one another (8093ec6)."""
    names = set()
    for _ in range(2):
        dispatcher = kernel(double)
        dispatcher(1)
        assert dispatcher._compiler.pipeline_class is KernelCompiler, "njit ignores pipeline_class" + TODO
        number = dispatcher.overloads[numba.int64,].fndesc.uid
        assert number > 2**32, (
            "FunctionIdentity.unique_id is no longer taken from the compiler's state" + TODO
        )
        assert f"v{number}" in machine_name(dispatcher), (
            "FunctionIdentity.unique_id is not in the name" + TODO
        )
        names.add(machine_name(dispatcher))
    assert len(names) == 2


def test_functions_given_by_overload_are_compiled_by_our_compiler():
    def twice(x):
        raise NotImplementedError

    numba.extending.overload(twice, jit_options=OPTIONS)(lambda x: double)

    @kernel
    def four_times(x):
        return twice(twice(x))

    assert four_times(1) == 4
    text = four_times.inspect_llvm(four_times.signatures[0])
    numbers = {int(number) for number in re.findall(r"6doubleB\d+v(\d+)B", text)}
    assert numbers, "FunctionIdentity.unique_id is not in the name" + TODO
    assert min(numbers) > 2**32, "overload ignores jit_options" + TODO


@kernel
def half(x):
    return x / 2


@shared_kernel
def third(x):
    return x / 3


@kernel
def half_and_third(x):
    return half(x) + third(x)


def test_a_kernel_that_another_one_calls_becomes_no_machine_code_of_its_own():
    assert half_and_third(6.0) == 5.0
    for part in (half, third):
        (result,) = part.overloads.values()
        with pytest.raises(NotImplementedError):
            result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
        assert f"cpython{result.fndesc.mangled_name[3:]}" not in part.inspect_llvm(result.signature.args), (
            "Flags.no_cpython_wrapper" + TODO
        )
    assert half_and_third(7) > 0
    # Python can call them nevertheless.
    for _ in range(2):
        assert half(7) == 3.5, "Dispatcher.add_overload or Dispatcher.compile" + TODO
    assert third(9) == 3.0
    assert half_and_third(np.float32(6)) == 5.0


def test_python_can_call_a_kernel_while_numba_compiles_something_else():
    def table(x):
        raise NotImplementedError

    @kernel
    def square(x):
        return x * x

    @numba.extending.overload(table, jit_options=OPTIONS)
    def _(x):
        constant = square(3)
        return lambda x: square(x) + constant

    assert kernel(lambda x: table(x))(4) == 25, "Dispatcher._compile_for_args" + TODO
    assert square(5) == 25


def test_exceptions_come_out_of_parts():
    """They need the environment of the function that raises, which Numba sets for whole functions alone."""

    @kernel
    def refuse(x):
        if x > 1:
            raise ValueError("more than one", x)
        return x

    twice = kernel(lambda x: refuse(x) + refuse(x))
    assert twice(1) == 2
    with pytest.raises(ValueError, match="more than one"):
        twice(2)


@kernel
def factorial(n):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


def test_a_part_may_call_itself():
    assert kernel(lambda n: factorial(n) + 1)(5) == 121, "RuntimeLinker.PREFIX" + TODO
    assert factorial(6) == 720


def test_code_and_its_parts_are_saved_in_the_folder_and_loaded_from_it(tmp_path):
    names, hits_of_parts = [], []
    for hits in (0, 1):
        dispatcher = kernel(double)
        keep(dispatcher, tmp_path)
        assert dispatcher(1) == 2
        assert sum(dispatcher.stats.cache_hits.values()) == hits, "Dispatcher._cache is not used" + TODO
        names.append(machine_name(dispatcher))
        part = kernel(third.py_func, SharedKernelCompiler)
        keep(part, tmp_path)
        assert kernel(lambda x, part=part: part(x) * 3)(2.0) == 2.0
        assert part(3.0) == 1.0
        hits_of_parts.append(sum(part.stats.cache_hits.values()))
    assert names[0] == names[1]
    assert hits_of_parts == [0, 2], "Cache._index_key, CompileResultCacheImpl.reduce or .rebuild" + TODO
    assert {file.suffix for file in tmp_path.iterdir()} == {".nbi", ".nbc", ""}, (
        "IndexDataCacheFile does not write where _CacheLocator.get_cache_path says" + TODO
    )
    assert (tmp_path / "lock").exists(), "Cache._cache_file is not used" + TODO
    other = kernel(double)
    keep(other, tmp_path / "other", lambda signature: False)
    other(1)
    assert not list(tmp_path.glob("other/*.nbc")), "Cache.save_overload is not how Numba saves" + TODO


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (caching.Cache.__init__, ["self", "py_func"]),
        (caching.Cache.save_overload, ["self", "sig", "data"]),
        (caching.CacheImpl.get_filename_base, ["self", "fullname", "abiflags"]),
        (caching.IndexDataCacheFile.__init__, ["self", "cache_path", "filename_base", "source_stamp"]),
        (caching.IndexDataCacheFile.save, ["self", "key", "data"]),
        (caching.IndexDataCacheFile.load, ["self", "key"]),
        (compiler.CompilerBase.define_pipelines, ["self"]),
        (bytecode.FunctionIdentity.from_function, ["pyfunc"]),
        (funcdesc.default_mangler, ["name", "argtypes", "abi_tags", "uid"]),
    ],
)
def test_what_we_override_or_rely_on_has_the_same_parameters(function, parameters):
    assert list(inspect.signature(function).parameters) == parameters, function.__qualname__ + TODO


def test_the_locator_has_nothing_more_to_define():
    abstract = caching._CacheLocator.__abstractmethods__
    assert abstract == {"get_cache_path", "get_source_stamp", "get_disambiguator"}, "_CacheLocator" + TODO


def test_numba_is_not_patched():
    """Other libraries in the process keep the Numba that they know."""
    source = Path(inspect.getfile(KernelCompiler)).read_text()
    assert "_unique_ids" not in source
    assert not hasattr(bytecode.FunctionIdentity._unique_ids, "__code__")
    assert type(bytecode.FunctionIdentity._unique_ids).__name__ == "count"
