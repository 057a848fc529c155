"""What the claims see of comparisons: the sums of each run, at the end and at a tenth, and the group."""

from types import SimpleNamespace

import numpy as np
import pytest

from firstclick.experiments.cells import recorded_steps
from firstclick.studies.paper.evidence import Case, evidence_of
from firstclick.studies.paper.experiments import mode_named


def comparison(group="", n_items=256, policy="cascade-lin-ts", steps=300, more=0.0):
    step = recorded_steps(steps)
    regrets = np.array([[1.0], [2.0], [4.0]]) * step + more
    return SimpleNamespace(
        dataset=SimpleNamespace(
            matrix=np.empty((5, 290)),
            source=SimpleNamespace(synthetic=False),
            interactions=SimpleNamespace(facts={"users": 7}, groups=lambda: {"Drama": [1, 2, 3]}),
        ),
        setting=SimpleNamespace(group=group, rank=20, k=4, n_items=n_items, steps=steps),
        results=SimpleNamespace(
            step=step,
            results=[SimpleNamespace(policy=policy, expected_regret=regrets, reward=-regrets)],
        ),
        optimal_rewards=np.array([0.5, 0.25, 0.75]),
    )


def evidence(*comparisons, mode="paper"):
    return evidence_of(comparisons, mode_named(mode))


@pytest.mark.parametrize("steps", [10, 19, 60, 2_001, 100_000])
def test_sums_are_those_at_the_last_step_and_at_a_tenth(steps):
    found = evidence(comparison(steps=steps))
    case = Case("cascade-lin-ts")
    np.testing.assert_array_equal(found.regret[case], [steps, 2 * steps, 4 * steps])
    np.testing.assert_array_equal(found.reward[case], -found.regret[case])
    np.testing.assert_array_equal(found.early_regret[case], np.array([1, 2, 4]) * (steps // 10))
    np.testing.assert_array_equal(found.best[case], np.array([0.5, 0.25, 0.75]) * steps)
    assert set(found.regret) == {case}


def test_all_items_go_by_their_number_too_and_a_group_is_a_case_of_its_own():
    found = evidence(comparison(n_items=290), comparison("Drama"))
    assert set(found.regret) == {Case(items=290), Case(items="all"), Case(group=True)}
    assert found.facts == {"users": 7, "kept users": 5, "kept items": 290}
    assert (found.group, found.group_sizes) == ("Drama", {"Drama": 3})
    # A run shorter than ten steps has no early regret.
    short = evidence(comparison(steps=9))
    assert (short.group, len(short.regret), len(short.early_regret)) == ("", 1, 0)


def test_the_first_of_two_equal_cases_counts():
    found = evidence(comparison(), comparison(more=3.0))
    np.testing.assert_array_equal(found.regret[Case()], [300, 600, 1_200])


def test_what_a_mode_plays_in_the_place_of_a_policy_goes_by_its_name():
    played = comparison(policy="cascade-ucb1:start=pessimistic")
    assert set(evidence(played, mode="authors").regret) == {Case("cascade-ucb1")}
    assert set(evidence(played).regret) == {Case("cascade-ucb1:start=pessimistic")}
