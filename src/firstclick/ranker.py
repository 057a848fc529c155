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
from firstclick.live import LivePolicy
from firstclick.protocol import Policy, check_features
from firstclick.registry import policy_class
from firstclick.streams import stream_key
from firstclick.whole_number import whole_number

FORMAT = "firstclick ranker 1"


@dataclass(frozen=True)
class Slate:
    """What to show, best first, and the handle to give back with the click."""

    id: str
    items: tuple[ItemId, ...]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[ItemId]:
        return iter(self.items)


class Ranker(LivePolicy):
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
        if not isinstance(catalog, Catalog):
            raise InvalidInput(f"a ranker needs a Catalog(items, features), got {catalog!r}")
        super().__init__(policy, catalog, k=k)
        whole_number("k", k, at_least=1, at_most=len(catalog), because=", the items there are")
        self.seed = whole_number("seed", seed, at_least=0)
        self.max_pending = whole_number("max_pending", max_pending, at_least=1)
        self.requests = 0
        self.pending: dict[str, NDArray[np.int64]] = {}
        self._name_slates()

    def _name_slates(self) -> None:
        # Rankers with different policies never take each other's slates for their own.
        self._key = stream_key(self.seed, "ranker", self.policy.label, self.k)

    def recommend(
        self, *, candidates: Iterable[ItemId] | None = None, exclude: Iterable[ItemId] = ()
    ) -> Slate:
        """The slate to show now: the best k of the catalog, or of `candidates`, and none of `exclude`.

        It is shorter than k when fewer items are left, and may be empty. Excluding an item that
        the catalog does not have is no error; a candidate that it never had is.
        """
        excluded = self.catalog.known_rows(exclude)
        asked = None if candidates is None else self.catalog.rows(candidates)
        rows = self.recommend_rows(self._key, self.requests, self.k, asked, excluded)
        slate = Slate(
            id=f"{int(self._key):016x}-{self.requests}",
            items=self._items(rows),
        )
        self.requests += 1
        self.pending[slate.id] = rows
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
        position = None if click is None else self._position(click, len(rows))
        del self.pending[slate_id]
        self.learn_rows(rows, position)

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
        self.follow_catalog()

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
        self.follow_catalog()
        other.follow_catalog()
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
        catalog = Catalog.restored(mine.items, mine.features, mine.hidden | its.hidden)
        state = self.policy.merge(self.state, other.state)
        merged._restore(self.policy, self.numbers, catalog, self.k, state._asdict())
        merged.pending = {**self.pending, **other.pending}
        merged.max_pending = max(self.max_pending, other.max_pending, len(merged.pending))
        merged.requests = 0
        derived = stream_key(self.seed, "merge", self.requests, other.seed, other.requests)
        merged.seed = int(derived) if seed is None else whole_number("seed", seed, at_least=0)
        merged._name_slates()
        return merged

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, slates that wait included; an older file is replaced whole."""
        self.follow_catalog()
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
        policy = policy_class(page["policy"]["name"])(**page["policy"]["settings"])
        numbers = (tuple(value) if isinstance(value, list) else value for value in page["numbers"])
        n_rows = len(page["items"])
        features, hidden = arrays["features"], arrays["hidden"]
        for array, shape, dtype in (
            (features, (n_rows, features.shape[-1]), np.float64),
            (hidden, (n_rows,), np.uint8),
        ):
            if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
                raise ValueError
        catalog = Catalog.restored(page["items"], features if page["has_features"] else None, hidden)
        ranker._restore(
            policy,
            policy.numbers_type(*numbers),
            catalog,
            whole_number("k", page["k"], at_least=1, at_most=n_rows),
            {name.removeprefix("state."): array for name, array in arrays.items()},
        )
        ranker.seed = whole_number("seed", page["seed"], at_least=0)
        ranker.requests = whole_number("requests", page["requests"], at_least=0)
        ranker.max_pending = whole_number("max_pending", page["max_pending"], at_least=1)
        ranker.pending = {slate: np.array(rows, np.int64) for slate, rows in page["pending"]}
        # Kernels do not look whether a row exists.
        if not all(((rows >= 0) & (rows < n_rows)).all() for rows in ranker.pending.values()):
            raise ValueError
        ranker._name_slates()
        return ranker

    def __repr__(self) -> str:
        return f"Ranker({self.policy.label!r}, {len(self.catalog)} items, k={self.k})"
