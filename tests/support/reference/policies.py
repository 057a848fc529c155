"""Slow, obvious versions of all policies, written from the papers and sharing no code with the kernels.

Only conventions come from the library, no mathematics: the noise of a request, its hashes and its coins.
A reference is made of the features of all items, the length of a slate and the settings of its policy. It has

    recommend(step, items, k)               the best k of these items, best first
    learn(step, slate, clicks, examined)    from the clicks at so many positions; -1 if unknown
    state()                                 arrays that the policy must hold, by name
    estimates(step)                         means and deviations of all items, or None
"""

import numpy as np
from scipy import optimize

from firstclick.kernels.hashing import beta, fill_normal, mix, uniform
from tests.support.reference.mixed import MixedReference
from tests.support.reference.model_free import BatchRank, BubbleRank, RecurRank, Slow, TopRank

EXPLORING, PIE_COIN, PIE_LOTS = (np.uint64(number << 56) for number in (6, 9, 10))


class Step:
    """A request: its features and context, and what the kernels make of its key."""

    def __init__(self, key, x, noise, context=(), own=False):
        self.key, self.x, self.noise, self.context = key, x, noise, np.asarray(context, float)
        self.own = own  # The request brings features of its own.

    @classmethod
    def of(cls, driver, number, x=None, context=()):
        """The request of this number to a driver."""
        features, key = driver.catalog.features, np.uint64(mix(driver._key, np.uint64(number)))
        noise = np.empty(driver.policy.noise_size(driver.k, features.shape[1]))
        fill_normal(key, noise)
        return cls(key, features if x is None else x, noise, context, own=x is not None)

    def hash(self, item, salt=None):
        """Return the number that orders items at random."""
        return int(mix(self.key if salt is None else np.uint64(mix(self.key, salt)), np.uint64(item)))

    def coin(self, salt, item=0):
        return uniform(np.uint64(mix(self.key, salt)), np.uint64(item))

    def best(self, scores, items, k):
        """The best k items; of scores that are equal but for rounding the one with the larger hash."""
        return sorted(items, key=lambda e: (-np.round(scores[e], 12), -self.hash(e)))[:k]


# ---------------------------------------------------------------------------------------------- linear


class LinTS:
    def __init__(self, x, k, sigma=1.0):
        self.sigma = sigma
        self.M, self.B = np.eye(self.width(x)), np.zeros(self.width(x))

    def width(self, x):
        return x.shape[1]

    def z(self, step):
        """One row for each item."""
        return step.x

    def mean(self):
        return np.linalg.solve(self.M, self.B) / self.sigma**2

    def theta(self, noise):
        # Any square root of the covariance will do; M = LL' gives inv(L') for M^-1 = inv(L') inv(L).
        return self.mean() + np.linalg.inv(np.linalg.cholesky(self.M).T) @ noise

    def recommend(self, step, items, k):
        return step.best(self.z(step) @ self.theta(step.noise), items, k)

    def observe(self, x, clicked, weight=1.0):
        self.M += weight * np.outer(x, x) / self.sigma**2
        self.B += weight * x * clicked

    def learn(self, step, slate, clicks, examined):
        for item, click in zip(slate[:examined], clicks, strict=False):
            self.observe(self.z(step)[item], click)

    def state(self):
        return {"precision": self.M, "moment": self.B}

    def estimates(self, step):
        z, inverse = self.z(step), np.linalg.inv(self.M)
        return z @ self.mean(), np.sqrt(np.sum(z @ inverse * z, axis=1))


class LinUCB(LinTS):
    def __init__(self, x, k, sigma=1.0, c=1.0, horizon=None, theta_norm=1.0):
        super().__init__(x, k, sigma)
        self.c, self.scale = c, 1.0
        if c == "theory":
            d, self.scale = x.shape[1], 1 / max(np.linalg.norm(x, axis=1).max(), 1)
            log = d * np.log1p(horizon * k / (d * sigma**2)) + 2 * np.log(horizon * k)
            self.c = np.sqrt(log) / sigma + theta_norm

    def z(self, step):
        return self.scale * step.x

    def recommend(self, step, items, k):
        means, deviations = LinTS.estimates(self, step)
        bounds = np.round(means + self.c * deviations, 12)
        # min(bound, 1) first, the value before the clip among those at 1: the paper's order, made whole.
        return sorted(items, key=lambda e: (-min(bounds[e], 1), -bounds[e], -step.hash(e)))[:k]


class RankedLinTS:
    def __init__(self, x, k, sigma=1.0):
        self.rankers = [LinTS(x, 1, sigma) for _ in range(k)]

    def recommend(self, step, items, k):
        slate = []
        for ranker, noise in zip(self.rankers, np.split(step.noise, len(self.rankers)), strict=True):
            left = [e for e in items if e not in slate]
            slate += step.best(step.x @ ranker.theta(noise), left, 1)
        return slate

    def learn(self, step, slate, clicks, examined):
        for ranker, item, click in zip(self.rankers, slate[:examined], clicks, strict=False):
            ranker.observe(step.x[item], click)

    def state(self):
        return {name: [ranker.state()[name] for ranker in self.rankers] for name in ("precision", "moment")}

    def estimates(self, step):
        return self.rankers[0].estimates(step)


class Dependent:
    """Several clicks; after the last one the user went on with a chance that Bayes' rule gives.

    With stop="learned" the chance of leaving follows from how many clicks but those at the last position
    are followed by others, and how many would be if all users went on."""

    def __init__(self, x, k, stop=None, **settings):
        super().__init__(x, k, **settings)
        self.stop, self.followed, self.would_be = stop, 0.5, 1.0

    def learn(self, step, slate, clicks, examined):
        if self.stop is None:
            return super().learn(step, slate, clicks, examined)
        clicked = np.flatnonzero(clicks)
        if examined >= 0:  # The page reports it, or nothing was clicked.
            for position in clicked[clicked < min(examined, len(slate) - 1)]:
                self.followed += position + 1 < examined
                self.would_be += 1
            return super().learn(step, slate, clicks, examined)
        passed = 1 - np.clip(self.z(step)[slate] @ self.mean(), 0, 1)
        left = 1 - min(self.followed / self.would_be, 1) if self.stop == "learned" else self.stop
        went_on = (1 - left) * np.prod(passed[clicked[-1] + 1 :])
        self.followed += len(clicked) - 1
        self.would_be += sum(1 - np.prod(passed[position + 1 :]) for position in clicked)
        for position, item in enumerate(slate):
            weight = 1.0 if position <= clicked[-1] else went_on / (left + went_on)
            self.observe(self.z(step)[item], clicks[position], weight)

    def state(self):
        counted = {} if self.stop is None else {"going_on": [self.followed - 0.5, self.would_be - 1]}
        return super().state() | counted


class DcmLinTS(Dependent, LinTS):
    pass


class DcmLinUCB(Dependent, LinUCB):
    pass


class Forgetting:
    """Keeps the whole log, and sums it up again: what is n slates old counts discount^n."""

    def __init__(self, x, k, discount=0.999, detector=np.inf, **settings):
        super().__init__(x, k, **settings)
        self.discount, self.detector, self.log, self.missing, self.alarms = discount, detector, [], 0.0, 0

    def learn(self, step, slate, clicks, examined):
        held = np.clip(self.z(step) @ self.mean(), 0, 1)
        seen = [(e, self.z(step)[e], click) for e, click in zip(slate[:examined], clicks, strict=False)]
        for item, _, click in seen:
            self.missing = max(self.missing + held[item] - click - 0.1, 0.0)
        if self.missing > self.detector:
            self.log, self.missing, self.alarms = [], 0.0, self.alarms + 1
        self.log.append(seen)
        self.M, self.B = np.eye(len(self.B)), np.zeros(len(self.B))
        for age, observations in enumerate(reversed(self.log)):
            for _, x, click in observations:
                self.observe(x, click, self.discount**age)

    def state(self):
        return super().state() | ({"missing": [self.missing]} if self.detector < np.inf else {})

    def check(self, state):
        assert self.detector == np.inf or self.alarms >= 2


class DiscountedLinTS(Forgetting, LinTS):
    pass


class DiscountedLinUCB(Forgetting, LinUCB):
    pass


class LinTSCascade(LinTS):
    def __init__(self, x, k, boldness=0.01, noise=0.5, sigma=1.0):
        super().__init__(x, k, sigma)
        self.scale, self.t = boldness * 3 * noise * np.sqrt(x.shape[1]) * np.sqrt(k), 1

    def theta(self, noise):
        return super().theta(self.scale * np.sqrt(np.log(self.t)) * noise)

    def learn(self, step, slate, clicks, examined):
        super().learn(step, slate, clicks, examined)
        self.t += 1


class VAC2(LinUCB):
    def __init__(self, x, k, c=2.0, floor=0.02, **settings):
        super().__init__(x, k, c=c, **settings)
        self.floor = floor

    def learn(self, step, slate, clicks, examined):
        means, deviations = self.estimates(step)
        for item, click in zip(slate[:examined], clicks, strict=False):
            width = self.c * deviations[item]
            nearest = np.clip(0.5, means[item] - width, means[item] + width)  # The one of largest variance.
            self.observe(self.z(step)[item], click, 1 / max(nearest * (1 - nearest), self.floor))


class LogisticTS:
    """For each observation the maximum of Gaussian times likelihood, by a general optimiser."""

    def __init__(self, x, k, prior=1.0):
        self.mean, self.Q = np.zeros(x.shape[1] + 1), prior * np.eye(x.shape[1] + 1)

    def z(self, step):
        return np.c_[step.x, np.ones(len(step.x))]

    def recommend(self, step, items, k):
        theta = self.mean + np.linalg.inv(np.linalg.cholesky(self.Q).T) @ step.noise
        return step.best(self.z(step) @ theta, items, k)

    def learn(self, step, slate, clicks, examined):
        for item, click in zip(slate[:examined], clicks, strict=False):
            self.mean, self.Q = laplace(self.mean, self.Q, self.z(step)[[item]], np.array([float(click)]))

    def state(self):
        return {"mean": self.mean, "precision": self.Q}

    def estimates(self, step):
        z = self.z(step)
        p = 1 / (1 + np.exp(-z @ self.mean))
        return p, p * (1 - p) * np.sqrt(np.sum(z @ np.linalg.inv(self.Q) * z, axis=1))


def laplace(mean, Q, z, clicked):
    """Where N(mean, Q^-1) times the likelihood of all observations is largest, and the curvature there."""
    sign = 1 - 2 * clicked

    def p(theta):
        return 1 / (1 + np.exp(-z @ theta))

    def curvature(theta):
        return Q + (z.T * (p(theta) * (1 - p(theta)))) @ z

    top = optimize.minimize(
        lambda theta: (theta - mean) @ Q @ (theta - mean) / 2 + np.logaddexp(0, sign * (z @ theta)).sum(),
        mean,
        jac=lambda theta: Q @ (theta - mean) + z.T @ (p(theta) - clicked),
        hess=curvature,
        method="trust-exact",
        options={"gtol": 1e-9},
    ).x
    return top, curvature(top)


# --------------------------------------------------------------------------------------------- contexts


class Contextual:
    """A linear policy of z, made of the features of an item and the context of a request."""

    def __init__(self, x, k, context=0, combine="bilinear", rank=None, **settings):
        self.context, self.combine, self.rank = context, combine, rank
        super().__init__(x, k, **settings)

    def width(self, x):
        return self.combine_with(x, np.ones(self.context)).shape[1]

    def z(self, step):
        return self.combine_with(step.x, step.context)

    def combine_with(self, x, context):
        if not len(context):
            return x
        if self.combine == "product":
            return x * context
        if self.combine == "concatenation":
            return np.hstack([x, np.tile(context, (len(x), 1))])
        if self.rank is None:
            return np.array([np.kron(context, row) for row in x])
        return np.hstack([x, *(number * x[:, : self.rank] for number in context)])


class ContextLinTS(Contextual, LinTS):
    pass


class C3UCB(Contextual, LinUCB):
    """Position n counts discount^2n. The authors' V is sigma^2 M here, and their beta is c sigma."""

    def __init__(self, x, k, discount=0.9, c=1.0, delta=0.05, **settings):
        super().__init__(x, k, **settings)
        self.k, self.discount, self.authors_c, self.delta, self.t = k, discount, c, delta, 1

    def recommend(self, step, items, k):
        self.c = self.authors_c
        if self.c == "theory":
            d, total = len(self.B), sum(self.discount ** (2 * position) for position in range(self.k))
            log = d * np.log1p(total * self.t / (self.sigma**2 * d)) - 2 * np.log(self.delta)
            self.c = (0.5 * np.sqrt(log) + self.sigma) / self.sigma
        return super().recommend(step, items, k)

    def learn(self, step, slate, clicks, examined):
        for position, item in enumerate(slate[:examined]):
            self.observe(self.z(step)[item], clicks[position], self.discount ** (2 * position))
        self.t += 1


class SegmentLinTS(LinTS):
    """One posterior of all tastes, written out: z = [sqrt(share) x ; sqrt(1 - share) e_s kron x]."""

    def __init__(self, x, k, segments=1, share=0.5, sigma=1.0):
        self.segments, self.share, self.d = segments, share, x.shape[1]
        super().__init__(x, k, sigma)

    def width(self, x):
        return x.shape[1] * (1 + self.segments)

    def z(self, step):
        own = np.kron(np.eye(self.segments)[int(step.context[0])], step.x)
        return np.hstack([np.sqrt(self.share) * step.x, np.sqrt(1 - self.share) * own])

    def recommend(self, step, items, k):
        """Draw the part that this segment needs: its own taste first, then the shared one."""
        segment, d, inverse = int(step.context[0]), self.d, np.linalg.inv(self.M)
        positions = [*range(d * (1 + segment), d * (2 + segment)), *range(d)]
        precision = np.linalg.inv(inverse[np.ix_(positions, positions)])
        drawn = self.mean()[positions] + np.linalg.inv(np.linalg.cholesky(precision).T) @ np.roll(
            step.noise, d
        )
        theta = np.sqrt(1 - self.share) * drawn[:d] + np.sqrt(self.share) * drawn[d:]
        return step.best(step.x @ theta, items, k)

    def state(self):
        return {}


# ---------------------------------------------------------------------------------------------- topics


class Hybrid(LinUCB):
    """Greedy from the top: an item counts by what it adds to the topics of those above."""

    def __init__(self, x, k, topics=None, **settings):
        super().__init__(x, k, **settings)
        self.topics = x.shape[1] if topics is None else topics

    def gain(self, x, item, above):
        t = self.topics
        added = coverage(x[[*above, item], :t]) - coverage(x[above, :t])
        return np.concatenate([added, x[item, t:]])

    def recommend(self, step, items, k):
        inverse, slate = np.linalg.inv(self.M), []
        for _ in range(min(k, len(items))):
            gains = {e: self.gain(step.x, e, slate) for e in items if e not in slate}
            scores = {e: v @ self.mean() + self.c * np.sqrt(v @ inverse @ v) for e, v in gains.items()}
            slate += step.best(scores, gains, 1)
        return slate

    def learn(self, step, slate, clicks, examined):
        for position, item in enumerate(slate[:examined]):
            self.observe(self.gain(step.x, item, slate[:position]), clicks[position])

    def estimates(self, step):
        return None


def coverage(topics):
    """Return how far these items, one per row, cover each topic together."""
    return 1 - np.prod(1 - topics, axis=0)


# -------------------------------------------------------------------------------------------- counting


class Counting:
    """Keeps what was examined of every slate, and counts again at every step."""

    pretended = 0  # examinations without a click that each item begins with

    def __init__(self, x, k):
        self.n_items, self.log = len(x), []  # of each slate the examined items and whether they were clicked

    def t(self):
        return len(self.log)

    def weights(self):
        return np.ones(len(self.log))

    def counts(self):
        examined, hits = np.zeros(self.n_items), np.zeros(self.n_items)
        for weight, pairs in zip(self.weights(), self.log, strict=True):
            for item, click in pairs:
                examined[item] += weight
                hits[item] += weight * click
        return examined, hits

    def recommend(self, step, items, k):
        examined, hits = self.counts()
        examined += self.pretended
        scores = {
            e: self.index(hits[e], examined[e], step) if examined[e] else self.unseen(step) for e in items
        }
        return step.best(scores, items, k)

    def unseen(self, step):
        return np.inf

    def learn(self, step, slate, clicks, examined):
        self.log.append([*zip(slate[:examined], map(int, clicks), strict=False)])

    def state(self):
        examined, hits = self.counts()
        return {"examined": examined, "hits": hits}

    def estimates(self, step):
        """Of the posterior Beta(1 + hits, 1 + misses)."""
        return beta_moments(*self.counts(), 1, 1)


def beta_moments(examined, hits, a, b):
    p, n = (a + hits) / (a + b + examined), a + b + examined
    return p, np.sqrt(p * (1 - p) / (n + 1))


class TS(Counting):
    def __init__(self, x, k, a=1.0, b=1.0):
        super().__init__(x, k)
        self.a, self.b = a, b

    def recommend(self, step, items, k):
        examined, hits = self.counts()
        scores = {
            e: beta(step.key, np.uint64(e), self.a + hits[e], self.b + examined[e] - hits[e]) for e in items
        }
        return step.best(scores, items, k)

    def estimates(self, step):
        return beta_moments(*self.counts(), self.a, self.b)


class UCB1(Counting):
    def __init__(self, x, k, radius=1.5, start="first"):
        super().__init__(x, k)
        self.radius, self.pretended = radius, int(start == "pessimistic")

    def index(self, hits, examined, step):
        return hits / examined + np.sqrt(self.radius * np.log(max(self.t(), 1)) / examined)


class KLUCB(Counting):
    def __init__(self, x, k, start="first"):
        super().__init__(x, k)
        self.pretended = int(start == "pessimistic")

    def index(self, hits, examined, step):
        return kl_bound(hits / examined, kl_budget(self.t() + 1) / examined)


def kl_budget(t):
    return max(np.log(t) + 3 * np.log(np.log(t)), 0) if t > 1 else 0


def kl(p, q):
    if q >= 1:
        return 0.0 if p >= 1 else np.inf
    return (p * np.log(p / q) if p > 0 else 0.0) + ((1 - p) * np.log((1 - p) / (1 - q)) if p < 1 else 0.0)


def kl_bound(p, width):
    """The largest q with KL(p, q) <= width, by bisection to the last bit."""
    low, high = p, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if kl(p, middle) <= width else (low, middle)
    return low


class DcmKLUCB(KLUCB):
    """The best item goes where users most often leave satisfied."""

    def __init__(self, x, k, stop=(1.0,), start="first"):
        super().__init__(x, k, start)
        self.stop = stop

    def recommend(self, step, items, k):
        best = super().recommend(step, items, k)
        chances = [self.stop[min(position, len(self.stop) - 1)] for position in range(len(best))]
        positions = sorted(range(len(best)), key=lambda position: -chances[position])
        return [item for _, item in sorted(zip(positions, best, strict=True))]


class TSCascade(Counting):
    def index(self, hits, examined, step):
        t, rate = self.t() + 1, hits / examined if examined else 0.0
        spread = max(
            np.sqrt(rate * (1 - rate) * np.log(t + 1) / (examined + 1)), np.log(t + 1) / (examined + 1)
        )
        return rate + step.noise[0] * spread

    def unseen(self, step):
        return self.index(0, 0, step)


class UCBV(Counting):
    def __init__(self, x, k, radius=1.2, start="first"):
        super().__init__(x, k)
        self.radius = radius

    def index(self, hits, examined, step):
        rate, b = hits / examined, self.radius * np.log(max(self.t(), 1))
        return rate + np.sqrt(2 * rate * (1 - rate) * b / examined) + 3 * b / examined


class Fading(Counting):
    """A slate counts by its age."""

    def index(self, hits, examined, step):
        return hits / examined + np.sqrt(self.radius * np.log(max(self.weights().sum(), 1)) / examined)

    def estimates(self, step):
        return None


class DUCB(Fading):
    def __init__(self, x, k, radius=2.0, discount=0.9992):
        super().__init__(x, k)
        self.radius, self.discount = radius, discount

    def weights(self):
        return self.discount ** np.arange(len(self.log))[::-1]


class SWUCB(Fading):
    def __init__(self, x, k, radius=0.5, window=2146):
        super().__init__(x, k)
        self.radius, self.window = radius, window

    def weights(self):
        return np.arange(len(self.log))[::-1] < self.window


class GLRUCB(Slow):
    """Keeps all observations of each item since its last change."""

    def __init__(self, x, k, delta=1e-5, explore=0.05, forget="all"):
        self.delta, self.explore, self.forget = delta, explore, forget
        self.seen = [[] for _ in x]
        self.since, self.t, self.changes = [0] * len(x), 0, 0

    def recommend(self, step, items, k):
        scores = {}
        for e in items:
            n = len(self.seen[e])
            budget = kl_budget(self.t - self.since[e] + 1)
            scores[e] = kl_bound(np.mean(self.seen[e]), budget / n) if n else 2.0
        if items and step.coin(EXPLORING) < self.explore:
            what = np.uint64(mix(np.uint64(mix(step.key, EXPLORING)), np.uint64(1)))
            scores[max(items, key=lambda e: int(mix(what, np.uint64(e))))] = 3.0
        return step.best(scores, items, k)

    def learn(self, step, slate, clicks, examined):
        self.t += 1
        changed = set()
        for item, click in zip(slate[:examined], clicks, strict=False):
            self.seen[item].append(int(click))
            n = len(self.seen[item])
            if change_evidence(self.seen[item]) > np.log(3 * n * np.sqrt(n) / self.delta):
                changed.add(item)
        self.changes += bool(changed)
        for item in range(len(self.seen)) if changed and self.forget == "all" else changed:
            self.seen[item], self.since[item] = [], self.t

    def state(self):
        return {"examined": [*map(len, self.seen)], "hits": [*map(sum, self.seen)]}

    def check(self, state):
        assert 1 <= self.changes < 40, "the detector must have something to do, and not all the time"


def cuts(n):
    """The cuts that are tried: multiples of the least power of two that makes no more than 64 of them."""
    step = 1
    while n // step > 64:
        step *= 2
    return range(step, n, step)


def change_evidence(seen):
    """The largest log likelihood ratio of a change at some cut."""
    n, hits = len(seen), np.cumsum(seen)
    rate, ratios = hits[-1] / n, [0.0]
    for s in cuts(n):
        before, after = hits[s - 1] / s, (hits[-1] - hits[s - 1]) / (n - s)
        ratios.append(s * kl(before, rate) + (n - s) * kl(after, rate))
    return max(ratios)


class PbmUCB(Slow):
    """Clicks by position: each position is examined by chance."""

    def __init__(self, x, k, examination=(1.0, 0.7, 0.5, 0.4, 0.3, 0.25, 0.2), eps=0.01):
        self.chances, self.eps, self.t = np.array(examination[:k]), eps, 0
        self.n, self.s = np.zeros((len(x), k)), np.zeros((len(x), k))

    def budget(self):
        return (1 + self.eps) * np.log(max(self.t, 1))

    def rate(self, item):
        examined = self.n[item] @ self.chances
        return self.s[item].sum() / examined if examined else np.inf

    def ucb(self, item):
        shown, examined = self.n[item].sum(), self.n[item] @ self.chances
        if not examined:
            return np.inf
        return self.rate(item) + np.sqrt(shown / examined) * np.sqrt(self.budget() / (2 * examined))

    def arrange(self, ranked):
        where = sorted(range(len(ranked)), key=lambda position: -self.chances[position])
        return [ranked[where.index(position)] for position in range(len(ranked))]

    def recommend(self, step, items, k):
        return self.arrange(step.best({e: self.ucb(e) for e in items}, items, k))

    def learn(self, step, slate, clicks, examined):
        for position, item in enumerate(slate[:examined]):
            self.n[item, position] += 1
            self.s[item, position] += clicks[position]
        self.t += 1

    def state(self):
        return {"shown": self.n, "hits": self.s}


class PbmPIE(PbmUCB):
    explored = 0

    def misfit(self, item, q):
        total = 0.0
        for n, s, chance in zip(self.n[item], self.s[item], self.chances, strict=True):
            if n:
                total += n * kl(s / n, chance * q)
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

    def recommend(self, step, items, k):
        leaders = step.best({e: self.rate(e) for e in items}, items, k)
        last = self.rate(leaders[-1])
        if len(leaders) == k and last < np.inf and step.coin(PIE_COIN) >= 0.5:
            maybe = [e for e in items if e not in leaders and self.bound(e) >= min(last, 1)]
            if maybe:
                self.explored += 1
                leaders[-1] = max(maybe, key=lambda item: step.hash(item, PIE_LOTS))
        return self.arrange(leaders)

    def check(self, state):
        assert 10 < self.explored < self.t / 2


# ------------------------------------------------------------------------------------------------ others


class Random(Slow):
    def __init__(self, x, k):
        pass

    def recommend(self, step, items, k):
        return step.best(dict.fromkeys(items, 0.0), items, k)


SLOW = {
    "batch-rank": BatchRank,
    "bubble-rank": BubbleRank,
    "c3-ucb": C3UCB,
    "cascade-ducb": DUCB,
    "cascade-glr-ucb": GLRUCB,
    "cascade-hybrid": Hybrid,
    "cascade-kl-ucb": KLUCB,
    "cascade-lin-ts": LinTS,
    "cascade-lin-ucb": LinUCB,
    "cascade-lsb": Hybrid,
    "cascade-mixed": MixedReference,
    "cascade-swucb": SWUCB,
    "cascade-ts": TS,
    "cascade-ucb-v": UCBV,
    "cascade-ucb1": UCB1,
    "context-lin-ts": ContextLinTS,
    "dcm-kl-ucb": DcmKLUCB,
    "dcm-lin-ts": DcmLinTS,
    "dcm-lin-ucb": DcmLinUCB,
    "discounted-lin-ts": DiscountedLinTS,
    "discounted-lin-ucb": DiscountedLinUCB,
    "lin-ts-cascade": LinTSCascade,
    "logistic-ts": LogisticTS,
    "pbm-pie": PbmPIE,
    "pbm-ucb": PbmUCB,
    "random": Random,
    "ranked-lin-ts": RankedLinTS,
    "recur-rank": RecurRank,
    "segment-lin-ts": SegmentLinTS,
    "top-rank": TopRank,
    "ts-cascade": TSCascade,
    "vac2-ucb": VAC2,
}
