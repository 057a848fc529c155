"""Policies of clicks by position: each equals its slow reference, and with all chances 1 its parent."""

from math import inf, log, sqrt

import numpy as np
import pytest

from firstclick import Catalog, InvalidInput, Ranker
from firstclick.kernels.hashing import mix, uniform
from firstclick.policies.research import pbm_pie
from firstclick.policies.research.pbm_pie import may_reach
from firstclick.registry import make_policy
from firstclick.streams import stream, stream_key
from firstclick.testing import Driver, request
from tests.support.policies import OTHERS

N_ITEMS, K = 9, 3
CHANCES = (0.4, 1.0, 0.7)  # not from the top down, so that places matter
ATTRACTIONS = np.array([0.1, 0.7, 0.3, 0.62, 0.2, 0.35, 0.15, 0.5, 0.05])


def key_of(step):
    return np.uint64(mix(stream_key(0, "driver"), np.uint64(step)))


class SlowPBM:
    def __init__(self, eps):
        self.eps, self.t = eps, 0
        self.n, self.s = np.zeros((N_ITEMS, K)), np.zeros((N_ITEMS, K))

    def budget(self):
        return (1 + self.eps) * log(max(self.t, 1))

    def rate(self, item):
        examined = self.n[item] @ CHANCES
        return self.s[item].sum() / examined if examined else inf

    def ucb(self, item):
        shown, examined = self.n[item].sum(), self.n[item] @ CHANCES
        if not examined:
            return inf
        return self.rate(item) + sqrt(shown / examined) * sqrt(self.budget() / (2 * examined))

    def misfit(self, item, q):
        total = 0.0
        for n, s, chance in zip(self.n[item], self.s[item], CHANCES, strict=True):
            if n:
                p, r = s / n, chance * q
                total += n * (p * log(p / r) if p else 0.0)
                total += n * ((1 - p) * (log((1 - p) / (1 - r)) if r < 1 else inf) if p < 1 else 0.0)
        return total

    def bound(self, item):
        """The largest q within the budget: thirds find the best fit, halves the end."""
        low, high = 1e-9, 1.0
        for _ in range(100):
            left, right = (2 * low + high) / 3, (low + 2 * high) / 3
            low, high = (left, high) if self.misfit(item, left) > self.misfit(item, right) else (low, right)
        high = 1.0
        if self.misfit(item, high) <= self.budget():
            return high
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.misfit(item, middle) <= self.budget() else (low, middle)
        return low

    def best(self, score, step, allowed):
        return sorted(allowed, key=lambda item: (-score(item), -int(mix(key_of(step), np.uint64(item)))))[:K]

    def placed(self, ranked):
        where = sorted(range(len(ranked)), key=lambda position: -CHANCES[position])
        return [ranked[where.index(position)] for position in range(len(ranked))]

    def learn(self, slate, clicked):
        for position, click in enumerate(clicked):
            self.n[slate[position], position] += 1
            self.s[slate[position], position] += click
        self.t += 1


class SlowUCB(SlowPBM):
    def recommend(self, step, allowed):
        return self.placed(self.best(self.ucb, step, allowed))


class SlowPIE(SlowPBM):
    explored = 0

    def recommend(self, step, allowed):
        leaders = self.best(self.rate, step, allowed)
        last = self.rate(leaders[-1])
        coin = uniform(np.uint64(mix(key_of(step), pbm_pie._COIN)), np.uint64(0))
        if len(leaders) == K and last < inf and coin >= 0.5:
            lots = np.uint64(mix(key_of(step), pbm_pie._LOTS))
            maybe = [e for e in allowed if e not in leaders and self.bound(e) >= min(last, 1)]
            if maybe:
                self.explored += 1
                leaders[-1] = max(maybe, key=lambda item: int(mix(lots, np.uint64(item))))
        return self.placed(leaders)


@OTHERS
@pytest.mark.parametrize(("name", "slow", "steps"), [("pbm-ucb", SlowUCB, 600), ("pbm-pie", SlowPIE, 120)])
def test_slates_equal_the_reference(name, slow, steps):
    reference = slow(eps=0.3)
    driver = Driver(f"{name}:eps=0.3,examination=0.4/1/0.7", np.eye(N_ITEMS), k=K)
    draw = stream(4, "clicks")
    for step in range(steps):
        hidden = draw.choice(N_ITEMS, 7 if step % 8 else 3, replace=False).tolist() if step % 4 == 0 else []
        slate = driver.recommend(step, request(hidden=hidden, n_items=N_ITEMS))
        allowed = [item for item in range(N_ITEMS) if item not in hidden]
        assert slate == reference.recommend(step, allowed), f"step {step}"
        clicked = draw.random(len(slate)) < ATTRACTIONS[slate] * np.array(CHANCES)[: len(slate)]
        examined = int(draw.integers(1, len(slate) + 1)) if step % 7 == 0 else len(slate)
        driver.learn(slate, np.flatnonzero(clicked), told=examined)
        reference.learn(slate, clicked[:examined])
    if name == "pbm-pie":
        assert 10 < reference.explored < steps / 2


@OTHERS
def test_the_first_click_alone_says_nothing_of_what_stands_below_it():
    counted = []
    for said in ({"click": 1}, {"clicks": [1]}, {"click": None}, {"click": 0, "examined": 2}):
        ranker = Ranker(Catalog(range(N_ITEMS)), k=3, policy="pbm-ucb", seed=1)
        ranker.learn(ranker.recommend(), **said)
        counted.append(ranker.state.shown.sum(axis=0).tolist())
    assert counted == [[1, 1, 0], [1, 1, 1], [1, 1, 1], [1, 1, 0]]
    ranker = Ranker(Catalog(range(N_ITEMS)), k=3, policy="pbm-ucb", seed=1)
    ranker.warm_start([{"items": [3, 1, 2], "click": 0}, {"items": [3, 1, 2], "clicks": [0]}])
    assert ranker.state.shown.sum(axis=0).tolist() == [2, 1, 1]


@OTHERS
@pytest.mark.parametrize("name", ["pbm-ucb", "pbm-pie"])
def test_positions_that_nobody_looks_at_hold_nothing_up(name):
    """The best item stands where nobody looks once the second best looks better, and must come back."""
    driver = Driver(f"{name}:examination=1/0", np.eye(4), k=2)
    attractions, draw, best = np.array([0.3, 0.9, 0.05, 0.05]), stream(1, "clicks"), 0
    # The second best was lucky and the best one was not.
    driver.state.shown[:2, 0], driver.state.hits[:2, 0] = 20, (10, 5)
    for step in range(1000):
        slate = driver.recommend(step)
        driver.learn(slate, [0] if draw.random() < attractions[slate[0]] else [])
        best += slate[0] == 1 and step >= 500
    # Found out, it is shown in all slates but those, at most half, that another one is tried in.
    assert best > 240


@OTHERS
def test_whether_a_bound_reaches_a_rate_is_told_without_computing_it():
    draw, slow, answers = stream(7, "counts"), SlowPBM(eps=0), []
    for trial in range(300):
        slow.t = int(draw.choice([1, 3, 1000]))
        shown = draw.integers(0, 12, K)
        hits = draw.binomial(shown, draw.random() * np.array(CHANCES if trial % 3 else CHANCES[::-1]))
        slow.n[0], slow.s[0] = shown, hits
        rate = float(draw.choice([draw.random(), 0.0, 1.0], p=[0.9, 0.05, 0.05]))
        reaches = slow.bound(0) >= rate - 1e-9 if shown.any() else True
        assert may_reach(shown, hits, np.array(CHANCES), rate, slow.budget()) == reaches, trial
        answers.append(reaches)
    assert 60 < sum(answers) < 240


@OTHERS
def test_where_all_is_examined_pbm_ucb_is_cascade_ucb1_slate_by_slate():
    one = Driver("pbm-ucb:examination=1,eps=0", n_items=30, k=4)
    other = Driver("cascade-ucb1:radius=0.5,start=first", n_items=30, k=4)
    draw = stream(5, "clicks")
    for step in range(500):
        slate = one.recommend(step)
        assert slate == other.recommend(step), f"step {step}"
        clicked = np.flatnonzero(draw.random(4) < 0.1 + 0.02 * np.array(slate))
        one.learn(slate, clicked)
        other.learn(slate, clicked, told=4)


@OTHERS
def test_estimates_are_free_of_the_bias_of_positions():
    # After 4,000 slates an attraction is known to within 0.02: 0.1 is five times that, a false alarm in a
    # million for each of nine items.
    driver = Driver("pbm-ucb:examination=0.4/1/0.7", np.eye(N_ITEMS), k=K)
    draw = stream(6, "clicks")
    for _ in range(4000):
        slate = draw.permutation(N_ITEMS)[:K]
        driver.learn(slate, np.flatnonzero(draw.random(K) < ATTRACTIONS[slate] * CHANCES))
    means, deviations = driver.estimate(range(N_ITEMS))
    assert np.abs(means - ATTRACTIONS).max() < 0.1
    assert deviations.max() < 0.02


@OTHERS
def test_chances_that_say_nothing_are_refused():
    with pytest.raises(InvalidInput, match=r"pbm-ucb: some chance of examination must be above 0, got \(0.0"):
        make_policy("pbm-ucb:examination=0/0")
