"""Rankers that need no click model: each equals its slow reference, and BubbleRank is safe at every step."""

from math import ceil, erf, log, pi, sqrt

import numpy as np
import pytest

from firstclick import Catalog, InvalidInput, Ranker
from firstclick.catalog.search_tree import catalog_arrays
from firstclick.kernels.clicks import answer, examined_positions
from firstclick.kernels.compiling import compiled, learn, recommend
from firstclick.kernels.design import g_optimal, spanning
from firstclick.kernels.hashing import mix, uniform
from firstclick.policies import bubble_rank
from firstclick.policies.research import batch_rank, recur_rank
from firstclick.registry import make_policy
from firstclick.streams import stream, stream_key
from firstclick.testing import Driver, request
from firstclick.testing.checks import keeps_what_it_knows_when_items_are_added as check_growth
from firstclick.worlds.bernoulli import BernoulliWorld
from tests.support.policies import OTHERS, size

CHANCES = (1.0, 0.8, 0.6)


class Step:
    """What the kernels make of the key of a step: its ties, shuffles and coins."""

    def __init__(self, number):
        self.key = np.uint64(mix(stream_key(0, "driver"), np.uint64(number)))

    def ties(self, salt=None):
        key = self.key if salt is None else np.uint64(mix(self.key, salt))
        return lambda item: -int(mix(key, np.uint64(item)))

    def chance(self, salt, item):
        return uniform(np.uint64(mix(self.key, salt)), np.uint64(item))


def play_both(policy, slow, attractions, steps, *, k=3, features=None, restrict=False):
    """Play the policy and its reference on the same clicks, by position, and compare every slate."""
    attractions = np.array(attractions)
    n = len(attractions)
    driver = Driver(policy, np.eye(n) if features is None else features, k=k)
    draw = stream(3, policy, "clicks")
    for number in range(steps):
        hidden = draw.choice(n, 2, replace=False).tolist() if restrict and number % 5 == 0 else []
        asked = request(hidden=hidden, n_items=n)
        slate = driver.recommend(number, asked)
        allowed = [item for item in range(n) if item not in hidden]
        assert slate == slow.recommend(Step(number), allowed, k), f"step {number}"
        clicked = draw.random(len(slate)) < attractions[slate] * np.array(CHANCES)[: len(slate)]
        examined = int(draw.integers(1, len(slate) + 1)) if number % 7 == 0 else len(slate)
        driver.learn(slate, np.flatnonzero(clicked), told=examined, request=asked)
        slow.learn(slate, clicked[:examined].tolist(), examined, allowed)
    return driver


class SlowTopRank:
    def __init__(self, n, horizon, shown_only=False):
        self.n, self.delta, self.shown_only = n, 1 / horizon, shown_only
        self.s, self.m, self.relations = {}, {}, set()

    def blocks(self):
        rest, blocks = set(range(self.n)), []
        while rest:
            top = {i for i in rest if not any((j, i) in self.relations for j in rest)} or set(rest)
            blocks.append(top)
            rest -= top
        return blocks

    def recommend(self, step, allowed, k):
        block = {item: d for d, items in enumerate(self.blocks()) for item in items}
        return sorted(allowed, key=lambda item: (block[item], step.ties()(item)))[:k]

    def learn(self, slate, clicked, examined, allowed):
        click = dict.fromkeys(range(self.n), 0) | dict(zip(slate, map(int, clicked), strict=False))
        c = 4 * sqrt(2 / pi) / erf(sqrt(2))
        fresh = set()
        for block in self.blocks():
            compared = set(slate[:examined]) if self.shown_only else set(allowed)
            for i in block & compared:
                for j in block & compared:
                    u = click[i] - click[j]
                    self.s[i, j] = self.s.get((i, j), 0) + u
                    self.m[i, j] = self.m.get((i, j), 0) + abs(u)
                    s, m = self.s[i, j], self.m[i, j]
                    if m > 0 and s >= sqrt(2 * m * log(c / self.delta * sqrt(m))):
                        fresh.add((i, j))
        self.relations |= fresh


@OTHERS
@pytest.mark.parametrize("pairs", ["block", "shown"])
def test_top_rank_equals_its_reference(pairs):
    slow = SlowTopRank(6, horizon=20, shown_only=pairs == "shown")
    attractions = [0.1, 0.95, 0.2, 0.5, 0.15, 0.05]
    driver = play_both(
        f"top-rank:horizon=20,pairs={pairs}", slow, attractions, size(1500, plain=300), restrict=True
    )
    assert driver.state.block.max() >= 2  # It came to more than one relation, and to what is behind it.
    assert driver.state.block[1] == 0


@OTHERS
def test_top_rank_puts_a_circle_last_and_does_not_hang():
    driver = Driver("top-rank:horizon=2", np.eye(4), k=2)
    for i, j in [(1, 2), (2, 3), (3, 1), (0, 1), (0, 2), (0, 3)]:
        driver.state.beats[i, j] = 1
    while not driver.state.block.any():
        driver.learn([0, 1], 0, request=request([0, 1]))  # until 0 beats 1, which is news
        driver.state.beats[0, 1] *= driver.state.wins[0, 1] > 10
    assert driver.state.block.tolist() == [0, 1, 1, 1]


class SlowBubbleRank:
    def __init__(self, n, horizon, turn):
        self.list, self.log, self.turn, self.t = list(range(n)), 4 * log(horizon), turn, 0
        self.s, self.m = np.zeros((n, n)), np.zeros((n, n))

    def pairs(self, shown):
        h = (self.t // self.turn + 1) % 2
        return list(zip(shown[h::2], shown[h + 1 :: 2], strict=False))

    def sure(self, i, j):
        return self.s[i, j] > 2 * sqrt(self.m[i, j] * self.log)

    def recommend(self, step, allowed, k):
        shown = [item for item in self.list if item in allowed]
        for i, j in self.pairs(shown):
            coin = step.chance(bubble_rank._COINS, i) < 0.5
            if coin and not self.sure(i, j):
                a, b = shown.index(i), shown.index(j)
                if a < k:
                    shown[a], shown[b] = j, i
        return shown[:k]

    def learn(self, slate, clicked, examined, allowed):
        click = dict(zip(slate, map(int, clicked), strict=False))
        shown = [item for item in self.list if item in allowed]
        for i, j in self.pairs(shown):
            both = i in click and j in click
            last = {i, j} & set(slate) == {slate[-1]} and examined == len(slate)
            if both or last:
                u = click.get(i, 0) - click.get(j, 0)
                self.s[i, j] += u
                self.s[j, i] -= u
                self.m[i, j] += abs(u)
                self.m[j, i] += abs(u)
        for k in range(len(shown) - 1):
            i, j = shown[k], shown[k + 1]
            if self.sure(j, i):
                shown[k], shown[k + 1] = j, i
                a, b = self.list.index(i), self.list.index(j)
                self.list[a], self.list[b] = j, i
        self.t += 1


@OTHERS
@pytest.mark.parametrize(("n", "turn"), [(3, 1), (6, 1), (6, 5)])
def test_bubble_rank_equals_its_reference(n, turn):
    slow = SlowBubbleRank(n, horizon=3, turn=turn)
    attractions = np.linspace(0.1, 0.9, n)
    restrict = n > 3
    driver = play_both(
        f"bubble-rank:horizon=3,turn={turn}", slow, attractions, size(1500, plain=1100), restrict=restrict
    )
    assert np.argsort(driver.state.place).tolist() == slow.list
    assert slow.list != list(range(n))


@OTHERS
def test_bubble_rank_takes_from_late_feedback_only_what_confirms_the_list():
    driver = Driver("bubble-rank", np.eye(5), k=5)
    # First pairing: the second with the third, the fourth with the fifth. This slate has the other one.
    driver.learn([1, 0, 3, 2, 4], [0, 2])
    assert not driver.state.wins.any()
    driver = Driver("bubble-rank", np.eye(5), k=5)
    driver.learn([0, 2, 1, 3, 4], [1, 4])
    assert sorted(zip(*np.nonzero(driver.state.wins), strict=True)) == [(2, 1), (4, 3)]


@OTHERS
def test_bubble_rank_pairs_what_a_slate_shows_though_nobody_says_what_a_request_left_out():
    driver = Driver("bubble-rank", np.eye(5), k=5)
    driver.learn([0, 3, 2, 4], [1, 3])  # Without 1 the second and the third are 2 and 3.
    assert np.argwhere(driver.state.wins).tolist() == [[3, 2]]


def most_wrong_pairs(numbers, state, catalog, asked, world, click_model, keys, steps, slate):
    """The most pairs that any slate shows in the wrong order."""
    clicks, noise, most = np.empty(len(slate), np.uint8), np.empty(0), 0
    for step in range(steps):
        n = recommend(numbers, state, catalog, asked, mix(keys[0], np.uint64(step)), noise, slate)
        wrong = 0
        for a in range(n):
            for b in range(a + 1, n):
                wrong += world.attraction[0, slate[a]] < world.attraction[0, slate[b]]
        most = max(most, wrong)
        _, told = answer(world, mix(keys[1], np.uint64(step)), 0, 0, slate, n, clicks)
        examined = examined_positions(click_model, clicks, n, told)
        learn(numbers, state, catalog, asked, slate[:n], examined, clicks[:n])
    return most


def wrong_pairs(attractions):
    """How many pairs of the list have the less attractive item above."""
    k = len(attractions)
    return sum(attractions[a] < attractions[b] for a in range(k) for b in range(a + 1, k))


# By the authors' lemma a run breaks the rule with a chance of at most K^2 / horizon = 0.0005; all 16 of them
# with one of 0.008. (Azuma's inequality alone gives far less: n K^2 / 2 delta^2, with delta = horizon^-4.)
@pytest.mark.long
@pytest.mark.parametrize("clicks", ["cascade", "dcm/0.6/0.3", "pbm", "scroll"])
def test_bubble_rank_never_shows_many_more_wrong_pairs_than_the_list_it_was_given(clicks):
    k, policy = 7, bubble_rank.BubbleRank()
    # A list without fault leaves no room for a wrong exchange that stays, nor for a fourth one at once.
    # One has a row in the middle that was withdrawn: exchanges go round it.
    mixed = stream(0, "list").permutation(k)
    lists = [(range(k), []), ([1, 0, 2, 3, 4, 6, 5], []), (mixed, [3]), (mixed, [])]
    for seed, (given, gone) in enumerate(lists):
        attractions = np.linspace(0.8, 0.1, k)[given]
        world = BernoulliWorld(attractions, clicks)
        state = policy.initial_state(k, 0, k)
        keys = np.array([stream_key(seed, "policy"), stream_key(seed, "world")])
        most = compiled(most_wrong_pairs, bubble_rank.BubbleRank)(
            policy.numbers(k, np.empty((k, 0))), state, catalog_arrays(None, k),
            request(hidden=gone, n_items=k), world.arrays(), policy.click_model.kind, keys, 30_000,
            np.empty(k, np.int64),
        )  # fmt: skip
        start = wrong_pairs(np.delete(attractions, gone))
        assert most <= start + k // 2, f"list {seed}: {most} wrong pairs, {start} at the start"
    # It is not safe by standing still: the last list had much to mend.
    assert wrong_pairs(attractions[np.argsort(state.place)]) < start


class SlowBatchRank:
    def __init__(self, n, horizon, k):
        self.horizon, self.k = horizon, k
        self.batches = [(0, k, list(range(n)), 0)]  # first slot, end, items, stage
        self.shown, self.hits = np.zeros(n, int), np.zeros(n, int)

    def recommend(self, step, allowed, k):
        slate, listed = [], set()
        for _, _, items, _ in self.batches:
            listed |= set(items)
            able = [item for item in items if item in allowed]
            able.sort(key=lambda item: (self.shown[item], step.ties()(item)))
            slate += sorted(able[: k - len(slate)], key=step.ties(batch_rank._SHUFFLE))
        rest = sorted(set(allowed) - listed, key=lambda item: (self.shown[item], step.ties()(item)))
        return slate + sorted(rest[: k - len(slate)], key=step.ties(batch_rank._SHUFFLE))

    def bounds(self, item):
        """All rates that the budget allows, on a fine grid."""
        rate, n = self.hits[item] / self.shown[item], self.shown[item]
        q = np.linspace(0, 1, 20001)[1:-1]
        kl = np.zeros_like(q)
        if rate > 0:
            kl += rate * np.log(rate / q)
        if rate < 1:
            kl += (1 - rate) * np.log((1 - rate) / (1 - q))
        within = q[n * kl <= log(self.horizon) + 3 * log(log(self.horizon))]
        return within.min(), within.max()

    def learn(self, slate, clicked, examined, allowed):
        for item, click in zip(slate[:examined], clicked, strict=True):
            self.shown[item] += 1
            self.hits[item] += click
        batches = []
        for first, end, items, stage in self.batches:
            if min(self.shown[items]) < ceil(16 * 4**stage * log(self.horizon)):
                batches.append((first, end, items, stage))
                continue
            bounds = {item: self.bounds(item) for item in items}
            items = sorted(items, key=lambda item: -bounds[item][0])
            slots = end - first
            splits = [
                s
                for s in range(1, min(slots, len(items)))
                if bounds[items[s - 1]][0] > max(bounds[item][1] for item in items[s:])
            ]
            self.shown[items] = self.hits[items] = 0
            if splits:
                s = splits[-1]
                batches += [(first, first + s, items[:s], 0), (first + s, end, items[s:], 0)]
            elif len(items) > slots:
                worst = bounds[items[slots - 1]][0]
                batches.append((first, end, [i for i in items if bounds[i][1] >= worst], stage + 1))
            else:
                batches.append((first, end, items, stage + 1))
        self.batches = batches


@OTHERS
def test_batch_rank_equals_its_reference():
    slow = SlowBatchRank(6, horizon=8, k=3)
    driver = play_both(
        "batch-rank:horizon=8", slow, [0.2, 0.9, 0.02, 0.6, 0.02, 0.4], size(4000, plain=2500), restrict=True
    )
    assert len(slow.batches) == 3  # split twice
    assert 3 in driver.state.batch  # and dropped
    assert [first for first, *_ in slow.batches] == np.flatnonzero(driver.state.stage >= 0).tolist()


class SlowRecurRank:
    def __init__(self, features, horizon, k):
        self.x, self.horizon, self.k = features, horizon, k
        self.blocks, self.dropped = None, []
        self.place = dict.fromkeys(range(len(features)), 0)

    def begin(self, first, end, items, phase):
        items = sorted(items)
        taken, z = spanning(self.x[items])
        weights, _ = g_optimal(taken, z)  # which design is found is tested elsewhere
        used = [(w, x) for w, x in zip(weights, self.x[items], strict=True)]
        inverse = np.linalg.pinv(sum(w * np.outer(x, x) for w, x in used), rcond=1e-9, hermitian=True)
        g = max(x @ inverse @ x for _, x in used)
        delta = 1 / (self.k * phase * (phase + 1) * self.horizon)
        turns = [ceil(g * w / (2 * (2.0**-phase) ** 2) * log(len(items) / delta) - 1e-9) for w in weights]
        left = dict(zip(items, turns, strict=True))
        return {"first": first, "end": end, "items": items, "phase": phase, "left": left, "log": []}

    def recommend(self, step, allowed, k):
        if self.blocks is None:
            return sorted(allowed, key=step.ties())[:k]
        slate = []
        for block in self.blocks:
            able = [item for item in block["items"] if item in allowed]
            able.sort(key=lambda item: (self.place[item], step.ties()(item)))
            turns = [item for item in able if block["left"][item] > 0]
            if turns:
                race = {i: log(step.chance(recur_rank._TRIED, i)) / block["left"][i] for i in turns}
                tried = max(turns, key=lambda item: race[item])
                able.remove(tried)
                able.insert(0, tried)
            slate += able
        listed = {item for block in self.blocks for item in block["items"]}
        return (slate + sorted(set(allowed) - listed, key=step.ties()))[:k]

    def learn(self, slate, clicked, examined, allowed):
        if self.blocks is None:
            self.blocks = [self.begin(0, self.k, range(len(self.x)), 1)]
        blocks = []
        for block in self.blocks:
            first = block["first"]
            if first >= min(examined, len(slate)) or slate[first] not in block["items"]:
                blocks.append(block)
                continue
            item = slate[first]
            block["log"].append((item, clicked[first]))
            block["left"][item] = max(block["left"][item] - 1, 0)
            blocks += self.split(block) if not any(block["left"].values()) else [block]
        self.blocks = blocks

    def split(self, block):
        x, y = (np.array(list(column)) for column in zip(*block["log"], strict=True))
        theta = np.linalg.lstsq(self.x[x], y.astype(float), rcond=1e-9)[0]
        items = sorted(block["items"], key=lambda item: -self.x[item] @ theta)
        value = [self.x[item] @ theta for item in items]
        gap, slots = 2 * 2.0 ** -block["phase"], block["end"] - block["first"]
        items = [i for i, v in zip(items, value, strict=True) if value[min(slots, len(value)) - 1] - v < gap]
        cuts = [j + 1 for j in range(min(slots, len(items)) - 1) if value[j] - value[j + 1] >= gap]
        self.place |= {item: j for j, item in enumerate(items)}
        edges = [0, *cuts, len(items)]
        ends = [block["first"] + cut for cut in cuts] + [block["end"]]
        return [
            self.begin(block["first"] + a, end, items[a:b], block["phase"] + 1)
            for a, b, end in zip(edges, edges[1:], ends, strict=False)
        ]


@OTHERS
def test_recur_rank_equals_its_reference():
    draw = stream(5, "features")
    attractions = np.array([0.95, 0.6, 0.55, 0.5, 0.12, 0.02, 0.3, 0.25])
    # One direction is the attraction, so that the model holds; one of five is not needed.
    other = draw.standard_normal((8, 3))
    features = np.column_stack([attractions, other, other[:, 0] - other[:, 1]]) @ draw.standard_normal((5, 5))
    slow = SlowRecurRank(features, horizon=10, k=3)
    driver = play_both(
        "recur-rank:horizon=10", slow, attractions, size(6000, plain=1500), features=features, restrict=True
    )
    assert len(slow.blocks) >= 2  # split
    assert 3 in driver.state.block  # and dropped
    assert [b["first"] for b in slow.blocks] == np.flatnonzero(driver.state.phase >= 0).tolist()
    assert driver.state.block[0] == 0


@pytest.mark.parametrize(("n", "d", "rank"), [(40, 5, 5), (40, 5, 3), (4, 6, 4), (1, 3, 1)])
def test_the_design_knows_all_items_nearly_as_well_as_can_be(n, d, rank):
    draw = stream(6, "design", n, rank)
    x = draw.standard_normal((n, rank)) @ draw.standard_normal((rank, d)) * draw.uniform(0.01, 1, (n, 1))
    taken, z = spanning(x)
    assert len(taken) == rank
    assert np.allclose(z @ z.T, x @ x.T)
    weights, width = g_optimal(taken, z)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    inverse = np.linalg.pinv(x.T @ (weights[:, None] * x), rcond=1e-9, hermitian=True)
    assert width == pytest.approx(max(row @ inverse @ row for row in x))
    # Kiefer and Wolfowitz: no design has less than the rank.
    assert rank * (1 - 1e-9) <= width <= 1.1 * rank


@OTHERS
def test_too_many_items_are_refused_in_one_sentence():
    for name in ("top-rank", "bubble-rank"):
        with pytest.raises(InvalidInput, match=rf"{name} keeps .* at most 2,000 items, got 2,001; choose"):
            Driver(name, np.zeros((2001, 1)))


@OTHERS
def test_top_rank_says_which_of_its_settings_takes_items_later():
    assert not make_policy("top-rank").growable
    check_growth(make_policy("top-rank:pairs=shown"))


@OTHERS
def test_items_that_come_later_start_where_their_policy_says():
    catalog = Catalog(["a", "b", "c", "d"], np.eye(4))
    names = ("top-rank:pairs=shown", "bubble-rank", "batch-rank")
    rankers = {name: Ranker(catalog, k=2, policy=name) for name in names}
    for ranker in rankers.values():
        ranker.learn(ranker.recommend(), click=0)
    rankers["batch-rank"].state.stage[1] = 0  # as after a split
    catalog.add(["e"], np.eye(4)[:1])
    for ranker in rankers.values():
        ranker.recommend()
    assert rankers["top-rank:pairs=shown"].state.block[4] == 0
    assert rankers["bubble-rank"].state.place[4] == 4
    assert rankers["batch-rank"].state.batch[4] == 1


@OTHERS
def test_a_withdrawn_item_is_no_wall_in_the_list_of_bubble_rank():
    attractions = {"a": 0.05, "gone": 0.5, "best": 0.95, "b": 0.05, "c": 0.05}
    ranker = Ranker(Catalog(list(attractions), np.eye(5)), k=2, policy="bubble-rank:horizon=3", seed=3)
    draw = stream(7, "withdrawn")
    tops = []
    for step in range(1200):
        if step == 20:
            ranker.withdraw_items(["gone"])
        slate = ranker.recommend()
        ranker.learn(slate, clicks=[p for p, i in enumerate(slate.items) if draw.random() < attractions[i]])
        tops.append(slate.items[0])
    assert tops[-100:].count("best") == 100
