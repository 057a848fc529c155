"""Policies that count, beyond the paper's: each equals its slow reference, and its parent where it can."""

import math

import numpy as np
import pytest

import reference
from firstclick import InvalidInput, make_policy
from firstclick.kernels.hashing import fill_normal, mix, uniform
from firstclick.policies.research.cascade_glr_ucb import change_evidence, remember
from firstclick.streams import stream, stream_key
from firstclick.testing import Driver, request
from tests.support.policies import OTHERS, size

# Enough items for the shortcuts of confidence bounds.
N_ITEMS, K = 34, 5


class Step:
    """What the kernels make of the key of this step: noise, ties, and what is explored."""

    def __init__(self, number, noise_size):
        key = np.uint64(mix(stream_key(0, "driver"), np.uint64(number)))
        self.noise = np.empty(noise_size)
        fill_normal(key, self.noise)
        self.ties = [mix(key, np.uint64(item)) for item in range(N_ITEMS)]
        exploring = np.uint64(mix(key, np.uint64(6 << 56)))
        self.luck = uniform(exploring, np.uint64(0))
        what = np.uint64(mix(exploring, np.uint64(1)))
        self.turns = [mix(what, np.uint64(item)) for item in range(N_ITEMS)]


class Logged:
    """Keeps every slate that was learned from, and counts anew at every step."""

    def __init__(self):
        self.log = []  # of each slate what was examined: pairs of an item and whether it was clicked

    def learn(self, slate, examined, clicks):
        self.log.append([(item, clicks[place]) for place, item in enumerate(slate[:examined])])

    def counts(self, weights):
        """Examinations and hits of each item, where each slate has a weight."""
        examined, hits = np.zeros(N_ITEMS), np.zeros(N_ITEMS)
        for weight, pairs in zip(weights, self.log, strict=True):
            for item, click in pairs:
                examined[item] += weight
                hits[item] += weight * click
        return examined, hits

    def recommend(self, step, items):
        examined, hits = self.counts(np.ones(len(self.log)))
        scores = {e: self.index(hits[e], examined[e], step) for e in items}
        return reference.by_score(scores, step.ties, items)[:K]

    def learned(self):
        return max(len(self.log), 1)


class TSCascade(Logged):
    def index(self, hits, examined, step):
        t = len(self.log) + 1
        rate = hits / examined if examined else 0.0
        spread = max(
            np.sqrt(rate * (1 - rate) * np.log(t + 1) / (examined + 1)), np.log(t + 1) / (examined + 1)
        )
        return rate + step.noise[0] * spread


class UCBV(Logged):
    def __init__(self, radius):
        super().__init__()
        self.radius = radius

    def index(self, hits, examined, step):
        if not examined:
            return np.inf
        rate, b = hits / examined, self.radius * np.log(self.learned())
        return rate + np.sqrt(2 * rate * (1 - rate) * b / examined) + 3 * b / examined


class DcmKLUCB(Logged):
    def __init__(self, stop):
        super().__init__()
        self.stop = stop

    def index(self, hits, examined, step):
        t = len(self.log) + 1
        budget = max(np.log(t) + 3 * np.log(np.log(t)), 0) if t > 1 else 0
        return reference.kl_bound(hits / examined, budget / examined) if examined else np.inf

    def recommend(self, step, items):
        best = super().recommend(step, items)
        chances = [self.stop[min(place, len(self.stop) - 1)] for place in range(len(best))]
        places = sorted(range(len(best)), key=lambda place: -chances[place])
        return [item for _, item in sorted(zip(places, best, strict=True))]


class Fading(Logged):
    """Both the discount and the window: a weight for each age."""

    def __init__(self, radius, weight_of_age):
        super().__init__()
        self.radius, self.weight_of_age = radius, weight_of_age

    def weights(self):
        return np.array([self.weight_of_age(age) for age in range(len(self.log))][::-1])

    def recommend(self, step, items):
        weights = self.weights()
        examined, hits = self.counts(weights)
        budget = self.radius * np.log(max(weights.sum(), 1))
        scores = {
            e: hits[e] / examined[e] + np.sqrt(budget / examined[e]) if examined[e] else np.inf for e in items
        }
        return reference.by_score(scores, step.ties, items)[:K]


class GLRUCB:
    """Keeps all observations of each item since its last change."""

    def __init__(self, delta, explore, forget):
        self.delta, self.explore, self.forget = delta, explore, forget
        self.seen = [[] for _ in range(N_ITEMS)]
        self.since, self.t, self.changes = [0] * N_ITEMS, 0, 0

    def recommend(self, step, items):
        scores = {}
        for e in items:
            t, n = self.t - self.since[e] + 1, len(self.seen[e])
            budget = max(np.log(t) + 3 * np.log(np.log(t)), 0) if t > 1 else 0
            scores[e] = reference.kl_bound(np.mean(self.seen[e]), budget / n) if n else 2.0
        if items and step.luck < self.explore:
            scores[max(items, key=lambda e: int(step.turns[e]))] = 3.0
        return reference.by_score(scores, step.ties, items)[:K]

    def learn(self, slate, examined, clicks):
        self.t += 1
        changed = set()
        for place, item in enumerate(slate[:examined]):
            self.seen[item].append(int(clicks[place]))
            n = len(self.seen[item])
            if evidence(self.seen[item]) > np.log(3 * n * np.sqrt(n) / self.delta):
                changed.add(item)
        self.changes += bool(changed)
        for item in range(N_ITEMS) if changed and self.forget == "all" else changed:
            self.seen[item], self.since[item] = [], self.t


def cuts(n):
    """The cuts that are tried: multiples of the least power of two that makes no more than 64 of them."""
    step = 1
    while n // step > 64:
        step *= 2
    return range(step, n, step)


def evidence(seen):
    n, hits = len(seen), np.cumsum(seen)
    rate, ratios = hits[-1] / n, [0.0]
    for s in cuts(n):
        before, after = hits[s - 1] / s, (hits[-1] - hits[s - 1]) / (n - s)
        ratios.append(s * reference.kl(before, rate) + (n - s) * reference.kl(after, rate))
    return max(ratios)


REFERENCES = {
    "ts-cascade": (TSCascade, 400),
    "cascade-ucb-v:start=first": (lambda: UCBV(1.2), 400),
    "cascade-ucb-v:radius=0.1,start=first": (lambda: UCBV(0.1), 400),
    "dcm-kl-ucb": (lambda: DcmKLUCB([1.0]), 120),
    "dcm-kl-ucb:stop=0.2/0.9/0.5": (lambda: DcmKLUCB([0.2, 0.9, 0.5]), 120),
    "cascade-ducb:discount=0.7": (lambda: Fading(2.0, lambda age: 0.7**age), 500),
    "cascade-ducb:discount=0.99,radius=0.3": (lambda: Fading(0.3, lambda age: 0.99**age), 300),
    "cascade-swucb:window=40": (lambda: Fading(0.5, lambda age: age < 40), 200),
    "cascade-swucb:window=1,radius=2": (lambda: Fading(2.0, lambda age: age < 1), 50),
    "cascade-glr-ucb:delta=0.01,explore=0.3": (lambda: GLRUCB(0.01, 0.3, "all"), 400),
    "cascade-glr-ucb:delta=0.01,explore=0.1,forget=item": (lambda: GLRUCB(0.01, 0.1, "item"), 300),
}


@OTHERS
@pytest.mark.parametrize("policy", REFERENCES)
def test_slates_equal_the_reference(policy):
    driver = Driver(policy, n_items=N_ITEMS, k=K)
    make, full = REFERENCES[policy]
    # A change is noticed in the second half, after a while.
    steps = full if "glr" in policy else size(full, plain=min(full, 150))
    slow, draw = make(), stream(2, "clicks")
    for step in range(steps):
        candidates = [] if step % 3 else sorted(draw.choice(N_ITEMS, 6, replace=False).tolist())
        hidden = draw.choice(N_ITEMS, 4, replace=False).tolist() if step % 4 == 1 else []
        asked = [e for e in candidates or range(N_ITEMS) if e not in hidden]
        slate = driver.recommend(step, request(candidates, hidden, N_ITEMS))
        assert slate == slow.recommend(Step(step, len(driver._noise)), asked), f"step {step}"
        # Few items attract, and other ones after half of the steps; now and then the page tells.
        attractive = np.array(slate) % 3 == (step > steps // 2)
        clicks = (draw.random(len(slate)) < np.where(attractive, 0.9, 0.1)).astype(np.uint8)
        told = int(draw.integers(0, len(slate) + 1)) if step % 7 == 0 else None
        driver.learn(slate, np.flatnonzero(clicks), told)
        slow.learn(slate, driver.policy.click_model.examined(clicks, told), clicks)
    if isinstance(slow, GLRUCB):
        assert 1 <= slow.changes < 40, "the detector must have something to do, and not all the time"
    if isinstance(slow, Fading):
        unit = driver.state.unit if hasattr(driver.state, "unit") else 1.0
        examined, hits = slow.counts(slow.weights())
        np.testing.assert_allclose(driver.state.examined / unit, examined, rtol=1e-9, atol=1e-30)
        np.testing.assert_allclose(driver.state.hits / unit, hits, rtol=1e-9, atol=1e-30)


PARENTS = {
    "dcm-kl-ucb": "cascade-kl-ucb",
    "cascade-ducb:discount=1": "cascade-ucb1:radius=2,start=first",
    "cascade-swucb:window=400": "cascade-ucb1:radius=0.5,start=first",
    "cascade-glr-ucb:delta=0,explore=0": "cascade-kl-ucb:start=first",
}


@OTHERS
@pytest.mark.parametrize("policy", PARENTS)
def test_without_its_extension_it_is_its_parent(policy):
    child, parent = Driver(policy, n_items=N_ITEMS, k=K), Driver(PARENTS[policy], n_items=N_ITEMS, k=K)
    draw = stream(3, "clicks")
    for step in range(size(400, plain=100)):
        slate = child.recommend(step)
        assert slate == parent.recommend(step), f"step {step}"
        click = int(draw.integers(0, K + 3))
        for driver in (child, parent):
            driver.learn(slate, click if click < K else None)


@OTHERS
def test_one_draw_decides_between_what_is_known_and_what_is_not():
    # Step 1: 0.25 + z log(2) / 5, unless the spread is the larger root, against z log(2) for the unseen item.
    driver = Driver("ts-cascade", n_items=2, k=1)
    driver.state.examined[0], driver.state.hits[0] = 4, 1
    border = 0.25 / (np.log(2) - np.sqrt(0.1875 * np.log(2) / 5))
    drawn = [Step(step, 1).noise[0] for step in range(200)]
    assert [driver.recommend(step) for step in range(200)] == [[int(z > border)] for z in drawn]


@OTHERS
def test_a_bound_without_a_budget_says_nothing_of_later_ones():
    driver = Driver("cascade-ucb-v", n_items=N_ITEMS, k=1)
    driver.state.examined[:] = 1
    driver.state.examined[0], driver.state.hits[0], driver.state.time[0] = 10, 9, 1
    assert driver.recommend() == [0]  # log(1) = 0: the largest rate
    driver.learn([0], 0)
    assert driver.recommend() != [0]


@OTHERS
def test_the_position_where_users_leave_satisfied_gets_the_best_item():
    driver = Driver("dcm-kl-ucb:stop=0.1/0.9/0.5", n_items=4, k=3)
    driver.state.examined[:] = 100
    driver.state.hits[:] = [80, 60, 40, 20]
    driver.state.time[:] = 400
    assert driver.recommend() == [2, 0, 1]
    assert driver.recommend(0, request(hidden=[0], n_items=4)) == [3, 1, 2]
    assert driver.recommend(0, request([3, 1])) == [3, 1]
    driver.learn([2, 0, 1], [0, 1])  # two clicks: the last position was perhaps not examined
    assert driver.state.examined.tolist() == [101, 100, 101, 100]
    assert driver.state.hits.tolist() == [81, 60, 41, 20]


@OTHERS
def test_what_faded_away_is_unseen_again():
    driver = Driver("cascade-ducb:discount=0.01", n_items=4, k=1)
    driver.learn([3], 0)
    for step in range(120):
        driver.learn([step % 3], None)
    assert driver.state.examined[3] == driver.state.hits[3] == 0
    assert driver.recommend() == [3]
    driver.learn([3], 0)
    assert driver.estimate([3])[0, 0] == pytest.approx(2 / 3)


@pytest.mark.parametrize("rate", [0.0, 0.03, 0.5, 1.0])
def test_a_history_keeps_cuts_equally_far_apart(rate):
    seen = (stream(4, "clicks").random(700) < rate).astype(int).tolist()
    history, step = np.zeros(64, np.int32), 1
    for n in range(1, len(seen) + 1):
        hits = sum(seen[:n])
        step = remember(history, step, n, hits)
        kept = [step * (i + 1) for i in range((n - 1) // step)]
        assert kept == list(cuts(n))
        assert history[: len(kept)].tolist() == [sum(seen[:cut]) for cut in kept]
        if n % 50 == 0:
            assert change_evidence(history, step, n, hits) == pytest.approx(evidence(seen[:n]), abs=1e-9)


def alarm(seen, delta):
    """After how many observations a change is found; infinity if none is."""
    history, step, hits = np.zeros(64, np.int32), 1, 0
    for n, click in enumerate(seen, 1):
        hits += click
        step = remember(history, step, n, hits)
        if change_evidence(history, step, n, hits) > math.log(3 * n * math.sqrt(n) / delta):
            return n
    return math.inf


def test_luck_is_rarely_taken_for_a_change_and_a_change_is_found():
    draw = stream(5, "clicks")
    # At the rate that is asked for, delta = 0.05, more than 20 of 100 have a chance below 1e-7; of 2,000
    # others 13 gave a false alarm.
    alarms = [alarm((draw.random(400) < 0.3).astype(int), 0.05) for _ in range(100)]
    assert sum(map(math.isfinite, alarms)) <= 20
    # Of 2,000 others half were found within 21 observations and all within 81, but for 14 alarms before the
    # change: more than 5 of 30 have a chance below 1e-6.
    found = [alarm((draw.random(400) < np.repeat([0.2, 0.7], 200)).astype(int), 0.05) for _ in range(30)]
    assert sum(200 < n <= 300 for n in found) >= 25


@OTHERS
def test_upon_a_change_all_items_are_forgotten_or_only_that_one():
    for forget, left in (("all", [0, 0, 0]), ("item", [70, 0, 70])):
        driver = Driver(f"cascade-glr-ucb:delta=0.1,explore=0,forget={forget}", n_items=3, k=3)
        for _ in range(70):  # more than there are cuts
            driver.learn([0, 1, 2], None)
        while driver.state.examined[1]:
            driver.learn([1], 0)
        assert driver.state.examined.tolist() == left
        assert driver.state.step[1] == 1
        assert driver.state.time[0] < 100


@OTHERS
def test_the_explored_item_comes_from_all_and_goes_to_the_top():
    driver = Driver("cascade-glr-ucb:explore=0.5", n_items=5, k=2)
    driver.state.examined[:] = 1000
    driver.state.hits[:] = [900, 800, 100, 100, 100]
    driver.state.time[:] = 2000
    slates = [tuple(driver.recommend(step)) for step in range(2000)]
    counts = {slate: slates.count(slate) for slate in set(slates)}
    # Half of the slates are the usual one, and a fifth of the others; 6 standard errors are 132 and 81.
    assert abs(counts.pop((0, 1)) - 1200) < 132
    assert set(counts) == {(1, 0), (2, 0), (3, 0), (4, 0)}
    assert all(abs(count - 200) < 81 for count in counts.values())


@OTHERS
def test_a_horizon_sets_what_is_forgotten():
    assert Driver("cascade-ducb:horizon=10000").numbers.discount == 1 - 1 / 400
    driver = Driver("cascade-swucb:horizon=100000")
    assert driver.numbers.window == len(driver.state.shown) == 2146
    assert Driver("cascade-swucb:horizon=1").numbers.window == 1


@OTHERS
@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("cascade-ducb:horizon=100,discount=0.9", "horizon decides the discount; give one of them"),
        ("cascade-swucb:horizon=100,window=9", "horizon decides the window; give one of them"),
        ("dcm-kl-ucb:stop=" + "/".join(["0.5"] * 17), "stop takes at most 16 chances"),
        ("dcm-kl-ucb:stop=0.5/1.5", "stop must be"),
        ("cascade-glr-ucb:delta=1", "delta must be"),
    ],
)
def test_what_cannot_be_is_refused(policy, told):
    with pytest.raises(InvalidInput, match=told):
        make_policy(policy)
