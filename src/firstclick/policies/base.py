"""What a policy is: `Policy`, its parameters and its kernels. What it has learned is a separate `State`."""

import sys
from abc import ABC, abstractmethod
from collections import namedtuple
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.search_tree import with_own_hints
from firstclick.click_models import Cascade, ClickModel
from firstclick.errors import InvalidInput
from firstclick.kernels.arrays import CatalogArrays, Request
from firstclick.kernels.compiling import POLICY_OF_NUMBERS
from firstclick.parameters import Declared
from firstclick.policies.score_laws import ScoreLaw
from firstclick.validation.ranges import Range, usual_range

State = Any  # A NamedTuple of plain arrays; each policy has its own type of it.
PlainParameters = Any  # A NamedTuple of a policy's parameters as plain numbers, for its kernels.


# The families of policies and their titles, in the order of the guide.
FAMILIES = {
    "counts": "Counts for each item",
    "features": "Item features",
    "clicks": "Several clicks",
    "users": "Users who differ",
    "changes": "Moving tastes",
    "variety": "Variety",
    "ranking": "No click model",
    "": "Others",
}


# What a request may say of the items of its slate, beside how many there are.
RESTRICTIONS = ("candidates", "exclude", "pinned", "at_most")


class Policy(Declared, ABC):
    """The base class of all policies: parameters and kernels. What a policy has learned is a separate state.

    A subclass declares its parameters with `param`. It defines `initial_state` and two kernels, `recommend`
    and `learn`, as static methods that Numba compiles, and a third, `estimate`, if it can. Copy
    examples/skeleton_policy.py to start.
    """

    paper: ClassVar[str] = ""
    family: ClassVar[str] = ""  # one of FAMILIES
    made_for: ClassVar[tuple[str, ...]] = ()  # the stock worlds of `firstclick compare` its paper has in mind
    look: ClassVar[str] = ""  # one of report.style.LOOKS, not inherited; without it, a look of its family
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
    scales_features: ClassVar[bool] = False  # It wants features as people give them, in whatever units.
    # There may be clicks below the first one: it alone counts for what stands above it, and no further.
    wants_all_clicks: ClassVar[bool] = False
    # It draws: the same state gives several slates, beside the order of equal items. What one that does not
    # draw has shown says nothing about what another policy would have earned.
    draws: ClassVar[bool] = True
    corrects: ClassVar[bool] = False  # What a page without a click taught can be taken back: `unlearn`.
    learns_from_others: ClassVar[bool] = True  # What it learns from may have been shown by somebody else.
    # Of RESTRICTIONS those that it would learn wrongly from, each with what to do instead: `learn` is not
    # told what a request allowed. Rankers and models refuse such requests; a log with their slates is folded.
    misreads: ClassVar[Mapping[str, str]] = {}
    # What it takes for examined where the page does not tell.
    click_model: ClassVar[ClickModel] = Cascade()
    # Numbers that kernels need and nobody declares, because they follow from the catalog.
    derived: ClassVar[tuple[str, ...]] = ()
    by_item: ClassVar[tuple[str, ...]] = ()  # The arrays of its state that `grow` gives zeros for new items.
    # Of a log it takes how often each item was examined and clicked, and of slates with features of their own
    # all: see `with_log`.
    counts_suffice: ClassVar[bool] = False
    numbers_type: ClassVar[Any] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.family not in FAMILIES:
            families = ", ".join(filter(None, FAMILIES))
            raise TypeError(f"{cls.__name__}.family must be one of {families}, got {cls.family!r}")
        if unknown := set(cls.misreads) - set(RESTRICTIONS):
            known = ", ".join(RESTRICTIONS)
            raise TypeError(f"{cls.__name__}.misreads must be of {known}, got {', '.join(sorted(unknown))}")
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

    def numbers(self, k: int, features: NDArray[np.float64]) -> PlainParameters:
        """The parameters as plain numbers, for this slate length and these features."""
        return self._pack()

    def _pack(self, **computed: float) -> PlainParameters:
        """The declared parameters as numbers (a word is its place in the list), then `computed`."""
        values: dict[str, Any] = {}
        for name, rule in self.rules().items():
            value = getattr(self, name)
            values[name] = rule.words.index(value) if isinstance(value, str) else value or rule.kind()
        return self.numbers_type(**{**values, **computed})

    def notes(self, numbers: PlainParameters, steps: int) -> tuple[str, ...]:
        """Sentences for the user about playing this many steps with these numbers, if any."""
        return ()

    @abstractmethod
    def initial_state(self, n_items: int, n_features: int, k: int) -> State:
        """The state before the first click."""

    def like(self, blank: State, arrays: Mapping[str, NDArray[Any]]) -> State:
        """A blank state in the shapes of these arrays, if shapes may vary."""
        return blank

    def ranges(self, n_items: int, k: int) -> dict[str, Range]:
        """The allowed values of each array of a state. Arrays not named hold counts or finite numbers."""
        return {}

    def check_state(self, state: State, n_items: int, k: int) -> None:
        """Refuse a state from a file, snapshot or merge that no log leads to, and that kernels might follow
        beyond the end of an array. Its shapes are those of `initial_state`.
        """
        ranges = self.ranges(n_items, k)
        for name, array in state._asdict().items():
            ranges.get(name, usual_range(array)).check(self.name, name, array)

    def shortcuts(self, catalog: CatalogArrays) -> CatalogArrays:
        """The catalog, with arrays that `recommend` keeps between calls to find the same slates faster.

        They belong to one state and its successors. Another state needs new ones.
        """
        return with_own_hints(catalog)

    @property
    def n_context(self) -> int:
        """How many numbers describe the user in each request."""
        return 0

    @property
    def best_by_estimates(self) -> bool:
        """Whether its best slate is the items with the highest estimates, for every request."""
        return self.n_context == 0

    def with_context(self, n_context: int) -> "Policy":
        """The policy for requests with this many numbers of context; itself, if it has a fixed number or uses
        none.
        """
        return self

    def check_context(self, context: NDArray[np.float64]) -> None:
        """Refuse a context of the right size that makes no sense to this policy."""

    def noise_size(self, k: int, n_features: int) -> int:
        """How many standard normal numbers `recommend` uses."""
        return 0

    @property
    def learns_row(self) -> bool:
        """Whether it starts from one free observation of every item, if a world gives it."""
        return False

    def learn_row(self, state: State, row: NDArray[np.uint8]) -> None:
        """Learn from one free observation of every item."""

    def grow(self, state: State, n_items: int) -> State:
        """The state with room for items added to the catalog, in the shape of `initial_state`."""
        return state._replace(**{name: lengthened(getattr(state, name), n_items) for name in self.by_item})

    def admit(self, numbers: PlainParameters, features: NDArray[np.float64]) -> None:
        """Refuse added items that `numbers`, computed without them, do not allow for."""

    def merge(self, first: State, second: State) -> State:
        """The state that knows what both states have learned."""
        raise InvalidInput(
            f"{self.name}: states cannot be merged; write merge() for it, or declare mergeable = False"
        )

    def refitted(self, state: State, catalog: CatalogArrays) -> State:
        """The state with everything recomputed that follows from its counts, after `merge` and `tempered`."""
        return state

    def with_changed_features(
        self, state: State, catalog: CatalogArrays, rows: NDArray[np.int64], before: NDArray[np.float64]
    ) -> State:
        """The state after these rows of the catalog got new features; `before` are the old ones.

        Most policies keep what they have learned: it was true of the old features. A policy that keeps counts
        per item can learn from them again.
        """
        return state

    def unlearn(self, state: State, catalog: CatalogArrays, slate: NDArray[np.int64], examined: int) -> None:
        """Take back, in place, what `learn` made of the first `examined` positions of a slate without a
        click.

        Other slates were learned since, and features may have changed. Afterwards the counts are those of a
        log without that slate.
        """
        raise InvalidInput(
            f"{self.name} cannot take back what it has learned; write unlearn() for it, and declare "
            "corrects = True"
        )

    def tempered(self, state: State, weight: float, draw: np.random.Generator) -> State:
        """The state if each observation counted only `weight`, above 0 and at most 1.

        Numbers that must be whole are rounded at random, so that they are right on average.
        """
        if weight == 1:
            return state
        raise InvalidInput(
            f"must be 1, because {self.label} cannot weigh what it knows, got {weight:g}", "weight"
        )

    def with_counts(
        self, state: State, examined: NDArray[np.float64], hits: NDArray[np.float64], slates: int
    ) -> State:
        """The state after this many more slates, given how often each item was examined and clicked in them.

        Counts may be fractions. `refitted` is called next. A policy that needs more than counts raises
        InvalidInput.
        """
        raise InvalidInput(
            f"are not enough for {self.name}, which learns more from slates; give it the slates, or use a "
            "policy that counts, such as cascade-mixed or cascade-ts",
            "counts",
        )

    def with_log(self, state: State, past: State, *, nothing_known: bool) -> State:
        """The state with a log as a head start. `past` is what the log alone has taught, tempered.

        `refitted` is called next.
        """
        return past if nothing_known else self.merge(state, past)

    def score_law(
        self,
        numbers: PlainParameters,
        state: State,
        catalog: CatalogArrays,
        request: Request,
        rows: NDArray[np.int64],
    ) -> ScoreLaw | None:
        """The law by which `recommend` draws the scores of these rows; None if unknown, or if it does not
        rank by one score.

        It describes the `recommend` of the same class. A class that overrides `recommend` overrides this too.
        """
        return None

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        """Kernel: fill `slate` with rows of the catalog, best first, and return how many were found."""
        raise NotImplementedError

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        """Kernel: update `state` with the first `examined` positions of `slate` and their `clicks`."""
        raise NotImplementedError

    @staticmethod
    def estimate(numbers, state, catalog, request, rows, means, deviations):  # type: ignore[no-untyped-def]
        """Kernel: fill `means` and `deviations` with the estimated attraction of each of the `rows` for the
        user of this request, and its standard deviation. NaN, the default, means that the policy has no
        estimate.
        """
        means[:] = np.nan
        deviations[:] = np.nan


def lengthened(array: NDArray[Any], n_items: int, value: float = 0) -> NDArray[Any]:
    """The array, a line for each item, with lines of `value` for the items added."""
    return np.concatenate([array, np.full((n_items - len(array), *array.shape[1:]), value, array.dtype)])


def drawn_share(counts: NDArray[np.int64], weight: float, draw: np.random.Generator) -> NDArray[np.int64]:
    """Whole numbers of which each is `weight` times its count on the average, and so is their sum, to within
    one: one random number moves the grid to which the running sum is rounded."""
    ends = np.floor(np.cumsum(weight * counts) + draw.random()).astype(np.int64)
    return np.diff(ends, prepend=0)
