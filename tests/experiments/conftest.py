"""A small data set, and an experiment on it that takes no time."""

import pytest

from firstclick import make_policy
from firstclick.experiments import Dataset, Experiment
from tests.support.garden import Garden


@pytest.fixture(scope="session")
def garden():
    return Dataset.load(Garden(), None)


@pytest.fixture
def experiment():
    return Experiment(
        name="tiny",
        title="A tiny experiment",
        data=(Garden(),),
        policies=(make_policy("cascade-lin-ts"), make_policy("cascade-ts")),
        extras=(make_policy("random"),),
        items=(7, "all"),
        rank=(5,),
        k=(3,),
        steps=120,
        runs=2,
        seed=4,
    )
