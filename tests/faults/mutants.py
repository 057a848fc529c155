"""Servers broken on purpose, to see that the tests can tell; and faults that a right server must bear.

Each changes the classes of the process it is called in: a fork that is thrown away.
"""

import hashlib
import itertools
import os
import sqlite3
import time
from contextlib import contextmanager

from firstclick.kernels.mixed import STAGE
from firstclick.online.engine import PolicyEngine
from firstclick.serve.log.events import Kind
from firstclick.serve.log.history import Mark
from firstclick.serve.log.snapshot import read_snapshot
from firstclick.serve.log.token import new_nonce
from firstclick.serve.maintenance import Maintenance
from firstclick.serve.model import feedback as feedback_module
from firstclick.serve.model import model as model_module
from firstclick.serve.model import trial as trial_module
from firstclick.serve.model.catalog_state import CatalogState
from firstclick.serve.model.open_slates import OpenSlates
from firstclick.serve.model.trial import Trial
from firstclick.serve.service import Service
from firstclick.serve.store import schema
from firstclick.serve.store.sqlite import SqliteStore
from firstclick.serve.store.sqlite_file import SqliteFile
from firstclick.serve.store.store import Appended, Store
from firstclick.serve.trial_arms import copies
from firstclick.serve.writer import Writer, _Waiting
from firstclick.wire.errors import Refused, Unavailable

# All that follow, by name: a call breaks the process.
ALL = {}


def replaces(owner, name):
    """Enter a mutant that replaces this attribute by what the function makes of it."""

    def enter(mutant):
        ALL[mutant.__name__] = lambda: setattr(owner, name, mutant(getattr(owner, name)))
        return mutant

    return enter


# Mutants: what a server must not do.


def _places(batch):
    """Where these events will stand, if all goes well."""
    next_seq = {}
    return [
        [
            Appended(next(next_seq.setdefault(model.id, itertools.count(model.seq + 1))), True, event.payload)
            for model, event in waiting.events
        ]
        for waiting in batch
    ]


@replaces(Writer, "_commit")
def acknowledge_before_commit(commit):
    def mutant(self, batch):
        for waiting, places in zip(batch, _places(batch), strict=True):
            waiting.done(places)
        time.sleep(0.02)  # The answers are on their way.
        commit(self, [_Waiting(waiting.events, lambda appended: None) for waiting in batch])

    return mutant


@replaces(Writer, "_commit")
def apply_before_commit(commit):
    def mutant(self, batch):
        for waiting, places in zip(batch, _places(batch), strict=True):
            self._learn(waiting.events, places)
        commit(self, batch)

    return mutant


@replaces(SqliteStore, "_insert")
def no_unique_index(insert):
    schema.SQLITE_TABLES[:] = [
        statement.replace("CREATE UNIQUE INDEX event_nonce", "CREATE INDEX event_nonce")
        for statement in schema.SQLITE_TABLES
    ]

    def mutant(self, connection, rows):
        connection.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        return True

    return mutant


@replaces(model_module, "write_snapshot")
def snapshot_off_by_one(write):
    return lambda page, arrays: write(page | {"seq": page["seq"] - 1}, arrays)


@replaces(model_module, "write_snapshot")
def snapshot_without_the_refit(write):
    def mutant(page, arrays):
        if "refit" in arrays:
            refit = arrays["refit"].copy()
            refit[STAGE] = 0
            arrays = arrays | {"refit": refit}
        return write(page, arrays)

    return mutant


@replaces(Writer, "_append")
def retry_with_a_new_nonce(append):
    def mutant(self, batch, folded):
        try:
            return self._store.append(batch, folded)
        except Unavailable:
            now = int(time.time() * 1000)
            again = [(id, event._replace(nonce=new_nonce(now))) for id, event in batch]
            return self._store.append(again, folded)

    return mutant


@replaces(Writer, "_commit")
def accepted_although_it_failed(commit):
    def mutant(self, batch):
        def hopeful(waiting, places):
            return lambda told: waiting.done(places if isinstance(told, Refused) else told)

        commit(
            self,
            [
                _Waiting(waiting.events, hopeful(waiting, places))
                for waiting, places in zip(batch, _places(batch), strict=True)
            ],
        )

    return mutant


@replaces(CatalogState, "apply")
def rollback_leaves_new_items_on_show(apply):
    def mutant(self, event, *others):
        if event.kind != Kind.ROLLED_BACK:
            apply(self, event, *others)

    return mutant


@replaces(Service, "roll_back")
def rollback_deletes_events(roll_back):
    def mutant(self, name, seq):
        model = self.model(name)
        with self.store._file.transaction() as connection:
            connection.execute("DELETE FROM event WHERE model = ? AND seq > ?", (model.id, seq))
            connection.execute("UPDATE model SET head = ? WHERE id = ?", (seq, model.id))
            connection.execute("DELETE FROM snapshot WHERE model = ? AND seq > ?", (model.id, seq))
        (stored,) = (stored for stored in self.store.models() if stored.id == model.id)
        model.refuse_appends()
        self.models.start_again(stored)
        return seq

    return mutant


@replaces(model_module, "read_snapshot")
def snapshot_believed_unseen(read):
    return lambda content: read(content[:-32] + hashlib.sha256(content[:-32]).digest())


@replaces(Service, "change_items")
def two_halves_of_a_request(change):
    def mutant(self, name, *, put=(), withdraw=()):
        if not put or not withdraw:
            return change(self, name, put=put, withdraw=withdraw)
        change(self, name, put=put)
        time.sleep(0.02)
        return change(self, name, withdraw=withdraw)

    return mutant


@replaces(feedback_module, "says_the_same")
def conflict_told_as_duplicate(says_the_same):
    return lambda payload, other: True


@replaces(OpenSlates, "due")
def given_up_with_a_new_nonce(due):
    def mutant(self, issued_before_ms, most):
        late = due(self, issued_before_ms, most)
        self.answered(*(slate.nonce for slate in late))
        return [slate._replace(nonce=new_nonce(slate.issued_ms)) for slate in late]

    return mutant


@replaces(PolicyEngine, "unlearn_rows")
def corrected_without_taking_back(unlearn_rows):
    return lambda self, rows: None


@replaces(feedback_module, "nonce_of_correction")
def corrected_as_often_as_asked(nonce_of_correction):
    return lambda nonce: new_nonce(int(time.time() * 1000))


@replaces(Service, "write_with_copies")
def copies_in_a_second_commit(write_with_copies):
    def mutant(self, events, done):
        copied = [pair for model, event in events for pair in copies(self.models.all(), model, event)]

        def then(appended):
            self._write(copied, lambda told: None)
            done(appended)

        self._write(events, then if copied else done)

    return mutant


@replaces(Trial, "count")
def a_page_counts_twice(count):
    def mutant(self, *page, **more):
        count(self, *page, **more)
        count(self, *page, **more)

    return mutant


@replaces(trial_module, "bucket_of")
def units_are_hashed_by_each_process(bucket_of):
    return lambda unit, key: bucket_of(f"{os.getpid()} {unit}", key)


@replaces(Store, "events_after")
def poll_not_inclusive(events_after):
    return lambda self, model, last, upto: (self._chunk(model, last.seq, upto)[0], last)


@replaces(Maintenance, "_follow")
def poll_sees_only_the_head(follow):
    """What has as many events as before is taken for the same."""

    def mutant(self, stored, last, model, before, now):
        follow(self, stored, before if stored.head == before.seq else last, model, before, now)

    return mutant


@replaces(Store, "append")
def append_does_not_compare(append):
    return lambda self, batch, *folded: append(self, batch)


@replaces(Store, "marks")
def snapshot_not_checked(marks):
    """Any event will do, if there is one."""

    def mutant(self, model, first, last):
        found = marks(self, model, first, last)
        for seq, content in self.snapshots(model):
            if seq in found:
                page, _ = read_snapshot(content)
                nonce, link = bytes.fromhex(page["nonce"]), bytes.fromhex(page["link"])
                found[seq] = Mark(seq, nonce, page["received"], link)
        return found

    return mutant


@replaces(Mark, "same")
def links_are_not_compared(same):
    """The last event alone: seq, nonce, time and, by the nonce, what it says."""
    return lambda self, other: other is not None and self[:3] == other[:3]


# Faults: what a server must bear.

EVERY = 5


@replaces(SqliteStore, "append")
def appending_fails(append):
    """Every so often nothing can be written."""
    calls = itertools.count(1)

    def faulty(self, *given):
        if next(calls) % EVERY == 0:
            raise Unavailable("no room, for once")
        return append(self, *given)

    return faulty


@replaces(SqliteStore, "append")
def answer_of_append_is_lost(append):
    """Every so often something was written, and the connection broke; as PostgreSQL does."""
    calls = itertools.count(1)
    SqliteStore.shared = True

    def faulty(self, *given):
        answers = append(self, *given)
        if next(calls) % EVERY == 0:
            raise Unavailable("the connection was lost while it committed")
        return answers

    return faulty


def _fsync_fails(transaction, after, *, written):
    commits = itertools.count(1)

    @contextmanager
    def faulty(self):
        with transaction(self) as connection:
            yield connection
            if next(commits) == after:
                if written:
                    connection.execute("COMMIT")
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
                error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
                raise error

    return faulty


@replaces(SqliteFile, "_usable")
def read_only_while_a_file_says_so(usable):
    """SQLite's own word for a disk that was mounted read-only, while `read-only` lies beside the store."""

    def faulty(self):
        connection = usable(self)
        connection.execute(f"PRAGMA query_only = {self.path.with_name('read-only').exists():d}")
        return connection

    return faulty


@replaces(SqliteFile, "transaction")
def fsync_fails_and_it_is_written(transaction):
    return _fsync_fails(transaction, 30, written=True)


@replaces(SqliteFile, "transaction")
def fsync_fails_and_it_is_lost(transaction):
    return _fsync_fails(transaction, 30, written=False)
