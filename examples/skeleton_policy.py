"""A policy to copy: it ranks items by their click rate, and gives some of them a lucky number instead.

Copy this file to src/firstclick/policies/ or policies/research/, or into a package of your own whose
pyproject.toml names it:

    [project.entry-points."firstclick.plugins"]
    anything = "your_package.your_module"

The command line, the guide, legends, docs and conformance tests then find the policy by themselves.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick import Policy, param
from firstclick.kernels.hashing import uniform
from firstclick.kernels.ranking import rank, rows_of


class RateState(NamedTuple):
    """All that was learned, as plain arrays: it is saved, merged and folded from logs. `time` comes last."""

    examined: NDArray[np.int64]  # by item
    hits: NDArray[np.int64]  # by item
    time: NDArray[np.int64]  # slates learned from


class EpsilonGreedy(Policy):
    """Rank items by their click rate, and now and then give one a lucky number instead."""

    name = "epsilon-greedy"
    paper = "Sutton and Barto 2018, section 2.2"
    family = "counts"  # one of firstclick.policies.base.FAMILIES: its rows in the guide, its colours
    made_for = ("few-items",)  # the stock worlds of `firstclick compare` that the paper has in mind
    # version = 2, once the same log comes to another state, or the same state to another slate.
    # mergeable, order_free, needs_features, ...: see Policy. The checks test what you declare.
    # misreads = {"exclude": "or take ..."}, if it compares items that all had to be allowed: such requests
    # are refused.

    # The type follows the default: 0.05 is a number, 5 a whole number. `told="horizon"` would have the guide
    # fill in the number of steps.
    epsilon: float = param(0.05, "share of items ranked by chance", at_least=0, at_most=1)

    def initial_state(self, n_items: int, n_features: int, k: int) -> RateState:
        return RateState(np.zeros(n_items, np.int64), np.zeros(n_items, np.int64), np.zeros(1, np.int64))

    def grow(self, state: RateState, n_items: int) -> RateState:
        """Room for items that were added: only for a state with a row for each item."""
        more = np.zeros(n_items - len(state.hits), np.int64)
        return RateState(
            np.concatenate([state.examined, more]), np.concatenate([state.hits, more]), state.time
        )

    def merge(self, first: RateState, second: RateState) -> RateState:
        """What both logs together teach. If that cannot be, declare mergeable = False."""
        return RateState(*(a + b for a, b in zip(first, second, strict=True)))

    # Numba compiles the kernels below. `numbers` has the parameters. Kernels keep nothing and never draw:
    # luck is a hash of the request's key and the item's label. Write loops: a[:n] = b is slow to compile.

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):
        rows = rows_of(catalog, request)  # the items that this request allows
        scores = np.empty(len(rows))
        for j in range(len(rows)):
            luck = uniform(key, catalog.labels[rows[j]])
            rate = (state.hits[rows[j]] + 1.0) / (state.examined[rows[j]] + 2.0)
            scores[j] = luck / numbers.epsilon if luck < numbers.epsilon else rate
        return rank(rows, scores, catalog, request, key, slate)  # best first; it knows of pins and caps

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):
        # Only the first `examined` positions were seen: nothing is learned from those below.
        for position in range(examined):
            state.examined[slate[position]] += 1
            state.hits[slate[position]] += clicks[position]
        state.time[0] += 1

    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):
        # What it holds for the attraction of each row, and the standard deviation. Without it, both are NaN.
        for j in range(len(rows)):
            n = state.examined[rows[j]] + 2.0
            means[j] = (state.hits[rows[j]] + 1.0) / n
            deviations[j] = np.sqrt(means[j] * (1.0 - means[j]) / (n + 1.0))


if __name__ == "__main__":
    from firstclick.testing import check_policy

    check_policy(EpsilonGreedy(epsilon=0.1), report=print)
