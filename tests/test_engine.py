"""Engines: any task with `play` is played, and an engine is chosen by its name."""

import os
import sys
from dataclasses import dataclass

import pytest

from firstclick import InvalidInput
from firstclick.simulate.engine import engine_named, play_here, play_in_processes


@dataclass(frozen=True)
class Squares:
    """A task that is no simulation: it squares its stage."""

    stage: tuple[int, ...]

    def play(self, report):
        for _ in self.stage:
            report(1)
        return [number**2 for number in self.stage], os.getpid()


def test_any_task_can_be_played_and_its_steps_are_reported():
    stages = [(3, 5), (7,), (2, 4, 6)]
    for play in (play_here, lambda tasks, report: play_in_processes(tasks, report, 2)):
        steps = []
        results = [result for result, _ in play(map(Squares, stages), steps.append)]
        assert sorted(results) == [[4, 16, 36], [9, 25], [49]]
        assert sum(steps) == 6


@pytest.mark.parametrize(("jobs", "elsewhere"), [(1, False), (2, True)])
def test_local_means_this_process_for_one_job_and_others_for_more(jobs, elsewhere):
    [(result, process)] = engine_named("local", jobs)(iter([Squares((3,))]), lambda steps: None)
    assert result == [9]
    assert (process != os.getpid()) == elsewhere


@pytest.mark.parametrize(
    "name", ["", "Dask", "ray", "tcp://", "tcp://somewhere", "tcp://somewhere:port", "http://somewhere:8786"]
)
def test_an_unknown_engine_is_refused_with_the_choices(name):
    with pytest.raises(InvalidInput, match=r"engine must be local, dask or the tcp://host:port .*, got '"):
        engine_named(name, 2)


@pytest.mark.parametrize("name", ["dask", "tcp://somewhere:8786"])
def test_without_dask_the_way_to_get_it_is_said(monkeypatch, name):
    monkeypatch.delitem(sys.modules, "firstclick.simulate.dask_engine", raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InvalidInput, match=r"needs dask; pip install 'firstclick\[dask\]'"):
        engine_named(name, 2)
