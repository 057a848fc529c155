"""A small result made by hand: every number in it is known."""

import numpy as np
import pytest

from firstclick.experiments.results import PolicyResult, Results, Shown

STEP = np.array([1, 7, 50, 90, 500], np.int64)
HOSTILE = "<script>alert('1')</script> & \"Co\""


def policy_result(policy, finals, shown):
    """One run per final expected regret; curves go straight from zero, realised ones a click higher."""
    expected = np.outer(finals, STEP / STEP[-1]).astype(np.float64)
    return PolicyResult(
        policy=policy,
        expected_regret=expected,
        regret=expected + 1,
        reward=np.asarray(0.5 * STEP - expected, np.float64),
        seconds_per_step=3.94e-6,
        shown=tuple(Shown(item, share) for item, share in shown),
    )


@pytest.fixture
def make_results():
    """Results from the final expected regrets of each policy, one per run."""

    def make(finals=None):
        if finals is None:
            finals = {
                "random": (150.0, 160.0, 155.0),
                "cascade-lin-ts": (-22.0, -18.0, -20.0),
                "cascade-ucb1:radius=0.5": (80.0, 86.0, 83.0),
                "my-plugin": (40.0, 44.0, 39.0),
            }
        shown = ((HOSTILE, 0.96), ("Tea", 0.9), ("Only learned", 0.04), ("Rare", 0.0001))
        return Results(
            k=2,
            steps=500,
            runs=len(next(iter(finals.values()))),
            seed=1234,
            n_items=9,
            optimal_reward=0.5,
            optimal_items=(Shown(HOSTILE, 1.0), Shown("Never learned", 1.0)),
            step=STEP,
            results=tuple(policy_result(policy, ends, shown) for policy, ends in finals.items()),
            settings={"world": "matrix", "dataset": "a < b", "policies": list(finals)},
            notes=("a note with <i>tags</i>",),
        )

    return make


@pytest.fixture
def results(make_results):
    return make_results()
