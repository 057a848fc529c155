"""Connections to PostgreSQL: they give up in time, come back by themselves, and tell errors in words."""

import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from firstclick.errors import FirstclickError, InvalidInput
from firstclick.serve.log.tuning import Tuning
from firstclick.serve.store.schema import POSTGRESQL_TABLES, Schema
from firstclick.wire.errors import StoreBroken, Unavailable

CONNECT_SECONDS = 5
STATEMENT_SECONDS = 10
# The server's own limits do not help when its answer gets lost: then the client must give up.
ANSWER_SECONDS = 15.0
# An hour, for what may take long, such as a check.
PATIENT_SECONDS = 3600.0
# Any number: a process that creates the tables holds this lock.
CREATION_LOCK = 0x66697273
T = TypeVar("T")


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that does not wait for an answer for ever, and reads `?` as `%s`."""

    patience = ANSWER_SECONDS

    def execute(  # type: ignore[override]
        self, query: str, params: Sequence[object] | None = None, *, binary: bool = False
    ) -> psycopg.Cursor[tuple[Any, ...]]:
        return super().execute(query.replace("?", "%s").encode(), params, binary=binary)

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **options: Any) -> T:
        return super().wait(_limited(gen, time.monotonic() + self.patience), *args, **options)


def _limited(gen: Generator[Any, Any, T], deadline: float) -> Generator[Any, Any, T]:
    """The same, but for an error when it is still waiting after the deadline."""
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > deadline:
                raise errors.OperationalError("no answer from the server")
            wanted = gen.send(ready)
    except StopIteration as done:
        result: T = done.value
        return result


class Link:
    """One connection that writes, under a lock, and as many to read as threads read at once."""

    def __init__(self, url: str, *, relaxed: bool, read_only: bool, tuning: Tuning) -> None:
        self._url = url
        self._relaxed = relaxed
        self._read_only = read_only
        self._tuning = tuning
        self._lock = threading.Lock()
        self._writer: Connection | None = None
        self._idle: list[Connection] = []
        self._closed = False
        try:
            parts = conninfo_to_dict(url)
        except psycopg.Error as error:
            raise InvalidInput(f"the address of the store cannot be read: {_line(error)}") from None
        place = str(parts.get("host", "localhost")).rpartition("/")[2]
        self.name = f"PostgreSQL at {place}/{parts.get('dbname', '')}"  # never the password

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self._closed = True
            self._drop_idle()
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def _drop_idle(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _connect(self) -> Connection:
        if self._closed:
            raise Unavailable(f"{self.name} is closed")
        connection = Connection.connect(
            self._url,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            keepalives_idle=5,
            keepalives_interval=2,
            keepalives_count=3,
            fallback_application_name="firstclick",
        )
        # An administrator may ask for more than `on` (remote_apply), not for less.
        connection.execute(
            "SELECT set_config('synchronous_commit', CASE WHEN ? THEN 'off' WHEN "
            "current_setting('synchronous_commit') IN ('off', 'local') THEN 'on' "
            "ELSE current_setting('synchronous_commit') END, false), "
            # Others commit while we wait for a row; what they did must be seen then.
            "set_config('default_transaction_isolation', 'read committed', false), "
            "set_config('default_transaction_read_only', ?, false), "
            "set_config('statement_timeout', ?, false), set_config('lock_timeout', ?, false), "
            "set_config('idle_in_transaction_session_timeout', ?, false)",
            (
                self._relaxed,
                "on" if self._read_only else "off",
                f"{STATEMENT_SECONDS}s",
                f"{round(1000 * self._tuning.lock_seconds)}ms",
                f"{round(1000 * self._tuning.idle_seconds)}ms",
            ),
        )
        return connection

    # -- reading

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors in words."""
        try:
            yield
        except psycopg.Error as error:
            if error.sqlstate in LOST:
                self._drop_idle()  # They were lost with this one.
            raise in_words(error, self.name) from error

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """The answer to one statement, which may be asked twice: an idle connection can have been lost."""
        old = bool(self._idle)
        try:
            return self._rows(statement, values)
        except Unavailable as error:
            if not old or getattr(error.__cause__, "sqlstate", "") not in LOST:
                raise
        return self._rows(statement, values)

    def _rows(self, statement: str, values: Sequence[object]) -> list[Any]:
        connection: Connection | None = None
        with self._told():
            with suppress(IndexError):
                connection = self._idle.pop()
            connection = connection or self._connect()
            try:
                found = connection.execute(statement, values, binary=True).fetchall()
            except BaseException:
                connection.close()
                raise
        self._idle.append(connection)
        if self._closed:
            self._drop_idle()
        return found

    @contextmanager
    def patient(self) -> Iterator[Connection]:
        """A connection of its own for what takes its time: a check, a change of the tables."""
        with self._told():
            connection = self._connect()
            try:
                connection.patience = PATIENT_SECONDS
                connection.execute("SET statement_timeout = 0")
                connection.execute("SET lock_timeout = 0")
                yield connection
            finally:
                connection.close()

    # -- writing

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """The connection that writes, in a transaction: all or nothing, on the disk at the end.

        When the connection is lost while it commits nobody knows what the server did; the error says so.
        """
        if self._read_only:
            raise InvalidInput(f"{self.name} was opened for reading only")
        with self._lock:
            committing = False
            try:
                connection = self._begun()
                yield connection
                committing = True
                if connection.execute("COMMIT").statusmessage != "COMMIT":
                    raise errors.OperationalError("the server took the transaction back")
            except BaseException as error:
                self._give_up()
                if isinstance(error, psycopg.Error):
                    raise in_words(error, self.name, committing=committing) from error
                raise

    def _begun(self) -> Connection:
        """A transaction. Nothing was done yet, so a connection that was lost meanwhile is simply replaced."""
        if self._writer is not None:
            try:
                self._writer.execute("BEGIN")
                return self._writer
            except psycopg.OperationalError:
                self._writer.close()
                self._writer = None
        self._writer = self._connect()
        self._writer.execute("BEGIN")
        return self._writer

    def _give_up(self) -> None:
        """Take the transaction back, or leave that to the server."""
        if self._writer is None:
            return
        try:
            if self._writer.closed:
                raise errors.OperationalError
            self._writer.execute("ROLLBACK")
        except psycopg.Error:
            self._writer.close()
            self._writer = None


class PostgresSchema(Schema):
    """The tables in a database."""

    tables = POSTGRESQL_TABLES

    def stored_format(self) -> str | None:
        # Not by to_regclass, which may remember that the table was not there before we waited for the lock.
        tables = self._connection.execute(
            "SELECT 1 FROM pg_tables WHERE tablename = 'firstclick_meta' "
            "AND schemaname = ANY(current_schemas(false))"
        )
        if tables.fetchone() is None:
            return None
        row = self._connection.execute("SELECT value FROM firstclick_meta WHERE key = 'format'").fetchone()
        if row is None:
            raise InvalidInput(f"{self._name} has tables of another program; name another database")
        return str(row[0])

    def create(self) -> None:
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(?)", (CREATION_LOCK,))
            if self.stored_format() is None:
                for statement in self.tables:
                    self._connection.execute(statement)


# The connection was lost (no code), or the server ends it: shutdown, crash, start, failover.
LOST = {None, "57P01", "57P02", "57P03", "57P05", "25P03"}


def in_words(error: psycopg.Error, name: str, *, committing: bool = False) -> FirstclickError | psycopg.Error:
    """What an error of PostgreSQL means for the caller; errors of our own making stay as they are."""
    of_a_log = isinstance(error, errors.UniqueViolation) and error.diag.table_name == "firstclick_event"
    if of_a_log or isinstance(error, errors.UndefinedTable | errors.UndefinedColumn):
        return StoreBroken(f"{name} does not hold what firstclick put there ({_line(error)}); audit it")
    if isinstance(error, errors.DataCorrupted | errors.IndexCorrupted):
        return StoreBroken(f"{name} is damaged ({_line(error)}); restore a copy of it")
    if isinstance(error, errors.IntegrityError | errors.DataError):
        return InvalidInput(f"a value breaks a rule of the store ({_line(error)}); nothing was written")
    if isinstance(error, psycopg.ProgrammingError) and error.sqlstate != "42501":
        return error
    if committing and isinstance(error, psycopg.OperationalError):
        return Unavailable(
            f"{name} was lost while it committed ({_line(error)}): whether it did is settled by sending the "
            "same again",
            reason="no-database",
        )
    return Unavailable(
        f"{name} cannot be asked now ({_line(error)}); send the same again later", reason=_reason(error)
    )


def _reason(error: psycopg.Error) -> str:
    """The word of `REASONS`."""
    match error:
        case errors.DiskFull():
            return "full-disk"
        case errors.ReadOnlySqlTransaction() | errors.InsufficientPrivilege():
            return "read-only"
        case errors.LockNotAvailable() | errors.QueryCanceled() | errors.DeadlockDetected():
            return "locked"
    return "no-database"


def _line(error: psycopg.Error) -> str:
    """The first line that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__
