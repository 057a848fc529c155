"""The same policies in NumPy and SciPy as an expert would write them: what a user could get by hand.

Posteriors by Cholesky factors and triangular solves of LAPACK, the best K by partition instead of a sort,
confidence widths and bounds carried along or computed only where they can matter, no array made twice.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

Floats = NDArray[np.float64]

# Sherman-Morrison loses its digits: the inverse is computed anew after this many observations.
REFRESH = 1000
NEWTON_STEPS = 8


def best(scores: Floats, k: int) -> NDArray[np.int64]:
    """The items of the k largest scores, best first."""
    if k >= len(scores):
        return np.argsort(-scores)
    found = np.argpartition(scores, len(scores) - k)[-k:]
    return found[np.argsort(-scores[found])]


class Posterior:
    """N(sigma^-2 M^-1 B, M^-1), M in the upper triangle of an array in Fortran's order."""

    def __init__(self, d: int, sigma: float) -> None:
        self.M, self.B = np.eye(d, order="F"), np.zeros(d)
        self.weight = sigma**-2

    def sample(self, draw: np.random.Generator) -> Floats:
        factor, _ = lapack.dpotrf(self.M, clean=0)
        half, _ = lapack.dtrtrs(factor, self.weight * self.B, trans=1)
        theta, _ = lapack.dtrtrs(factor, half + draw.standard_normal(len(half)))
        return np.asarray(theta)

    def observe(self, x: Floats, attracted: bool) -> None:
        self.M = blas.dsyr(self.weight, x, a=self.M, overwrite_a=1)
        if attracted:
            self.B += x


class CascadeLinTS:
    """Algorithms 1 and 3 of Zong et al. 2016."""

    def __init__(self, x: Floats, k: int, policy: Any) -> None:
        self.x, self.k = x, k
        self.posterior = Posterior(x.shape[1], policy.sigma)

    def recommend(self, draw: np.random.Generator) -> Any:
        return best(self.x @ self.posterior.sample(draw), self.k)

    def learn(self, slate: Any, click: int) -> None:
        for position in range(min(click + 1, self.k)):
            self.posterior.observe(self.x[slate[position]], position == click)


class RankedLinTS:
    """Algorithm 4 of Zong et al. 2016: all K samples meet the catalog in one product."""

    def __init__(self, x: Floats, k: int, policy: Any) -> None:
        self.x, self.k = x, k
        self.posteriors = [Posterior(x.shape[1], policy.sigma) for _ in range(k)]

    def recommend(self, draw: np.random.Generator) -> Any:
        thetas = np.array([posterior.sample(draw) for posterior in self.posteriors])
        scores = thetas @ self.x.T
        slate: list[int] = []
        for own in scores:
            own[slate] = -np.inf
            slate.append(int(np.argmax(own)))
        return slate

    def learn(self, slate: Any, click: int) -> None:
        for position in range(min(click + 1, self.k)):
            self.posteriors[position].observe(self.x[slate[position]], position == click)


class CascadeLinUCB:
    """Algorithms 2 and 3 of Zong et al. 2016; x'M^-1 x of every item is carried along from step to step."""

    def __init__(self, x: Floats, k: int, policy: Any) -> None:
        self.x, self.k, self.c, self.weight = x, k, policy.c, policy.sigma**-2
        d = x.shape[1]
        self.M, self.B = np.eye(d), np.zeros(d)
        self.inverse: Any = np.eye(d)
        self.squares = np.einsum("ij,ij->i", x, x)
        self.observed = 0

    def recommend(self, draw: np.random.Generator) -> Any:
        mean = self.weight * (self.inverse @ self.B)
        return best(self.x @ mean + self.c * np.sqrt(self.squares), self.k)

    def learn(self, slate: Any, click: int) -> None:
        for position in range(min(click + 1, self.k)):
            x = self.x[slate[position]]
            self.M += np.multiply.outer(self.weight * x, x)
            if position == click:
                self.B += x
            turned = self.inverse @ x
            share = self.weight / (1 + self.weight * (x @ turned))
            self.inverse -= np.multiply.outer(share * turned, turned)
            products = self.x @ turned
            products *= products
            products *= share
            self.squares -= products
            np.maximum(self.squares, 0.0, out=self.squares)
            self.observed += 1
            if self.observed % REFRESH == 0:
                self.inverse = np.linalg.inv(self.M)
                self.squares = np.einsum("ij,ij->i", self.x @ self.inverse, self.x)


class Counting:
    """Counts of each item; starts from one observation of each without attraction, as the plain version."""

    def __init__(self, x: Floats, k: int, policy: Any) -> None:
        self.k, self.time = k, 1
        self.radius = getattr(policy, "radius", 0.0)
        self.examined, self.hits, self.mean = np.ones(len(x)), np.zeros(len(x)), np.zeros(len(x))
        self.scores = np.empty(len(x))

    def learn(self, slate: Any, click: int) -> None:
        self.time += 1
        shown = np.asarray(slate[: min(click + 1, self.k)])
        self.examined[shown] += 1
        if click < self.k:
            self.hits[slate[click]] += 1
        self.mean[shown] = self.hits[shown] / self.examined[shown]


class CascadeUCB1(Counting):
    """Algorithm 1 of Kveton et al. 2015."""

    def recommend(self, draw: np.random.Generator) -> Any:
        np.divide(self.radius * np.log(self.time), self.examined, out=self.scores)
        np.sqrt(self.scores, out=self.scores)
        self.scores += self.mean
        return best(self.scores, self.k)


class CascadeKLUCB(Counting):
    """Algorithm 1 of Kveton et al. 2015; the search only for items that Pinsker's inequality leaves open."""

    def recommend(self, draw: np.random.Generator) -> Any:
        t = max(self.time, 2)
        budget = max(np.log(t) + 3 * np.log(np.log(t)), 0.0)
        np.divide(budget / 2, self.examined, out=self.scores)
        np.sqrt(self.scores, out=self.scores)
        self.scores += self.mean
        np.minimum(self.scores, 1.0, out=self.scores)
        least = self.bound(best(self.scores, self.k), budget).min()
        # A little less, because of rounding.
        left = np.flatnonzero(self.scores >= least - 1e-9)
        return left[best(self.bound(left, budget), self.k)]

    def bound(self, items: NDArray[np.int64], budget: float) -> Floats:
        """The Kullback-Leibler bound of these items; items of equal counts share one search."""
        pairs = self.examined[items] + 1j * self.hits[items]
        distinct, place = np.unique(pairs, return_inverse=True)
        return kl_bound(distinct.imag / distinct.real, budget / distinct.real)[place]


def kl_bound(p: Floats, width: Floats) -> Floats:
    """The largest q with KL(p, q) <= width, for p below 1: Newton's steps from above, where KL is convex."""
    # Two bounds of q: Pinsker's, and the one that leaves out the share of what attracted.
    entropy = p * np.log(np.maximum(p, 1e-300))
    q = np.minimum(p + np.sqrt(width / 2), 1 - (1 - p) * np.exp((entropy - width) / (1 - p)))
    q = np.clip(q, 1e-300, 1 - 1e-16)
    for _ in range(NEWTON_STEPS):
        excess = entropy - p * np.log(q) + (1 - p) * np.log((1 - p) / (1 - q)) - width
        q = np.clip(q - excess * q * (1 - q) / np.maximum(q - p, 1e-300), np.maximum(p, 1e-300), 1 - 1e-16)
    return q


TUNED: dict[str, Callable[[Floats, int, Any], Any]] = {
    "cascade-lin-ts": CascadeLinTS,
    "cascade-lin-ucb": CascadeLinUCB,
    "ranked-lin-ts": RankedLinTS,
    "cascade-ucb1": CascadeUCB1,
    "cascade-kl-ucb": CascadeKLUCB,
}
