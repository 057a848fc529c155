"""A SQLite file that one process writes: its lock, its connections, and its errors in words.

One connection writes and checkpoints, under a lock; readers have connections of their own that cannot write.
So the race of SQLite before 3.51.3, in which two connections reset the write-ahead log at once and damage the
file, cannot come up here. Checkpoints are run by us and not by a COMMIT, because SQLite does not tell when an
fsync fails in one of its own.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import lock_descriptor

from firstclick.errors import FirstclickError, InvalidInput
from firstclick.serve.log.tuning import Tuning
from firstclick.serve.store.crash_points import step
from firstclick.serve.store.schema import SQLITE_TABLES, Schema
from firstclick.wire.errors import StoreBroken, Unavailable

OLDEST_SQLITE = (3, 25, 0)
WAL_BYTES_KEPT = 64_000_000
NETWORK_FILE_SYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "glusterfs", "fuse.sshfs"}


class SqliteFile:
    """The file, open. Any thread may read and write."""

    def __init__(self, path: Path, *, relaxed: bool, read_only: bool, tuning: Tuning) -> None:
        _check_path(path, read_only=read_only)
        self.path = path
        self._tuning = tuning
        # A link and the file it points to are one store, with one lock.
        self._file = path.resolve()
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._broken: str | None = None
        self._pages = 0
        self._writer: sqlite3.Connection | None = None
        self._lock_file: int | None = None
        self.notes: tuple[str, ...] = ()
        try:
            if read_only:
                with closing(self._connect("ro")) as connection:
                    SqliteSchema(str(path), connection).prepare(read_only=True)
            else:
                self._lock_file = self._alone()
                self._open_to_write(relaxed)
                self._places = self._places_now()
                self.notes += _network_note(self._file)
        except BaseException as error:
            self.close()
            if isinstance(error, sqlite3.Error):
                raise in_words(error, path, opening=True) from error
            raise

    def close(self) -> None:
        """Close all connections, then let others have the file."""
        with self._lock:
            self._closed = True
            while self._idle:
                self._idle.pop().close()
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            if self._lock_file is not None:
                os.close(self._lock_file)
                self._lock_file = None

    # -- opening

    def _alone(self) -> int:
        """Hold `<file>.lock`, which the system lets go of however the process ends."""
        name = self._file.with_name(self._file.name + ".lock")
        try:
            file = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise InvalidInput(f"{self.path} cannot be locked: {name.name}: {error.strerror}") from None
        try:
            alone = lock_descriptor(file, blocking=False)
        except OSError:
            self.notes += (f"{self.path} cannot be locked here: see to it that only one service uses it",)
            alone = True
        if not alone:
            holder = os.read(file, 20).decode("ascii", "replace").strip() or "that is starting"
            os.close(file)
            raise InvalidInput(
                f"{self.path} is in use by process {holder}; stop that one, name another file, or use "
                "PostgreSQL for several processes"
            )
        os.ftruncate(file, 0)
        os.write(file, f"{os.getpid()}\n".encode())
        return file

    def _connect(self, mode: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self._file.as_uri()}?mode={mode}",
            uri=True,
            timeout=self._tuning.busy_seconds,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA mmap_size = 0")
        return connection

    def _open_to_write(self, relaxed: bool) -> None:
        if not self._file.exists():
            # Readable by its owner alone: it holds the secrets that tokens are signed with.
            try:
                os.close(os.open(self._file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            except OSError as error:
                raise InvalidInput(f"{self.path} cannot be made: {error.strerror}") from None
        self._writer = connection = self._connect("rw")
        # Tried, because SQLite opens a file that it may not write as if it could, and begins there, too.
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("PRAGMA user_version = 0")
        connection.execute("ROLLBACK")
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise InvalidInput(
                f"{self.path} is on a file system without shared memory; name a file on another"
            )
        connection.execute(f"PRAGMA synchronous = {'NORMAL' if relaxed else 'FULL'}")
        # macOS empties the cache of the disk only when told so.
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA checkpoint_fullfsync = ON")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES_KEPT}")
        connection.execute("PRAGMA cache_size = -32000")
        # What is deleted is overwritten: models with contexts of users, secrets of tokens that have expired.
        connection.execute("PRAGMA secure_delete = ON")
        SqliteSchema(str(self.path), connection).prepare(read_only=False)

    # -- reading

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that cannot write, for one query."""
        if self._closed:
            raise Unavailable(f"{self.path} is closed")
        connection = None
        try:
            with suppress(IndexError):
                connection = self._idle.pop()
            connection = connection or self._connect("ro")
            yield connection
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, sqlite3.Error):
                raise in_words(error, self.path) from error
            raise
        self._idle.append(connection)
        if self._closed:
            self.close()

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """The answer to a query."""
        with self.reading() as connection:
            return connection.execute(statement, values).fetchall()

    # -- writing

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The connection that writes, in a transaction: all or nothing, on the disk at the end."""
        with self._lock:
            connection = self._usable()
            try:
                self._checkpoint_if_due(connection)
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except BaseException as error:
                told = in_words(error, self.path) if isinstance(error, sqlite3.Error) else error
                if not _rolled_back(connection) and not isinstance(told, StoreBroken):
                    told = StoreBroken(f"{self.path} could not take a transaction back; restart the service")
                if isinstance(told, StoreBroken):
                    self._broken = str(told)
                if told is error:
                    raise
                raise told from error

    def count(self, rows: int, size: int) -> None:
        """So many rows and bytes were written: now and then the write-ahead log is carried over."""
        self._pages += 4 + (100 * rows + size) // 4096

    def _usable(self) -> sqlite3.Connection:
        if self._closed:
            raise Unavailable(f"{self.path} is closed")
        if self._writer is None:
            raise InvalidInput(f"{self.path} was opened for reading only")
        if self._broken is None and self._places != self._places_now():
            # SQLite would go on writing into a file that has no name any more.
            self._broken = (
                f"{self.path} or its -wal file was removed or replaced while in use; put it back and restart "
                "the service"
            )
        if self._broken is not None:
            raise StoreBroken(self._broken)
        return self._writer

    def _places_now(self) -> list[tuple[int, int] | None]:
        """Which files the names stand for."""
        return [_place(self._file), _place(self._file.with_name(self._file.name + "-wal"))]

    def _checkpoint_if_due(self, connection: sqlite3.Connection) -> None:
        """Carry the write-ahead log over, before a transaction: the one before it was answered already."""
        if self._pages < self._tuning.checkpoint_pages:
            return
        try:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except sqlite3.Error as error:
            told = in_words(error, self.path)
            if isinstance(told, StoreBroken):
                raise
            return  # No room in the file: all is still in the write-ahead log, and this is tried again.
        self._pages = 0
        step("after checkpoint")

    def empty_wal(self) -> bool:
        """Carry the write-ahead log over to the file and cut it to nothing, so that it holds nothing that
        was deleted; False if a reader is in the way."""
        with self._lock:
            connection = self._usable()
            try:
                # Nobody waits for a reader; the next time will do.
                connection.execute("PRAGMA busy_timeout = 0")
                ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except sqlite3.Error as error:
                told = in_words(error, self.path)
                if isinstance(told, StoreBroken):
                    self._broken = str(told)
                raise told from error
            finally:
                connection.execute(f"PRAGMA busy_timeout = {int(self._tuning.busy_seconds * 1000)}")
            self._pages = 0
        return not busy

    def compact(self) -> None:
        """Write the file anew, without free pages; nobody else may write for as long as that takes."""
        with self._lock:
            connection = self._usable()
            try:
                connection.execute("VACUUM")
            except sqlite3.Error as error:
                told = in_words(error, self.path)
                if isinstance(told, StoreBroken):
                    self._broken = str(told)
                raise told from error
        self.empty_wal()


class SqliteSchema(Schema):
    """The tables in a file."""

    tables = SQLITE_TABLES

    def stored_format(self) -> str | None:
        tables = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master")}
        if not tables:
            return None
        rows = []
        if tables >= {"meta", "event"}:
            rows = self._connection.execute("SELECT value FROM meta WHERE key = 'format'").fetchall()
        if not rows:
            raise InvalidInput(f"{self._name} is a database of another program; name another file")
        return str(rows[0][0])

    def create(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        for statement in self.tables:
            self._connection.execute(statement)
        self._connection.execute("COMMIT")


def in_words(error: sqlite3.Error, path: Path, *, opening: bool = False) -> FirstclickError | sqlite3.Error:
    """What an error of SQLite means for the caller; errors of our own making stay as they are."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return error
    match code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return Unavailable(
                f"{path} was locked by another program for too long; send the same again when it is done",
                reason="locked",
            )
        case sqlite3.SQLITE_FULL:
            sentence = f"the disk of {path} is full; make room and send the same again"
            return Unavailable(sentence, reason="full-disk")
        case sqlite3.SQLITE_IOERR if code == sqlite3.SQLITE_IOERR_WRITE:
            # Refused before it was on its way to the disk, as by a quota: what was there is not touched.
            return Unavailable(
                f"{path} cannot be written now (a quota, or a limit of file sizes); send the same again",
                reason="full-disk",
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            if opening:
                return InvalidInput(f"{path} cannot be opened to be written ({error}); see its permissions")
            return Unavailable(
                f"{path} cannot be opened or written now ({error}); send the same again later",
                reason="no-database" if code & 0xFF == sqlite3.SQLITE_CANTOPEN else "read-only",
            )
        case sqlite3.SQLITE_NOTADB:
            return StoreBroken(f"{path} is not a SQLite database; name another file, or restore this one")
        case sqlite3.SQLITE_CORRUPT:
            return StoreBroken(f"{path} is damaged ({error}); restore a copy of it")
        case sqlite3.SQLITE_CONSTRAINT if code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
            # A seq that was free by the model's head.
            return StoreBroken(f"{path} contradicts itself ({error}); audit it")
        case sqlite3.SQLITE_CONSTRAINT:
            return InvalidInput(f"a value breaks a rule of the store ({error}); nothing was written")
    return StoreBroken(
        f"{path}: {error} ({error.sqlite_errorname}); what was not acknowledged may be lost, and nothing "
        "more is written until a restart"
    )


def _check_path(path: Path, *, read_only: bool) -> None:
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise InvalidInput(f"SQLite {sqlite3.sqlite_version} is too old; at least 3.25 is needed")
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder; name a file in it, such as {path / 'firstclick.db'}")
    if read_only and not path.exists():
        raise InvalidInput(f"there is no file {path} to read")
    if not path.resolve().parent.is_dir():
        raise InvalidInput(f"there is no folder {path.parent} for {path.name}; make it first")


def _place(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _rolled_back(connection: sqlite3.Connection) -> bool:
    try:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    except sqlite3.Error:
        return False
    return True


def _network_note(path: Path) -> tuple[str, ...]:
    """SQLite's locks and syncs cannot be relied on over a network."""
    try:
        mounts = [line.split(" ") for line in Path("/proc/mounts").read_text("utf-8", "replace").splitlines()]
    except OSError:
        return ()
    under = [
        (len(mount[1]), mount[2]) for mount in mounts if path.is_relative_to(mount[1].replace("\\040", " "))
    ]
    kind = max(under, default=(0, ""))[1]
    if kind not in NETWORK_FILE_SYSTEMS:
        return ()
    return (
        f"{path} is on a network file system ({kind}), where SQLite may lose data; use a local disk, or "
        "PostgreSQL",
    )
