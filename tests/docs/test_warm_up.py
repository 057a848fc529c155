"""`firstclick warm-up` leaves nothing to compile for a server."""

import os
import subprocess
import sys

import pytest

SERVED = """
from firstclick.serve.config import Settings
from firstclick.serve.http.server import Server
from firstclick.serve.startup import open_for
service = open_for(Settings(demo=True, policy="{policy}", store="shop.db", explore={explore}, port=0)).service
with Server(service, Settings(port=0)):
    slate = service.recommend("default")
    service.feedback("default", slate.token, 0)
service.close()
"""


def run(*words, cache, cwd, **more):
    env = os.environ | {"FIRSTCLICK_CACHE_DIR": str(cache)} | more
    return subprocess.run([sys.executable, *words], env=env, cwd=cwd, capture_output=True, text=True)


@pytest.mark.long
@pytest.mark.parametrize(("policy", "explore"), [("cascade-ts", 0.2), ("bubble-rank", 0.0)])
def test_a_server_compiles_nothing_after_warm_up(tmp_path, policy, explore):
    cache = tmp_path / "cache"
    first = run("-m", "firstclick", "warm-up", "--policy", policy, cache=cache, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "kernels compiled" in first.stdout
    assert str(cache) in first.stdout
    kernels = {file: file.stat().st_mtime_ns for file in cache.rglob("*.nb[ci]")}
    again = run("-m", "firstclick", "warm-up", "--policy", policy, cache=cache, cwd=tmp_path)
    assert "all kernels were there" in again.stdout, again.stderr
    served = run("-c", SERVED.format(policy=policy, explore=explore), cache=cache, cwd=tmp_path)
    assert served.returncode == 0, served.stderr
    assert {file: file.stat().st_mtime_ns for file in cache.rglob("*.nb[ci]")} == kernels


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    done = run("-m", "firstclick", "warm-up", cache=tmp_path / "file" / "cache", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("error: kernels cannot be kept in ")
    assert "FIRSTCLICK_CACHE_DIR" in done.stderr


def test_nothing_is_compiled_where_compiling_is_off(tmp_path):
    done = run("-m", "firstclick", "warm-up", cache=tmp_path, cwd=tmp_path, NUMBA_DISABLE_JIT="1")
    assert done.returncode == 2
    assert "NUMBA_DISABLE_JIT" in done.stderr
