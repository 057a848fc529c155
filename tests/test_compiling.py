"""Where compiled kernels are kept, and what happens where they cannot be."""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numba
import pytest
from numba.core.caching import IndexDataCacheFile

from firstclick.kernels import compiling
from firstclick.policies.cascade_ucb1 import CascadeUCB1
from firstclick.policies.random import Random
from firstclick.simulate.loop import look_at_row


def test_each_policy_has_a_folder_of_its_own_that_changes_with_the_sources(tmp_path, monkeypatch):
    monkeypatch.setenv("FIRSTCLICK_CACHE_DIR", str(tmp_path))
    folders = {compiling._cache_folder(look_at_row, policy) for policy in (CascadeUCB1, Random)}
    assert {folder.name.split("-")[0] for folder in folders} == {
        "firstclick.policies.cascade_ucb1.CascadeUCB1",
        "firstclick.policies.random.Random",
    }
    before = compiling._cache_folder(look_at_row, Random)
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"# changed")
    assert compiling._cache_folder(look_at_row, Random) != before


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    """An existing folder of another user: mkdir succeeds, writing does not."""
    monkeypatch.setenv("FIRSTCLICK_CACHE_DIR", str(tmp_path))

    def refuse(**options):
        raise PermissionError

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert compiling._cache_folder(look_at_row, Random) is None
    kernel = compiling.compiled.__wrapped__(look_at_row, Random)
    assert kernel._cache.__class__.__name__ == "NullCache"


def test_a_class_that_nobody_can_import_is_not_cached():
    class Typed(Random):
        pass

    assert not compiling.findable(Typed)
    assert compiling._cache_folder(look_at_row, Typed) is None
    assert compiling.findable(Random)


@pytest.mark.parametrize("attempt", range(5))
def test_threads_leave_the_setting_of_numba_as_it_was(tmp_path, monkeypatch, attempt):
    monkeypatch.setenv("FIRSTCLICK_CACHE_DIR", str(tmp_path))
    before = numba.config.CACHE_DIR
    threads = [
        threading.Thread(target=compiling.compiled.__wrapped__, args=(look_at_row, policy))
        for policy in (CascadeUCB1, Random) * 4
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert before == numba.config.CACHE_DIR


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


def test_kernels_of_one_name_out_of_the_cache_are_not_taken_for_one_another(tmp_path):
    """Numba would number the functions of each process from 1, and the second would call the first."""
    (tmp_path / "maker.py").write_text(MAKER)
    for number, sign in ((1, "+"), (2, "-")):
        (tmp_path / f"made_{number}.py").write_text(MADE.format(number=number, sign=sign))
    environment = os.environ | {
        "FIRSTCLICK_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
    }

    def answers(code):
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    first = answers("import made_1; print(made_1.answer())")
    second = answers("import made_2; print(made_2.answer())")
    assert first != second
    assert answers("import made_1, made_2; print(made_1.answer(), made_2.answer())") == first + second


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


def test_a_cache_is_locked_before_another_thread_can_give_the_kernel_a_new_one(tmp_path, monkeypatch):
    """Two locks around one cache would wait for one another."""
    monkeypatch.setenv("FIRSTCLICK_CACHE_DIR", str(tmp_path))
    nobody_else = []
    monkeypatch.setattr(
        compiling,
        "_let_one_in_at_a_time",
        lambda *given: nobody_else.append(compiling._changing_cache_dir.locked()),
    )
    compiling.compiled.__wrapped__(look_at_row, Random)
    assert nobody_else == [True]
