"""The log of a model as a ranked log: what was shown, in a store, an exported file or archives."""

import struct
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.ids import ItemId
from firstclick.errors import InvalidInput, UnknownName
from firstclick.files.progress import Progress, silent
from firstclick.files.reading import as_path, reading
from firstclick.files.table import LINES_NAMED, Skipped
from firstclick.logs.ranked_log import NO_ITEM, NOT_TOLD, RankedLog, SlateBatch
from firstclick.serve.log.drawn import read_drawn
from firstclick.serve.log.events import (
    Correction,
    Created,
    Event,
    FeedbackEvent,
    Kind,
    Recommended,
    read_feedback,
    time_out_of,
    unpacked,
)
from firstclick.serve.log.history import Mark
from firstclick.serve.log.model_file import ModelFile
from firstclick.serve.model.archive import ArchivedLog, opened_archives
from firstclick.serve.model.catalog_state import CatalogState
from firstclick.serve.model.replay import Log, changes_in, created_in
from firstclick.serve.store import open_store
from firstclick.serve.store.store import Base, StoredModel

TIMED_OUT = ("no-click", "not-reported")
UNREADABLE = "that cannot be read"
# The policy that draws every slate uniformly.
RANDOM = "random"
# Slates in a batch.
BATCH = 20_000


class _Looked(NamedTuple):
    """What is known of a log after it was walked through once."""

    slates: int
    k: int
    timed_out: int
    issued: int  # slates recommended since the log counts them


class OwnLog(RankedLog):
    """The slates of a model that were answered, or given up.

    A correction stands in the place of the time-out that it corrects. Slates that a rollback has taken back
    were shown and clicked all the same: they are here. `numbers` are those of the events. Probabilities are
    there where the log alone tells them, because every slate was drawn uniformly. `firstclick evaluate
    propensities` has the rest.
    """

    has_fold = True

    def __init__(
        self,
        log: Log,
        stored: StoredModel,
        resources: ExitStack,
        *,
        timed_out: str = "no-click",
        progress: Progress = silent,
    ) -> None:
        """`resources` are closed with it, and where it is refused."""
        self._closed = weakref.finalize(self, resources.close)
        if timed_out not in TIMED_OUT:
            raise InvalidInput(f"must be one of {', '.join(TIMED_OUT)}, got {timed_out!r}", "timed_out")
        self.log, self.stored, self.name = log, stored, stored.name
        self._time_out_is_no_click = timed_out == "no-click"
        self.created: Created = created_in(log, stored)
        base = log.base(stored.id)
        self._begins = 1 if base is None else base.seq
        catalog = CatalogState.after(
            self.created, lambda: changes_in(log, stored, self._begins), base.content if base else b""
        ).catalog
        self.items: Sequence[ItemId] = list(dict.fromkeys(catalog.items))
        place = {item: code for code, item in enumerate(self.items)}
        # An item that got other features has a row for each.
        self._code_of_row = np.array([place[item] for item in catalog.items], np.int32)
        self._corrections: dict[int, bytes] = {}
        counts: list[Recommended] = []
        for event in changes_in(log, stored, self._begins):
            if event.kind == Kind.CORRECTION:
                correction = unpacked(event, Correction)
                self._corrections[correction.seq] = correction.feedback
            elif event.kind == Kind.RECOMMENDED:
                counts.append(unpacked(event, Recommended))
        looked = self._look(min((one.since for one in counts), default=np.inf), progress)
        if not looked.slates:
            raise InvalidInput(f"model {stored.name!r} has no slate with a reported outcome yet")
        self.k, self.timed_out = looked.k, looked.timed_out
        recommended = sum(sum(one.slates.values()) for one in counts)
        self.unreported = max(0, recommended - looked.issued)
        self.notes = self._told(bool(counts), base)

    def close(self) -> None:
        """Close the store or the files; a log that is forgotten is closed as well."""
        self._closed()

    def has_events_of(self, log: Log, stored: StoredModel) -> bool:
        """Whether both logs begin with the same events: they are one, or one is a copy of the other."""
        ends = [self.stored.head, stored.head, self.created.n_copied, created_in(log, stored).n_copied]
        last = min(end for end in ends if end)
        mine, its = self.log.events_at(self.stored.id, [last]), log.events_at(stored.id, [last])
        if not mine or not its:  # archived
            return self.name == stored.name
        return mine[0].nonce == its[0].nonce

    def _told(self, counted: bool, base: Base | None) -> tuple[str, ...]:
        notes = []
        if base is not None:
            notes.append(
                f"the log begins at event {base.seq:,}: what came before is archived; name the file by "
                "`archive`"
            )
        if self.timed_out:
            taken = "no click" if self._time_out_is_no_click else "not reported"
            notes.append(f"{self.timed_out:,} slates that nobody reported in time are taken as {taken}")
        if self._corrections:
            notes.append(f"{len(self._corrections):,} late clicks stand in the place of their time-out")
        if not counted:
            notes.append("the log does not say how many slates were recommended and never reported")
        return tuple(notes)

    def _look(self, counted_since: float, progress: Progress) -> _Looked:
        slates = k = given_up = issued = 0
        for event in self._feedback(progress):
            try:
                said = read_feedback(self._corrections.get(event.seq, event.payload))
            except (ValueError, struct.error):
                continue
            slates += 1
            k = max(k, len(said.rows))
            # The log keeps when a slate was recommended in whole milliseconds.
            issued += said.issued >= counted_since - 0.001
            given_up += event.seq not in self._corrections and time_out_of(event.payload) is not None
        return _Looked(slates, k, given_up, issued)

    def _feedback(self, progress: Progress) -> Iterator[Event]:
        for chunk in self.log.events(self.stored.id, max(self._begins - 1, 1), self.stored.head):
            for event in chunk:
                if event.kind == Kind.FEEDBACK:
                    yield event
            progress(chunk[-1].seq, self.stored.head)

    def batches(self, progress: Progress = silent) -> Iterator[SlateBatch]:
        """The slates in the order of their events."""
        unreadable: list[int] = []
        n_unreadable = 0
        pending: list[tuple[Event, FeedbackEvent]] = []
        for event in self._feedback(progress):
            try:
                said = read_feedback(self._corrections.get(event.seq, event.payload))
                if not said.rows or max(said.rows) >= len(self._code_of_row):
                    raise ValueError("no rows of this catalog")
            except (ValueError, struct.error):
                n_unreadable += 1
                unreadable += [event.seq] if len(unreadable) < LINES_NAMED else []
                continue
            pending.append((event, said))
            if len(pending) == BATCH:
                yield self._batch(pending)
                pending = []
        if pending:
            yield self._batch(pending)
        if n_unreadable:
            self.skipped = (Skipped(UNREADABLE, n_unreadable, tuple(unreadable), "event"),)

    def _batch(self, slates: list[tuple[Event, FeedbackEvent]]) -> SlateBatch:
        n = len(slates)
        lengths = np.array([len(said.rows) for _, said in slates])
        rows = np.fromiter(chain.from_iterable(said.rows for _, said in slates), np.int64, lengths.sum())
        items = np.full((n, self.k), NO_ITEM, np.int32)
        items[np.arange(self.k) < lengths[:, None]] = self._code_of_row[rows]
        clicks = np.zeros((n, self.k), np.uint8)
        for row, (_, said) in enumerate(slates):
            if said.clicks:
                clicks[row, list(said.clicks)] = 1
        examined = np.array(
            [NOT_TOLD if said.examined is None else said.examined for _, said in slates], np.int32
        )
        reported = np.ones(n, np.bool_)
        if not self._time_out_is_no_click:
            for row, (event, _) in enumerate(slates):
                reported[row] = event.seq in self._corrections or time_out_of(event.payload) is None
        return SlateBatch(
            items,
            clicks,
            examined,
            reported,
            np.array([event.seq for event, _ in slates], np.int64),
            propensities=self._propensities(slates),
            times=np.array([said.issued for _, said in slates]),
            drawn_from=np.array([_drawn_from(said) for _, said in slates], np.int64),
        )

    def _propensities(self, slates: list[tuple[Event, FeedbackEvent]]) -> NDArray[np.float64] | None:
        found = np.full((len(slates), self.k), np.nan)
        for row, (event, said) in enumerate(slates):
            chances = self._uniform(event, said)
            if chances:
                found[row] = [*chances, *(chances[-1],) * (self.k - len(chances))]
        return None if np.isnan(found).all() else found

    def _uniform(self, event: Event, said: FeedbackEvent) -> list[float]:
        """The probabilities of the prefixes of a slate that could only be drawn uniformly; else none."""
        try:
            drawn = read_drawn(said.fields)
        except (LookupError, ValueError, struct.error):
            return []
        if drawn is None or drawn.explore is None or drawn.assigned is not None or drawn.chosen is not None:
            return []
        of_random = self.created.policy == RANDOM and event.seq > self.created.n_copied
        chances = drawn.explore.propensities() if drawn.explore.share == 1 or of_random else []
        return chances if len(chances) == len(said.rows) else []


def _drawn_from(said: FeedbackEvent) -> int:
    """The event after which a slate was drawn, or NOT_TOLD."""
    try:
        drawn = read_drawn(said.fields)
    except (LookupError, ValueError, struct.error):
        return NOT_TOLD
    return NOT_TOLD if drawn is None else drawn.seq


class _FileLog:
    """An exported model as a `Log`."""

    def __init__(self, file: ModelFile) -> None:
        self._file = file

    def events(
        self, model: int, after: int, upto: int | None = None, *, feedback: bool = True
    ) -> Iterator[list[Event]]:
        """As `Store.events`."""
        return self._file.events(after, upto, feedback=feedback)

    def snapshots(self, model: int) -> list[tuple[int, bytes]]:
        """None: a file has only events."""
        return []

    def base(self, model: int) -> Base | None:
        """None: the creation is in the file."""
        return None

    def marks(self, model: int, first: int, last: int) -> dict[int, Mark]:
        """None: a file has no snapshots to compare with them."""
        return {}

    def events_at(self, model: int, seqs: Sequence[int]) -> list[Event]:
        """As `Store.events_at`; they should be near one another."""
        wanted = set(seqs)
        near = self._file.events(min(wanted) - 1, max(wanted)) if wanted else ()
        return [event for events in near for event in events if event.seq in wanted]


def models_in_store(store: str) -> list[str]:
    """The names of the models in a store."""
    with open_store(store, read_only=True) as there:
        return [stored.name for stored in there.models()]


def log_in_store(
    store: str,
    model: str,
    *,
    archives: Sequence[Path] = (),
    timed_out: str = "no-click",
    progress: Progress = silent,
) -> OwnLog:
    """The log of a model in a store: an SQLite file, or postgresql://...; works beside a running server.

    What was archived is read too, from its files. `timed_out` says what slates are that nobody reported in
    time: "no-click", as the model has learned them, or "not-reported".
    """
    if "://" not in store and not Path(store.removeprefix("sqlite:")).exists():
        raise InvalidInput(f"no store {store}")
    with ExitStack() as stack:
        there = stack.enter_context(open_store(store, read_only=True))
        models = {stored.name: stored for stored in there.models()}
        if model not in models:
            raise UnknownName(f"no model {model!r} in {store}; there are: {', '.join(models) or 'none'}")
        stored = models[model]
        log: Log = there
        if archives:
            log = ArchivedLog(there, stored, stack.enter_context(opened_archives(list(archives))))
        return OwnLog(log, stored, stack.pop_all(), timed_out=timed_out, progress=progress)


def log_in_model_file(
    path: str | Path, *, timed_out: str = "no-click", progress: Progress = silent
) -> OwnLog:
    """The log of a model in a file that `firstclick export` wrote."""
    path = as_path(path)
    with ExitStack() as stack:
        with reading(path):
            file = ModelFile(stack.enter_context(path.open("rb")))
        if file.first > 1:
            raise InvalidInput(
                f"{path.name} is an archive that begins with event {file.first:,} of {file.name!r}; name its "
                f"store and the model, and the file by `archive`"
            )
        stored = StoredModel(1, file.name, file.last)
        return OwnLog(_FileLog(file), stored, stack.pop_all(), timed_out=timed_out, progress=progress)
