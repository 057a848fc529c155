"""Live use in a program: recommend a slate, hear of the click, learn."""

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from types import EllipsisType
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.catalog.catalog import Catalog
from firstclick.catalog.groups import Group, caps_by_group
from firstclick.catalog.ids import ItemId
from firstclick.errors import FirstclickError, InvalidInput
from firstclick.files.arrays import read_arrays, write_arrays
from firstclick.kernels.arrays import NO_LIMITS
from firstclick.online.engine import LivePolicy
from firstclick.online.feedback import told
from firstclick.online.file import FORMATS, Resting, from_file, to_file
from firstclick.online.pending import Waiting
from firstclick.online.random_key import new_key
from firstclick.online.warm_start import learn_log
from firstclick.policies.base import Policy
from firstclick.streams import stream, stream_key
from firstclick.validation.quoting import quoted
from firstclick.validation.whole_number import seed_number, whole_number

# A file remembers so many runs: then a late click is told why it comes too late, and no more than that.
MOST_RUNS = 50


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

    The seed decides what is explored; rankers that will be merged need seeds of their own. No id of a slate
    is ever given twice, not even by a ranker that was loaded from an older file.
    """

    def __init__(
        self, policy: Policy | str, catalog: Catalog, *, k: int, seed: int = 0, max_pending: int = 10_000
    ) -> None:
        if not isinstance(catalog, Catalog):
            raise InvalidInput(f"a ranker needs a Catalog(items, features), got {quoted(catalog)}")
        whole_number("k", k, at_least=1, at_most=len(catalog), because=", the items there are")
        super().__init__(policy, catalog, k=k)
        self.seed = seed_number(seed)
        self.max_pending = whole_number("max_pending", max_pending, at_least=1)
        self.pending: dict[str, Waiting] = {}
        self._key = new_key("ranker", self.seed, self.policy, self.k)
        self._origins = frozenset({int(self._key)})
        self._runs: dict[str, int] = {}
        self._warm_starts = self.requests = 0
        self._begin_run()

    def _begin_run(self) -> None:
        """Give slates ids that no other run gives.

        A file that is loaded twice, or after more slates were shown, counts the same numbers again; so does a
        copy, or a process that was forked.
        """
        self._run, self._process = secrets.token_hex(8), os.getpid()

    def _current_run(self) -> str:
        if self._process != os.getpid():
            self._end_run()
        return self._run

    def _end_run(self) -> None:
        self._runs = _latest(self._runs | {self._run: self.requests})
        self._begin_run()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy is a run of its own."""
        self.__dict__.update(state)
        self._end_run()

    def recommend(
        self,
        *,
        candidates: Iterable[ItemId] | None = None,
        exclude: Iterable[ItemId] = (),
        context: ArrayLike | None = None,
        features: ArrayLike | None = None,
        at_most: int | Mapping[Any, int] | None = None,
    ) -> Slate:
        """The slate to show now: the best k of the catalog, or of `candidates`, and none of `exclude`.

        It is shorter than k when fewer items are left, and may be empty. Excluding an item that
        the catalog does not have is no error; a candidate that it never had is.

        `context` is what is known of the user, for learners that want it. `features`, one row for each of the
        candidates, stand in for those of the catalog, now and when the slate is learned. `at_most` is how
        many items of a group the slate may have: one number for every group, or {group: number}.
        """
        excluded = self.catalog.known_rows(exclude)
        asked, own = self._asked(candidates, features)
        caps = None
        if at_most is not None:
            groups = self.catalog.group_of
            caps = groups, caps_by_group(self.catalog.group_names, at_most, len(groups))
        wish = self.request(asked, excluded, context=context, features=own, caps=caps)
        if asked is not None and not len(asked):
            rows = np.empty(0, np.int64)  # To a kernel no candidates are all of them.
        else:
            ((rows, _),) = self.recommend_many(self._key, [self.requests], self.k, wish, scored=False)
        slate = Slate(
            id=f"{int(self._key):016x}-{self._current_run()}-{self.requests}", items=self._items(rows)
        )
        self.requests += 1
        shown = NO_LIMITS.features
        if asked is not None and own is not None:
            place = {row: place for place, row in enumerate(asked.tolist())}
            shown = own[np.array([place[row] for row in rows.tolist()], np.int64)]
        self.pending[slate.id] = Waiting(rows, wish.context, shown)
        if len(self.pending) > self.max_pending:
            del self.pending[next(iter(self.pending))]
        return slate

    def _asked(
        self, candidates: Iterable[ItemId] | None, features: ArrayLike | None
    ) -> tuple[NDArray[np.int64] | None, NDArray[np.float64] | None]:
        """The rows of the candidates that are shown, and the features that come with the request."""
        if features is None:
            return (None if candidates is None else self.catalog.rows(candidates)), None
        if candidates is None:
            raise InvalidInput("features come with candidates, one row for each, and none were given")
        if not self.policy.takes_features:
            raise InvalidInput(f"{self.policy.label} takes no features with a request")
        # A text is left as it is, for the catalog to refuse.
        items = candidates if isinstance(candidates, str) else list(candidates)
        rows = self.catalog.rows(items)
        if not items:
            return rows, None
        own = self.own_features(features, len(items))
        every = [self.catalog.row_of(item) for item in items]
        if len(set(every)) < len(every):
            raise InvalidInput("with features of their own, candidates must be given once each")
        shown = set(rows.tolist())
        return rows, own[np.array([row in shown for row in every])]

    def _items(self, rows: NDArray[np.int64]) -> tuple[ItemId, ...]:
        return tuple(self.catalog.items[row] for row in rows)

    def learn(
        self,
        slate: Slate | str,
        *,
        click: SupportsIndex | EllipsisType | None = ...,
        clicks: Iterable[SupportsIndex] | None = None,
        examined: SupportsIndex | None = None,
    ) -> None:
        """Learn which position of the slate was clicked first, from 0, or None for no click at all: `click`.
        Or all that were, in any order: `clicks`.

        `examined` is how many positions from the top the user looked at, if the page knows. If not, the
        learner's click model decides: one of a cascade takes nothing but the first click, a dependent-click
        one all up to the last, one of clicks by position all, or of the first click alone all up to that.

        A slate is learned once: a second time, or feedback that cannot be, is refused and changes nothing.
        """
        slate_id = slate.id if isinstance(slate, Slate) else slate
        if not isinstance(slate_id, str):
            raise InvalidInput(f"learn takes a slate that recommend gave, or its id, got {quoted(slate)}")
        waiting = self.pending.get(slate_id)
        if waiting is None:
            why = self._why_not(slate_id)
            raise InvalidInput(f"slate {quoted(slate_id)} is not waiting for feedback: {why}")
        rows, context, features = waiting
        if isinstance(slate, Slate) and slate.items != self._items(rows):
            raise InvalidInput(f"slate {slate_id!r} is not of this ranker, which showed {self._items(rows)}")
        clicked, seen = told(len(rows), click, clicks, examined, wants_all=self.policy.wants_all_clicks)
        del self.pending[slate_id]
        self.learn_rows(rows, clicked, seen, context=context, features=features)

    def _why_not(self, slate_id: str) -> str:
        """Why a slate that is not waiting is not."""
        key, _, rest = slate_id.partition("-")
        run, _, number = rest.rpartition("-")  # Older versions gave no run.
        gone = f"it was learned already, or was forgotten (the last {self.max_pending} are kept)"
        if key not in {f"{origin:016x}" for origin in self._origins} or not number.isdecimal():
            return "it is not of this ranker"
        if key != f"{int(self._key):016x}":
            return f"of a ranker that this one was merged from, {gone}, or was shown after the merge"
        known = {**self._runs, self._current_run(): self.requests}
        if int(number[:20]) < known.get(run, 0):
            return gone
        return (
            "it was shown after the file was saved that this ranker was loaded from, or by a copy of this "
            "ranker; what it showed is not known here, and its click cannot be learned"
        )

    def warm_start(self, log: Iterable[Mapping[str, Any]], *, weight: float = 1.0) -> int:
        """Learn from slates that somebody else has shown, as a prior; how many were used.

        A slate is a mapping with `items`, and `click` or `clicks`; it may have `examined`, and what the
        request brought: `context`, and `features` of its items, which are those of now if there are none.
        `map(json.loads, open("log.jsonl"))` will do for a whole log that `firstclick log` wrote: what was
        rolled back does not count (so that lines with a `seq` are held until it ends), and other kinds of
        lines are passed over. Only what was examined counts. A slate ends before its first item that the
        catalog never had, and after k items: what lies below is not used.

        Each observation counts `weight`, above 0 and at most 1: less for other users, or for long ago. Linear
        learners that can merge take any weight. Those with CountPolicy do too, and keep whole counts, which
        are drawn so that they are right on the average. Others take 1 alone.
        What is known already stays known; a learner that cannot merge must not know anything yet. A line that
        cannot be understood is named, and nothing is learned.
        """
        given: object = weight
        if isinstance(given, bool) or not isinstance(given, Real) or not 0 < weight <= 1:
            raise InvalidInput(f"weight must be a number above 0 and at most 1, got {quoted(weight)}")
        if not self.policy.learns_from_others:
            raise InvalidInput(
                f"{self.policy.label} learns from slates that it has shuffled itself and takes no log; "
                "take another learner, or start without one"
            )
        self.follow_catalog()
        blank = self._blank_state()
        weight = float(weight)
        draw = stream(int(self._key), "warm start", self._warm_starts)
        self._warm_starts += 1
        self.policy.tempered(blank, weight, draw)  # Refuses before a long log is read.
        nothing_known = all(np.array_equal(a, b) for a, b in zip(self.state, blank, strict=True))
        if not (nothing_known or self.policy.mergeable):
            raise InvalidInput(
                f"{self.policy.label} cannot merge a log with what it has learned; warm_start a new ranker"
            )
        past = LivePolicy.restored(self.policy, self.numbers, self.catalog, self.k, blank._asdict())
        used = learn_log(past, log)
        state = self.policy.tempered(past.state, weight, draw)
        self.state = state if nothing_known else self.policy.merge(self.state, state)
        return used

    def add_items(
        self,
        items: Iterable[ItemId],
        features: ArrayLike | None = None,
        *,
        groups: Iterable[Group | None] | None = None,
    ) -> None:
        """Add items to the catalog; learners without features rank unseen items by their own rule.

        Items without features among others that have some are cold: see `Catalog`.
        """
        self.check_growable()
        if features is not None:
            self.policy.admit(self.numbers, self.catalog.completed(features)[0])
        self.catalog.add(items, features, groups=groups)
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
            raise InvalidInput(f"a ranker can be merged with a ranker, got {quoted(other)}")
        if self.seed == other.seed:
            raise InvalidInput(
                f"both rankers have seed {self.seed}: copies of one ranker would count twice what they "
                "share; start each ranker with its own seed"
            )
        if self._origins & other._origins:
            raise InvalidInput(
                "both rankers know what one ranker has learned, because one was merged from it: that would "
                "be counted twice; merge rankers that have learned from different slates"
            )
        if not self.policy.mergeable:
            way_out = (
                "give one ranker both logs in turn, by warm_start"
                if self.policy.learns_from_others
                else "let one ranker show all slates"
            )
            raise InvalidInput(f"{self.policy.label} cannot merge: order matters to it; {way_out}")
        mine, its = self.catalog, other.catalog
        self.follow_catalog()
        other.follow_catalog()
        if self.policy != other.policy or self.k != other.k:
            raise InvalidInput(
                f"only rankers of one policy and k can be merged, got {self.policy.label} with k={self.k} "
                f"and {other.policy.label} with k={other.k}"
            )
        if (
            mine.items != its.items
            or mine.groups != its.groups
            or not np.array_equal(mine.arrays.features, its.arrays.features)
        ):
            raise InvalidInput(
                "only rankers of one catalog can be merged: the same items, features and groups, in the same "
                "order"
            )
        if self.numbers != other.numbers:
            raise InvalidInput(
                f"{self.policy.label}: the rankers started with different features, so that they scale them "
                f"differently, got {self.numbers} and {other.numbers}"
            )
        catalog = Catalog.restored(
            mine.items,
            mine.features,
            mine.hidden | its.hidden,
            cold_rows=mine.cold_rows,
            groups=mine.groups,
        )
        pending = {**self.pending, **other.pending}
        derived = int(stream_key(self.seed, "merge", self.requests, other.seed, other.requests))
        new_seed = derived if seed is None else seed_number(seed)
        key = new_key("ranker", new_seed, self.policy, self.k)
        if int(key) in self._origins | other._origins:
            raise InvalidInput(f"seed must be a new one, or the same would be explored again, got {new_seed}")
        merged = Resting(
            self.policy,
            self.numbers,
            catalog,
            self.k,
            self.policy.merge(self.state, other.state)._asdict(),
            key=key,
            origins=self._origins | other._origins | {int(key)},
            runs={},
            warm_starts=0,
            seed=new_seed,
            requests=0,
            max_pending=max(self.max_pending, other.max_pending, len(pending)),
            pending=pending,
        )
        return Ranker._awake(merged)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, slates that wait included; an older file is replaced whole.

        It keeps its permissions, and a symbolic link stays one.
        """
        self.follow_catalog()
        resting = Resting(
            self.policy,
            self.numbers,
            self.catalog,
            self.k,
            self.state._asdict(),
            key=self._key,
            origins=self._origins,
            runs=_latest(self._runs | {self._current_run(): self.requests}),
            warm_starts=self._warm_starts,
            seed=self.seed,
            requests=self.requests,
            max_pending=self.max_pending,
            pending=self.pending,
        )
        write_arrays(path, *to_file(resting))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Ranker":
        """A ranker that goes on exactly as the saved one would have."""
        page, arrays = read_arrays(path, *FORMATS)
        try:
            return cls._awake(from_file(page, arrays))
        except FirstclickError as error:
            raise error.within(str(path)) from None
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError):
            raise InvalidInput(f"{path}: damaged, or not written by this version of firstclick") from None

    @classmethod
    def _awake(cls, resting: Resting) -> "Ranker":
        """The ranker that goes on from there."""
        ranker = cls.__new__(cls)
        ranker._restore(resting.policy, resting.numbers, resting.catalog, resting.k, resting.state)
        ranker.seed, ranker._key, ranker._origins = resting.seed, resting.key, resting.origins
        ranker.max_pending, ranker.pending = resting.max_pending, resting.pending
        ranker._runs, ranker._warm_starts, ranker.requests = (
            resting.runs, resting.warm_starts, resting.requests,
        )  # fmt: skip
        ranker._begin_run()
        return ranker

    def __repr__(self) -> str:
        return f"Ranker({self.policy.label!r}, {len(self.catalog)} items, k={self.k})"


def _latest(runs: dict[str, int]) -> dict[str, int]:
    return dict(list(runs.items())[-MOST_RUNS:])
