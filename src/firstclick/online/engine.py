"""A policy at work on a catalog, in rows: what the `Ranker` and the service have in common."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.catalog.catalog import Catalog
from firstclick.catalog.features import LARGEST_CONTEXT, check_features
from firstclick.errors import InvalidInput
from firstclick.kernels.arrays import NO_LIMITS, CatalogArrays, Request
from firstclick.kernels.calls import estimate_once, learn_once, recommend_some
from firstclick.kernels.compiling import compiled
from firstclick.policies.base import PlainParameters, Policy, State
from firstclick.registry import make_policy
from firstclick.validation.float_array import float_array
from firstclick.validation.whole_number import whole_number


class Engine:
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
        self.numbers: PlainParameters = self.policy.numbers(self.k, arrays.features)
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
        cls,
        policy: Policy,
        numbers: PlainParameters,
        catalog: Catalog,
        k: int,
        arrays: Mapping[str, NDArray[Any]],
    ) -> "Engine":
        """A live policy with the state in `arrays`; ValueError or LookupError when they do not fit."""
        live = cls.__new__(cls)
        live._restore(policy, numbers, catalog, k, arrays)
        return live

    def _restore(
        self,
        policy: Policy,
        numbers: PlainParameters,
        catalog: Catalog,
        k: int,
        arrays: Mapping[str, NDArray[Any]],
    ) -> None:
        self.policy, self.numbers, self.catalog, self.k = policy, numbers, catalog, k
        blank = self._blank_state()
        # A file must not decide what kernels are compiled for, or how far they read.
        for name, like in blank._asdict().items():
            array = arrays[name]
            if array.shape != like.shape or array.dtype != like.dtype or not array.flags.c_contiguous:
                raise ValueError(name)
        self.state = type(blank)(*(arrays[name] for name in blank._fields))
        policy.check_state(self.state, self._n_rows, k)
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
            grown = self._grown(n_rows)
            self.policy.admit(self.numbers, self.catalog.arrays.features[self._n_rows :])
            self.state = grown
            self._n_rows = n_rows

    def _grown(self, n_rows: int) -> State:
        """The state with room for so many rows, or InvalidInput."""
        if not self.policy.growable:
            raise InvalidInput(f"{self.policy.label} takes no items later; start a new one with all of them")
        grown = self.policy.grow(self.state, n_rows)
        wanted = self.policy.initial_state(n_rows, self.catalog.arrays.features.shape[1], self.k)
        # Kernels do not look whether a row exists: a state that is too small would be overrun.
        if [array.shape for array in grown] != [array.shape for array in wanted]:
            raise InvalidInput(
                f"{self.policy.name}: its state has no room for {n_rows} items; write grow() for it"
            )
        return grown

    def check_growable(self) -> None:
        """Refuse items added later, where the policy has no room for them."""
        self._grown(self._n_rows + 1)

    def context(self, context: ArrayLike | None) -> NDArray[np.float64]:
        """The context of a request for kernels, or InvalidInput if it is not what the policy wants."""
        wanted = self.policy.n_context
        size = f"{wanted} number{'' if wanted == 1 else 's'}"
        if context is None:
            if wanted:
                raise InvalidInput(f"{self.policy.label} wants a context of {size} with each request")
            return NO_LIMITS.context
        given = float_array("context", context, rule="a list of numbers", largest=LARGEST_CONTEXT)
        given = np.atleast_1d(given)
        if not wanted:
            for name, value in (("context", given.size), ("segments", 4)):
                if name in self.policy.rules():
                    raise InvalidInput(
                        f"{self.policy.label} was told of no context; say {self.policy.name}:{name}={value}"
                    )
            raise InvalidInput(
                f"{self.policy.label} takes no context; learners that do are told its size, as in "
                "context-lin-ts:context=3"
            )
        if given.shape != (wanted,):
            got = f"{len(given)}" if given.ndim == 1 else f"an array of shape {given.shape}"
            raise InvalidInput(f"{self.policy.label} wants a context of {size}, got {got}")
        if not np.isfinite(given).all():
            place = int(np.argmin(np.isfinite(given)))
            raise InvalidInput(f"context must be finite numbers, got {given[place]} at place {place}")
        if np.abs(given).max() > LARGEST_CONTEXT:
            raise InvalidInput(
                f"context must be at most {LARGEST_CONTEXT:g} in size, got {np.abs(given).max():g}"
            )
        self.policy.check_context(given)
        return given

    def own_features(self, features: ArrayLike, n_items: int) -> NDArray[np.float64]:
        """The features that a request brings for its items, or InvalidInput if they are not of the kind that
        the catalog has."""
        own = check_features(features, n_items)
        if own.shape[1] != self.catalog.n_features:
            raise InvalidInput(
                f"features must have {self.catalog.n_features} columns, as in the catalog, got {own.shape[1]}"
            )
        self.policy.admit(self.numbers, own)
        return own

    def withdrawn(self) -> NDArray[np.uint8]:
        """A 1 for each row that is not shown any more, for kernels; empty if there is none."""
        return self.catalog.hidden if self.catalog.n_hidden else NO_LIMITS.hidden

    def request(
        self,
        candidates: NDArray[np.int64] | None = None,
        excluded: list[int] | None = None,
        *,
        context: ArrayLike | None = None,
        features: NDArray[np.float64] | None = None,
        caps: tuple[NDArray[np.int32], NDArray[np.int64]] | None = None,
    ) -> Request:
        """What is asked for, for kernels: among `candidates`, if given, whose `features` may stand in for the
        catalog's; without the rows `excluded`; and of each group of rows at most its cap."""
        hidden = self.withdrawn()
        if excluded:
            hidden = self.catalog.hidden.copy()
            hidden[excluded] = 1
        return Request(
            NO_LIMITS.candidates if candidates is None else candidates,
            hidden,
            self.context(context),
            NO_LIMITS.features if features is None else features,
            *(caps or (NO_LIMITS.groups, NO_LIMITS.caps)),
        )

    def recommend_many(
        self, key: np.uint64, numbers: Sequence[int], n: int, request: Request, *, scored: bool = True
    ) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """For each number the best n rows, fewer where fewer are left, and what is held for the attraction of
        each. The key and the number decide what is explored.
        """
        self.follow_catalog()
        many = len(numbers)
        slates, found = np.empty((many, n), np.int64), np.zeros(many, np.int64)
        means = np.empty((many, n)) if scored else None
        if n:
            self._recommend(
                self.numbers, self.state, self.arrays(), request,
                key, np.array(numbers, np.int64), self._noise, slates, found, means, np.empty(n),
            )  # fmt: skip
        if means is None:
            means = np.empty((many, 0))
        return [(slates[i, :m], means[i, :m]) for i, m in enumerate(found.tolist())]

    def learn_rows(
        self,
        rows: NDArray[np.int64],
        clicks: NDArray[np.uint8],
        told: int | None = None,
        *,
        context: NDArray[np.float64] = NO_LIMITS.context,
        features: NDArray[np.float64] = NO_LIMITS.features,
    ) -> None:
        """Learn which positions of these rows were clicked, and how many were examined, if the page tells.

        `context` and `features`, one row a position, are those of the request.
        """
        examined = self.policy.click_model.examined(clicks, told)
        request = NO_LIMITS._replace(hidden=self.withdrawn(), context=context, features=features)
        self._learn(self.numbers, self.state, self.arrays_to_learn(), request, rows, examined, clicks)

    def estimates(
        self,
        rows: NDArray[np.int64],
        context: NDArray[np.float64] | None = None,
        features: NDArray[np.float64] = NO_LIMITS.features,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What is held for the attraction of each row and its standard deviation; NaN if no such thing is.

        Without the context that a policy wants, for a user of whom all numbers are 0. `features`, if given,
        stand in for those of the catalog, row by row.
        """
        self.follow_catalog()
        means, deviations = np.empty(len(rows)), np.empty(len(rows))
        known = np.zeros(self.policy.n_context) if context is None else context
        asked = NO_LIMITS._replace(context=known, features=features)
        self._estimate(self.numbers, self.state, self.catalog.arrays, asked, rows, means, deviations)
        return means, deviations
