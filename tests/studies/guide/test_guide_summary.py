"""The summary: regret against the best reference, as a geometric mean over worlds, and the worst."""

import pytest

from firstclick.studies.guide.standings import Line
from firstclick.studies.guide.summary import LEAST, Summary, summaries, times


def line(world, policy, regret, reason=""):
    return Line(world, policy, policy, 100, 2, regret, 1.0, regret / 1000, 1.0, False, reason)


def lines(**worlds):
    """`lines(first={"cascade-ts": 20})`: random order loses 1,000 everywhere."""
    return [
        line(world, policy, regret)
        for world, regrets in worlds.items()
        for policy, regret in {**regrets, "random": 1000}.items()
    ]


def test_it_is_the_geometric_mean_of_ratios_to_the_best_reference_and_the_worst():
    found = summaries(
        lines(
            first={"cascade-ts": 20, "cascade-lin-ts": 40, "logistic-ts": 10},
            second={"cascade-ts": 80, "cascade-lin-ts": 10, "logistic-ts": 20},
        )
    )
    # logistic-ts is no reference: it may be better than all of them.
    assert found["logistic-ts"] == Summary(pytest.approx(1.0), 2.0, "second")
    assert found["cascade-ts"] == Summary(pytest.approx(8**0.5), 8.0, "second")
    assert found["cascade-lin-ts"] == Summary(pytest.approx(2**0.5), 2.0, "first")


def test_regret_below_a_thousandth_of_random_orders_counts_as_that():
    assert LEAST == 0.001
    found = summaries(lines(only={"cascade-ts": 4, "cascade-lin-ts": -30, "vac2-ucb": 0.2}))
    assert found["cascade-ts"].mean == pytest.approx(4)
    assert found["cascade-lin-ts"].mean == found["vac2-ucb"].mean == 1


def test_worlds_in_which_a_policy_cannot_be_played_are_left_out_of_its_mean():
    played = lines(first={"cascade-ts": 20}, second={"cascade-ts": 80, "cascade-lin-ts": 10})
    played.append(line("first", "cascade-lin-ts", float("nan"), "it needs features"))
    assert summaries(played)["cascade-lin-ts"] == Summary(1.0, 1.0, "second")


def test_without_a_reference_or_anything_to_lose_there_is_none():
    assert summaries(lines(first={"logistic-ts": 20})) == {}
    nothing = [line("first", "cascade-ts", 0.0), line("first", "random", 0.0)]
    assert summaries(nothing) == {}


@pytest.mark.parametrize(("ratio", "said"), [(1, "1.00"), (9.99, "9.99"), (9.996, "10"), (1234.4, "1,234")])
def test_ratios_are_short(ratio, said):
    assert times(ratio) == said
