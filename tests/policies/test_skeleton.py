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
"""
BROKEN = (
    PLUGIN_TESTS
    + """

class TestBroken(PolicyTests):
    policy = type("Broken", (EpsilonGreedy,), {"name": "", "merge": lambda self, first, second: first})()
"""
)


def outcome(folder, tests, only):
    """The last line of pytest, in a process of its own: the registry of this one must not know it."""
    (folder / "test_plugin.py").write_text(tests)
    path = os.pathsep.join([str(EXAMPLES), *filter(None, map(os.path.abspath, sys.path))])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", only, "test_plugin.py"]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.stdout.splitlines()[-1]


def test_the_skeleton_passes_every_check_that_plain_python_has_time_for(tmp_path):
    said = outcome(tmp_path, PLUGIN_TESTS, "not extremes and not random_order")
    # It has no use for the features of a request, and takes nothing back.
    assert f"{len(CHECKS) - 4} passed, 2 skipped, 2 deselected" in said


def test_a_broken_plug_in_fails_the_test_of_its_fault(tmp_path):
    assert "1 failed, 1 passed" in outcome(tmp_path, BROKEN, "merged_shards")


def test_there_is_a_test_for_each_check():
    tests = {name.removeprefix("test_") for name in vars(PolicyTests) if name.startswith("test_")}
    assert tests == {check.name for check in CHECKS}
