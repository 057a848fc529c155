"""The dask engine: the same bits as at home, and a worker that dies loses nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

import firstclick
from firstclick import InvalidInput, make_policy, source_code
from firstclick.errors import WorkFailed
from firstclick.experiments.engines import dask as dask_engine
from firstclick.experiments.engines import dask_connection, engine_named, play_here, play_in_processes
from firstclick.experiments.engines.dask import play_on_dask
from firstclick.experiments.loop import Record, Task, log_spaced
from firstclick.streams import stream
from firstclick.worlds import BernoulliWorld, MatrixWorld
from firstclick.worlds.base import Stage

TESTS, SOURCES = Path(__file__).parents[2], Path(firstclick.__file__).parents[1]


@dataclass(frozen=True)
class Stumbling:
    """A task of ten steps that kills its worker in the middle, the first `falls` times it is played."""

    stage: Any
    number: int
    folder: Path | None = None
    falls: int = 0
    seconds: float = 0.2

    def play(self, report):
        if isinstance(self.stage, Exception):
            raise self.stage
        for step in range(10):
            time.sleep(self.seconds / 10)
            report(1)
            marks = [self.folder / f"{self.number} {fall}" for fall in range(self.falls)] if step == 5 else []
            for mark in marks:
                if not mark.exists():
                    mark.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
        return self.number, sum(self.stage)


def silent(steps):
    pass


@pytest.fixture(scope="module")
def cluster():
    """A running cluster of two workers, which come back when they die."""
    options = {"threads_per_worker": 1, "memory_limit": None, "dashboard_address": "127.0.0.1:0"}
    with dask.config.set(dask_connection.SETTINGS), LocalCluster(n_workers=2, **options) as cluster:
        yield cluster


@pytest.fixture
def address(cluster):
    with Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
    return cluster.scheduler_address


@pytest.fixture
def remote(tmp_path):
    """Starts a scheduler and one worker or none in other processes; gives address and scheduler."""
    started = []

    def start(program, *options, path):
        command = [sys.executable, "-m", f"distributed.cli.dask_{program}", "--no-dashboard", *options]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started.append(subprocess.Popen(command, env=environment, **quiet))

    def run(*path, worker):
        file = tmp_path / "scheduler.json"
        here = ("--host", "127.0.0.1", "--scheduler-file", str(file))
        start("scheduler", "--port", "0", *here, path=path)
        if worker:
            start("worker", "--nthreads", "2", *here, path=path)
        while not file.exists():
            assert started[0].poll() is None
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        if worker:
            with Client(address, set_as_default=False) as client:
                client.wait_for_workers(1, timeout=60)
        return address, started[0]

    yield run
    for process in reversed(started):
        process.kill()
        process.wait()


def real_tasks():
    """Two policies on a Bernoulli world and on the rows of a matrix with features, three runs each."""
    draw = stream(4, "test")
    matrix = MatrixWorld(draw.random((31, 13)) < 0.2)
    features = draw.standard_normal((13, 4))
    for run in range(3):
        bernoulli = BernoulliWorld(draw.random(9))
        stages = [Stage(bernoulli, None, "abcdefghi"), Stage(matrix, features, "abcdefghijklm")]
        for index, (policy, stage) in enumerate(zip(["cascade-ts", "cascade-lin-ts"], stages, strict=True)):
            optimal = stage.world.optimal_slates(3)
            number = 2 * run + index
            yield Task(number, make_policy(policy), stage, optimal, 0.5, run, log_spaced(700), 8)


def bits(played):
    """All of the records but the time, in the order of their tasks."""
    names = [field.name for field in fields(Record) if field.name != "speed"]
    records = [record for _, record in sorted(played, key=lambda pair: pair[0])]
    return [(name, _plain(getattr(record, name))) for record in records for name in names]


def _plain(value):
    return value.tobytes() if isinstance(value, np.ndarray) else repr(value)


def test_a_cluster_of_our_own_gives_the_same_bits_as_one_process_and_as_two():
    at_home = bits(play_here(real_tasks(), silent))
    assert len({content for _, content in at_home}) > 20
    assert bits(play_in_processes(real_tasks(), silent, 2)) == at_home
    steps = []
    assert bits(engine_named("dask", 2)(real_tasks(), steps.append)) == at_home
    assert sum(steps) == 6 * 700


@pytest.mark.long
def test_remote_cluster_gives_the_same_bits_and_survives_a_dead_worker(remote, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_connection, "CONNECT_SECONDS", 3)
    address, scheduler = remote(SOURCES, TESTS, worker=True)
    traces = engine_named(address, 1)(real_tasks(), silent)
    assert bits(traces) == bits(play_here(real_tasks(), silent))
    tasks = (Stumbling((4, 9), number, tmp_path, falls=number == 1) for number in range(3))
    assert sorted(play_on_dask(tasks, silent, address, 1)) == [(0, 13), (1, 13), (2, 13)]
    assert (tmp_path / "1 0").exists()
    playing = play_on_dask((Stumbling((4,), n, seconds=60 * n) for n in range(3)), silent, address, 1)
    assert next(playing) == (0, 4)
    scheduler.kill()
    with pytest.raises(WorkFailed, match=f"the dask cluster {address} went away"):
        next(playing)


@pytest.mark.long
def test_a_worker_killed_in_mid_run_loses_nothing_and_no_step_is_counted_twice(address, tmp_path):
    steps = []
    tasks = (Stumbling((n // 4, 5), n, tmp_path, falls=n in (2, 9)) for n in range(12))
    played = list(play_on_dask(tasks, steps.append, address, 1))
    assert sorted(played) == [(n, n // 4 + 5) for n in range(12)]
    assert sum(steps) == 120
    assert min(steps) >= 0
    assert {mark.name for mark in tmp_path.iterdir()} == {"2 0", "9 0"}
    # Steps are reported while a task is played.
    steps.clear()
    assert list(play_on_dask(iter([Stumbling((1,), 0, seconds=2)]), steps.append, address, 1)) == [(0, 1)]
    assert len([more for more in steps if more]) >= 4


def test_long_tasks_that_are_sent_with_short_ones_are_all_played(address):
    tasks = (Stumbling((1, 2), n, seconds=0.2 * (n >= 100)) for n in range(112))
    assert sorted(play_on_dask(tasks, silent, address, 1)) == [(n, 3) for n in range(112)]


@pytest.mark.long
def test_short_tasks_that_die_together_are_all_played_again(tmp_path):
    steps = []
    tasks = (Stumbling((1, 2), n, tmp_path, falls=n == 150, seconds=0) for n in range(300))
    assert sorted(play_on_dask(tasks, steps.append, None, 1)) == [(n, 3) for n in range(300)]
    assert sum(steps) == 3000
    assert (tmp_path / "150 0").exists()


def test_tasks_are_made_only_as_they_are_needed(address):
    made = []

    def tasks():
        for number in range(20):
            made.append(number)
            yield Stumbling((number,), number, seconds=0)

    for finished, _ in enumerate(play_on_dask(tasks(), silent, address, 1)):
        # Three are sent; of one more it had to be seen which stage it is on.
        assert len(made) - finished <= 4


@pytest.mark.long
def test_a_task_that_kills_every_worker_is_given_up(address, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_engine, "MOST_DEATHS", 2)
    with pytest.raises(WorkFailed, match=r"lost \d workers over one task \(out of memory\?\); try fewer"):
        list(play_on_dask(iter([Stumbling((1,), 0, tmp_path, falls=99)]), silent, address, 1))


@pytest.mark.parametrize("error", [InvalidInput("k must be 3"), OSError(28, "disk full"), KeyError("x")])
def test_what_a_task_raises_is_raised_here(address, error):
    with pytest.raises(type(error)) as seen:
        list(play_on_dask(iter([Stumbling(error, 0)]), silent, address, 1))
    assert str(seen.value) == str(error)


def test_task_that_workers_cannot_import_is_refused_and_kills_no_worker(
    address, cluster, monkeypatch, tmp_path
):
    module = "from dataclasses import dataclass\n@dataclass\nclass Mine:\n    stage: int\n"
    (tmp_path / "plug_in_only_here.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    from plug_in_only_here import Mine

    before = list(cluster.scheduler.workers)
    with pytest.raises(InvalidInput, match="No module named 'plug_in_only_here'"):
        list(play_on_dask(iter([Mine(3)]), silent, address, 1))
    assert list(cluster.scheduler.workers) == before


def test_unusable_address_is_refused(address, monkeypatch):
    monkeypatch.setattr(dask_connection, "CONNECT_SECONDS", 0.5)
    monkeypatch.setattr(source_code, "__version__", "0.0.1")
    for place, problem in (
        ("tcp://127.0.0.1:9", "no dask scheduler answers"),
        ("tls://127.0.0.1:9", "needs certificates"),
        (address, r"this machine 0\.0\.1"),
    ):
        with pytest.raises(InvalidInput, match=problem):
            list(play_on_dask(iter([]), silent, place, 1))


@pytest.mark.parametrize(
    "name", ["", "Dask", "ray", "tcp://", "tcp://somewhere:port", "http://somewhere:8786"]
)
def test_unknown_engine_is_refused(name):
    with pytest.raises(InvalidInput, match="engine must be local, dask or the tcp://host:port"):
        engine_named(name, 2)


@pytest.mark.long
@pytest.mark.parametrize(("installed", "problem"), [(False, "cannot run firstclick"), (True, "no workers")])
def test_cluster_without_firstclick_or_workers_is_refused(remote, tmp_path, installed, problem):
    (tmp_path / "firstclick.py").write_text("raise ModuleNotFoundError(\"No module named 'firstclick'\")")
    address, _ = remote(SOURCES if installed else tmp_path, worker=False)
    with pytest.raises(InvalidInput, match=problem):
        list(play_on_dask(iter([]), silent, address, 1))


SCRIPT = """
from pathlib import Path
from firstclick.experiments.engines import engine_named
from tests.experiments.test_dask_engine import Stumbling

if __name__ == "__main__":
    tasks = (Stumbling((5,), n, Path({folder!r}), falls=n == 0, seconds={seconds}) for n in range(4))
    try:
        for result in engine_named("dask", 2)(tasks, lambda steps: print("steps", steps, flush=True)):
            print(result)
    except KeyboardInterrupt:
        print("interrupted")
"""


def script(folder, seconds):
    """The script in a process group of its own; it has ended when all that can write to its pipes have."""
    (folder / "script.py").write_text(SCRIPT.format(folder=str(folder), seconds=seconds))
    return subprocess.Popen(
        [sys.executable, "-W", "error", folder / "script.py"],
        env=os.environ | {"PYTHONPATH": f"{SOURCES}{os.pathsep}{TESTS}"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


@pytest.mark.long
def test_dask_says_nothing_on_the_terminal_not_even_when_a_worker_dies(tmp_path):
    with script(tmp_path, 0.2) as program:
        out, err = program.communicate(timeout=60)
    assert (program.returncode, err) == (0, "")
    assert (tmp_path / "0 0").exists()
    assert sorted(line for line in out.splitlines() if "steps" not in line) == [f"({n}, 5)" for n in range(4)]


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="process groups of POSIX")
def test_ctrl_c_ends_a_cluster_of_our_own_and_leaves_nobody(tmp_path):
    with script(tmp_path, 300) as program:
        assert program.stdout.readline().startswith("steps")
        os.killpg(program.pid, signal.SIGINT)
        out, err = program.communicate(timeout=120)
    assert (program.returncode, err) == (0, "")
    assert out.splitlines()[-1] == "interrupted"
