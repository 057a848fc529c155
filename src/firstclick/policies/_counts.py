"""What policies without features share: counts per item, and the start of confidence bounds."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.arrays import CatalogArrays
from firstclick.kernels.bounds import CountState, count, estimate_rates
from firstclick.kernels.search.groups import new_groups, note, note_unlearned
from firstclick.parameters import param
from firstclick.policies.base import Policy, State, drawn_share
from firstclick.validation.ranges import check_no_more

STARTS = ("sample", "first", "pessimistic")
PESSIMISTIC = STARTS.index("pessimistic")


class CountPolicy(Policy):
    """A policy that counts, for each item, how often it was examined and how often it attracted.

    >>> from firstclick import policy_classes
    >>> from firstclick.policies import CountPolicy
    >>> issubclass(policy_classes()["cascade-ts"], CountPolicy)
    True
    """

    family = "counts"
    by_item: ClassVar[tuple[str, ...]] = ("examined", "hits")
    corrects: ClassVar[bool] = True

    def initial_state(self, n_items: int, n_features: int, k: int) -> State:
        return CountState(np.zeros(n_items, np.int64), np.zeros(n_items, np.int64), np.zeros(1, np.int64))

    def merge(self, first: State, second: State) -> State:
        return CountState(*(a + b for a, b in zip(first, second, strict=True)))

    def check_state(self, state: State, n_items: int, k: int) -> None:
        super().check_state(state, n_items, k)
        check_no_more(self.name, "hits", state.hits, "examined", state.examined)

    def unlearn(self, state: State, catalog: CatalogArrays, slate: NDArray[np.int64], examined: int) -> None:
        rows = slate[:examined]
        rows = rows[state.examined[rows] > state.hits[rows]]
        state.examined[rows] -= 1
        state.time[0] = max(0, state.time[0] - 1)
        note_unlearned(catalog.groups, rows)

    def tempered(self, state: State, weight: float, draw: np.random.Generator) -> State:
        """Scale the counts. Each is rounded up or down at random, `weight` times itself on average."""
        # A policy with more in its state than counts, or that cannot add them up, has to say itself.
        if weight == 1 or type(state) is not CountState or not self.mergeable:
            return super().tempered(state, weight, draw)
        hits = drawn_share(state.hits, weight, draw)
        return CountState(
            examined=hits + drawn_share(state.examined - state.hits, weight, draw),
            hits=hits,
            time=drawn_share(state.time, weight, draw),
        )

    def with_counts(
        self, state: State, examined: NDArray[np.float64], hits: NDArray[np.float64], slates: int
    ) -> State:
        """Add counts. Clicks, and looks without a click, are rounded to whole numbers."""
        if type(state) is not CountState or not self.mergeable:
            return super().with_counts(state, examined, hits, slates)
        clicked = np.rint(hits).astype(np.int64)
        looked = clicked + np.rint(examined - hits).astype(np.int64)
        return CountState(state.examined + looked, state.hits + clicked, state.time + slates)

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        count(state, slate, examined, clicks)
        note(catalog.groups, slate, examined)

    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):  # type: ignore[no-untyped-def]
        # Before the first observation any rate is as likely as any other.
        estimate_rates(state, rows, 1.0, 1.0, means, deviations)


class ConfidencePolicy(CountPolicy):
    """A count policy that ranks by an upper confidence bound, with a rule for items it has not seen.

    >>> from firstclick import make_policy
    >>> make_policy("cascade-ucb1:start=pessimistic").start
    'pessimistic'

    The state holds real observations only, so that states can be merged. The pretended observation of
    `pessimistic` is added when the bound is computed.
    """

    # Below so many items a scan takes no longer than looking at groups of them.
    grouped_from: ClassVar[int] = 32

    start: str = param(
        "sample",
        "unseen items: 'sample' takes one free row from the world where there is one, else as 'first'; "
        "'first' ranks them first; 'pessimistic' pretends one observation without attraction",
        words=STARTS,
    )

    def shortcuts(self, catalog: CatalogArrays) -> CatalogArrays:
        n_items = len(catalog.rows)
        return catalog._replace(groups=new_groups(n_items)) if n_items >= self.grouped_from else catalog

    @property
    def learns_row(self) -> bool:
        return self.start == "sample"

    def learn_row(self, state: CountState, row: NDArray[np.uint8]) -> None:
        state.examined[:] += 1
        state.hits[:] += row
