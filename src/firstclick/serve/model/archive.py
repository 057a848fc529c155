"""Events of a log moved to a file; the fold begins at what the model knew after them.

A kill at any step loses nothing: the file is written and on the disk, then read back and folded, then the
base is set in one transaction, and only then events are removed, piece by piece. What a kill leaves of them
is below the base, where nobody looks, and the next sweep removes it.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from firstclick.errors import InvalidInput, WorkFailed
from firstclick.files.progress import Progress, silent
from firstclick.files.reading import reading
from firstclick.files.writing import write_whole
from firstclick.serve.log.events import Correction, Event, Kind, issued_ms, unpacked
from firstclick.serve.log.history import Mark
from firstclick.serve.log.model_file import ModelFile, model_file
from firstclick.serve.model.model import Model
from firstclick.serve.model.replay import catch_up, changes_in, created_in, recover
from firstclick.serve.store.crash_points import step
from firstclick.serve.store.store import Base, Store, StoredModel, refuse_lost_rollbacks

DAY = 86_400


class ArchivedLog:
    """A model's log with the files that the beginning of it was archived in: a `Log`, as a store is one."""

    def __init__(self, store: Store, stored: StoredModel, files: Sequence[ModelFile]) -> None:
        """The files in any order; InvalidInput if they and the store do not follow one another."""
        self._store = store
        self._stored = stored
        self._files = sorted(files, key=lambda file: file.first)
        following = self._files[0].first
        for file in self._files:
            if file.name != stored.name:
                raise InvalidInput(f"an archive is of model {file.name!r}, and not of {stored.name!r}")
            if file.first != following:
                raise InvalidInput(
                    f"one archive ends with event {following - 1}, the next begins with event {file.first}; "
                    "name each file once, and those between too"
                )
            following = file.last + 1
        base = store.bases().get(stored.id)
        # A file that is just being made goes further than the base.
        if base is not None and following < base.seq:
            raise InvalidInput(
                f"the archive ends with event {following - 1}, and the store goes on with event {base.seq}; "
                f"name the file that ends with event {base.seq - 1} too"
            )
        first = self._files[0]
        begins = next(first.events(0, 1), None) if first.first == 1 else None
        if begins is not None and begins[0] != self._creation()[0]:
            raise InvalidInput(f"the archive is of another model that was called {stored.name!r}")

    def events(
        self, model: int, after: int, upto: int | None = None, *, feedback: bool = True
    ) -> Iterator[list[Event]]:
        """As `Store.events`."""
        upto = self._stored.head if upto is None else upto
        if after < 1 and self._files[0].first > 1:
            yield self._creation()
        for file in self._files:
            if file.last > after and file.first <= upto:
                yield from file.events(after, upto, feedback=feedback)
        yield from self._store.events(model, max(after, self._files[-1].last), upto, feedback=feedback)

    def snapshots(self, model: int) -> list[tuple[int, bytes]]:
        """As `Store.snapshots`."""
        return self._store.snapshots(model)

    def marks(self, model: int, first: int, last: int) -> dict[int, Mark]:
        """As `Store.marks`: of events that are in the store."""
        return self._store.marks(model, first, last)

    def events_at(self, model: int, seqs: Sequence[int]) -> list[Event]:
        """As `Store.events_at`; they should be near one another."""
        wanted = set(seqs)
        near = self.events(model, min(wanted) - 1, max(wanted)) if wanted else ()
        return [event for events in near for event in events if event.seq in wanted]

    def base(self, model: int) -> Base | None:
        """Where the first file begins, if that is not the creation."""
        first = self._files[0]
        return Base(first.first, 0, first.base) if first.first > 1 else None

    def _creation(self) -> list[Event]:
        return next(self._store.events(self._stored.id, 0, 1))


@contextmanager
def opened_archives(paths: Sequence[Path]) -> Iterator[list[ModelFile]]:
    """The files, looked at; Malformed if one was cut off or changed."""
    with ExitStack() as stack:
        files = []
        for path in paths:
            with reading(path):
                files.append(ModelFile(stack.enter_context(path.open("rb"))))
        yield files


class Archived(NamedTuple):
    """What was archived."""

    first: int
    last: int
    digest: str  # of what the model knew after the first event that stays


def archive(
    store: Store,
    stored: StoredModel,
    before: int,
    out: Path,
    *,
    token_days: float,
    progress: Progress = silent,
) -> Archived:
    """Move the events below `before`, but for the creation, to a file.

    InvalidInput or Conflict if that cannot be done: nothing was changed then.
    """
    while store.remove_archived():
        pass  # What an earlier run was killed over.
    old = store.base(stored.id)
    first = old.seq if old is not None else 1
    lowest = max(2, first) + 1
    if not lowest <= before <= stored.head:
        raise InvalidInput(
            f"--before must be a number from {lowest} to {stored.head}, the last event, got "
            f"{before}" + (f"; events 2 to {first - 1} are archived already" if old is not None else "")
        )
    refuse_lost_rollbacks(changes_in(store, stored, before), before)
    newest = old.issued if old is not None else 0
    too_young = (time.time() - token_days * DAY) * 1000

    def to_archive() -> Iterator[list[Event]]:
        nonlocal newest
        for events in store.events(stored.id, first - 1, before - 1):
            for event in events:
                issued = issued_ms(event.payload) if event.kind == Kind.FEEDBACK else 0
                if event.kind == Kind.CORRECTION:
                    issued = issued_ms(unpacked(event, Correction).feedback)
                if issued > too_young:
                    raise InvalidInput(
                        f"the slate of event {event.seq} was recommended {_days_since(issued):.3g} days ago, "
                        f"and its token is good for {token_days:g} days: it could come again, and would be "
                        "counted twice; "
                        + (f"archive before event {event.seq}" if event.seq > lowest else "wait until then")
                    )
                newest = max(newest, issued)
            progress(events[-1].seq, before)
            yield events

    # From the log alone, without snapshots: it is the last time that this can be done without the file.
    model: Model | None = None

    def digest() -> str:
        nonlocal model
        model = recover(store, stored._replace(head=before - 1), use_snapshots=False, progress=progress)
        return model.digest()

    kept = old.content if old is not None else b""
    write_whole(out, model_file(stored.name, to_archive(), digest, first=first, base=kept))
    step("after archive file")
    assert model is not None
    catch_up(store, model, before)
    wanted = model.digest()
    _, content = model.snapshot()
    with opened_archives([out]) as files:
        both = ArchivedLog(store, stored, files)
        again = recover(both, stored._replace(head=before), use_snapshots=False, progress=progress)
    restored = Model.restored(stored.id, stored.name, content, created_in(store, stored), any_code=True)
    if {again.digest(), restored.digest()} != {wanted}:
        raise WorkFailed(f"{out} does not come to what the log comes to; nothing was removed from the store")
    store.set_base(stored.id, Base(before, newest, content), first)
    while store.remove_archived():
        pass
    return Archived(first, before - 1, wanted)


def _days_since(issued: int) -> float:
    return (time.time() - issued / 1000) / DAY
