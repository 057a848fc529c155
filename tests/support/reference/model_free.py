"""Slow versions of the rankers that need no click model; the interface is that of policies.py."""

from math import ceil, erf, log, pi, sqrt

import numpy as np

from firstclick.kernels.design import g_optimal, spanning

COINS, SHUFFLE, TRIED = (np.uint64(number << 56) for number in (6, 7, 8))


class Slow:
    """A policy that learns nothing, and has neither arrays to compare nor estimates."""

    def learn(self, step, slate, clicks, examined):
        pass

    def state(self):
        return {}

    def estimates(self, step):
        return None


class ModelFree(Slow):
    """Feedback is compared among the items that the request allowed."""

    def recommend(self, step, items, k):
        self.allowed = list(items)
        return self.slate(step, self.allowed, k)


class TopRank(ModelFree):
    def __init__(self, x, k, horizon=100_000, pairs="block"):
        self.n, self.delta, self.pairs = len(x), 1 / horizon, pairs
        self.s, self.m, self.relations = {}, {}, set()

    def blocks(self):
        rest, blocks = set(range(self.n)), []
        while rest:
            top = {i for i in rest if not any((j, i) in self.relations for j in rest)} or set(rest)
            blocks.append(top)
            rest -= top
        return blocks

    def block_of_items(self):
        return [next(d for d, block in enumerate(self.blocks()) if item in block) for item in range(self.n)]

    def slate(self, step, allowed, k):
        block = self.block_of_items()
        return sorted(allowed, key=lambda item: (block[item], -step.hash(item)))[:k]

    def learn(self, step, slate, clicks, examined):
        shown = slate[:examined]
        click = dict.fromkeys(range(self.n), 0) | dict(zip(shown, map(int, clicks), strict=False))
        c = 4 * sqrt(2 / pi) / erf(sqrt(2))
        fresh = set()
        for block in self.blocks():
            compared = block & set(shown if self.pairs == "shown" else self.allowed)
            for i in compared:
                for j in compared:
                    u = click[i] - click[j]
                    self.s[i, j] = self.s.get((i, j), 0) + u
                    self.m[i, j] = self.m.get((i, j), 0) + abs(u)
                    s, m = self.s[i, j], self.m[i, j]
                    if m > 0 and s >= sqrt(2 * m * log(c / self.delta * sqrt(m))):
                        fresh.add((i, j))
        self.relations |= fresh

    def state(self):
        return {"block": self.block_of_items()}

    def check(self, state):
        assert max(self.block_of_items()) >= 2  # It came to more than one relation, and to what is behind it.


class BubbleRank(ModelFree):
    def __init__(self, x, k, horizon=100_000, turn=1):
        n = len(x)
        self.list, self.log, self.turn, self.t = list(range(n)), 4 * log(horizon), turn, 0
        self.s, self.m = np.zeros((n, n)), np.zeros((n, n))

    def pairs(self, shown):
        h = (self.t // self.turn + 1) % 2
        return list(zip(shown[h::2], shown[h + 1 :: 2], strict=False))

    def sure(self, i, j):
        return self.s[i, j] > 2 * sqrt(self.m[i, j] * self.log)

    def slate(self, step, allowed, k):
        shown = [item for item in self.list if item in allowed]
        for i, j in self.pairs(shown):
            a, b = shown.index(i), shown.index(j)
            if step.coin(COINS, i) < 0.5 and not self.sure(i, j) and a < k:
                shown[a], shown[b] = j, i
        return shown[:k]

    def learn(self, step, slate, clicks, examined):
        click = dict(zip(slate[:examined], map(int, clicks), strict=False))
        shown = [item for item in self.list if item in self.allowed]
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

    def state(self):
        return {"place": np.argsort(self.list)}

    def check(self, state):
        assert self.list != sorted(self.list)


class BatchRank(ModelFree):
    def __init__(self, x, k, horizon=100_000):
        self.horizon, n = horizon, len(x)
        self.batches = [(0, k, list(range(n)), 0)]  # first position, end, items, stage
        self.shown, self.hits = np.zeros(n, int), np.zeros(n, int)

    def slate(self, step, allowed, k):
        slate, in_batches = [], set()

        def least_shown(items):
            able = sorted(set(items) & set(allowed), key=lambda item: (self.shown[item], -step.hash(item)))
            return sorted(able[: k - len(slate)], key=lambda item: -step.hash(item, SHUFFLE))

        for _, _, items, _ in self.batches:
            in_batches |= set(items)
            slate += least_shown(items)
        return slate + least_shown(set(allowed) - in_batches)

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

    def learn(self, step, slate, clicks, examined):
        for item, click in zip(slate[:examined], clicks, strict=False):
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

    def check(self, state):
        assert len(self.batches) == 3  # split twice
        assert 3 in state.batch  # and dropped
        assert [first for first, *_ in self.batches] == np.flatnonzero(state.stage >= 0).tolist()


class RecurRank(ModelFree):
    def __init__(self, x, k, horizon=100_000):
        self.x, self.horizon, self.k = x, horizon, k
        self.blocks = None
        self.order = dict.fromkeys(range(len(x)), 0)

    def begin(self, first, end, items, phase):
        items = sorted(items)
        taken, z = spanning(self.x[items])
        weights, _ = g_optimal(taken, z)  # Which design is chosen is tested elsewhere.
        used = [(w, x) for w, x in zip(weights, self.x[items], strict=True)]
        inverse = np.linalg.pinv(sum(w * np.outer(x, x) for w, x in used), rcond=1e-9, hermitian=True)
        g = max(x @ inverse @ x for _, x in used)
        delta = 1 / (self.k * phase * (phase + 1) * self.horizon)
        turns = [ceil(g * w / (2 * (2.0**-phase) ** 2) * log(len(items) / delta) - 1e-9) for w in weights]
        left = dict(zip(items, turns, strict=True))
        return {"first": first, "end": end, "items": items, "phase": phase, "left": left, "log": []}

    def slate(self, step, allowed, k):
        if self.blocks is None:
            return sorted(allowed, key=lambda item: -step.hash(item))[:k]
        slate = []
        for block in self.blocks:
            able = [item for item in block["items"] if item in allowed]
            able.sort(key=lambda item: (self.order[item], -step.hash(item)))
            turns = [item for item in able if block["left"][item] > 0]
            if turns:
                race = {i: log(step.coin(TRIED, i)) / block["left"][i] for i in turns}
                tried = max(turns, key=lambda item: race[item])
                able.remove(tried)
                able.insert(0, tried)
            slate += able
        in_batches = {item for block in self.blocks for item in block["items"]}
        return (slate + sorted(set(allowed) - in_batches, key=lambda item: -step.hash(item)))[:k]

    def learn(self, step, slate, clicks, examined):
        if self.blocks is None:
            self.blocks = [self.begin(0, self.k, range(len(self.x)), 1)]
        blocks = []
        for block in self.blocks:
            first = block["first"]
            if first >= min(examined, len(slate)) or slate[first] not in block["items"]:
                blocks.append(block)
                continue
            item = slate[first]
            block["log"].append((item, clicks[first]))
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
        self.order |= {item: j for j, item in enumerate(items)}
        edges = [0, *cuts, len(items)]
        ends = [block["first"] + cut for cut in cuts] + [block["end"]]
        return [
            self.begin(block["first"] + a, end, items[a:b], block["phase"] + 1)
            for a, b, end in zip(edges, edges[1:], ends, strict=False)
        ]

    def check(self, state):
        assert len(self.blocks) >= 2  # split
        assert 3 in state.block  # and dropped
        assert [block["first"] for block in self.blocks] == np.flatnonzero(state.phase >= 0).tolist()
        assert state.block[0] == 0
