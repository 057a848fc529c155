"""Slow, obvious versions of the learners, written from the papers and sharing no code with the kernels.

Only two things are taken from the library, because they are conventions and not mathematics: the
noise of a step, and the hash that orders ties.
"""

import numpy as np


def by_score(scores, ties, items):
    """All given items, best first; of equal scores the one with the larger tie hash."""
    return sorted(items, key=lambda e: (-scores[e], -int(ties[e])))


class LinTS:
    def __init__(self, features, sigma):
        self.x, self.sigma = features, sigma
        d = features.shape[1]
        self.M, self.B = np.eye(d), np.zeros(d)

    def theta(self, noise):
        inverse = np.linalg.inv(self.M)
        mean = inverse @ self.B / self.sigma**2
        # Any square root of the covariance will do; M = LL' gives inv(L') for M^-1 = inv(L') inv(L).
        return mean + np.linalg.inv(np.linalg.cholesky(self.M).T) @ noise

    def recommend(self, noise, ties, items, k):
        return by_score(self.x @ self.theta(noise), ties, items)[:k]

    def learn_item(self, item, attracted):
        x = self.x[item]
        self.M += np.outer(x, x) / self.sigma**2
        self.B += x * attracted

    def learn(self, slate, click):
        for position, item in enumerate(slate):
            if click is None or position <= click:
                self.learn_item(item, position == click)


class LinUCB(LinTS):
    def __init__(self, features, sigma, c):
        super().__init__(features, sigma)
        self.c = c

    def recommend(self, noise, ties, items, k):
        inverse = np.linalg.inv(self.M)
        mean = inverse @ self.B / self.sigma**2
        bounds = self.x @ mean + self.c * np.sqrt([x @ inverse @ x for x in self.x])
        # min(bound, 1) first, the value before the clip among those at 1: the paper's order, made whole.
        return sorted(items, key=lambda e: (-min(bounds[e], 1), -bounds[e], -int(ties[e])))[:k]


class RankedLinTS:
    def __init__(self, features, sigma, k):
        self.rankers = [LinTS(features, sigma) for _ in range(k)]

    def recommend(self, noise, ties, items, k):
        slate = []
        for ranker, own_noise in zip(self.rankers, np.split(noise, k), strict=True):
            left = [e for e in items if e not in slate]
            if left:
                slate += ranker.recommend(own_noise, ties, left, 1)
        return slate

    def learn(self, slate, click):
        for position, item in enumerate(slate):
            if click is None or position <= click:
                self.rankers[position].learn_item(item, position == click)


class Counting:
    def __init__(self, n_items, pessimistic=False):
        self.T, self.S, self.t = np.zeros(n_items), np.zeros(n_items), 0
        self.pretended = 1 if pessimistic else 0

    def index(self, hits, examined):
        raise NotImplementedError

    def recommend(self, noise, ties, items, k):
        scores = {
            e: self.index(self.S[e], self.T[e] + self.pretended) if self.T[e] + self.pretended else np.inf
            for e in items
        }
        return by_score(scores, ties, items)[:k]

    def learn(self, slate, click):
        for position, item in enumerate(slate):
            if click is None or position <= click:
                self.T[item] += 1
                self.S[item] += position == click
        self.t += 1


class UCB1(Counting):
    def __init__(self, n_items, radius, pessimistic=False):
        super().__init__(n_items, pessimistic)
        self.radius = radius

    def index(self, hits, examined):
        return hits / examined + np.sqrt(self.radius * np.log(max(self.t, 1)) / examined)


class KLUCB(Counting):
    def index(self, hits, examined):
        t = self.t + 1
        budget = max(np.log(t) + 3 * np.log(np.log(t)), 0) if t > 1 else 0
        return kl_bound(hits / examined, budget / examined)


def kl(p, q):
    if q >= 1:
        return 0.0 if p >= 1 else np.inf
    return (p * np.log(p / q) if p > 0 else 0.0) + ((1 - p) * np.log((1 - p) / (1 - q)) if p < 1 else 0.0)


def kl_bound(p, width):
    """The largest q with KL(p, q) <= width, by bisection to the last bit."""
    low, high = p, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if kl(p, middle) <= width:
            low = middle
        else:
            high = middle
    return low


class Random:
    def recommend(self, noise, ties, items, k):
        return by_score(dict.fromkeys(items, 0.0), ties, items)[:k]

    def learn(self, slate, click):
        pass


def share_of_users(matrix, slate):
    """The share of rows of a dense 0/1 matrix with a one in some column of the slate."""
    return np.mean(matrix[:, slate].any(axis=1)) if len(slate) else 0.0


def greedy_cover(matrix, k):
    """The greedy cover of a dense 0/1 matrix: most newly covered, then most users, then first."""
    left, slate = np.ones(len(matrix), bool), []
    for _ in range(k):
        gains = [
            (-int(np.sum(matrix[left, e])), -int(np.sum(matrix[:, e])), e)
            for e in range(matrix.shape[1])
            if e not in slate
        ]
        slate.append(min(gains)[2])
        left &= matrix[:, slate[-1]] == 0
    return slate
