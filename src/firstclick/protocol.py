"""The whole vocabulary: Policy, State, World, Stage and Scenario."""

import sys
from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.click_models import Cascade, ClickModel, make_click_model
from firstclick.declaration import Declared, param
from firstclick.errors import InvalidInput
from firstclick.float_array import float_array
from firstclick.index import build_index, with_own_hints
from firstclick.kernels.attraction import WorldArrays
from firstclick.kernels.compiling import POLICY_OF_NUMBERS
from firstclick.kernels.groups import no_groups
from firstclick.kernels.ranking import CatalogArrays, IndexArrays, Request
from firstclick.kernels.widths import no_widths
from firstclick.ranges import Range, usual_range

State = Any  # A NamedTuple of plain arrays; each policy has its own type of it.
Numbers = Any  # A NamedTuple of a policy's parameters as plain numbers, for its kernels.

# Products of larger ones, summed over many observations, leave the range of floating point.
LARGEST_FEATURE = 1e100
# A context multiplies features, and their product is squared.
LARGEST_CONTEXT = 1e50

EVERYTHING = Request(
    candidates=np.empty(0, np.int64),
    hidden=np.empty(0, np.uint8),
    context=np.empty(0),
    features=np.empty((0, 0)),
    groups=np.empty(0, np.int32),
    caps=np.empty(0, np.int64),
)


def check_features(features: ArrayLike, n_items: int | None = None) -> NDArray[np.float64]:
    """The features as a finite float64 array of one row per item, contiguous."""
    # A copy: the caller may change his array, or have made it read-only, which would compile anew.
    array = float_array("features", features, rule="numbers, one row per item", largest=LARGEST_FEATURE)
    if array.ndim != 2:
        raise InvalidInput(f"features must have two dimensions (items x features), got {array.ndim}")
    if array.shape[1] == 0:
        raise InvalidInput("features must have at least one column, got 0")
    if n_items is not None and len(array) != n_items:
        raise InvalidInput(f"features must have one row for each of the {n_items} items, got {len(array)}")
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise InvalidInput(f"features must be finite, got {array[row, column]} in row {row}, column {column}")
    if array.size and np.abs(array).max() > LARGEST_FEATURE:
        row, column = np.unravel_index(np.abs(array).argmax(), array.shape)
        raise InvalidInput(
            f"features must be at most {LARGEST_FEATURE:g} in size, got {array[row, column]:g} in row {row}, "
            f"column {column}; divide all of them by one number"
        )
    return array


def drawn_share(counts: NDArray[np.int64], weight: float, draw: np.random.Generator) -> NDArray[np.int64]:
    """Whole numbers of which each is `weight` times its count on the average, and so is their sum, to within
    one: one random number moves the grid to which the running sum is rounded."""
    ends = np.floor(np.cumsum(weight * counts) + draw.random()).astype(np.int64)
    return np.diff(ends, prepend=0)


def longest_norm(features: NDArray[np.float64]) -> float:
    """The largest Euclidean norm of a row."""
    return float(np.sqrt((features**2).sum(axis=1).max(initial=0.0)))


def catalog_arrays(
    features: NDArray[np.float64] | None,
    n_items: int,
    labels: ArrayLike | None = None,
    *,
    index: IndexArrays | None = None,
) -> CatalogArrays:
    """The items for kernels. `labels`, all different, are what ties and Beta draws hash: row numbers by
    default.

    `index` is one that covers the first rows already, or `no_index` for scans; by default it is built.
    """
    rows = np.empty((n_items, 0)) if features is None else features
    names = np.arange(n_items, dtype=np.uint64) if labels is None else np.asarray(labels, np.uint64)
    if index is None:
        index = build_index(rows)
    columns = np.ascontiguousarray(rows.T)
    return CatalogArrays(rows, columns, np.arange(n_items), names, index, no_widths(), no_groups())


class Policy(Declared, ABC):
    """A learner's rule and its parameters; what it has learned is a separate `State`.

    A subclass declares its parameters with `param` and gives `initial_state` and two kernels,
    `recommend` and `learn`, as static methods that Numba compiles; a third, `estimate`, if it can.
    See CONTRIBUTING.md.
    """

    paper: ClassVar[str] = ""
    # The version of its arithmetic, stored with every model and ranker. Count it up with any change by which
    # the same log comes to another state, or the same state and key to another slate.
    version: ClassVar[int] = 1
    needs_features: ClassVar[bool] = False
    # What the conformance checks may expect (firstclick.testing).
    mergeable: ClassVar[bool] = True
    order_free: ClassVar[bool] = True
    learns: ClassVar[bool] = True
    quick: ClassVar[bool] = True  # It is well ahead of random order after a few thousand steps.
    unordered: ClassVar[bool] = True  # The order of the items in the catalog means nothing to it.
    growable: ClassVar[bool] = True  # Items may be added later.
    takes_features: ClassVar[bool] = False  # A request may bring its own features.
    unit_features: ClassVar[bool] = False  # Features must lie between 0 and 1.
    # There may be clicks below the first one: it alone counts for what stands above it, and no further.
    wants_all_clicks: ClassVar[bool] = False
    learns_from_others: ClassVar[bool] = True  # What it learns from may have been shown by somebody else.
    # What it takes for examined where the page does not tell.
    click_model: ClassVar[ClickModel] = Cascade()
    # Numbers that kernels need and nobody declares, because they follow from the catalog.
    derived: ClassVar[tuple[str, ...]] = ()
    numbers_type: ClassVar[Any] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.name:
            return
        # Numba's cache finds a type again by module and name: it has to be a real attribute.
        type_name = f"{cls.__name__}Numbers"
        fields = (*cls.rules(), *cls.derived)
        cls.numbers_type = namedtuple(type_name, fields, module=cls.__module__)  # type: ignore[misc]
        module = sys.modules.get(cls.__module__)
        if module is not None:
            setattr(module, type_name, cls.numbers_type)
        POLICY_OF_NUMBERS[cls.numbers_type] = cls

    def numbers(self, k: int, features: NDArray[np.float64]) -> Numbers:
        """The parameters as plain numbers, for this k and these features."""
        return self._pack()

    def _pack(self, **computed: float) -> Numbers:
        """The declared parameters as numbers (a word is its place in the list), then `computed`."""
        values: dict[str, Any] = {}
        for name, rule in self.rules().items():
            value = getattr(self, name)
            values[name] = rule.words.index(value) if isinstance(value, str) else value or rule.kind()
        return self.numbers_type(**{**values, **computed})

    def notes(self, numbers: Numbers, steps: int) -> tuple[str, ...]:
        """What the user should be told about playing this many steps with these numbers, if anything."""
        return ()

    @abstractmethod
    def initial_state(self, n_items: int, n_features: int, k: int) -> State:
        """What is known before the first click."""

    def ranges(self, n_items: int, k: int) -> dict[str, Range]:
        """What each array of a state may hold; one that is not named holds counts, or finite numbers."""
        return {}

    def check_state(self, state: State, n_items: int, k: int) -> None:
        """Refuse a state from outside (a file, a snapshot, a merge) that no log comes to, and that kernels
        might follow beyond the end of an array. Its shapes are those of `initial_state`."""
        ranges = self.ranges(n_items, k)
        for name, array in state._asdict().items():
            ranges.get(name, usual_range(array)).check(self.name, name, array)

    def shortcuts(self, catalog: CatalogArrays) -> CatalogArrays:
        """The catalog with what `recommend` keeps between two calls, so as to find the same slates sooner.

        It belongs to one state and to what is learned from there; a state from elsewhere needs new ones.
        """
        return with_own_hints(catalog)

    @property
    def n_context(self) -> int:
        """How many numbers it wants to know of the user with each request."""
        return 0

    @property
    def best_by_estimates(self) -> bool:
        """Whether its best slate is the items of the highest estimates, whoever asks."""
        return self.n_context == 0

    def with_context(self, n_context: int) -> "Policy":
        """The policy for requests that come with so many numbers; itself, if it was told its own number or
        takes none."""
        return self

    def check_context(self, context: NDArray[np.float64]) -> None:
        """Refuse a context that has the right size, and means nothing to this policy."""

    def noise_size(self, k: int, n_features: int) -> int:
        """How many standard normal numbers `recommend` uses."""
        return 0

    @property
    def learns_row(self) -> bool:
        """Whether it starts from one free observation of every item, where there is a world to give it."""
        return False

    def learn_row(self, state: State, row: NDArray[np.uint8]) -> None:
        """Learn from one free observation of every item."""

    def grow(self, state: State, n_items: int) -> State:
        """The state with room for items added to the catalog, in the shape of `initial_state`."""
        return state

    def admit(self, numbers: Numbers, features: NDArray[np.float64]) -> None:
        """Refuse items added later that `numbers`, computed without them, do not allow for."""

    def merge(self, first: State, second: State) -> State:
        """What is known from both logs together."""
        raise InvalidInput(
            f"{self.name}: states cannot be merged; write merge() for it, or declare mergeable = False"
        )

    def tempered(self, state: State, weight: float, draw: np.random.Generator) -> State:
        """What is known if each observation in the state counts only `weight`, above 0 and at most 1.

        What has to be rounded is drawn, so that it is right on the average.
        """
        if weight == 1:
            return state
        raise InvalidInput(
            f"{self.label} cannot weigh what it knows, so that weight must be 1, got {weight:g}"
        )

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        """Kernel: fill `slate` with rows of the catalog, best first; return how many were found."""
        raise NotImplementedError

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        """Kernel: update `state` with the first `examined` positions of `slate` and their `clicks`, which
        answer this request."""
        raise NotImplementedError

    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):  # type: ignore[no-untyped-def]
        """Kernel: fill `means` and `deviations` with what the learner holds for the attraction of each of the
        `rows` to the user of this request, and how uncertain that is as a standard deviation. NaN, as here:
        it holds no such thing.
        """
        means[:] = np.nan
        deviations[:] = np.nan


class World(ABC):
    """What answers with clicks.

    Attractions may differ between users, or change with time: there is one *view* for each user, or for each
    period. A world that is the same for all, always, has one view.
    """

    n_items: int
    click_model: ClickModel = Cascade()
    n_views: int = 1

    @abstractmethod
    def arrays(self) -> WorldArrays:
        """The world for kernels."""

    @abstractmethod
    def optimal_slate(self, k: int, view: int = 0) -> NDArray[np.int64]:
        """The slate that regret is measured against."""

    @abstractmethod
    def expected_reward(self, slate: Sequence[int] | NDArray[np.int64], view: int = 0) -> float:
        """The exact expected reward of the slate; under a cascade the probability of a click."""

    @property
    def features(self) -> NDArray[np.float64] | None:
        """The features that belong to this world, if it has any."""
        return None

    @property
    def n_context(self) -> int:
        """How many numbers are known of each user."""
        return 0

    def optimal_slates(self, k: int) -> NDArray[np.int64]:
        """The optimal slate of each view."""
        return np.stack([self.optimal_slate(k, view) for view in range(self.n_views)])

    def optimal_reward(self, k: int) -> float:
        """What the optimal slates are worth, on the average over views."""
        slates = self.optimal_slates(k)
        return float(np.mean([self.expected_reward(slate, view) for view, slate in enumerate(slates)]))


class WorldSpec(Declared, ABC):
    """A world that can be asked for by name, as in `--world blb:n_items=16,k=2,p=0.2,gap=0.15`."""

    clicks: str = param("cascade", "click model: cascade, dcm/0.6/0.5, pbm/1/0.7/0.5 or scroll/0.8")

    def __post_init__(self) -> None:
        super().__post_init__()
        make_click_model(self.clicks)

    @abstractmethod
    def build(self, seed: int) -> World:
        """The world; what is random in it depends on the seed alone."""


@dataclass(frozen=True)
class Stage:
    """What one run is played on: a world, the features of its items, and their names."""

    world: World
    features: NDArray[np.float64] | None
    item_names: Sequence[str]


class Scenario(Protocol):
    """What gives each run its stage, the same for all policies of the run."""

    def stage(self, seed: int, run: int) -> Stage: ...
