"""A store of logs: its statements and its rules, the same for both kinds of database.

The log is the truth; snapshots are a cache. SQLite and PostgreSQL differ in how they lock, commit, insert
many rows and tell errors: that is in their own files.
"""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol, Self

from firstclick.errors import InvalidInput
from firstclick.serve.log.events import Correction, Event, Kind, NewEvent, RolledBack, issued_ms, unpacked
from firstclick.serve.log.history import START, Mark, links_of
from firstclick.serve.log.token import TokenKey
from firstclick.serve.log.tuning import DEFAULT, Clock, Tuning
from firstclick.serve.store.crash_points import step
from firstclick.serve.store.numbering import Appended as Appended
from firstclick.serve.store.numbering import Batch, Links, ModelGone, Row, first_rows
from firstclick.wire.errors import Conflict, OtherHistory, Unavailable

KEPT_SNAPSHOTS = 3
# What is loaded piece by piece and was not touched for so many seconds belongs to a process that is gone.
ABANDONED_AFTER = 3600.0
# Of sqlite3 or of psycopg: both have `execute`, which returns a cursor.
Connection = Any


class StoredModel(NamedTuple):
    """A model by its number in this store, which is never given again."""

    id: int
    name: str
    head: int  # seq of the last event


# The last event of each model that was folded.
Marks = Mapping[int, Mark]
# Some events, and the link of each.
Chunk = tuple[list[Event], list[bytes]]


class Base(NamedTuple):
    """Where the log of an archived model begins: with what it knew after event `seq`, as a snapshot.

    Of the events below, only the first is in the store. The newest slate of theirs was recommended at
    `issued`, in ms: no token of that time or earlier is taken any more, because its nonce is not known here.
    """

    seq: int
    issued: int
    content: bytes = b""


class ApiKey(NamedTuple):
    """Who may do what, with one model or with all. Of the key itself only the SHA-256 is kept."""

    id: int
    name: str
    role: str
    hash: bytes
    created: float
    model: str | None = None


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

    def __init__(
        self,
        database: Database,
        notes: tuple[str, ...] = (),
        *,
        tuning: Tuning = DEFAULT,
        clock: Clock = time,
    ) -> None:
        """`notes` are what its owner should know, a sentence each."""
        self._database = database
        self.notes = notes
        self.tuning = tuning
        self._clock = clock

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

    def head(self, model: int) -> int:
        """The last event of a model; 0 if there is no such model."""
        heads = self._database.rows(f"SELECT head FROM {self.prefix}model WHERE id = ?", (model,))
        return int(heads[0][0]) if heads else 0

    def ends(self) -> list[tuple[StoredModel, Mark | None]]:
        """All models, each with the last event of its log, in one statement: of one moment."""
        found = self._database.rows(
            f"SELECT id, name, head, seq, nonce, received, link FROM {self.prefix}model "
            f"LEFT JOIN {self.prefix}event ON model = id AND seq = head ORDER BY id"
        )
        return [(StoredModel(*row[:3]), None if row[3] is None else Mark(*row[3:])) for row in found]

    def marks(self, model: int, first: int, last: int) -> dict[int, Mark]:
        """The events from `first` to `last`, as far as the log has them, without what they say."""
        found = self._database.rows(
            f"SELECT seq, nonce, received, link FROM {self.prefix}event "
            "WHERE model = ? AND seq >= ? AND seq <= ?",
            (model, first, last),
        )
        return {row[0]: Mark(*row) for row in found}

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
            raise Conflict(f"{name!r} is taken by another model; choose another name", "name")
        return StoredModel(*there[:3])

    def append(self, batch: Batch, folded: Marks = MappingProxyType({})) -> list[Appended]:
        """Put events of any models into their logs, in this order, in one transaction; on the disk on return.

        An event whose nonce its model's log has already, or that comes twice in the batch, is there once.
        `folded` are the last events that the caller knows of these models: OtherHistory, and nothing is
        written, when one of the logs does not have its event, as it was, in its place.
        """
        if not batch:
            return []
        step("before begin")
        with self._database.transaction() as connection:
            step("after begin")
            answers = self._append(connection, batch, folded)
            self._refuse_archived(connection, batch, answers)
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
            upto = self.head(model)
        while after < upto and (chunk := self._chunk(model, after, upto, feedback=feedback)[0]):
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

    def events_after(self, model: int, last: Mark, upto: int) -> tuple[list[Event], Mark]:
        """The next events after one that was folded, some thousands, up to `upto`, and the last of them.

        OtherHistory when the log does not have that event in its place. One statement reads both, so that a
        database that is exchanged in between cannot answer the two questions differently.
        """
        chunk, links = self._chunk(model, last.seq - 1, upto, without=last.seq)
        if not chunk or not last.same(_mark(chunk[0], links[0])):
            raise other_history([model])
        return chunk[1:], _mark(chunk[-1], links[-1])

    def events_at(self, model: int, seqs: Sequence[int]) -> list[Event]:
        """The events with these numbers, in any order; at most some thousand."""
        if not seqs:
            return []
        found = self._database.rows(
            f"SELECT seq, kind, nonce, payload, received FROM {self.prefix}event WHERE model = ? "
            f"AND seq IN ({', '.join('?' * len(seqs))})",
            (model, *seqs),
        )
        return [Event._make(row) for row in found]

    # -- archived events

    def bases(self) -> dict[int, Base]:
        """The base of each model that has one, without its content."""
        found = self._database.rows(f"SELECT model, seq, issued FROM {self.prefix}base")
        return {model: Base(seq, issued) for model, seq, issued in found}

    def base(self, model: int) -> Base | None:
        """Where the log begins, if not with the creation."""
        found = self._database.rows(
            f"SELECT seq, issued, content FROM {self.prefix}base WHERE model = ?", (model,)
        )
        return Base(*found[0]) if found else None

    def set_base(self, model: int, base: Base, before: int) -> None:
        """From now on the log begins at `base`, and no more at event `before`.

        The events below are removed by `remove_archived`. Conflict if somebody else was faster, or a later
        event goes back to one of them.
        """
        table = f"{self.prefix}base"
        with self._database.transaction() as connection:
            # Nobody appends meanwhile: who does later, finds this base.
            locked = connection.execute(
                f"UPDATE {self.prefix}model SET head = head WHERE id = ? AND head >= ?", (model, base.seq)
            )
            found = connection.execute(f"SELECT seq FROM {table} WHERE model = ?", (model,)).fetchone()
            if not locked.rowcount or (found[0] if found else 1) != before:
                raise Conflict("the model was archived, set back or deleted meanwhile; nothing was removed")
            later = connection.execute(
                f"SELECT seq, kind, nonce, payload, received FROM {self.prefix}event "
                "WHERE model = ? AND seq > ? AND kind <> 1 AND kind = ?",
                (model, base.seq, int(Kind.ROLLED_BACK)),
            )
            refuse_lost_rollbacks((Event(*row) for row in later), base.seq)
            connection.execute(f"DELETE FROM {table} WHERE model = ?", (model,))
            connection.execute(f"INSERT INTO {table} VALUES (?, ?, ?, ?)", (model, *base))
            connection.execute(
                f"DELETE FROM {self.prefix}snapshot WHERE model = ? AND seq < ?", (model, base.seq)
            )
            self._wrote(1, len(base.content))
            step("after base insert")
        step("after base")

    def remove_archived(self) -> bool:
        """Remove some events that are archived; whether more may be left."""
        event = f"{self.prefix}event"
        for model, base in self.bases().items():
            if not self._database.rows(
                f"SELECT 1 FROM {event} WHERE model = ? AND seq > 1 AND seq < ? LIMIT 1", (model, base.seq)
            ):
                continue
            with self._database.transaction() as connection:
                done = connection.execute(
                    f"DELETE FROM {event} WHERE model = ? AND seq IN (SELECT seq FROM {event} "
                    "WHERE model = ? AND seq > 1 AND seq < ? ORDER BY seq LIMIT ?)",
                    (model, model, base.seq, self.tuning.events_at_once),
                )
                self._wrote(done.rowcount, 0)
            step("after removal of archived events")
            return True
        return False

    def _refuse_archived(self, connection: Connection, batch: Batch, answers: Sequence[Appended]) -> None:
        """Nothing may be appended that rests on archived events: feedback that one of them may have counted
        already, and a rollback to one of them. Looked at in the transaction: whoever asked has not yet heard
        of a base that was set a moment ago."""
        found = connection.execute(f"SELECT model, seq, issued FROM {self.prefix}base").fetchall()
        bases = {model: Base(seq, issued) for model, seq, issued in found}
        for (model, event), answer in zip(batch, answers, strict=True) if bases else ():
            base = bases.get(model)
            if base is None or not answer.new:
                continue
            lost = event.kind == Kind.FEEDBACK and issued_ms(event.payload) <= base.issued
            if event.kind == Kind.CORRECTION:
                lost = unpacked(event, Correction).seq < base.seq
            if event.kind == Kind.ROLLED_BACK:
                lost = 1 < unpacked(Event(answer.seq, *event), RolledBack).to < base.seq
            if lost:
                raise Unavailable(
                    f"events up to {base.seq - 1} were archived a moment ago; send the same again"
                )

    # -- models put in and removed piece by piece, while others write

    def reserve(self) -> int:
        """The number of a model that nobody sees before it is published."""
        model, unfinished = f"{self.prefix}model", f"{self.prefix}unfinished"
        with self._database.transaction() as connection:
            # A row is made for its number, which is never given again. No model may have such a name.
            name = f"/{os.urandom(8).hex()}"
            made = self._new_row(connection, f"INSERT INTO {model} (name, head) VALUES (?, ?)", (name, 0))
            connection.execute(f"DELETE FROM {model} WHERE id = ?", (made,))
            connection.execute(f"INSERT INTO {unfinished} VALUES (?, ?)", (made, self._clock.time()))
        return made

    def load(self, model: int, events: Sequence[Event]) -> None:
        """Put in the next events of a reserved model, some thousands at a time."""
        with self._database.transaction() as connection:
            self._touch(connection, model)
            link = START
            if events and events[0].seq > 1:
                before = (model, events[0].seq - 1)
                link = self._found(connection, [before])[before].link
            links = links_of(events, link)
            rows = [(model, *event, link) for event, link in zip(events, links, strict=True)]
            if not self._insert(connection, rows):
                raise InvalidInput("two events have one nonce; each has its own")
        step("after load")

    def publish(self, model: int, name: str, head: int) -> StoredModel:
        """A reserved model is whole and gets its name; Conflict when that is taken."""
        with self._database.transaction() as connection:
            self._touch(connection, model)
            taken = connection.execute(f"SELECT 1 FROM {self.prefix}model WHERE name = ?", (name,)).fetchone()
            if taken is not None:
                raise Conflict(f"{name!r} is taken by another model; choose another name", "name")
            self._insert_model(connection, model, name, head)
            connection.execute(f"DELETE FROM {self.prefix}unfinished WHERE model = ?", (model,))
        step("after publish")
        return StoredModel(model, name, head)

    def _touch(self, connection: Connection, model: int) -> None:
        touched = connection.execute(
            f"UPDATE {self.prefix}unfinished SET touched = ? WHERE model = ?", (self._clock.time(), model)
        )
        if not touched.rowcount:
            raise Unavailable("what was loaded so far was taken for abandoned and removed; start again")

    def delete(self, model: int) -> bool:
        """Whether there was such a model; it is gone at once, its events are removed by `sweep`."""
        with self._database.transaction() as connection:
            gone = connection.execute(f"DELETE FROM {self.prefix}model WHERE id = ?", (model,))
            if gone.rowcount:
                connection.execute(f"INSERT INTO {self.prefix}unfinished VALUES (?, ?)", (model, 0.0))
            return bool(gone.rowcount)

    def give_up(self, model: int) -> None:
        """Have a reserved model removed."""
        with self._database.transaction() as connection:
            connection.execute(f"UPDATE {self.prefix}unfinished SET touched = 0 WHERE model = ?", (model,))

    def sweep(self) -> bool:
        """Remove some events of models that were deleted or abandoned, or that are archived; whether more may
        be left."""
        old = self._database.rows(
            f"SELECT model FROM {self.prefix}unfinished WHERE touched < ? LIMIT 1",
            (self._clock.time() - ABANDONED_AFTER,),
        )
        for (model,) in old:
            if self._sweep_events(model) and self._wiped():
                with self._database.transaction() as connection:
                    connection.execute(f"DELETE FROM {self.prefix}unfinished WHERE model = ?", (model,))
            step("after sweep")
        if not old:
            self._sweep_snapshots()
        return bool(old) or self.remove_archived()

    def _sweep_events(self, model: int) -> bool:
        """Remove some events of the model; whether none are left."""
        event = f"{self.prefix}event"
        with self._database.transaction() as connection:
            # Two processes take turns: the second would find fewer events than it chose, and take them for
            # the last ones.
            there = connection.execute(
                f"UPDATE {self.prefix}unfinished SET touched = touched WHERE model = ?", (model,)
            )
            if not there.rowcount:
                return False
            done = connection.execute(
                f"DELETE FROM {event} WHERE model = ? AND seq IN (SELECT seq FROM {event} "
                "WHERE model = ? ORDER BY seq LIMIT ?)",
                (model, model, self.tuning.events_at_once),
            )
            for table in ("snapshot", "base"):
                connection.execute(f"DELETE FROM {self.prefix}{table} WHERE model = ?", (model,))
            self._wrote(self.tuning.events_at_once, 0)
        return bool(done.rowcount < self.tuning.events_at_once)

    def _sweep_snapshots(self) -> None:
        """A process that had not heard of a delete may have kept a snapshot after it."""
        stray = f"WHERE model NOT IN (SELECT id FROM {self.prefix}model)"
        if self._database.rows(f"SELECT model FROM {self.prefix}snapshot {stray} LIMIT 1"):
            with self._database.transaction() as connection:
                connection.execute(f"DELETE FROM {self.prefix}snapshot {stray}")

    def compact(self) -> None:  # noqa: B027
        """Give the room of what was removed back to the disk; only SQLite keeps it."""

    # -- snapshots

    def save_snapshot(self, model: int, seq: int, content: bytes, last: Mark | None = None) -> None:
        """Keep a snapshot beside the two newest others.

        `last` is the event after which it was made: OtherHistory when the log does not have it.
        """
        table = f"{self.prefix}snapshot"
        with self._database.transaction() as connection:
            there = connection.execute(f"SELECT 1 FROM {self.prefix}model WHERE id = ?", (model,))
            if there.fetchone() is None:
                return  # It was deleted by another process: nothing of it may come back.
            base = connection.execute(
                f"SELECT 1 FROM {self.prefix}base WHERE model = ? AND seq > ?", (model, seq)
            )
            if base.fetchone() is not None:
                return  # The events before it were archived meanwhile.
            if last is not None and not last.same(self._found(connection, [(model, seq)]).get((model, seq))):
                raise other_history([model])
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

    def drop_snapshots(self, model: int, seqs: Sequence[int]) -> None:
        """Remove these snapshots."""
        with self._database.transaction() as connection:
            for seq in seqs:
                connection.execute(
                    f"DELETE FROM {self.prefix}snapshot WHERE model = ? AND seq = ?", (model, seq)
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
            f"SELECT id, name, role, hash, created, model FROM {self.prefix}api_key ORDER BY id"
        )
        return [ApiKey(*row) for row in found]

    def add_api_key(
        self, name: str, role: str, hash: bytes, created: float, model: str | None = None
    ) -> ApiKey:
        """A new key; a page's may be good for one model alone."""
        columns = "(name, role, hash, created, model)"
        statement = f"INSERT INTO {self.prefix}api_key {columns} VALUES (?, ?, ?, ?, ?)"
        with self._database.transaction() as connection:
            made = self._new_row(connection, statement, (name, role, hash, created, model))
        return ApiKey(made, name, role, hash, created, model)

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

    # -- histories

    def _found(
        self, connection: Connection, places: Sequence[tuple[int, int]]
    ) -> dict[tuple[int, int], Mark]:
        """The events at these places, each a model and a seq, as far as they are there."""
        if not places:
            return {}
        found = connection.execute(
            f"SELECT event.model, seq, nonce, received, link FROM (VALUES "
            f"{', '.join(['(?, ?)'] * len(places))}) AS given JOIN {self.prefix}event AS event "
            "ON event.model = given.column1 AND event.seq = given.column2",
            [number for place in places for number in place],
        )
        return {(row[0], row[1]): Mark(*row[1:]) for row in found}

    def _links(self, connection: Connection, heads: Mapping[int, int], folded: Marks) -> Links:
        """What the next event of each model is linked to; OtherHistory when one is not what was folded, or
        when the last event of a log is missing.

        The heads are locked. Others may have appended since: what was folded is further up in the log then.
        """
        for model in folded.keys() - heads.keys():
            raise ModelGone(model)
        places = [(model, mark.seq) for model, mark in folded.items()]
        found = self._found(connection, list({*places, *heads.items()}))
        others = {model for model, mark in folded.items() if not mark.same(found.get((model, mark.seq)))}
        others |= {model for model, head in heads.items() if head and (model, head) not in found}
        if others:
            raise other_history(others)
        return {model: found[model, head].link if head else START for model, head in heads.items()}

    # -- damage

    @abstractmethod
    def check(self) -> list[str]:
        """What is wrong with the storage itself, a sentence each: damage, gaps in a log; or nothing."""

    def _contradictions(self, connection: Connection, hint: str = "") -> list[str]:
        """Logs with gaps, without a model, or with a nonce twice; `hint` goes with the table of events."""
        model, event = f"{self.prefix}model", f"{self.prefix}event"
        # Of an archived model only the first event and those from the base on: what is between is on its way
        # out.
        start = f"coalesce((SELECT seq FROM {self.prefix}base AS b WHERE b.model = m.id), 1)"
        counted = connection.execute(
            f"SELECT name, head, first, (SELECT count(*) FROM {event} AS e WHERE e.model = id AND seq = 1), "
            "count(e.seq), min(e.seq), max(e.seq) "
            f"FROM (SELECT id, name, head, {start} AS first FROM {model} AS m) AS m "
            f"LEFT JOIN {event} AS e ON e.model = m.id AND e.seq >= first "
            "GROUP BY id, name, head, first ORDER BY id"
        )
        logs = counted.fetchall()
        strays = connection.execute(
            f"SELECT DISTINCT model FROM {event} WHERE model NOT IN (SELECT id FROM {model}) "
            f"AND model NOT IN (SELECT model FROM {self.prefix}unfinished)"
        )
        twice = connection.execute(
            f"SELECT model, nonce, count(*) FROM {event} {hint} GROUP BY model, nonce "
            "HAVING count(*) > 1 LIMIT 20"
        )
        return [
            *(
                f"the log of model {name!r} should hold events {first} to {head}, "
                f"and holds {n} from {lowest} to {last}"
                for name, head, first, _, n, lowest, last in logs
                if n != head - first + 1 or (n and (lowest, last) != (first, head))
            ),
            *(
                f"the creation of model {name!r}, event 1 of its log, is missing"
                for name, _, first, n_first, *_ in logs
                if first > 1 and not n_first
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
    def _insert_model(self, connection: Connection, model: int, name: str, head: int) -> None:
        """Put in the row of a model that has its number already."""

    @abstractmethod
    def _insert(self, connection: Connection, rows: Sequence[Row]) -> bool:
        """Put rows into the table of events; False when the log has some of their nonces already."""

    @abstractmethod
    def _append(self, connection: Connection, batch: Batch, folded: Marks) -> list[Appended]:
        """Number the events that are new, insert them and move the heads of their models."""

    @abstractmethod
    def _chunk(self, model: int, after: int, upto: int, *, feedback: bool = True, without: int = 0) -> Chunk:
        """Return the next events, as many as `tuning` allows; event `without` has no payload."""

    def _wiped(self) -> bool:
        """Whether nothing of what was deleted is left in the write-ahead log, which only SQLite looks after;
        False if that has to be tried again."""
        return True

    def _wrote(self, rows: int, size: int) -> None:  # noqa: B027
        """So many rows and bytes were written; only SQLite counts them."""


def _mark(event: Event, link: bytes) -> Mark:
    return Mark(event.seq, event.nonce, event.received, link)


def other_history(models: Collection[int]) -> OtherHistory:
    """The error of logs that are not what was read from them before."""
    return OtherHistory(
        "the store does not hold all events that were read from it before: it was set back; send the same "
        "again when the model is loaded again",
        models,
    )


def refuse_lost_rollbacks(later: Iterable[Event], base: int) -> None:
    """Conflict if one of these events, which come after `base`, goes back to an event that is archived."""
    for event in later:
        if event.kind == Kind.ROLLED_BACK and 1 < (to := unpacked(event, RolledBack).to) < base:
            raise Conflict(
                f"event {event.seq} rolls back to event {to}, so events before {base} are still needed; "
                f"archive before event {to}, or before event {event.seq} or a later one"
            )
