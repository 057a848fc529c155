"""A policy driven by hand, for tests: one call at a time, noise and ties decided by numbers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.catalog.search_tree import catalog_arrays
from firstclick.experiments.loop import Ground, Player, Tally, play
from firstclick.kernels.arrays import NO_LIMITS, Request
from firstclick.kernels.calls import estimate_once, learn_once, recommend_some
from firstclick.kernels.clicks import new_memo
from firstclick.kernels.compiling import compiled
from firstclick.policies.base import Policy, State
from firstclick.registry import make_policy
from firstclick.streams import stream, stream_key
from firstclick.worlds.base import World

N_ITEMS, N_FEATURES, K = 17, 5, 3


class Driver:
    """Runs a policy by hand, one call at a time, with noise and ties decided by numbers.

    >>> driver = Driver("random", n_items=5, k=2)
    >>> len(driver.recommend())
    2

    Args:
        policy: A policy, or its description.
        features: One row per item; random by default.
        n_items: The number of items, if features are random.
        k: The length of a slate.
        seed: The seed of features and noise.
        labels: Numbers that decide ties between items.
    """

    def __init__(
        self,
        policy: Policy | str,
        features: NDArray[np.float64] | None = None,
        *,
        n_items: int = N_ITEMS,
        k: int = K,
        seed: int = 0,
        labels: ArrayLike | None = None,
    ) -> None:
        self.policy = make_policy(policy)
        self.k = k
        features = features_for(self.policy, seed, n_items) if features is None else features
        self.catalog = self.policy.shortcuts(catalog_arrays(features, len(features), labels))
        n_features = features.shape[1]
        self.numbers = self.policy.numbers(k, features)
        self.state: State = self.policy.initial_state(len(features), n_features, k)
        self._key = stream_key(seed, "driver")
        self._noise = np.empty(self.policy.noise_size(k, n_features))

    def asked(self, request: Request) -> Request:
        """The request with the context of all requests: a 1 for each number that the policy uses.

        Args:
            request: The request.
        """
        return request._replace(context=np.ones(self.policy.n_context))

    def recommend(self, number: int = 0, request: Request = NO_LIMITS) -> list[int]:
        """The slate under the noise of this number.

        Args:
            number: The number of the request.
            request: What the request allows; everything by default.
        """
        slates, found = np.full((1, self.k), -1, np.int64), np.zeros(1, np.int64)
        compiled(recommend_some, type(self.policy))(
            self.numbers, self.state, self.catalog, self.asked(request), self._key, np.array([number]),
            self._noise, slates, found, None, np.empty(0),
        )  # fmt: skip
        return [int(item) for item in slates[0, : found[0]]]

    def learn(
        self,
        slate: Sequence[int],
        click: int | Sequence[int] | None,
        told: int | None = None,
        request: Request = NO_LIMITS,
    ) -> None:
        """Learn from the feedback for a slate.

        Args:
            slate: The rows that were shown.
            click: The position or positions that were clicked; None if nothing was.
            told: How many positions were examined, if the page knows.
            request: The request that the slate answered.
        """
        clicks = np.zeros(len(slate), np.uint8)
        if click is not None:
            clicks[click] = 1
        examined, rows = self.policy.click_model.examined(clicks, told), np.array(slate, np.int64)
        compiled(learn_once, type(self.policy))(
            self.numbers, self.state, self.catalog, self.asked(request), rows, examined, clicks
        )

    @classmethod
    def of(cls, other: "Driver") -> "Driver":
        """A copy that knows the same.

        Args:
            other: The driver to copy.
        """
        features, n_items = other.catalog.features, len(other.catalog.rows)
        made = cls(other.policy, features, k=other.k, labels=other.catalog.labels, n_items=n_items)
        made.state, made._key = copied(other.state), other._key
        return made

    def unlearn(self, slate: Sequence[int]) -> None:
        """Take back what was learned from a slate without a click.

        Args:
            slate: The rows that were shown.
        """
        examined = self.policy.click_model.examined(np.zeros(len(slate), np.uint8))
        self.policy.unlearn(self.state, self.catalog, np.array(slate, np.int64), examined)

    def merged_with(self, other: "Driver") -> State:
        """The state that knows what both have learned.

        Args:
            other: Another driver of the same policy.
        """
        merged = self.policy.merge(copied(self.state), copied(other.state))
        return self.policy.refitted(merged, self.catalog)

    def estimate(self, rows: Sequence[int]) -> NDArray[np.float64]:
        """The estimated attraction of rows, and its standard deviation: two lines.

        Args:
            rows: Rows of the catalog.
        """
        given = np.array(rows, np.int64)
        held = np.full((2, len(rows)), np.inf)  # What a kernel does not fill is neither a number nor NaN.
        compiled(estimate_once, type(self.policy))(
            self.numbers, self.state, self.catalog, self.asked(NO_LIMITS), given, held[0], held[1]
        )
        return held

    def play(self, steps: int, *, seed: int = 0, first: int = 0) -> list[tuple[list[int], int | None]]:
        """Recommend and learn from made-up clicks.

        Args:
            steps: The number of slates.
            seed: The seed of the clicks.
            first: The number of the first request.

        Returns:
            The slates and their clicks.
        """
        draw = stream(seed, "clicks")
        log: list[tuple[list[int], int | None]] = []
        for step in range(first, first + steps):
            slate = self.recommend(step)
            position = int(draw.integers(0, self.k + 1))
            click = position if position < len(slate) else None
            self.learn(slate, click)
            log.append((slate, click))
        return log

    def play_in(self, world: World, steps: int) -> int:
        """Play in a world as the simulator does, with one context for all.

        Args:
            world: Answers with clicks.
            steps: The number of slates.

        Returns:
            How many positions were filled.
        """
        arrays = world.arrays()
        shown = np.zeros(world.n_items, np.int64)
        player = Player(
            self.numbers, self.state, self.catalog, NO_LIMITS,
            np.ones((arrays.n_users, self.policy.n_context)), self.policy.click_model.kind, self._key,
            self._noise,
        )  # fmt: skip
        ground = Ground(arrays, world.optimal_slates(self.k), new_memo(self.k), self._key)
        compiled(play, type(self.policy))(player, ground, Tally(np.zeros(3), shown, 0), 0, steps)
        return int(shown.sum())


def fitting(policy: Policy, features: NDArray[np.float64]) -> NDArray[np.float64]:
    """The features as they are, or brought between 0 and 1 for a policy that wants them there."""
    size = np.abs(features)
    return size / (1.0 + size) if policy.unit_features else features


def features_for(policy: Policy, seed: int, n_items: int = N_ITEMS) -> NDArray[np.float64]:
    """Random features that fit the policy."""
    return fitting(policy, stream(seed, "features").standard_normal((n_items, N_FEATURES)))


def request(candidates: Sequence[int] = (), hidden: Sequence[int] = (), n_items: int = N_ITEMS) -> Request:
    """Make a request that allows some rows only.

    Args:
        candidates: The allowed rows; empty for all.
        hidden: Rows that may not be shown.
        n_items: The number of items.
    """
    mask = np.zeros(n_items if hidden else 0, np.uint8)
    mask[list(hidden)] = 1
    return NO_LIMITS._replace(candidates=np.array(candidates, np.int64), hidden=mask)


def states_differ(first: State, second: State, tolerance: float = 0.0) -> str:
    """Compare two states, array by array.

    >>> first, second = Driver("cascade-ucb1", n_items=5, k=2), Driver("cascade-ucb1", n_items=5, k=2)
    >>> states_differ(first.state, second.state)
    ''

    Args:
        first: A state.
        second: Another one of the same policy.
        tolerance: The largest difference allowed, relative to 1 + the largest entry.

    Returns:
        The name of the first array that differs; empty if none does.
    """
    for name, a, b in zip(first._fields, first, second, strict=True):
        scale = 1.0 + np.abs(a).max(initial=0.0)
        if a.shape != b.shape or not np.abs(a - b).max(initial=0.0) <= tolerance * scale:
            return str(name)
    return ""


def copied(state: State) -> State:
    return type(state)(*(array.copy() for array in state))
