"""Exploration that is logged: how often, how uniformly, and with which probabilities."""

from collections import Counter
from math import isclose, sqrt

import pytest

from firstclick import Catalog, Ranker

ITEMS = ["a", "b", "c", "d", "e", "f", "g"]
GROUPS = dict(zip(ITEMS, ["x", "x", "x", "y", "y", "x", "y"], strict=True))


def new_ranker(explore, *, policy="cascade-ts", seed=3):
    return Ranker(
        Catalog(ITEMS[:5], groups=[GROUPS[item] for item in ITEMS[:5]]),
        k=3, policy=policy, seed=seed, explore=explore,
    )  # fmt: skip


REQUESTS = [
    {},
    {"k": 2},
    {"candidates": ["e", "b", "c"]},
    {"exclude": ["a", "d"]},
    {"candidates": ["e", "c", "a"], "exclude": ["c"]},
    {"at_most": 1},
    {"at_most": {"x": 1}},
    {"pinned": {1: "c"}},
    {"pinned": {0: "a", 2: "d"}, "exclude": ["d"]},
    {"pinned": {0: "d"}, "at_most": 1, "exclude": ["e"]},
    {"pinned": {0: "a"}, "at_most": {"x": 2}, "candidates": ["b", "c", "d"]},
]


def choices(asked, items, picked):
    """What may be picked next from the top down, beside the pinned items."""
    hidden = {*asked.get("exclude", ()), *picked, *pins(asked).values()}
    groups = Counter(GROUPS[item] for item in (*picked, *pins(asked).values()))
    caps = asked.get("at_most")
    allowed = [item for item in asked.get("candidates", items) if item not in hidden]
    if len(picked) == asked.get("k", 3) - len(pins(asked)):
        return []
    return [
        item
        for item in allowed
        if groups[GROUPS[item]] < (caps if isinstance(caps, int) else (caps or {}).get(GROUPS[item], 99))
    ]


def pins(asked):
    """The pinned items that are not excluded, by position."""
    return {at: item for at, item in asked.get("pinned", {}).items() if item not in asked.get("exclude", ())}


def with_pins(asked, picked):
    slate = list(picked)
    for position, item in sorted(pins(asked).items()):
        slate.insert(position, item)
    return tuple(slate)


def probabilities(asked, picked=(), probability=1.0):
    """Of each slate, where every position is drawn uniformly among what may stand there."""
    left = choices(asked, ITEMS[:5], picked)
    if not left:
        return {with_pins(asked, picked): probability}
    slates = {}
    for item in left:
        slates |= probabilities(asked, (*picked, item), probability / len(left))
    return slates


@pytest.mark.parametrize("asked", REQUESTS, ids=str)
def test_propensities_are_exact_and_slates_come_as_often_as_they_say(asked):
    """Every slate within 5 standard deviations: with at most 60 slates, a false alarm in 30,000 runs."""
    wanted = probabilities(asked)
    assert isclose(sum(wanted.values()), 1.0)
    ranker, n = new_ranker(1.0), 2000
    seen = Counter()
    for _ in range(n):
        slate = ranker.recommend(**asked)
        assert slate.explored.drawn
        assert isclose(slate.explored.propensities()[-1], wanted[slate.items])
        seen[slate.items] += 1
    for items, probability in wanted.items():
        assert abs(seen[items] - n * probability) < 5 * sqrt(n * probability * (1 - probability) + 1)
    # A slate of the policy has the probability that it would have been drawn with.
    slate = new_ranker(1e-9).recommend(**asked)
    assert not slate.explored.drawn
    assert isclose(slate.explored.propensities()[-1], wanted[slate.items])


def test_propensities_of_prefixes_multiply():
    assert new_ranker(0.0).recommend().explored is None
    slate = new_ranker(1.0).recommend()
    assert slate.explored.propensities() == [1 / 5, 1 / 5 / 4, 1 / 5 / 4 / 3]
    assert new_ranker(1.0).recommend(candidates=[]).explored.propensities() == []


def test_slates_are_explored_as_often_as_requested_and_differ_between_seeds():
    """4,000 slates: a wrong share of 0.25 instead of 0.2 is found; a right one fails once in 10^6."""
    rankers = [new_ranker(0.2, seed=seed) for seed in (3, 4)]
    pairs = [[ranker.recommend() for ranker in rankers] for _ in range(4000)]
    drawn = [[slate.explored.drawn for slate in pair] for pair in pairs]
    assert abs(sum(first for first, _ in drawn) - 800) < 5 * sqrt(4000 * 0.2 * 0.8)
    assert any(first != second for first, second in drawn)
    assert any(one.items != other.items for (one, other), (a, b) in zip(pairs, drawn, strict=True) if a and b)


@pytest.mark.parametrize("policy", ["cascade-ts", "cascade-mixed"])
def test_a_saved_ranker_goes_on_exploring(tmp_path, policy):
    ranker = new_ranker(0.5, policy=policy)
    for _ in range(10):
        ranker.learn(ranker.recommend(), click=1)
    ranker.save(tmp_path / "ranker")
    loaded = Ranker.load(tmp_path / "ranker")
    assert loaded.explore == 0.5
    for _ in range(20):
        one, other = ranker.recommend(), loaded.recommend()
        assert (one.items, one.explored) == (other.items, other.explored)
