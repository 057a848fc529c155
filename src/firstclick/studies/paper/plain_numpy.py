"""The paper's pseudo-code line by line in NumPy: what the compiled policies are timed against."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.policies.base import Policy
from firstclick.streams import stream
from firstclick.worlds.base import Stage

Floats = NDArray[np.float64]

TIMED_SECONDS = 0.1
FEWEST_STEPS = 20
USERS = 64
# A bisection of [0, 1] to about a millionth of a millionth.
HALVINGS = 40


class PlainCascadeLinTS:
    """Algorithms 1 and 3."""

    def __init__(self, x: Floats, k: int, policy: Any) -> None:
        self.x, self.k, self.sigma = x, k, policy.sigma
        d = x.shape[1]
        self.M, self.B = np.eye(d), np.zeros(d)

    def theta(self, draw: np.random.Generator) -> Any:
        covariance = np.linalg.inv(self.M)
        return draw.multivariate_normal(covariance @ self.B / self.sigma**2, covariance)

    def recommend(self, draw: np.random.Generator) -> Any:
        return np.argsort(-(self.x @ self.theta(draw)))[: self.k]

    def observe(self, item: int, attracted: bool) -> None:
        x = self.x[item]
        self.M += np.outer(x, x) / self.sigma**2
        self.B += x * attracted

    def learn(self, slate: Any, click: int) -> None:
        for position in range(min(click + 1, self.k)):
            self.observe(slate[position], position == click)


class PlainCascadeLinUCB(PlainCascadeLinTS):
    """Algorithms 2 and 3; the clip at 1 is left out, because it only makes ties."""

    def __init__(self, x: Floats, k: int, policy: Any) -> None:
        super().__init__(x, k, policy)
        self.c = policy.numbers(k, x).c  # a number where the policy says 'theory'

    def recommend(self, draw: np.random.Generator) -> Any:
        covariance = np.linalg.inv(self.M)
        mean = covariance @ self.B / self.sigma**2
        bound = self.x @ mean + self.c * np.sqrt(np.sum(self.x @ covariance * self.x, axis=1))
        return np.argsort(-bound)[: self.k]


class PlainRankedLinTS:
    """Algorithm 4: a PlainCascadeLinTS for each position."""

    def __init__(self, x: Floats, k: int, policy: Any) -> None:
        self.x, self.rankers = x, [PlainCascadeLinTS(x, 1, policy) for _ in range(k)]

    def recommend(self, draw: np.random.Generator) -> Any:
        slate: list[int] = []
        for ranker in self.rankers:
            scores = self.x @ ranker.theta(draw)
            scores[slate] = -np.inf
            slate.append(int(np.argmax(scores)))
        return slate

    def learn(self, slate: Any, click: int) -> None:
        for position in range(min(click + 1, len(slate))):
            self.rankers[position].observe(slate[position], position == click)


class PlainCascadeUCB1:
    """Algorithm 1 of Kveton et al. 2015, which starts from one observation of each item."""

    def __init__(self, x: Floats, k: int, policy: Any) -> None:
        self.k, self.time = k, 1
        self.radius = getattr(policy, "radius", 0.0)
        self.examined, self.mean = np.ones(len(x)), np.zeros(len(x))

    def bound(self) -> Any:
        return self.mean + np.sqrt(self.radius * np.log(self.time) / self.examined)

    def recommend(self, draw: np.random.Generator) -> Any:
        return np.argsort(-self.bound())[: self.k]

    def learn(self, slate: Any, click: int) -> None:
        self.time += 1
        for position in range(min(click + 1, self.k)):
            item = slate[position]
            self.examined[item] += 1
            self.mean[item] += ((position == click) - self.mean[item]) / self.examined[item]


class PlainCascadeKLUCB(PlainCascadeUCB1):
    """Algorithm 1 of Kveton et al. 2015 with KL-UCB: the bound of every item by bisection."""

    def bound(self) -> Any:
        t = max(self.time, 2)
        budget = max(np.log(t) + 3 * np.log(np.log(t)), 0.0) / self.examined
        low, high = self.mean, np.ones(len(self.mean))
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            within = divergence(self.mean, middle) <= budget
            low, high = np.where(within, middle, low), np.where(within, high, middle)
        return low


def divergence(p: Any, q: Any) -> Any:
    """KL(p, q) of two Bernoulli distributions, for q within (0, 1), where 0 log 0 is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        attracted = np.where(p > 0, p * np.log(p / q), 0.0)
        return attracted + np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)


TRANSCRIBED: dict[str, Callable[[Floats, int, Any], Any]] = {
    "cascade-lin-ts": PlainCascadeLinTS,
    "cascade-lin-ucb": PlainCascadeLinUCB,
    "cascade-kl-ucb": PlainCascadeKLUCB,
    "ranked-lin-ts": PlainRankedLinTS,
    "cascade-ucb1": PlainCascadeUCB1,
}


def numpy_seconds_per_step(policy: Policy, stage: Stage, k: int) -> float | None:
    """How long a step takes in plain NumPy on this stage, timed for a moment; None for other policies."""
    from threadpoolctl import threadpool_limits

    if policy.name not in TRANSCRIBED:
        return None
    features = np.empty((stage.world.n_items, 0)) if stage.features is None else stage.features
    player = TRANSCRIBED[policy.name](features, k, policy)
    draw = stream(0, "plain numpy")
    # Users at hand as dense rows: reading a sparse matrix is no part of the algorithm.
    matrix = stage.world.matrix  # type: ignore[attr-defined]
    rows = matrix[draw.integers(matrix.shape[0], size=USERS)].toarray()

    def steps(number: int) -> None:
        for step in range(number):
            slate = player.recommend(draw)
            hits = np.flatnonzero(rows[step % USERS][slate])
            player.learn(slate, int(hits[0]) if len(hits) else k)

    with threadpool_limits(limits=1, user_api="blas"):
        steps(FEWEST_STEPS)
        start, rounds = perf_counter(), 0
        while perf_counter() - start < TIMED_SECONDS:
            steps(FEWEST_STEPS)
            rounds += 1
        return (perf_counter() - start) / (rounds * FEWEST_STEPS)
