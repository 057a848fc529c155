"""A policy at work on a catalog, in rows: what the `Ranker` and the service have in common.

It knows rows and arrays. `request` and `feedback` read what people say.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.catalog.catalog import Catalog
from firstclick.catalog.feature_scale import FeatureScale
from firstclick.catalog.features import check_features
from firstclick.catalog.ids import ItemId
from firstclick.errors import InvalidInput
from firstclick.kernels.arrays import NO_LIMITS, CatalogArrays, Request
from firstclick.kernels.calls import estimate_once, learn_once, recommend_some
from firstclick.kernels.compiling import compiled
from firstclick.policies.base import PlainParameters, Policy, State
from firstclick.policies.random import Random
from firstclick.registry import make_policy
from firstclick.validation.whole_number import whole_number


def scale_for(
    policy: Policy, features: NDArray[np.float64], k: int, names: Sequence[str] = ()
) -> FeatureScale | None:
    """The scale in which a new ranker or model of this policy sees features; None: as they are given."""
    # Shares between 0 and 1 mean what they are, and a constant beside them would be one more.
    if policy.unit_features or policy.scales_features:
        return None
    n_items, n_features = features.shape
    if policy.n_context:
        # So that an error names the number of features that were given, without the constant.
        policy.initial_state(n_items, n_features, k)
    # Where each feature has a number of the context of its own, a constant would have none.
    pairs = policy.n_context > 0 and policy.settings.get("combine") == "product"
    listed = names or [f"f{i + 1}" for i in range(n_features)]
    return FeatureScale.fitted(listed, features, add_constant=not pairs)


class PolicyEngine:
    """A policy's numbers, its state and its compiled calls on a catalog. Follows the catalog as items come
    and go.

    `scale` is what is done to features that people give. Not safe for use by several threads at once.
    """

    def __init__(
        self,
        policy: Policy | str,
        catalog: Catalog,
        *,
        k: int,
        scale: FeatureScale | None = None,
        numbers: PlainParameters | None = None,
        state: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """An engine that knows nothing yet, or one that goes on with `numbers` and `state`.

        ValueError or LookupError if the arrays of the state do not fit.
        """
        self.policy = make_policy(policy)
        self.catalog, self.scale = catalog, scale
        self.k = whole_number("k", k, at_least=1)
        if self.policy.needs_features and catalog.n_features is None:
            raise InvalidInput(f"{self.policy.name} needs features; give Catalog(items, features)", "policy")
        self._rows = catalog.kernel_rows(scale)
        self._n_rows = len(catalog.items)
        self.numbers = self.policy.numbers(self.k, self.features) if numbers is None else numbers
        self.state = self.blank_state() if state is None else self._checked(state)
        self._recommend = compiled(recommend_some, type(self.policy))
        self._learn = compiled(learn_once, type(self.policy))
        self._estimate = compiled(estimate_once, type(self.policy))
        self._noise = np.empty(self.policy.noise_size(self.k, self.features.shape[1]))
        self._prepared_for: tuple[CatalogArrays, State] | None = None

    def blank_state(self) -> State:
        """What is known before the first click."""
        return self.policy.initial_state(self._n_rows, self.features.shape[1], self.k)

    def _checked(self, arrays: Mapping[str, NDArray[Any]]) -> State:
        blank = self.policy.like(self.blank_state(), arrays)
        # A file must not decide what kernels are compiled for, or how far they read.
        for name, like in blank._asdict().items():
            array = arrays[name]
            if array.shape != like.shape or array.dtype != like.dtype or not array.flags.c_contiguous:
                raise ValueError(name)
        state = type(blank)(*(arrays[name] for name in blank._fields))
        self.policy.check_state(state, self._n_rows, self.k)
        return state

    def with_state(self, state: Mapping[str, NDArray[Any]]) -> "PolicyEngine":
        """Another engine of the same policy and catalog, with this state."""
        return PolicyEngine(
            self.policy, self.catalog, k=self.k, scale=self.scale, numbers=self.numbers, state=state
        )

    def refit(self) -> None:
        """Make anew what follows from the counts in the state, which were merged or weighed."""
        self.state = self.policy.refitted(self.state, self._rows.arrays)

    def arrays(self) -> CatalogArrays:
        """The catalog with the shortcuts that follow the state; new ones when either is another."""
        if not self.is_prepared():
            self._prepared = self.policy.shortcuts(self._rows.arrays)
            self._prepared_for = self._rows.arrays, self.state
        return self._prepared

    def arrays_to_learn(self) -> CatalogArrays:
        """The shortcuts if there are any, which have to hear of what is learned; none are made for this."""
        if not self.is_prepared():
            self._prepared_for = None
        return self._rows.arrays if self._prepared_for is None else self._prepared

    def is_prepared(self) -> bool:
        """Whether the shortcuts are there: to make them takes a while in a large catalog."""
        if self._prepared_for is None:
            return False
        arrays, state = self._prepared_for
        return arrays is self._rows.arrays and state is self.state

    def follow_catalog(self) -> None:
        """Make room for items that were added to the catalog, whoever added them."""
        n_rows = len(self.catalog.items)
        if n_rows > self._n_rows:
            self._rows.follow(self.catalog.table)
            grown = self._grown(n_rows)
            self.policy.admit(self.numbers, self.features[self._n_rows :])
            self.state = grown
            self._n_rows = n_rows

    def change_features(self, items: Sequence[ItemId], features: NDArray[np.float64]) -> None:
        """Give items of the catalog other features, as the catalog has them; what was learned of the items
        stays theirs."""
        self.follow_catalog()
        rows = np.array(self.catalog.rows_of(list(items)), np.int64)
        before = self.features[rows]
        self.catalog.change(items, features)
        self.state = self.policy.with_changed_features(self.state, self._rows.arrays, rows, before)

    def _grown(self, n_rows: int) -> State:
        """The state with room for so many rows, or InvalidInput."""
        if not self.policy.growable:
            raise InvalidInput(
                f"must be complete from the start for {self.policy.label}; start a new one with all of them",
                "items",
            )
        grown = self.policy.grow(self.state, n_rows)
        wanted = self.policy.initial_state(n_rows, self.features.shape[1], self.k)
        wanted = self.policy.like(wanted, grown._asdict())
        # Kernels do not look whether a row exists: a state that is too small would be overrun.
        if [array.shape for array in grown] != [array.shape for array in wanted]:
            raise InvalidInput(
                f"{self.policy.name}: its state has no room for {n_rows} items; write grow() for it"
            )
        return grown

    def check_growable(self) -> None:
        """Refuse items added later, where the policy has no room for them."""
        self._grown(self._n_rows + 1)

    @property
    def features(self) -> NDArray[np.float64]:
        """The features of every row of the catalog, as kernels see them."""
        return self._rows.arrays.features

    def encoded(self, features: Any, items: Sequence[ItemId]) -> NDArray[np.float64]:
        """Features as people give them, one row for each of the items, as kernels see them; or InvalidInput.

        This is the only door for features that come later than the catalog.
        """
        if self.catalog.encoder is None:
            return self.in_scale(features, len(items))
        rows, _ = self.catalog.encoder.encode(self.catalog.values_with(items, features))
        return self.in_scale(rows, len(items))

    def in_scale(self, features: ArrayLike, n_items: int) -> NDArray[np.float64]:
        """Features that are encoded already, one row for each item, as kernels see them; or InvalidInput."""
        if self.scale is not None:
            rows = self.scale.apply(features, n_items)
        else:
            rows = check_features(features, n_items)
            if rows.shape[1] != self.catalog.n_features:
                raise InvalidInput(
                    f"must have {self.catalog.n_features} columns, got {rows.shape[1]}", "features"
                )
        self.policy.admit(self.numbers, rows)
        return rows

    def hidden(self, more: Sequence[int] = ()) -> NDArray[np.uint8]:
        """A 1 for each row that may not be shown, `more` included, for kernels; empty if there is none."""
        if more:
            hidden = self.catalog.hidden.copy()
            hidden[more] = 1
            return hidden
        return self.catalog.hidden if self.catalog.n_hidden else NO_LIMITS.hidden

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

    def draw_uniformly(self, key: np.uint64, number: int, n: int, request: Request) -> NDArray[np.int64]:
        """The best n rows for somebody who knows nothing: drawn among all that the request allows."""
        self.follow_catalog()
        random = Random()
        slates, found = np.empty((1, n), np.int64), np.zeros(1, np.int64)
        if n:
            compiled(recommend_some, type(random))(
                random.numbers(self.k, self.features), random.initial_state(1, 0, self.k), self._rows.arrays,
                request, key, np.array([number], np.int64), np.empty(0), slates, found, None, np.empty(n),
            )  # fmt: skip
        return slates[0, : found[0]]

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
        request = NO_LIMITS._replace(hidden=self.hidden(), context=context, features=features)
        self._learn(self.numbers, self.state, self.arrays_to_learn(), request, rows, examined, clicks)

    def unlearn_rows(self, rows: NDArray[np.int64]) -> None:
        """Take back what a page that showed these rows, and reported no click, has taught."""
        examined = self.policy.click_model.examined(np.zeros(len(rows), np.uint8))
        self.policy.unlearn(self.state, self.arrays_to_learn(), rows, examined)

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
        self._estimate(self.numbers, self.state, self._rows.arrays, asked, rows, means, deviations)
        return means, deviations


def merged_engine(one: PolicyEngine, other: PolicyEngine) -> PolicyEngine:
    """A new engine, on a catalog of its own, that knows what both have learned; or InvalidInput."""
    policy = one.policy
    if not policy.mergeable:
        way_out = (
            "give one ranker both logs in turn, by warm_start"
            if policy.learns_from_others
            else "let one ranker show all slates"
        )
        raise InvalidInput(f"{policy.label} cannot merge: order matters to it; {way_out}")
    one.follow_catalog()
    other.follow_catalog()
    if policy != other.policy or one.k != other.k:
        raise InvalidInput(
            f"only rankers of one policy and k can be merged, got {policy.label} with k={one.k} "
            f"and {other.policy.label} with k={other.k}"
        )
    mine, its = one.catalog, other.catalog
    same = mine.items == its.items and mine.groups == its.groups and mine.encoder == its.encoder
    if not same or not np.array_equal(mine.table, its.table):
        raise InvalidInput(
            "only rankers of one catalog can be merged: the same items, features and groups, in the same "
            "order"
        )
    for first, second in ((one.scale, other.scale), (one.numbers, other.numbers)):
        if first != second:
            raise InvalidInput(
                f"{policy.label}: the rankers started with different features, so that they scale them "
                f"differently, got {first} and {second}; start both with the same items"
            )
    catalog = Catalog.restored(
        mine.items, mine.features, mine.withdrawn | its.withdrawn, cold_rows=mine.cold_rows,
        groups=mine.groups, unavailable=mine.unavailable | its.unavailable, encoder=mine.encoder,
        values=dict(mine.values),
    )  # fmt: skip
    state = policy.merge(one.state, other.state)._asdict()
    engine = PolicyEngine(policy, catalog, k=one.k, scale=one.scale, numbers=one.numbers, state=state)
    engine.refit()
    return engine
