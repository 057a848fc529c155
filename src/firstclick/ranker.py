"""Live use in a program: recommend a slate, hear of the click, learn."""

import operator
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.arrays_file import read_arrays, write_arrays
from firstclick.catalog import Catalog, ItemId
from firstclick.errors import FirstclickError, InvalidInput
from firstclick.kernels.compiling import compiled, learn, recommend
from firstclick.kernels.hashing import fill_normal, mix
from firstclick.kernels.ranking import CatalogArrays, Request
from firstclick.protocol import EVERYTHING, Numbers, Policy, State, check_features
from firstclick.registry import make_policy, policy_class
from firstclick.streams import stream_key
from firstclick.whole_number import whole_number

FORMAT = "firstclick ranker 1"


def recommend_once(numbers, state, catalog, request, ranker_key, number, noise, slate):  # type: ignore[no-untyped-def]
    """The recommendation of this number, which alone decides its noise and its ties."""
    key = mix(ranker_key, np.uint64(number))
    fill_normal(key, noise)
    return recommend(numbers, state, catalog, request, key, noise, slate)


def learn_once(numbers, state, catalog, slate, examined, clicks):  # type: ignore[no-untyped-def]
    """One piece of feedback."""
    learn(numbers, state, catalog, slate, examined, clicks)


@dataclass(frozen=True)
class Slate:
    """What to show, best first, and the handle to give back with the click."""

    id: str
    items: tuple[ItemId, ...]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[ItemId]:
        return iter(self.items)


def _expect(array: NDArray[Any], shape: tuple[int, ...], dtype: Any) -> None:
    if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
        raise ValueError


class Ranker:
    """A policy at work on a catalog: `recommend` slates, `learn` from clicks, `save` and `load`.

    Slates wait for their feedback in any order and for any time, up to `max_pending` of them;
    then the oldest is forgotten. Several rankers may share a catalog, and see what is added to it
    or withdrawn. Not safe for use by several threads at once.

    The seed decides what is explored and how slates are named: give every ranker its own, and a new
    one to a ranker that starts from nothing again, or a late click would be taken for another slate's.
    """

    def __init__(
        self, policy: Policy | str, catalog: Catalog, *, k: int, seed: int = 0, max_pending: int = 10_000
    ) -> None:
        self.policy = make_policy(policy)
        if not isinstance(catalog, Catalog):
            raise InvalidInput(f"a ranker needs a Catalog(items, features), got {catalog!r}")
        self.catalog = catalog
        self.k = whole_number("k", k, at_least=1, at_most=len(catalog), because=", the items there are")
        self.seed = whole_number("seed", seed, at_least=0)
        self.max_pending = whole_number("max_pending", max_pending, at_least=1)
        if self.policy.needs_features and catalog.n_features is None:
            raise InvalidInput(f"{self.policy.name} needs features; give Catalog(items, features)")
        arrays = catalog.arrays
        self.numbers: Numbers = self.policy.numbers(self.k, arrays.features)
        self.state: State = self.policy.initial_state(len(catalog.items), arrays.features.shape[1], self.k)
        self._n_rows = len(catalog.items)
        self.requests = 0
        self.pending: dict[str, NDArray[np.int64]] = {}
        self._prepare()

    def _prepare(self) -> None:
        # Rankers with different policies never take each other's slates for their own.
        self._key = stream_key(self.seed, "ranker", self.policy.label, self.k)
        self._recommend = compiled(recommend_once, type(self.policy))
        self._learn = compiled(learn_once, type(self.policy))
        self._noise = np.empty(self.policy.noise_size(self.k, self.catalog.arrays.features.shape[1]))
        self._prepared_for: tuple[CatalogArrays, State] | None = None

    def _arrays(self) -> CatalogArrays:
        """The catalog with the shortcuts that follow the state; new ones when either is another."""
        arrays = self.catalog.arrays
        if self._prepared_for is None or any(
            now is not then for now, then in zip((arrays, self.state), self._prepared_for, strict=True)
        ):
            self._prepared = self.policy.shortcuts(arrays)
            self._prepared_for = arrays, self.state
        return self._prepared

    def _follow_catalog(self) -> None:
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

    def recommend(
        self, *, candidates: Iterable[ItemId] | None = None, exclude: Iterable[ItemId] = ()
    ) -> Slate:
        """The slate to show now: the best k of the catalog, or of `candidates`, and none of `exclude`.

        It is shorter than k when fewer items are left, and may be empty. Excluding an item that
        the catalog does not have is no error; a candidate that it never had is.
        """
        self._follow_catalog()
        catalog = self.catalog
        hidden = catalog.hidden if catalog.n_hidden else EVERYTHING.hidden
        if excluded := catalog.known_rows(exclude):
            hidden = catalog.hidden.copy()
            hidden[excluded] = 1
        rows = np.empty(self.k, np.int64)
        asked = EVERYTHING.candidates if candidates is None else catalog.rows(candidates)
        n = 0
        # An empty array of candidates means "all" to a kernel, and none at all to the caller.
        if candidates is None or len(asked):
            n = self._recommend(
                self.numbers, self.state, self._arrays(), Request(asked, hidden),
                self._key, self.requests, self._noise, rows,
            )  # fmt: skip
        slate = Slate(
            id=f"{int(self._key):016x}-{self.requests}",
            items=self._items(rows[:n]),
        )
        self.requests += 1
        self.pending[slate.id] = rows[:n]
        if len(self.pending) > self.max_pending:
            del self.pending[next(iter(self.pending))]
        return slate

    def _items(self, rows: NDArray[np.int64]) -> tuple[ItemId, ...]:
        return tuple(self.catalog.items[row] for row in rows)

    def learn(self, slate: Slate | str, *, click: SupportsIndex | None) -> None:
        """Learn which position of the slate was clicked first, from 0, or None for no click at all.

        A slate is learned once: a second time, or a click beyond the slate, is refused and
        changes nothing.
        """
        slate_id = slate.id if isinstance(slate, Slate) else slate
        if not isinstance(slate_id, str):
            raise InvalidInput(f"learn takes a slate that recommend gave, or its id, got {slate!r}")
        rows = self.pending.get(slate_id)
        if rows is None:
            raise InvalidInput(
                f"slate {slate_id!r} is not waiting for feedback: it was learned already, is not of this "
                f"ranker, or was forgotten (the last {self.max_pending} are kept)"
            )
        if isinstance(slate, Slate) and slate.items != self._items(rows):
            raise InvalidInput(f"slate {slate_id!r} is not of this ranker, which showed {self._items(rows)}")
        clicks = np.zeros(len(rows), np.uint8)
        examined = len(rows)
        if click is not None:
            position = self._position(click, len(rows))
            clicks[position] = 1
            examined = position + 1
        del self.pending[slate_id]
        self._learn(self.numbers, self.state, self._arrays(), rows, examined, clicks)

    @staticmethod
    def _position(click: SupportsIndex, size: int) -> int:
        try:
            if isinstance(click, bool):
                raise TypeError
            position = operator.index(click)
        except TypeError:
            raise InvalidInput(f"click must be a position or None, got {click!r}") from None
        if size == 0:
            raise InvalidInput(f"the slate is empty, so click must be None, got {position}")
        if not 0 <= position < size:
            raise InvalidInput(f"click must be a position of the slate, 0 to {size - 1}, got {position}")
        return position

    def add_items(self, items: Iterable[ItemId], features: ArrayLike | None = None) -> None:
        """Add items to the catalog; learners without features rank unseen items by their own rule."""
        if features is not None:
            features = check_features(features)
            self.policy.admit(self.numbers, features)
        self.catalog.add(items, features)
        self._follow_catalog()

    def withdraw_items(self, items: Iterable[ItemId]) -> None:
        """Never recommend these items again. Slates that show them can still be learned."""
        self.catalog.withdraw(items)

    def merge(self, other: "Ranker", *, seed: int | None = None) -> "Ranker":
        """A new ranker that knows what both have learned from their different logs.

        Both must have the same policy, k and catalog, row by row, and seeds of their own: rankers that
        grew from one saved file would count twice what they share. The slates that wait in either
        wait in the new one. Its seed is derived from both unless given.
        """
        if not isinstance(other, Ranker):
            raise InvalidInput(f"a ranker can be merged with a ranker, got {other!r}")
        if self.seed == other.seed:
            raise InvalidInput(
                f"both rankers have seed {self.seed}: copies of one ranker would count twice what they "
                "share, and others give the same ids to their slates; start each ranker with its own seed"
            )
        mine, its = self.catalog, other.catalog
        self._follow_catalog()
        other._follow_catalog()
        if self.policy != other.policy or self.k != other.k:
            raise InvalidInput(
                f"only rankers of one policy and k can be merged, got {self.policy.label} with k={self.k} "
                f"and {other.policy.label} with k={other.k}"
            )
        if mine.items != its.items or not np.array_equal(mine.arrays.features, its.arrays.features):
            raise InvalidInput(
                "only rankers of one catalog can be merged: the same items and features, in the same order"
            )
        if self.numbers != other.numbers:
            raise InvalidInput(
                f"{self.policy.label}: the rankers started with different features, so that they scale them "
                f"differently, got {self.numbers} and {other.numbers}"
            )
        if seed in (self.seed, other.seed):
            raise InvalidInput(f"seed must be a new one, or slates would get the same ids again, got {seed}")
        merged = Ranker.__new__(Ranker)
        merged.policy, merged.k, merged.numbers = self.policy, self.k, self.numbers
        merged.catalog = Catalog.restored(mine.items, mine.features, mine.hidden | its.hidden)
        merged.state = self.policy.merge(self.state, other.state)
        merged._n_rows = len(mine.items)
        merged.pending = {**self.pending, **other.pending}
        merged.max_pending = max(self.max_pending, other.max_pending, len(merged.pending))
        merged.requests = 0
        derived = stream_key(self.seed, "merge", self.requests, other.seed, other.requests)
        merged.seed = int(derived) if seed is None else whole_number("seed", seed, at_least=0)
        merged._prepare()
        return merged

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, slates that wait included; an older file is replaced whole."""
        self._follow_catalog()
        page = {
            "format": FORMAT,
            "policy": {"name": self.policy.name, "settings": self.policy.settings},
            "numbers": list(self.numbers),
            "k": self.k,
            "seed": self.seed,
            "max_pending": self.max_pending,
            "requests": self.requests,
            "items": self.catalog.items,
            "has_features": self.catalog.n_features is not None,
            "pending": [[slate, rows.tolist()] for slate, rows in self.pending.items()],
        }
        arrays = {f"state.{name}": array for name, array in self.state._asdict().items()}
        arrays["features"], arrays["hidden"] = self.catalog.arrays.features, self.catalog.hidden
        write_arrays(path, page, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Ranker":
        """A ranker that goes on exactly as the saved one would have."""
        page, arrays = read_arrays(path, FORMAT)
        try:
            return cls._restored(page, arrays)
        except FirstclickError as error:
            raise type(error)(f"{path}: {error}") from None
        except (AttributeError, LookupError, TypeError, ValueError):
            raise InvalidInput(f"{path}: damaged, or not written by this version of firstclick") from None

    @classmethod
    def _restored(cls, page: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> "Ranker":
        """The ranker of a saved page and its arrays; any error when they do not fit together."""
        ranker = cls.__new__(cls)
        ranker.policy = policy_class(page["policy"]["name"])(**page["policy"]["settings"])
        numbers = (tuple(value) if isinstance(value, list) else value for value in page["numbers"])
        ranker.numbers = ranker.policy.numbers_type(*numbers)
        n_rows = len(page["items"])
        features, hidden = arrays["features"], arrays["hidden"]
        _expect(features, (n_rows, features.shape[-1]), np.float64)
        _expect(hidden, (n_rows,), np.uint8)
        ranker.catalog = Catalog.restored(page["items"], features if page["has_features"] else None, hidden)
        ranker.k = whole_number("k", page["k"], at_least=1, at_most=n_rows)
        ranker.seed = whole_number("seed", page["seed"], at_least=0)
        ranker.requests = whole_number("requests", page["requests"], at_least=0)
        ranker._n_rows = n_rows
        blank = ranker.policy.initial_state(n_rows, features.shape[1], ranker.k)
        ranker.state = type(blank)(*(arrays[f"state.{field}"] for field in blank._fields))
        for array, like in zip(ranker.state, blank, strict=True):
            _expect(array, like.shape, like.dtype)
        ranker.max_pending = whole_number("max_pending", page["max_pending"], at_least=1)
        ranker.pending = {slate: np.array(rows, np.int64) for slate, rows in page["pending"]}
        # Kernels do not look whether a row exists.
        if not all(((rows >= 0) & (rows < n_rows)).all() for rows in ranker.pending.values()):
            raise ValueError
        ranker._prepare()
        return ranker

    def __repr__(self) -> str:
        return f"Ranker({self.policy.label!r}, {len(self.catalog)} items, k={self.k})"
