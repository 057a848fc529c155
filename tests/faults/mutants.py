"""Servers broken on purpose, to see that the tests can tell; and faults that a right server must bear.

Each is a function that changes the classes of the process it is called in: a fork that is thrown away.
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


def acknowledge_before_commit():
    commit = Writer._commit

    def mutant(self, batch):
        for waiting, places in zip(batch, _places(batch), strict=True):
            waiting.done(places)
        time.sleep(0.02)  # The answers are on their way.
        commit(self, [_Waiting(waiting.events, lambda appended: None) for waiting in batch])

    Writer._commit = mutant


def apply_before_commit():
    commit = Writer._commit

    def mutant(self, batch):
        for waiting, places in zip(batch, _places(batch), strict=True):
            self._learn(waiting.events, places)
        commit(self, batch)

    Writer._commit = mutant


def no_unique_index():
    schema.SQLITE_TABLES[:] = [
        statement.replace("CREATE UNIQUE INDEX event_nonce", "CREATE INDEX event_nonce")
        for statement in schema.SQLITE_TABLES
    ]

    def insert(self, connection, rows):
        connection.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        return True

    SqliteStore._insert = insert


def snapshot_off_by_one():
    write = model_module.write_snapshot

    def mutant(page, arrays):
        return write(page | {"seq": page["seq"] - 1}, arrays)

    model_module.write_snapshot = mutant


def snapshot_without_the_refit():
    write = model_module.write_snapshot

    def mutant(page, arrays):
        if "refit" in arrays:
            refit = arrays["refit"].copy()
            refit[STAGE] = 0
            arrays = arrays | {"refit": refit}
        return write(page, arrays)

    model_module.write_snapshot = mutant


def retry_with_a_new_nonce():
    def mutant(self, batch, folded):
        try:
            return self._store.append(batch, folded)
        except Unavailable:
            now = int(time.time() * 1000)
            again = [(id, event._replace(nonce=new_nonce(now))) for id, event in batch]
            return self._store.append(again, folded)

    Writer._append = mutant


def accepted_although_it_failed():
    commit = Writer._commit

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

    Writer._commit = mutant


def rollback_leaves_new_items_on_show():
    apply = CatalogState.apply

    def mutant(self, event, *others):
        if event.kind != Kind.ROLLED_BACK:
            apply(self, event, *others)

    CatalogState.apply = mutant


def rollback_deletes_events():
    def mutant(self, name, seq):
        model = self.model(name)
        assert isinstance(self.store, SqliteStore)
        with self.store._file.transaction() as connection:
            connection.execute("DELETE FROM event WHERE model = ? AND seq > ?", (model.id, seq))
            connection.execute("UPDATE model SET head = ? WHERE id = ?", (seq, model.id))
            connection.execute("DELETE FROM snapshot WHERE model = ? AND seq > ?", (model.id, seq))
        (stored,) = (stored for stored in self.store.models() if stored.id == model.id)
        model.refuse_appends()
        self.models.start_again(stored)
        return seq

    Service.roll_back = mutant


def snapshot_believed_unseen():
    read = model_module.read_snapshot

    def mutant(content):
        return read(content[:-32] + hashlib.sha256(content[:-32]).digest())

    model_module.read_snapshot = mutant


def two_halves_of_a_request():
    change = Service.change_items

    def mutant(self, name, *, put=(), withdraw=()):
        if not put or not withdraw:
            return change(self, name, put=put, withdraw=withdraw)
        change(self, name, put=put)
        time.sleep(0.02)
        return change(self, name, withdraw=withdraw)

    Service.change_items = mutant


def conflict_told_as_duplicate():
    feedback_module.says_the_same = lambda payload, other: True


def given_up_with_a_new_nonce():
    due = OpenSlates.due

    def mutant(self, issued_before_ms, most):
        late = due(self, issued_before_ms, most)
        self.answered(*(slate.nonce for slate in late))
        return [slate._replace(nonce=new_nonce(slate.issued_ms)) for slate in late]

    OpenSlates.due = mutant


def corrected_without_taking_back():
    PolicyEngine.unlearn_rows = lambda self, rows: None


def corrected_as_often_as_asked():
    feedback_module.nonce_of_correction = lambda nonce: new_nonce(int(time.time() * 1000))


def copies_in_a_second_commit():
    def mutant(self, events, done):
        copied = [pair for model, event in events for pair in copies(self.models.all(), model, event)]

        def then(appended):
            self._write(copied, lambda told: None)
            done(appended)

        self._write(events, then if copied else done)

    Service.write_with_copies = mutant


def a_page_counts_twice():
    count = Trial.count

    def mutant(self, *page, **more):
        count(self, *page, **more)
        count(self, *page, **more)

    Trial.count = mutant


def units_are_hashed_by_each_process():
    bucket_of = trial_module.bucket_of
    trial_module.bucket_of = lambda unit, key: bucket_of(f"{os.getpid()} {unit}", key)


def poll_not_inclusive():
    def mutant(self, model, last, upto):
        return self._chunk(model, last.seq, upto)[0], last

    Store.events_after = mutant


def poll_sees_only_the_head():
    """What has as many events as before is taken for the same."""
    follow = Maintenance._follow

    def mutant(self, stored, last, model, before, now):
        follow(self, stored, before if stored.head == before.seq else last, model, before, now)

    Maintenance._follow = mutant


def append_does_not_compare():
    append = Store.append

    def mutant(self, batch, folded={}):  # noqa: B006
        return append(self, batch)

    Store.append = mutant


def snapshot_not_checked():
    """Any event will do, if there is one."""
    marks = Store.marks

    def mutant(self, model, first, last):
        found = marks(self, model, first, last)
        for seq, content in self.snapshots(model):
            if seq in found:
                page, _ = read_snapshot(content)
                nonce, link = bytes.fromhex(page["nonce"]), bytes.fromhex(page["link"])
                found[seq] = Mark(seq, nonce, page["received"], link)
        return found

    Store.marks = mutant


def links_are_not_compared():
    """The last event alone: seq, nonce, time and, by the nonce, what it says."""
    Mark.same = lambda self, other: other is not None and self[:3] == other[:3]


# Faults: what a server must bear.

EVERY = 5


def appending_fails():
    """Every so often nothing can be written."""
    append, calls = SqliteStore.append, itertools.count(1)

    def faulty(self, *given):
        if next(calls) % EVERY == 0:
            raise Unavailable("no room, for once")
        return append(self, *given)

    SqliteStore.append = faulty


def answer_of_append_is_lost():
    """Every so often something was written, and the connection broke; as PostgreSQL does."""
    append, calls = SqliteStore.append, itertools.count(1)
    SqliteStore.shared = True

    def faulty(self, *given):
        answers = append(self, *given)
        if next(calls) % EVERY == 0:
            raise Unavailable("the connection was lost while it committed")
        return answers

    SqliteStore.append = faulty


def _fsync_fails(after, *, written):
    transaction, commits = SqliteFile.transaction, itertools.count(1)

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

    SqliteFile.transaction = faulty


def read_only_while_a_file_says_so():
    """SQLite's own word for a disk that was mounted read-only, while `read-only` lies beside the store."""
    usable = SqliteFile._usable

    def faulty(self):
        connection = usable(self)
        connection.execute(f"PRAGMA query_only = {self.path.with_name('read-only').exists():d}")
        return connection

    SqliteFile._usable = faulty


def fsync_fails_and_it_is_written():
    _fsync_fails(30, written=True)


def fsync_fails_and_it_is_lost():
    _fsync_fails(30, written=False)


ALL = {
    made.__name__: made
    for made in (
        acknowledge_before_commit,
        apply_before_commit,
        no_unique_index,
        snapshot_off_by_one,
        snapshot_without_the_refit,
        retry_with_a_new_nonce,
        accepted_although_it_failed,
        rollback_leaves_new_items_on_show,
        rollback_deletes_events,
        snapshot_believed_unseen,
        two_halves_of_a_request,
        conflict_told_as_duplicate,
        given_up_with_a_new_nonce,
        corrected_without_taking_back,
        corrected_as_often_as_asked,
        copies_in_a_second_commit,
        a_page_counts_twice,
        units_are_hashed_by_each_process,
        poll_not_inclusive,
        poll_sees_only_the_head,
        append_does_not_compare,
        snapshot_not_checked,
        links_are_not_compared,
        appending_fails,
        answer_of_append_is_lost,
        read_only_while_a_file_says_so,
        fsync_fails_and_it_is_written,
        fsync_fails_and_it_is_lost,
    )
}
