"""Live use in a program: recommend a slate, hear of the click, learn."""

import os
import secrets
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.catalog.catalog import Catalog, Subset
from firstclick.catalog.features import check_features
from firstclick.catalog.groups import Group, checked_groups
from firstclick.catalog.ids import ItemId, item_ids, new_ids
from firstclick.click_models.click_fit import ClickFit
from firstclick.errors import (
    DuplicateFeedback,
    FirstclickError,
    ForgottenSlate,
    InvalidInput,
    UnknownSlate,
)
from firstclick.files.arrays import read_arrays, write_arrays
from firstclick.not_given import NOT_GIVEN
from firstclick.online.baseline import MAX_LOSS, Baseline, Chosen, check_baseline, decided, reasons
from firstclick.online.engine import PolicyEngine, merged_engine, scale_for
from firstclick.online.explore import Explored, Explorer, check_share
from firstclick.online.feedback import Click, click_bits
from firstclick.online.file import FORMAT, PendingSlate, Saved, from_file, to_file
from firstclick.online.floor import Floor
from firstclick.online.item_counts import check_takes_counts, counts_of, item_counts, learn_counts
from firstclick.online.request import AtMost, read_context, read_request
from firstclick.online.slate_record import Fate, SlateRecord, parts_of
from firstclick.online.warm_start import HeadStart, checked_weight, learn_log
from firstclick.policies.base import Policy, State
from firstclick.registry import DEFAULT_POLICY, make_policy
from firstclick.streams import stream, stream_key
from firstclick.validation.duration import seconds_in
from firstclick.validation.quoting import quoted
from firstclick.validation.whole_number import seed_number, whole_number


@dataclass(frozen=True)
class Slate:
    """The items to show, best first, and the id to give back with the click.

    >>> from firstclick import Catalog, Ranker
    >>> slate = Ranker(Catalog(["tea", "milk"]), k=2, policy="random").recommend(pinned={0: "milk"})
    >>> slate.items
    ('milk', 'tea')
    >>> slate.reasons
    ('pinned', 'policy')

    `len(slate)` and `for item in slate` work too.

    Attributes:
        id: Identifies the slate, and is never given twice. `Ranker.learn` takes it in place of the slate.
        items: The items, best first.
        skipped_pins: Pinned items that are not shown because they are excluded or hidden.
        explored: Whether this slate was drawn uniformly, and its probability in such a draw. None unless the
            ranker explores.
        reasons: Why each item is shown: `policy`, `explored`, `pinned`, or `floor` for the baseline.
        chosen: Whether the policy or the baseline decided, and the probability that it was the policy. None
            without a baseline.
    """

    id: str
    items: tuple[ItemId, ...]
    skipped_pins: tuple[ItemId, ...] = ()
    explored: Explored | None = None
    reasons: tuple[str, ...] = ()
    chosen: Chosen | None = None

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[ItemId]:
        return iter(self.items)


class Ranker:
    """Recommends items from a catalog and learns from clicks.

    >>> ranker = Ranker(Catalog(["tea", "coffee", "cocoa"]), k=2, seed=1)
    >>> slate = ranker.recommend()
    >>> len(slate)
    2
    >>> ranker.learn(slate, click=0)

    With a baseline, the policy starts beside the list that is shown today. A share of slates shows the list
    until clicks prove the policy better. With 95 % confidence, at all times, the expected clicks of all
    slates so far are at least 1 - `max_loss` of what the list would have got.

    >>> ranker = Ranker(Catalog(["tea", "coffee", "cocoa"]), k=2, seed=1, baseline=["cocoa", "tea"])
    >>> slate = ranker.recommend()
    >>> slate.items, slate.reasons
    (('cocoa', 'tea'), ('floor', 'floor'))

    `cascade-mixed` takes features in any units. For other policies the ranker scales features as the service
    does: it divides them by the longest row norm and adds a constant.

    A ranker is safe to use from several threads. Several rankers may share a catalog and all see its changes;
    then only one thread at a time may change it.

    Args:
        catalog: The items to recommend from.
        k: The length of a slate.
        policy: A policy, or its description such as `"cascade-ts"`; `cascade-mixed` by default.
        seed: Decides what is explored; drawn at random by default. Rankers to be merged need different seeds.
        max_pending: How many slates may wait for feedback. Beyond that the oldest is forgotten.
        explore: Share of slates drawn uniformly among all items that may be shown, from 0 to 1. Log
            `slate.explored`, and the log can be used to evaluate any other policy.
        baseline: The list that is shown today, best first.
        max_loss: The largest share of the baseline's clicks that may be lost; 0.05 by default. Needs a
            baseline.

    Raises:
        InvalidInput: `k` is larger than the catalog, or the policy needs features and the catalog has none.
        UnknownName: No policy has this name.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        k: int,
        policy: Policy | str | None = None,
        seed: int | None = None,
        max_pending: int = 10_000,
        explore: float = 0.0,
        baseline: Iterable[ItemId] | None = None,
        max_loss: float | None = None,
    ) -> None:
        if not isinstance(catalog, Catalog):
            raise InvalidInput(f"must be a Catalog(items, features), got {quoted(catalog)}", "catalog")
        k = whole_number("k", k, at_least=1, at_most=len(catalog), because=", the items there are")
        chosen = make_policy(DEFAULT_POLICY if policy is None else policy)
        features = catalog.features
        scale = scale_for(chosen, features, k) if chosen.needs_features and features is not None else None
        try:
            engine = PolicyEngine(chosen, catalog, k=k, scale=scale)
        except InvalidInput as error:
            if chosen.unit_features and catalog.encoder is not None:
                raise InvalidInput(f"{error}; read the catalog with unscaled=True") from None
            raise
        seed = secrets.randbits(32) if seed is None else seed_number(seed)
        max_pending = whole_number("max_pending", max_pending, at_least=1)
        # Not of the label: that follows from the defaults of the day.
        key = stream_key(seed, "ranker", chosen.name, k)
        share = check_share(explore, chosen)
        listed = None
        if baseline is not None:
            items, rows = check_baseline(baseline, catalog, k, chosen)
            listed = Baseline(key, items, rows, Floor(MAX_LOSS if max_loss is None else max_loss))
        elif max_loss is not None:
            raise InvalidInput("goes with a baseline, which is missing", "max_loss")
        origins = frozenset({int(key)})
        self._go_on_from(
            Saved(engine, seed, key, origins, max_pending, {}, {}, explore=share, baseline=listed)
        )

    def _go_on_from(self, saved: Saved) -> None:
        self._engine, self.seed, self._key, self._origins = saved[:4]
        self.max_pending, self.pending = saved.max_pending, saved.pending
        # Of this ranker and of those that it was merged from.
        self._records = dict(saved.records)
        self._records.setdefault(int(self._key), SlateRecord())
        self._warm_starts, self.requests = saved.warm_starts, saved.requests
        self._explorer = Explorer.of(self._key, saved.explore)
        self._baseline, self._out = saved.baseline, saved.out
        self._expired = {**saved.expired}
        self._lock = threading.RLock()
        self._begin_run()

    @property
    def policy(self) -> Policy:
        """The policy, with its parameters."""
        return self._engine.policy

    @property
    def catalog(self) -> Catalog:
        """The catalog that items come from."""
        return self._engine.catalog

    @property
    def k(self) -> int:
        """The length of a slate."""
        return self._engine.k

    @property
    def explore(self) -> float:
        """The share of slates that are drawn uniformly."""
        return self._explorer.share

    @property
    def baseline(self) -> tuple[ItemId, ...]:
        """The list that is shown today; empty without a baseline."""
        return () if self._baseline is None else self._baseline.items

    @property
    def floor(self) -> Floor | None:
        """The guarantee for the baseline's clicks and where it stands; None without a baseline."""
        return None if self._baseline is None else self._baseline.floor

    def set_baseline(self, items: Iterable[ItemId] | None, max_loss: float = MAX_LOSS) -> None:
        """Change or remove the baseline.

        A new list starts the guarantee over. A new `max_loss` for the same list keeps the history.

        Args:
            items: The list that is shown today, best first; None to remove the baseline.
            max_loss: The largest share of the baseline's clicks that may be lost; 0.05 by default.
        """
        with self._lock:
            if items is None:
                self._baseline = None
                return
            ids, rows = check_baseline(items, self.catalog, self.k, self.policy)
            if self._baseline is not None and self._baseline.items == tuple(ids):
                floor = self._baseline.floor = Floor(max_loss, array=self._baseline.floor.array)
                # What a slate takes of the room depends on max_loss.
                waiting = [slate.chosen for slate in self.pending.values() if slate.chosen is not None]
                self._out = sum(floor.taken(chosen.share) for chosen in waiting)
                return
            self._baseline, self._out = Baseline(self._key, ids, rows, Floor(max_loss)), 0.0
            # Slates of the old list say nothing of the new one.
            self.pending = {id: slate._replace(chosen=None) for id, slate in self.pending.items()}

    def _no_longer_out(self, slate: PendingSlate) -> None:
        if slate.chosen is not None and self._baseline is not None:
            left = self._out - self._baseline.floor.taken(slate.chosen.share)
            self._out = max(left, 0.0) if self.pending else 0.0

    @property
    def state(self) -> State:
        """What the policy has learned: a NamedTuple of arrays. Each policy has its own type."""
        return self._engine.state

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

    def _records_until_now(self) -> dict[int, SlateRecord]:
        records = {key: record.copy() for key, record in self._records.items()}
        records.setdefault(int(self._key), SlateRecord()).count(self._run, self.requests)
        return records

    def _end_run(self) -> None:
        self._records = self._records_until_now()
        self._begin_run()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy is a run of its own."""
        self.__dict__.update(state, _lock=threading.RLock())
        self._end_run()

    def recommend(
        self,
        *,
        k: int | None = None,
        candidates: Iterable[ItemId] | Subset | None = None,
        exclude: Iterable[ItemId] | Subset = (),
        pinned: Mapping[int, ItemId] | None = None,
        context: ArrayLike | None = None,
        features: ArrayLike | None = None,
        at_most: AtMost | None = None,
    ) -> Slate:
        """Choose the slate to show now.

        >>> ranker = Ranker(Catalog(["tea", "coffee", "cocoa"]), k=2, seed=1)
        >>> ranker.recommend(exclude=["tea"], pinned={0: "cocoa"}).items
        ('cocoa', 'coffee')

        The slate waits for its feedback: call `learn` with it. It is shorter than `k` if too few items are
        left, and may be empty.

        Args:
            k: The length of this slate, at most that of the ranker.
            candidates: Choose among these items only; by default among all. `catalog.subset(ids)` saves the
                lookup.
            exclude: Never show these items. Items that the catalog does not have are ignored.
            pinned: Items with a fixed position, such as `{0: "tea"}`. A pinned item that is excluded or
                hidden is not shown; `slate.skipped_pins` names it.
            context: Numbers that describe the user, for policies that use them.
            features: One row per candidate, used in place of the catalog's features now and when the slate is
                learned.
            at_most: How many items of a group the slate may have: one number for every group, or `{group:
                number}`.

        Returns:
            The slate, best item first.

        Raises:
            InvalidInput: The request breaks a rule, or the policy would learn wrongly from it.
            UnknownName: A candidate was never in the catalog.
        """
        with self._lock:
            asked = read_request(
                self._engine, k=k, candidates=candidates, exclude=exclude, pinned=pinned, context=context,
                at_most=at_most, features=features,
            )  # fmt: skip
            number, listed = self.requests, self._baseline
            (rows, _, own, explored), chosen = decided(
                self._engine, self._key, number, asked, scored=False, explorer=self._explorer,
                baseline=listed,
                chosen=None if listed is None else listed.choose(number, out=self._out),
            )  # fmt: skip
            slate_id = f"{int(self._key):016x}-{self._current_run()}-{number}"
            uniformly = explored is not None and explored.drawn
            why = reasons(rows.tolist(), asked.rows.pinned.values(), chosen, uniformly)
            slate = Slate(slate_id, self._items(rows), asked.skipped_pins, explored, why, chosen)
            self.requests += 1
            self.pending[slate.id] = PendingSlate(rows, asked.kernel.context, own, time.time(), chosen)
            if chosen is not None and listed is not None:
                self._out += listed.floor.taken(chosen.share)
            if len(self.pending) > self.max_pending:
                self._forget(next(iter(self.pending)))
            return slate

    def _forget(self, slate_id: str) -> None:
        self._no_longer_out(self.pending.pop(slate_id))
        parts = parts_of(slate_id)
        if parts is not None and parts[0] in self._records:
            self._records[parts[0]].forget(parts[2])

    def _items(self, rows: NDArray[np.int64]) -> tuple[ItemId, ...]:
        items = self._engine.catalog.items
        return tuple([items[row] for row in rows.tolist()])

    def learn(
        self,
        slate: Slate | str,
        *,
        click: Click = NOT_GIVEN,
        clicks: Iterable[SupportsIndex] | None = None,
        examined: SupportsIndex | None = None,
    ) -> None:
        """Learn from the feedback for a slate. Give either `click` or `clicks`.

        >>> ranker = Ranker(Catalog(["tea", "coffee", "cocoa"]), k=2, seed=1)
        >>> ranker.learn(ranker.recommend(), click=1)  # the second item was clicked first
        >>> ranker.learn(ranker.recommend(), click=None)  # nothing was clicked

        A slate is learned once. There is one exception: a click may replace the "no click" that `expire`
        learned, if `policy.corrects`.

        Args:
            slate: A slate from `recommend`, or its id.
            click: The position that was clicked first, from 0; None if nothing was clicked.
            clicks: All positions that were clicked, in any order.
            examined: How many positions from the top the user looked at, if the page knows. If not, the
                policy's click model decides. A cascade uses everything up to the first click.

        Raises:
            DuplicateFeedback: The slate was learned already.
            ForgottenSlate: The slate had to make room for newer ones; see `max_pending`.
            UnknownSlate: This ranker did not show the slate.
            InvalidInput: The feedback does not fit the slate. Nothing is learned.
        """
        slate_id = slate.id if isinstance(slate, Slate) else slate
        if not isinstance(slate_id, str):
            raise InvalidInput(f"must be a slate from recommend, or its id, got {quoted(slate)}", "slate")
        with self._lock:
            waiting = self.pending.get(slate_id)
            shown = self._expired.get(slate_id) if waiting is None else waiting.rows
            if shown is None:
                raise self._not_waiting(slate_id)
            if isinstance(slate, Slate) and slate.items != self._items(shown):
                raise UnknownSlate(
                    f"{slate_id!r} has other items than this ranker recommended, {self._items(shown)}",
                    "slate",
                )
            if waiting is None:
                self._correct(slate_id, click, clicks, examined)
                return
            rows, context, features, _, chosen = waiting
            wants_all = self.policy.wants_all_clicks
            clicked, seen = click_bits(len(rows), click, clicks, examined, wants_all=wants_all)
            del self.pending[slate_id]
            self._no_longer_out(waiting)
            self._engine.learn_rows(rows, clicked, seen, context=context, features=features)
            if chosen is not None and self._baseline is not None:
                any_click = bool(clicked.any())
                self._baseline.floor.observe(chosen.share, by_policy=chosen.by_policy, clicked=any_click)

    def expire(self, older_than: float | timedelta | str) -> int:
        """Learn "no click" for slates that have waited too long.

        Call this now and then if your pages report clicks only. A policy that learns from clicks alone takes
        every item for attractive.

        >>> ranker = Ranker(Catalog(["tea", "coffee", "cocoa"]), k=2, seed=1)
        >>> slate = ranker.recommend()
        >>> ranker.expire(older_than="30m")
        0
        >>> ranker.expire(older_than=0)
        1
        >>> ranker.learn(slate, click=1)  # a late click replaces the "no click"

        Args:
            older_than: The age from which a slate expires: seconds, a timedelta, or a text such as `"30m"`.

        Returns:
            How many slates expired.
        """
        seconds = seconds_in(older_than, "older_than")
        if seconds < 0:
            raise InvalidInput(f"must not be negative, got {quoted(older_than)}", "older_than")
        with self._lock:
            before = time.time() - seconds
            late = {id: slate for id, slate in self.pending.items() if slate.made <= before}
            for slate_id, slate in late.items():
                self.learn(slate_id, click=None)
                # What a request's own features taught was weighed by what was known then.
                if self.policy.corrects and not len(slate.features):
                    self._expired[slate_id] = slate.rows
            for oldest in list(self._expired)[: -self.max_pending]:
                del self._expired[oldest]
            return len(late)

    def _correct(
        self,
        slate_id: str,
        click: Click,
        clicks: Iterable[SupportsIndex] | None,
        examined: SupportsIndex | None,
    ) -> None:
        """Learn a click in the place of none."""
        rows = self._expired[slate_id]
        wants_all = self.policy.wants_all_clicks
        clicked, seen = click_bits(len(rows), click, clicks, examined, wants_all=wants_all)
        if not clicked.any():
            raise self._not_waiting(slate_id)
        del self._expired[slate_id]
        self._engine.unlearn_rows(rows)
        self._engine.learn_rows(rows, clicked, seen)

    def _not_waiting(self, slate_id: str) -> InvalidInput:
        """The error for a slate that is not waiting."""
        problem = f"{quoted(slate_id)} is not waiting for feedback: "
        parts = parts_of(slate_id)
        if parts is None or parts[0] not in self._origins:
            return UnknownSlate(f"{problem}this ranker did not recommend it", "slate")
        key, run, number = parts
        self._current_run()
        fate = self._records_until_now()[key].fate(run, number)
        if fate is Fate.LEARNED:
            return DuplicateFeedback(f"{problem}it was learned already", "slate")
        if fate is Fate.FORGOTTEN:
            return ForgottenSlate(
                f"{problem}it was forgotten (the last {self.max_pending} are kept); to keep more, set "
                "`max_pending`",
                "slate",
            )
        if fate is Fate.TOO_OLD:
            return ForgottenSlate(
                f"{problem}it is too old to know whether it was learned or forgotten (the last "
                f"{self.max_pending} are kept)",
                "slate",
            )
        if key != int(self._key):
            return UnknownSlate(
                f"{problem}it was recommended after the merge by another ranker, from which this one was "
                "merged; report its click to that ranker",
                "slate",
            )
        return UnknownSlate(
            f"{problem}it was recommended after the file of this ranker was saved, or by a copy of this "
            "ranker; its items are not known here, and its click cannot be learned",
            "slate",
        )

    def warm_start(self, log: Iterable[Mapping[str, Any]] | ClickFit, *, weight: float | None = None) -> int:
        """Learn from slates that another system has shown, as a head start.

        >>> ranker = Ranker(Catalog(["tea", "coffee", "cocoa"]), k=2, seed=1)
        >>> log = [{"items": ["cocoa", "tea"], "click": 0}, {"items": ["tea", "cocoa"], "click": None}]
        >>> ranker.warm_start(log)
        2

        The default policy keeps the log apart from live clicks, and finds out from live clicks how much the
        log is worth. Other policies count each observation `weight` times. A policy that cannot merge
        (`policy.mergeable`) takes a log only before it has learned anything.

        A slate is cut before its first item that the catalog never had, and after `k` items. If a line is
        wrong, the error names it and nothing is learned.

        Args:
            log: Dicts with `items`, and `click` or `clicks` (positions from 0). Each may also have
                `examined`, `context` and `features`. `map(json.loads, open("log.jsonl"))` reads what
                `firstclick log` wrote; slates that were rolled back, and lines of other kinds, are skipped. A
                fitted click model works too, for the default policy and policies that count: it gives looks
                and clicks corrected for position.
            weight: How much an observation counts, above 0 and at most 1; 1 by default. Lower it for other
                users or an old log. For the default policy it is an upper limit: leave it out. Linear
                policies that can merge and policies that count take any weight, others only 1.

        Returns:
            How many slates were used; with a click model, how many items.

        Raises:
            InvalidInput: A line of the log is wrong, or the policy takes no log.
        """
        share = checked_weight(weight, self.policy)
        with self._lock:
            draw = stream(int(self._key), "warm start", self._warm_starts)
            self._warm_starts += 1
            start = HeadStart(self._engine, share, draw)
            if isinstance(log, ClickFit):
                check_takes_counts(start)
                counts = item_counts(self._engine.catalog, counts_of(log))
                learn_counts(start, counts)
                return len(counts.rows)
            used = learn_log(start.past, log)
            start.finish()
            return used

    def estimates(
        self, items: Iterable[ItemId], *, context: ArrayLike | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The estimated attraction of items, and its standard deviation.

        >>> ranker = Ranker(Catalog(["tea", "coffee", "cocoa"]), k=2, policy="cascade-ts", seed=1)
        >>> means, deviations = ranker.estimates(["tea", "cocoa"])
        >>> means.tolist()
        [0.5, 0.5]

        Args:
            items: Ids, a slate or a subset.
            context: Numbers that describe the user; all 0 by default, for policies that use a context.

        Returns:
            Two arrays with one number per item; NaN if the policy has no estimates.
        """
        with self._lock:
            rows = np.array(self.catalog.rows_of(item_ids(items)), np.int64)
            known = None if context is None else read_context(self.policy, context)
            return self._engine.estimates(rows, known)

    def add_items(
        self,
        items: Iterable[ItemId],
        features: ArrayLike | None = None,
        *,
        groups: Iterable[Group | None] | None = None,
    ) -> None:
        """Add items to the catalog. What was learned stays.

        Args:
            items: Ids that are not in the catalog now.
            features: One row per item, required if the catalog has features. `None` as a row: the item is
                cold, see `Catalog`.
            groups: The group of each item; none by default.

        Raises:
            InvalidInput: An item is in the catalog already, its features do not fit, or the policy takes no
                new items.
        """
        with self._lock:
            engine, catalog = self._engine, self.catalog
            engine.check_growable()
            if features is not None and catalog.encoder is not None:
                engine.encoded(features, new_ids(items := list(items)))
            elif features is not None and catalog.n_features is not None:
                rows, _ = catalog.completed(features)
                engine.in_scale(rows, len(rows))
            catalog.add(items, features, groups=groups)
            engine.follow_catalog()

    def change_items(
        self,
        items: Iterable[ItemId],
        features: Any = None,
        *,
        groups: Iterable[Group | None] | None = None,
    ) -> None:
        """Change the features or groups of items. Withdrawn items come back, and what was learned stays.

        Args:
            items: Ids that the catalog has had.
            features: One row per item. In a catalog read from a table, a row may be a dict of some columns:
                `{"price": 9.5}`. By default features stay.
            groups: The group of each item, `None` for no group. By default groups stay.

        Raises:
            UnknownName: The catalog never had an item.
            InvalidInput: The features do not fit, or the policy cannot take new features for known items.
        """
        with self._lock:
            engine, catalog = self._engine, self.catalog
            ids = new_ids(items)
            catalog.rows_of(ids)  # Refuses those that it never had.
            named = None if groups is None else checked_groups(groups, len(ids))
            if features is not None:
                if catalog.n_features is None:
                    raise InvalidInput("must be left out, because the catalog has none", "features")
                if not self.policy.growable:
                    raise InvalidInput(
                        f"cannot be changed: {self.policy.label} takes no other features for items that it "
                        "has; start a new ranker",
                        "features",
                    )
                if catalog.encoder is None:
                    rows = check_features(features, len(ids))
                    engine.in_scale(rows, len(ids))  # Refuses what the policy does not take.
                else:
                    values = catalog.values_with(ids, features)
                    rows, _ = catalog.encoder.encode(values)
                    engine.in_scale(rows, len(ids))
                    catalog.values.update(zip(ids, values, strict=True))
                engine.change_features(ids, rows)
            if named is not None:
                catalog.regroup(ids, named)
            catalog.show_again(ids)

    def withdraw_items(self, items: Iterable[ItemId]) -> None:
        """Take items out of the catalog. Slates that show them can still be learned.

        Args:
            items: Ids of items that are in the catalog.

        Raises:
            UnknownName: An item is not in the catalog.
        """
        with self._lock:
            self.catalog.withdraw(items)

    def set_available(self, items: Iterable[ItemId], available: bool) -> None:
        """Mark items as in stock or sold out, until it is set again.

        Args:
            items: Ids that the catalog has had.
            available: Whether these items may be shown.

        Raises:
            UnknownName: The catalog never had an item.
        """
        with self._lock:
            self.catalog.set_available(items, available)

    def merge(self, other: "Ranker", *, seed: int | None = None) -> "Ranker":
        """Build a new ranker that knows what both have learned from different slates.

        Both need the same policy, `k` and catalog, row by row, and different seeds. Rankers loaded from the
        same file cannot be merged: what they share would count twice. Slates that wait in either ranker wait
        in the new one. It takes this ranker's baseline, and the baseline's guarantee starts over.

        Args:
            other: The other ranker.
            seed: The seed of the new ranker; derived from both by default.

        Raises:
            InvalidInput: The rankers do not fit together, share a seed, or share what they learned.
        """
        if not isinstance(other, Ranker):
            raise InvalidInput(f"must be a ranker, got {quoted(other)}", "other")
        # Always in the same order: two threads that merge both ways must not wait for each other.
        first, second = sorted((self, other), key=id)
        with first._lock, second._lock:
            return self._merged(other, seed)

    def _merged(self, other: "Ranker", seed: int | None) -> "Ranker":
        if self.seed == other.seed:
            raise InvalidInput(
                f"must have another seed than this ranker, got {self.seed} for both: copies of one ranker "
                "would count twice what they share; start each ranker with its own seed",
                "other",
            )
        if self._origins & other._origins:
            raise InvalidInput(
                "must not share slates with this ranker, because they would count twice; merge rankers that "
                "have learned from different slates",
                "other",
            )
        pending = {**self.pending, **other.pending}
        derived = int(stream_key(self.seed, "merge", self.requests, other.seed, other.requests))
        new_seed = derived if seed is None else seed_number(seed)
        engine = merged_engine(self._engine, other._engine)
        key = stream_key(new_seed, "ranker", self.policy.name, self.k)
        if int(key) in self._origins | other._origins:
            raise InvalidInput(
                f"must be a new one, or the same would be explored again, got {new_seed}", "seed"
            )
        origins = self._origins | other._origins | {int(key)}
        most = max(self.max_pending, other.max_pending, len(pending))
        records = self._records_until_now() | other._records_until_now()
        expired = {**self._expired, **other._expired}
        # The floor of either says nothing of the slates of the other.
        pending = {id: slate._replace(chosen=None) for id, slate in pending.items()}
        listed = None
        if self._baseline is not None:
            rows, floor = engine.catalog.rows_of([*self.baseline]), Floor(self._baseline.floor.max_loss)
            listed = Baseline(key, self.baseline, rows, floor)
        saved = Saved(
            engine, new_seed, key, origins, most, pending, records, explore=self.explore, baseline=listed,
            expired=expired,
        )  # fmt: skip
        return Ranker._restored(saved)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, including slates that wait for feedback.

        An older file is replaced as a whole and keeps its permissions. A symbolic link stays a link.

        Args:
            path: The file to write.
        """
        with self._lock:
            self._engine.follow_catalog()
            self._current_run()
            saved = Saved(
                self._engine, self.seed, self._key, self._origins, self.max_pending, self.pending,
                self._records_until_now(), warm_starts=self._warm_starts, requests=self.requests,
                explore=self.explore, baseline=self._baseline, out=self._out, expired=self._expired,
            )  # fmt: skip
            write_arrays(path, *to_file(saved))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Ranker":
        """Read a ranker that `save` wrote. It continues exactly as the saved one would have.

        Args:
            path: The file.

        Raises:
            InvalidInput: The file is damaged, or is not a ranker.
        """
        page, arrays = read_arrays(path, FORMAT)
        try:
            return cls._restored(from_file(page, arrays))
        except FirstclickError as error:
            raise error.within(str(path)) from None
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError):
            raise InvalidInput(f"{path}: damaged, or not written by this version of firstclick") from None

    @classmethod
    def _restored(cls, saved: Saved) -> "Ranker":
        """The ranker that goes on from there."""
        ranker = cls.__new__(cls)
        ranker._go_on_from(saved)
        return ranker

    def __repr__(self) -> str:
        return f"Ranker({self.policy.label!r}, {len(self.catalog)} items, k={self.k})"
