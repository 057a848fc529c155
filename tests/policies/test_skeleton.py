"""examples/skeleton_policy.py, the policy to copy, passes the checks that a plug-in's own tests inherit."""

import os
import subprocess
import sys
from pathlib import Path

from firstclick.testing import CHECKS, PolicyTests

EXAMPLES = Path(__file__).parents[2] / "examples"

PLUGIN_TESTS = """
from skeleton_policy import EpsilonGreedy

from firstclick.testing import PolicyTests


class TestEpsilonGreedy(PolicyTests):
    policy = EpsilonGreedy(epsilon=0.2)


class TestBroken(PolicyTests):
    policy = type("Broken", (EpsilonGreedy,), {"name": "", "merge": lambda self, first, second: first})()
"""
# Plain Python has no time for the other checks.
ONLY = "TestEpsilonGreedy and not extremes and not random_order or TestBroken and merged_shards"


def test_the_skeleton_passes_every_check_and_a_broken_one_does_not(tmp_path):
    """In another process: the registry of this one must not know them."""
    (tmp_path / "test_plugin.py").write_text(PLUGIN_TESTS)
    path = os.pathsep.join([str(EXAMPLES), *map(os.path.abspath, filter(None, sys.path))])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", ONLY, "test_plugin.py"]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    # The skeleton has no use for the features of a request, and takes nothing back.
    assert "TestBroken::test_merged_shards" in done.stdout, done.stdout[-3000:]
    assert f"1 failed, {len(CHECKS) - 4} passed, 2 skipped" in done.stdout.splitlines()[-1]


def test_there_is_a_test_for_each_check():
    tests = {name.removeprefix("test_") for name in vars(PolicyTests) if name.startswith("test_")}
    assert tests == {check.name for check in CHECKS}
