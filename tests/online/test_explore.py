"""Exploration that is logged: how often, how uniformly, and with which probabilities."""

import itertools
from collections import Counter
from math import isclose, sqrt

import numpy as np
import pytest

from firstclick import Catalog, Ranker
from firstclick.errors import InvalidInput
from firstclick.online.explore import Explored

ITEMS = ["a", "b", "c", "d", "e"]
GROUPS = ["x", "x", "x", "y", "y"]


def ranker(explore, *, policy="cascade-ts", seed=3):
    return Ranker(Catalog(ITEMS, groups=GROUPS), k=3, policy=policy, seed=seed, explore=explore)


def test_without_exploration_slates_are_as_they_always_were():
    never, usual = ranker(0.0), Ranker(Catalog(ITEMS, groups=GROUPS), k=3, policy="cascade-ts", seed=3)
    for _ in range(20):
        one, other = never.recommend(), usual.recommend()
        assert one.items == other.items
        assert one.explored is None
        never.learn(one, click=0)
        usual.learn(other, click=0)


def test_the_share_of_slates_that_are_drawn_uniformly_is_the_one_asked_for():
    """4,000 slates: a wrong share of 0.25 instead of 0.2 is found; a right one fails once in 10^6."""
    some = ranker(0.2)
    n = sum(some.recommend().explored.drawn for _ in range(4000))
    assert abs(n - 800) < 5 * sqrt(4000 * 0.2 * 0.8)


def brute_force(asked):
    """The probability of each slate where every place is drawn uniformly among what may stand there."""
    pinned = asked.get("pinned", {})
    allowed = [item for item in asked.get("candidates", ITEMS) if item not in asked.get("exclude", ())]
    allowed = [item for item in allowed if item not in pinned.values()]
    caps = asked.get("at_most")
    n = asked.get("k", 3) - len(pinned)
    found = {}

    def go_on(slate, probability):
        def fits(item):
            group = GROUPS[ITEMS.index(item)]
            cap = caps if isinstance(caps, int) else (caps or {}).get(group, 99)
            there = [GROUPS[ITEMS.index(other)] for other in (*slate, *pinned.values())].count(group)
            return item not in slate and there < (99 if cap is None else cap)

        left = [item for item in allowed if fits(item)]
        if len(slate) == n or not left:
            whole = list(slate)
            for position, item in sorted(pinned.items()):
                whole.insert(position, item)
            found[tuple(whole)] = probability
            return
        for item in left:
            go_on((*slate, item), probability / len(left))

    go_on((), 1.0)
    return found


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"k": 2},
        {"candidates": ["e", "b", "c"]},
        {"exclude": ["a", "d"]},
        {"at_most": 1},
        {"at_most": {"x": 1}},
        {"pinned": {1: "c"}},
        {"pinned": {0: "d"}, "at_most": 1, "exclude": ["e"]},
        {"pinned": {0: "a"}, "at_most": {"x": 2}, "candidates": ["b", "c", "d"]},
    ],
    ids=str,
)
def test_propensities_are_exact_and_slates_come_as_often_as_they_say(asked):
    """Every slate within 5 standard deviations: with at most 60 slates, a false alarm in 30,000 runs."""
    wanted = brute_force(asked)
    assert isclose(sum(wanted.values()), 1.0)
    some, n = ranker(1.0), 3000
    seen = Counter()
    for _ in range(n):
        slate = some.recommend(**asked)
        explored = slate.explored
        assert explored is not None
        assert explored.drawn
        assert isclose(explored.propensities()[-1], wanted[slate.items])
        seen[slate.items] += 1
    for items, probability in wanted.items():
        assert abs(seen[items] - n * probability) < 5 * sqrt(n * probability * (1 - probability) + 1)


def test_a_slate_of_the_policy_has_the_probability_that_it_would_have_been_drawn_with():
    some = ranker(1e-9)
    for asked in ({}, {"at_most": 1}, {"pinned": {1: "c"}, "at_most": {"x": 2}}, {"exclude": ["a"]}):
        slate = some.recommend(**asked)
        assert slate.explored is not None
        assert not slate.explored.drawn
        assert isclose(slate.explored.propensities()[-1], brute_force(asked)[slate.items])


def test_prefixes_multiply():
    assert Explored(0.1, True, (5, 1, 2)).propensities() == [1 / 5, 1 / 5, 1 / 10]
    assert Explored(0.1, True, ()).propensities() == []


@pytest.mark.parametrize("policy", ["cascade-ts", "cascade-mixed"])
def test_a_saved_ranker_goes_on_exploring_as_it_would_have(tmp_path, policy):
    some = ranker(0.5, policy=policy)
    for _ in range(10):
        some.learn(some.recommend(), click=1)
    some.save(tmp_path / "ranker")
    loaded = Ranker.load(tmp_path / "ranker")
    assert loaded.explore == 0.5
    for _ in range(20):
        one, other = some.recommend(), loaded.recommend()
        assert (one.items, one.explored) == (other.items, other.explored)


def test_two_rankers_draw_different_slates():
    one, other = ranker(1.0), ranker(1.0, seed=4)
    pairs = [(one.recommend().items, other.recommend().items) for _ in range(30)]
    assert len(set(pairs)) > 20
    assert any(first != second for first, second in pairs)
    assert len(set(itertools.chain.from_iterable(pairs))) > 20


@pytest.mark.parametrize("share", [-0.1, 1.1, "much", True, None, float("nan")])
def test_a_share_is_between_0_and_1(share):
    with pytest.raises(InvalidInput, match=r"explore must be a share of slates from 0 to 1, such as 0\.05"):
        ranker(share)


def test_what_is_explored_is_learned_like_any_slate():
    some = ranker(1.0, policy="cascade-ts")
    before = np.array(some.state[0]).sum()
    some.learn(some.recommend(), click=None)
    assert np.array(some.state[0]).sum() + np.array(some.state[1]).sum() > before


@pytest.mark.parametrize("policy", ["top-rank", "bubble-rank"])
def test_policies_that_learn_from_their_own_shuffles_alone_do_not_explore(policy):
    with pytest.raises(
        InvalidInput, match=f"explore must be 0 for {policy}, which learns from slates that it"
    ):
        ranker(0.1, policy=policy)
    assert ranker(0.0, policy=policy).explore == 0
