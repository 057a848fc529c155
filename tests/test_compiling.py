"""Where compiled kernels are kept, and what happens where they cannot be."""

import tempfile
import threading
from pathlib import Path

import numba
import pytest

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
