"""What the claims see of comparisons: the runs they ask for, at steps that were recorded, and the group."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from firstclick.errors import InvalidInput
from firstclick.studies.paper.evidence import Measured
from firstclick.studies.paper.experiments import mode_named

STEP = np.array([1, 7, 30, 45])


def comparison(group: str = "", n_items: int = 256) -> Any:
    regrets = np.arange(12.0).reshape(3, 4) + n_items
    return SimpleNamespace(
        dataset=SimpleNamespace(matrix=np.empty((5, 290))),
        setting=SimpleNamespace(group=group, rank=20, k=4, n_items=n_items, steps=45),
        results=SimpleNamespace(
            step=STEP, results=[SimpleNamespace(policy="cascade-lin-ts", expected_regret=regrets)]
        ),
    )


def measured(*comparisons: Any) -> Measured:
    return Measured(comparisons, mode_named("paper"))


def test_runs_are_those_at_the_step_or_at_the_last() -> None:
    evidence = measured(comparison(), comparison(n_items=290))
    np.testing.assert_array_equal(evidence.runs("cascade-lin-ts", step=30), [258, 262, 266])
    np.testing.assert_array_equal(evidence.runs("cascade-lin-ts"), [259, 263, 267])
    np.testing.assert_array_equal(evidence.runs("cascade-lin-ts", items="all", step=1), [290, 294, 298])
    assert evidence.runs("cascade-ucb1") is None
    assert evidence.runs("cascade-lin-ts", group=True) is None


@pytest.mark.parametrize(("step", "nearest"), [(4, "1, 7"), (31, "30, 45"), (46, "45"), (0, "1")])
def test_a_step_that_was_not_recorded_is_refused(step: int, nearest: str) -> None:
    with pytest.raises(
        InvalidInput, match=rf"^step {step} must be one of those recorded; nearest: {nearest}$"
    ):
        measured(comparison()).runs("cascade-lin-ts", step=step)


def test_the_group_is_the_one_that_was_played() -> None:
    assert measured(comparison(), comparison("Drama")).group == "Drama"
    assert measured(comparison()).group == ""
