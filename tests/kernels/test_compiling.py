"""Where compiled kernels are kept, and what happens where they cannot be."""

import ast
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
import types
from pathlib import Path

import pytest
from numba.core.caching import FunctionCache, IndexDataCacheFile

from firstclick.experiments.loop import look_at_row
from firstclick.kernels import compiling, source_files
from firstclick.policies.cascade_ucb1 import CascadeUCB1
from firstclick.policies.random import Random


def test_each_policy_has_its_own_folder_that_changes_with_the_sources(tmp_path, monkeypatch):
    monkeypatch.setenv("FIRSTCLICK_CACHE_DIR", str(tmp_path))
    folders = {compiling._cache_folder(look_at_row, policy) for policy in (CascadeUCB1, Random)}
    assert {folder.name.split("-")[0] for folder in folders} == {
        "firstclick.policies.cascade_ucb1.CascadeUCB1",
        "firstclick.policies.random.Random",
    }
    before = compiling._cache_folder(look_at_row, Random)
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"# changed")
    source_files._read.cache_clear()
    assert compiling._cache_folder(look_at_row, Random) != before
    source_files._read.cache_clear()
    # A class that no process can import is not cached.
    local = type("Local", (Random,), {})
    assert (compiling.findable(local), compiling.findable(Random)) == (False, True)
    assert compiling._cache_folder(look_at_row, local) is None


def test_a_cache_that_cannot_be_made_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("FIRSTCLICK_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert compiling._cache_folder(look_at_row, Random) is None
    kernel = compiling.compiled.__wrapped__(look_at_row, Random)
    assert kernel._cache.__class__.__name__ == "NullCache"


def test_a_cache_that_can_only_be_read_is_read(tmp_path, monkeypatch):
    """As in an image: what was compiled at its build is used, and nothing is added."""
    monkeypatch.setenv("FIRSTCLICK_CACHE_DIR", str(tmp_path))
    folder = compiling._cache_folder(look_at_row, Random)

    def refuse(*_, **__):
        raise PermissionError

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert compiling._cache_folder(look_at_row, Random) == folder
    monkeypatch.setattr(FunctionCache, "save_overload", refuse)
    kernel = compiling.compiled.__wrapped__(look_at_row, Random)
    kernel._cache.save_overload((), None)  # raises nothing


def printed(code, folder):
    """The words that a new process prints which imports from this folder first, and keeps its cache there."""
    environment = os.environ | {
        "FIRSTCLICK_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
        "PYTHONDONTWRITEBYTECODE": "1",  # Python itself takes an edit within the same second for none.
    }
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


MAKER = """
import numpy as np
from firstclick.kernels.compiling import kernel

def best_by(score):
    @kernel
    def best(values):
        order = np.argsort(np.array([score(value) for value in values]))
        return order[-1] + 10 * order[-2]

    return best
"""

MADE = """
import numpy as np
from firstclick.kernels.compiling import compiled, kernel
from firstclick.policies.random import Random
from maker import best_by

best = best_by(kernel(lambda value: {sign}value))

class Made(Random):
    name = "made-{number}"

def ask(values):
    return best(values) + 100 * best(values[1:])

def answer():
    return compiled(ask, Made)(np.array([5.0, 7.0, 9.0]))
"""


@pytest.mark.long
def test_kernels_of_one_name_out_of_the_cache_are_not_taken_for_one_another(tmp_path):
    """Numba would number the functions of each process from 1, and the second would call the first."""
    (tmp_path / "maker.py").write_text(MAKER)
    for number, sign in ((1, "+"), (2, "-")):
        (tmp_path / f"made_{number}.py").write_text(MADE.format(number=number, sign=sign))
    first = printed("import made_1; print(made_1.answer())", tmp_path)
    second = printed("import made_2; print(made_2.answer())", tmp_path)
    assert first != second
    both = printed("import made_1, made_2; print(made_1.answer(), made_2.answer())", tmp_path)
    assert both == first + second


TWIN = """
from math import *
from firstclick import param
from firstclick.kernels.compiling import compiled, kernel
from firstclick.policies.random import Random

class Twin(Random):
    name = "twin-{number}"
    {first}: float = param(1.0, "the first")
    {second}: float = param(2.0, "the second")

@kernel
def small(numbers, n):
    # Long, and called twice: it must not be inlined, or nobody would look for its name.
    total = 0.0
    for i in range(n):
        total += sin(i) + cos(i) + tan(i) + exp(-i) + log1p(i) + atan(i) + erf(i) + sqrt(i)
        total += sin(2 * i) + cos(2 * i) + tan(2 * i) + exp(-2 * i) + log1p(2 * i) + atan(2 * i) + erf(2 * i)
    return numbers.small + 0 * total

small.py_func.__module__ = "{module}"  # as if both had taken this kernel from one module

def ask(numbers, n):
    return (small(numbers, n) + small(numbers, n + 1)) / 2

def answer():
    return compiled(ask, Twin)(Twin().numbers(1, None), 3)
"""


@pytest.mark.long
def test_types_of_one_name_out_of_the_cache_are_not_taken_for_one_another(tmp_path):
    """Numba names a type by its class alone. Here two policies of one class name order their parameters
    differently."""
    for number, names in ((1, ("small", "large")), (2, ("large", "small"))):
        text = TWIN.format(
            number=number, first=names[0], second=names[1], module="firstclick.kernels.hashing"
        )
        (tmp_path / f"twin_{number}.py").write_text(text)
    assert printed("import twin_1; print(twin_1.answer())", tmp_path) == ["1.0"]
    assert printed("import twin_2; print(twin_2.answer())", tmp_path) == ["2.0"]
    both = printed("import twin_1, twin_2; print(twin_1.answer(), twin_2.answer())", tmp_path)
    assert both == ["1.0", "2.0"]


PLUG_IN = """
from helper import BONUS
from firstclick.kernels.compiling import compiled
from firstclick.policies.random import Random

class Plugged(Random):
    name = "plugged"

def ask():
    return BONUS

def answer():
    return compiled(ask, Plugged)()
"""
ASK_PLUG_IN = "from plug import *; print(answer(), len(compiled(ask, Plugged).stats.cache_hits))"


@pytest.fixture
def plug_in(tmp_path):
    """The folder of a plug-in and of the module that it imports."""
    (tmp_path / "plug.py").write_text(PLUG_IN)
    (tmp_path / "helper.py").write_text("BONUS = 1")
    return tmp_path


def test_an_edit_of_a_module_of_a_plug_in_is_seen_with_a_warm_cache(plug_in):
    assert printed(ASK_PLUG_IN, plug_in) == ["1", "0"]
    assert printed(ASK_PLUG_IN, plug_in) == ["1", "1"]
    (plug_in / "helper.py").write_text("BONUS = 2")
    assert printed(ASK_PLUG_IN, plug_in) == ["2", "0"]


EDIT_IN_PLACE = "file.write_text('BONUS = 2')"
# As rsync and installers do: another file, with the time that it has elsewhere.
PUT_IN_PLACE = """
other = file.with_name("other.txt")
other.write_text("BONUS = 2")
os.utime(other, (1e9, 1e9))
os.replace(other, file)
"""


@pytest.mark.parametrize(
    ("edit", "imported_first"),
    [
        pytest.param(EDIT_IN_PLACE, "plug", marks=pytest.mark.long),
        (EDIT_IN_PLACE, "helper"),
        pytest.param(PUT_IN_PLACE, "plug", marks=pytest.mark.long),
    ],
)
def test_code_from_a_file_that_was_edited_after_its_import_is_not_kept(plug_in, edit, imported_first):
    """It would be kept under the hash of the new text. firstclick may be imported only after the edit."""
    code = f"""
import os, pathlib, time, {imported_first}, helper
file = pathlib.Path(helper.__file__)
time.sleep(0.03)  # Longer than a tick of the clocks that are compared.
{edit}
import plug
print(plug.answer())
"""
    assert printed(code, plug_in) == ["1"]
    assert printed("import plug; print(plug.answer())", plug_in) == ["2"]


@pytest.mark.parametrize(
    ("text", "followed"),
    [
        ("from shop.helper import BONUS", {"shop.helper"}),
        ("from .helper import BONUS", {"shop.helper"}),
        ("from . import helper", {"shop", "shop.helper"}),
        ("from shop import (  # the (best) one\n    helper,\n)", {"shop", "shop.helper"}),
        ("import shop.helper as h", {"shop", "shop.helper"}),
        ("import os, shop.helper", {"shop", "shop.helper"}),
        ("try: from shop.helper import BONUS\nexcept ImportError: pass", {"shop.helper"}),
        ("from shop.helper \\\n    import BONUS", {"shop.helper"}),
        ("def later():\n    from shop import helper", {"shop", "shop.helper"}),
        ("from shop.chain import BONUS", {"shop.chain", "shop.helper"}),
        ("from lone_neighbour import BONUS", {"lone_neighbour"}),
        ("import numpy, json", set()),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import shop.helper", set()),
        ('"""\nfrom shop.helper on\nimport this is\n"""', set()),
        ("from firstclick.serve.log.token import PLAIN", {"firstclick.serve.log.token"}),
    ],
)
def test_imports_are_followed(tmp_path, monkeypatch, text, followed):
    (tmp_path / "shop").mkdir()
    for name in ("__init__", "helper"):
        (tmp_path / f"shop/{name}.py").write_text("BONUS = 1")
    (tmp_path / "shop/chain.py").write_text("from shop.helper import BONUS")
    (tmp_path / "lone_neighbour.py").write_text("BONUS = 1")
    (tmp_path / "shop/start.py").write_text(text)
    start = types.SimpleNamespace(__file__=str(tmp_path / "shop/start.py"))
    monkeypatch.setitem(sys.modules, "shop.start", start)
    monkeypatch.setattr(source_files, "_STARTED", time.time() + 60)
    names = {module.name for module in source_files.with_imports(["shop.start"])}
    assert names >= followed
    assert {name for name in names - followed if not name.startswith("firstclick.")} == {"shop.start"}


def test_other_installed_packages_are_not_followed(tmp_path, monkeypatch):
    for name, text in (("shop", "import tool"), ("tool", "")):
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "tool-1.0.dist-info").mkdir()
    monkeypatch.setitem(sys.modules, "shop", types.SimpleNamespace(__file__=str(tmp_path / "shop.py")))
    monkeypatch.setattr(source_files, "_STARTED", time.time() + 60)
    assert [module.name for module in source_files.with_imports(["shop"])] == ["shop"]


def test_the_quick_way_to_read_imports_misses_none():
    """It may find too many, in the text of a docstring."""
    for file in Path(compiling.__file__).parents[1].rglob("*.py"):
        source = file.read_bytes()
        slow = source_files._names(ast.parse(source), ["firstclick"])
        assert source_files.imported_names(source, ["firstclick"]) >= slow, file


def test_what_two_compile_at_the_same_instant_is_kept_under_two_names(tmp_path, monkeypatch):
    """Each reads the index before the other has written it, if it can."""
    monkeypatch.setenv("FIRSTCLICK_CACHE_DIR", str(tmp_path))
    both_have_read = threading.Barrier(2)
    save_index = IndexDataCacheFile._save_index

    def save_late(files, overloads):
        with contextlib.suppress(threading.BrokenBarrierError):
            both_have_read.wait(timeout=0.3)
        save_index(files, overloads)

    monkeypatch.setattr(IndexDataCacheFile, "_save_index", save_late)
    files = [compiling.compiled.__wrapped__(look_at_row, Random)._cache._cache_file for _ in range(2)]
    threads = [
        threading.Thread(target=one.save, args=(signature, f"code for {signature}"))
        for one, signature in zip(files, ("integers", "floats"), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [files[0].load(signature) for signature in ("integers", "floats")] == [
        "code for integers", "code for floats",
    ]  # fmt: skip
