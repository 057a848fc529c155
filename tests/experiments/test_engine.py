"""Engines: any task with `play` is played, and an engine is chosen by its name."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from firstclick import InvalidInput
from firstclick.experiments.engines import engine_named


@dataclass(frozen=True)
class Squares:
    """A task that is no simulation: it squares its stage."""

    stage: tuple[int, ...]

    def play(self, report):
        for _ in self.stage:
            report(1)
        return [number**2 for number in self.stage], os.getpid()


def test_any_task_is_played_and_its_steps_are_reported():
    stages = [(3, 5), (7,), (2, 4, 6)]
    for jobs in (1, 2):
        steps = []
        played = list(engine_named("local", jobs)(map(Squares, stages), steps.append))
        assert sorted(result for result, _ in played) == [[4, 16, 36], [9, 25], [49]]
        assert sum(steps) == 6
        # One job is played in this process, several in others.
        assert {process == os.getpid() for _, process in played} == {jobs == 1}


@dataclass(frozen=True)
class Children:
    """A task that tells its process's number, and is busy for ever then."""

    stage: str

    def play(self, report):
        with open(self.stage, "a") as file:
            file.write(f"{os.getpid()}\n")
        while True:
            sum(range(1000))


PARENT = """
import sys
sys.path.insert(0, sys.argv[2])
from tests.experiments.test_engine import Children, engine_named

if __name__ == "__main__":
    list(engine_named("local", 2)(iter([Children(sys.argv[1])] * 2), lambda steps: None))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="processes of POSIX")
def test_workers_end_when_their_parent_is_killed(tmp_path):
    (tmp_path / "parent.py").write_text(PARENT)
    told = tmp_path / "numbers"
    told.touch()
    command = [sys.executable, tmp_path / "parent.py", told, Path(__file__).parents[2]]
    with subprocess.Popen(command) as parent:
        wait_until(lambda: len(told.read_text().splitlines()) == 2, 60)
        parent.kill()
    workers = [int(line) for line in told.read_text().splitlines()]
    try:
        wait_until(lambda: not any(map(is_there, workers)), 10)
    finally:
        for worker in filter(is_there, workers):
            os.kill(worker, signal.SIGKILL)


def wait_until(ready, seconds):
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "still waiting"
        time.sleep(0.05)


def is_there(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    # Without an init that reaps them, the dead of a container stay as zombies.
    status = Path(f"/proc/{number}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


@pytest.mark.parametrize(
    "name", ["", "Dask", "ray", "tcp://", "tcp://somewhere", "tcp://somewhere:port", "http://somewhere:8786"]
)
def test_unknown_engine_is_refused(name):
    with pytest.raises(InvalidInput, match="engine must be local, dask or the tcp://host:port"):
        engine_named(name, 2)


@pytest.mark.parametrize("name", ["dask", "tcp://somewhere:8786"])
def test_without_dask_the_way_to_get_it_is_said(monkeypatch, name):
    monkeypatch.delitem(sys.modules, "firstclick.experiments.engines.dask", raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InvalidInput, match=r"needs distributed: pip install 'firstclick\[dask\]'"):
        engine_named(name, 2)
