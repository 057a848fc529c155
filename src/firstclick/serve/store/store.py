"""A store of logs: its statements and its rules, the same for both kinds of database.

The log is the truth; snapshots are a cache. SQLite and PostgreSQL differ in how they lock, commit, insert
many rows and tell errors: that is in their own files.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NamedTuple, Protocol, Self

from firstclick.serve.log.events import Event, NewEvent
from firstclick.serve.log.token import TokenKey
from firstclick.serve.store.crash_points import step
from firstclick.serve.store.numbering import Appended as Appended
from firstclick.serve.store.numbering import Batch, Row, first_rows
from firstclick.wire.errors import Conflict

KEPT_SNAPSHOTS = 3
# Of sqlite3 or of psycopg: both have `execute`, which returns a cursor.
Connection = Any


class StoredModel(NamedTuple):
    """A model by its number in this store, which is never given again."""

    id: int
    name: str
    head: int  # seq of the last event


class ApiKey(NamedTuple):
    """Who may do what. Of the key itself only the SHA-256 is kept."""

    id: int
    name: str
    role: str
    hash: bytes
    created: float


class Database(Protocol):
    """Connections to a database. A statement has `?` for each value."""

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """The answer to one query."""

    def transaction(self) -> AbstractContextManager[Connection]:
        """The connection that writes, in a transaction: all or nothing, on the disk at the end."""

    def close(self) -> None:
        """Let go of files and connections."""


class Store(ABC):
    """Logs, snapshots and keys, safe for use by several threads.

    Any method raises Unavailable when the storage cannot answer now, and StoreBroken when it must not be
    believed any more. An exception of `append` or `create` leaves open whether the events are in the log;
    sending them again, with the same nonces, settles it.
    """

    kind: ClassVar[str]
    # Whether other processes may append to the same logs.
    shared: ClassVar[bool]
    # What the names of its tables begin with.
    prefix: ClassVar[str]
    # What one query reads: little, so that no reader keeps SQLite's write-ahead log from starting anew.
    chunk_events: ClassVar[int] = 4096
    chunk_bytes: ClassVar[int] = 16_000_000

    def __init__(self, database: Database, notes: tuple[str, ...] = ()) -> None:
        """`notes` are what its owner should know, a sentence each."""
        self._database = database
        self.notes = notes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of files and connections."""
        self._database.close()

    # -- logs

    def models(self) -> list[StoredModel]:
        """All models, in one quick query."""
        found = self._database.rows(f"SELECT id, name, head FROM {self.prefix}model ORDER BY id")
        return [StoredModel(*row) for row in found]

    def create(self, name: str, events: Sequence[NewEvent]) -> StoredModel:
        """A new model with these first events, all of them or none; Conflict when the name is taken."""
        step("before begin")
        with self._database.transaction() as connection:
            step("after begin")
            made = self._new_row(
                connection,
                f"INSERT INTO {self.prefix}model (name, head) VALUES (?, ?) ON CONFLICT (name) DO NOTHING",
                (name, len(events)),
            )
            if not made:
                return self._created_before(connection, name, events)
            model = StoredModel(made, name, len(events))
            self._insert(connection, first_rows(model.id, name, events))
            step("after insert")
        step("after commit")
        return model

    def _created_before(self, connection: Connection, name: str, events: Sequence[NewEvent]) -> StoredModel:
        """The model, if it was created by the same call: sent again, because no answer came."""
        there = connection.execute(
            f"SELECT id, name, head, nonce FROM {self.prefix}model LEFT JOIN {self.prefix}event "
            "ON model = id AND seq = 1 WHERE name = ?",
            (name,),
        ).fetchone()
        if there is None or not events or there[3] != events[0].nonce:
            raise Conflict(f"there is a model {name!r} already; choose another name")
        return StoredModel(*there[:3])

    def append(self, batch: Batch) -> list[Appended]:
        """Put events of any models into their logs, in this order, in one transaction; on the disk on return.

        An event whose nonce its model's log has already, or that comes twice in the batch, is there once.
        """
        if not batch:
            return []
        step("before begin")
        with self._database.transaction() as connection:
            step("after begin")
            answers = self._append(connection, batch)
            step("after insert")
        step("after commit")
        return answers

    def events(
        self, model: int, after: int, upto: int | None = None, *, feedback: bool = True
    ) -> Iterator[list[Event]]:
        """The events with after < seq <= upto, in order, some thousands at a time.

        Without `feedback` only the others: creation, items, rollbacks; found without reading the whole log.
        """
        if upto is None:
            heads = self._database.rows(f"SELECT head FROM {self.prefix}model WHERE id = ?", (model,))
            upto = heads[0][0] if heads else 0
        while after < upto and (chunk := self._chunk(model, after, upto, feedback=feedback)):
            yield chunk
            after = chunk[-1].seq

    def probe(self, now: float) -> None:
        """Write something without a meaning, as an append would; Unavailable if that cannot be done now."""
        with self._database.transaction() as connection:
            connection.execute(
                f"INSERT INTO {self.prefix}meta VALUES ('probe', ?) ON CONFLICT (key) DO UPDATE "
                "SET value = excluded.value",
                (str(now),),
            )
            self._wrote(1, 0)

    # -- snapshots

    def save_snapshot(self, model: int, seq: int, content: bytes) -> None:
        """Keep a snapshot beside the two newest others."""
        table = f"{self.prefix}snapshot"
        with self._database.transaction() as connection:
            connection.execute(
                f"INSERT INTO {table} VALUES (?, ?, ?) ON CONFLICT (model, seq) DO UPDATE "
                "SET content = excluded.content",
                (model, seq, content),
            )
            step("after snapshot insert")
            connection.execute(
                f"DELETE FROM {table} WHERE model = ? AND seq <> ? AND seq NOT IN (SELECT seq FROM {table} "
                "WHERE model = ? AND seq <> ? ORDER BY seq DESC LIMIT ?)",
                (model, seq, model, seq, KEPT_SNAPSHOTS - 1),
            )
            self._wrote(1, len(content))
        step("after snapshot")

    def snapshots(self, model: int) -> list[tuple[int, bytes]]:
        """The snapshots kept, newest first."""
        return self._database.rows(
            f"SELECT seq, content FROM {self.prefix}snapshot WHERE model = ? ORDER BY seq DESC", (model,)
        )

    # -- keys

    def token_keys(self) -> list[TokenKey]:
        """Oldest first."""
        found = self._database.rows(f"SELECT id, secret, created FROM {self.prefix}token_key ORDER BY id")
        return [TokenKey(*row) for row in found]

    def add_token_key(self, secret: bytes, created: float) -> TokenKey:
        """A new key, which signs from now on."""
        statement = f"INSERT INTO {self.prefix}token_key (secret, created) VALUES (?, ?)"
        with self._database.transaction() as connection:
            made = self._new_row(connection, statement, (secret, created))
        return TokenKey(made, secret, created)

    def drop_token_keys(self, before: int) -> None:
        """Forget keys with a lower id: no token of theirs is believed any more."""
        with self._database.transaction() as connection:
            connection.execute(f"DELETE FROM {self.prefix}token_key WHERE id < ?", (before,))

    def api_keys(self) -> list[ApiKey]:
        """The keys that are not revoked."""
        found = self._database.rows(
            f"SELECT id, name, role, hash, created FROM {self.prefix}api_key ORDER BY id"
        )
        return [ApiKey(*row) for row in found]

    def add_api_key(self, name: str, role: str, hash: bytes, created: float) -> ApiKey:
        """A new key."""
        statement = f"INSERT INTO {self.prefix}api_key (name, role, hash, created) VALUES (?, ?, ?, ?)"
        with self._database.transaction() as connection:
            made = self._new_row(connection, statement, (name, role, hash, created))
        return ApiKey(made, name, role, hash, created)

    def revoke_api_key(self, key: int) -> bool:
        """Whether there was such a key, which is no longer good."""
        with self._database.transaction() as connection:
            gone = connection.execute(f"DELETE FROM {self.prefix}api_key WHERE id = ?", (key,))
            return bool(gone.rowcount > 0)

    # -- several processes

    def note_replica(self, name: str, seqs: dict[int, int], now: float) -> None:  # noqa: B027
        """This process is alive and has folded each model so far; does nothing where there is only one."""

    def replicas(self) -> list[tuple[str, float, dict[int, int]]]:
        """Processes heard of lately: name, when, and how far each has folded each model."""
        return []

    # -- damage

    @abstractmethod
    def check(self) -> list[str]:
        """What is wrong with the storage itself, a sentence each: damage, gaps in a log; or nothing."""

    def _contradictions(self, connection: Connection, hint: str = "") -> list[str]:
        """Logs with gaps, without a model, or with a nonce twice; `hint` goes with the table of events."""
        model, event = f"{self.prefix}model", f"{self.prefix}event"
        counted = connection.execute(
            f"SELECT name, head, count(seq), min(seq), max(seq) FROM {model} LEFT JOIN {event} "
            "ON model = id GROUP BY id ORDER BY id"
        )
        strays = connection.execute(
            f"SELECT DISTINCT model FROM {event} WHERE model NOT IN (SELECT id FROM {model})"
        )
        twice = connection.execute(
            f"SELECT model, nonce, count(*) FROM {event} {hint} GROUP BY model, nonce "
            "HAVING count(*) > 1 LIMIT 20"
        )
        return [
            *(
                f"the log of model {name!r} should hold events 1 to {head}, "
                f"and holds {n} from {first} to {last}"
                for name, head, n, first, last in counted
                if n != head or (n and (first, last) != (1, head))
            ),
            *(f"there are events of a model number {number}, but no such model" for (number,) in strays),
            *(
                f"nonce {nonce.hex()} is {n} times in the log of model number {number}"
                for number, nonce, n in twice
            ),
        ]

    # -- what each kind of database does in its own way

    @abstractmethod
    def _new_row(self, connection: Connection, statement: str, values: Sequence[object]) -> int:
        """The id of the row that is inserted, from 1; 0 when a conflict was to be ignored."""

    @abstractmethod
    def _insert(self, connection: Connection, rows: Sequence[Row]) -> bool:
        """Put rows into the table of events; False when the log has some of their nonces already."""

    @abstractmethod
    def _append(self, connection: Connection, batch: Batch) -> list[Appended]:
        """Number the events that are new, insert them and move the heads of their models."""

    @abstractmethod
    def _chunk(self, model: int, after: int, upto: int, *, feedback: bool) -> list[Event]:
        """The next events, at most `chunk_events`, of about `chunk_bytes`."""

    def _wrote(self, rows: int, size: int) -> None:  # noqa: B027
        """So many rows and bytes were written; only SQLite counts them."""
