"""Engines: any task with `play` is played, and an engine is chosen by its name."""

import os
from dataclasses import dataclass

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


@pytest.mark.parametrize(
    "name", ["", "Dask", "ray", "tcp://", "tcp://somewhere", "tcp://somewhere:port", "http://somewhere:8786"]
)
def test_unknown_engine_is_refused(name):
    with pytest.raises(InvalidInput, match="engine must be local, dask or the tcp://host:port"):
        engine_named(name, 2)
