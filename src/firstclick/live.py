"""A policy at work on a catalog, in rows: what the `Ranker` and the service have in common."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog import Catalog
from firstclick.errors import InvalidInput
from firstclick.kernels.compiling import compiled, estimate, learn, recommend
from firstclick.kernels.hashing import fill_normal, mix
from firstclick.kernels.ranking import CatalogArrays, Request
from firstclick.protocol import EVERYTHING, Numbers, Policy, State
from firstclick.registry import make_policy
from firstclick.whole_number import whole_number


def recommend_some(  # type: ignore[no-untyped-def]
    numbers, state, catalog, request, stream_key, asked, noise, slates, found, means, deviations
):
    """The recommendations of the numbers in `asked`, each of which alone decides its noise and its ties.

    One row of `slates` for each, and how many items it has in `found`. What is held for the attraction of
    each item goes into `means`, unless that has no columns. Handing over a catalog takes as long as finding a
    slate in it: many are found in one call.
    """
    for i in range(len(asked)):
        key = mix(stream_key, np.uint64(asked[i]))
        fill_normal(key, noise)
        slate = slates[i]
        n = recommend(numbers, state, catalog, request, key, noise, slate)
        found[i] = n
        if means.shape[1] > 0:
            estimate(numbers, state, catalog, slate[:n], means[i, :n], deviations[:n])


def learn_once(numbers, state, catalog, slate, examined, clicks):  # type: ignore[no-untyped-def]
    """One piece of feedback."""
    learn(numbers, state, catalog, slate, examined, clicks)


def estimate_once(numbers, state, catalog, rows, means, deviations):  # type: ignore[no-untyped-def]
    """What is held for the attraction of each row."""
    estimate(numbers, state, catalog, rows, means, deviations)


class LivePolicy:
    """A policy, its catalog and its state. Follows the catalog as items come and go.

    Not safe for use by several threads at once.
    """

    def __init__(self, policy: Policy | str, catalog: Catalog, *, k: int) -> None:
        self.policy = make_policy(policy)
        self.catalog = catalog
        self.k = whole_number("k", k, at_least=1)
        if self.policy.needs_features and catalog.n_features is None:
            raise InvalidInput(f"{self.policy.name} needs features; give Catalog(items, features)")
        arrays = catalog.arrays
        self.numbers: Numbers = self.policy.numbers(self.k, arrays.features)
        self.state: State = self._blank_state()
        self._compile()

    def _blank_state(self) -> State:
        arrays = self.catalog.arrays
        self._n_rows = len(self.catalog.items)
        return self.policy.initial_state(self._n_rows, arrays.features.shape[1], self.k)

    def _compile(self) -> None:
        self._recommend = compiled(recommend_some, type(self.policy))
        self._learn = compiled(learn_once, type(self.policy))
        self._estimate = compiled(estimate_once, type(self.policy))
        self._noise = np.empty(self.policy.noise_size(self.k, self.catalog.arrays.features.shape[1]))
        self._prepared_for: tuple[CatalogArrays, State] | None = None

    @classmethod
    def restored(
        cls, policy: Policy, numbers: Numbers, catalog: Catalog, k: int, arrays: dict[str, NDArray[Any]]
    ) -> "LivePolicy":
        """A live policy with the state in `arrays`; ValueError or LookupError when they do not fit."""
        live = cls.__new__(cls)
        live._restore(policy, numbers, catalog, k, arrays)
        return live

    def _restore(
        self, policy: Policy, numbers: Numbers, catalog: Catalog, k: int, arrays: dict[str, NDArray[Any]]
    ) -> None:
        self.policy, self.numbers, self.catalog, self.k = policy, numbers, catalog, k
        blank = self._blank_state()
        # A file must not decide what kernels are compiled for, or how far they read.
        for name, like in blank._asdict().items():
            array = arrays[name]
            if array.shape != like.shape or array.dtype != like.dtype or not array.flags.c_contiguous:
                raise ValueError(name)
        self.state = type(blank)(*(arrays[name] for name in blank._fields))
        self._compile()

    def arrays(self) -> CatalogArrays:
        """The catalog with the shortcuts that follow the state; new ones when either is another."""
        if not self._is_prepared():
            self._prepared = self.policy.shortcuts(self.catalog.arrays)
            self._prepared_for = self.catalog.arrays, self.state
        return self._prepared

    def arrays_to_learn(self) -> CatalogArrays:
        """The shortcuts if there are any, which have to hear of what is learned; none are made for this."""
        if not self._is_prepared():
            self._prepared_for = None
        return self.catalog.arrays if self._prepared_for is None else self._prepared

    def _is_prepared(self) -> bool:
        if self._prepared_for is None:
            return False
        arrays, state = self._prepared_for
        return arrays is self.catalog.arrays and state is self.state

    def follow_catalog(self) -> None:
        """Make room for items that were added to the catalog, whoever added them."""
        n_rows = len(self.catalog.items)
        if n_rows > self._n_rows:
            features = self.catalog.arrays.features
            self.policy.admit(self.numbers, features[self._n_rows :])
            grown = self.policy.grow(self.state, n_rows)
            wanted = self.policy.initial_state(n_rows, features.shape[1], self.k)
            # Kernels do not look whether a row exists: a state that is too small would be overrun.
            if [array.shape for array in grown] != [array.shape for array in wanted]:
                raise InvalidInput(
                    f"{self.policy.name}: its state has no room for {n_rows} items; write grow() for it"
                )
            self.state = grown
            self._n_rows = n_rows

    def recommend_rows(
        self,
        key: np.uint64,
        number: int,
        n: int,
        candidates: NDArray[np.int64] | None = None,
        excluded: list[int] | None = None,
    ) -> NDArray[np.int64]:
        """The best n rows that are shown, among `candidates` if given, fewer where fewer are left.

        The key and the number decide what is explored.
        """
        ((rows, _),) = self.recommend_many(key, [number], n, candidates, excluded, scored=False)
        return rows

    def recommend_many(
        self,
        key: np.uint64,
        numbers: Sequence[int],
        n: int,
        candidates: NDArray[np.int64] | None = None,
        excluded: list[int] | None = None,
        *,
        scored: bool = True,
    ) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """For each number the rows that it recommends, and what is held for the attraction of each."""
        self.follow_catalog()
        many = len(numbers)
        slates, found = np.empty((many, n), np.int64), np.zeros(many, np.int64)
        means = np.empty((many, n if scored else 0))
        # An empty array of candidates means "all" to a kernel, and none at all to the caller.
        if n and (candidates is None or len(candidates)):
            hidden = self.catalog.hidden if self.catalog.n_hidden else EVERYTHING.hidden
            if excluded:
                hidden = self.catalog.hidden.copy()
                hidden[excluded] = 1
            asked = EVERYTHING.candidates if candidates is None else candidates
            self._recommend(
                self.numbers, self.state, self.arrays(), Request(asked, hidden),
                key, np.array(numbers, np.int64), self._noise, slates, found, means, np.empty(n),
            )  # fmt: skip
        return [(slates[i, :m], means[i, :m]) for i, m in enumerate(found.tolist())]

    def learn_rows(self, rows: NDArray[np.int64], click: int | None) -> None:
        """Learn that position `click` of these rows was the first clicked, or none."""
        clicks = np.zeros(len(rows), np.uint8)
        if click is not None:
            clicks[click] = 1
        examined = len(rows) if click is None else click + 1
        self._learn(self.numbers, self.state, self.arrays_to_learn(), rows, examined, clicks)

    def estimates(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What is held for the attraction of each row and its standard deviation; NaN if no such thing is."""
        self.follow_catalog()
        means, deviations = np.empty(len(rows)), np.empty(len(rows))
        self._estimate(self.numbers, self.state, self.catalog.arrays, rows, means, deviations)
        return means, deviations
