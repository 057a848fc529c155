"""Logs in one SQLite file, for one process."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from firstclick.serve.log.events import Event, NewEvent
from firstclick.serve.log.token import TokenKey
from firstclick.serve.store.crash_points import step
from firstclick.serve.store.numbering import Batch, Known, Row, first_rows, gaps, heads_after, numbered
from firstclick.serve.store.sqlite_file import SqliteFile
from firstclick.serve.store.store import KEPT_SNAPSHOTS, ApiKey, Appended, Store, StoredModel
from firstclick.wire.errors import Conflict, StoreBroken

# What `events` reads in one query: short, so that no reader keeps the write-ahead log from starting anew.
CHUNK_EVENTS = 4096
CHUNK_BYTES = 16_000_000
# Each `execute` gives up the interpreter's lock, and a busy thread beside it takes up to 5 ms to give it
# back: so many rows go into one statement (of six values each; SQLite takes 32,766).
MOST_ROWS = 256


class SqliteStore(Store):
    """Logs in one SQLite file, for one process."""

    kind = "sqlite"
    shared = False

    def __init__(self, path: str | Path, *, relaxed: bool = False, read_only: bool = False) -> None:
        """Open the file, or make it; InvalidInput when it cannot be, or another process has it.

        `relaxed` trusts the computer not to lose power: what was committed last may then be lost, nothing
        else. `read_only` works beside the one service that writes.
        """
        self._file = SqliteFile(Path(path), relaxed=relaxed, read_only=read_only)
        self.notes = self._file.notes

    def close(self) -> None:
        self._file.close()

    # -- logs

    def models(self) -> list[StoredModel]:
        return [StoredModel(*row) for row in self._file.rows("SELECT id, name, head FROM model ORDER BY id")]

    def create(self, name: str, events: Sequence[NewEvent]) -> StoredModel:
        step("before begin")
        with self._file.transaction() as connection:
            step("after begin")
            there = connection.execute("SELECT id, name, head FROM model WHERE name = ?", (name,)).fetchone()
            if there is not None:
                first = connection.execute("SELECT nonce FROM event WHERE model = ? AND seq = 1", there[:1])
                if not events or first.fetchone() != (events[0].nonce,):
                    raise Conflict(f"there is a model {name!r} already; choose another name")
                return StoredModel(*there)  # The same call, sent again because no answer came.
            made = connection.execute("INSERT INTO model (name, head) VALUES (?, ?)", (name, len(events)))
            model = StoredModel(made.lastrowid or 0, name, len(events))
            self._insert(connection, first_rows(model.id, name, events))
            step("after insert")
        step("after commit")
        return model

    def append(self, batch: Batch) -> list[Appended]:
        if not batch:
            return []
        step("before begin")
        with self._file.transaction() as connection:
            step("after begin")
            heads: dict[int, int] = {}
            for model in {model for model, _ in batch}:
                heads |= connection.execute("SELECT id, head FROM model WHERE id = ?", (model,)).fetchall()
            rows, answers = numbered(batch, heads, {})
            if not self._insert(connection, rows):
                # The index knew some of them. As if nothing had been tried, look which.
                connection.execute("ROLLBACK")
                connection.execute("BEGIN IMMEDIATE")
                rows, answers = numbered(batch, heads, self._known(connection, batch))
                if not self._insert(connection, rows):
                    raise StoreBroken(
                        "the index of nonces and the log contradict each other; audit the store"
                    )
            for model, head in heads_after(rows).items():
                connection.execute("UPDATE model SET head = ? WHERE id = ?", (head, model))
            step("after insert")
        step("after commit")
        return answers

    def _insert(self, connection: sqlite3.Connection, rows: Sequence[Row]) -> bool:
        """Whether all rows are in; False when the log has some of their nonces already."""
        start = 0
        while start < len(rows):
            # Powers of two, so that a handful of prepared statements serves all sizes.
            size = min(MOST_ROWS, 1 << ((len(rows) - start).bit_length() - 1))
            done = connection.execute(
                "INSERT INTO event (model, seq, kind, nonce, payload, received) VALUES "
                + ", ".join(["(?, ?, ?, ?, ?, ?)"] * size)
                + " ON CONFLICT (model, nonce) DO NOTHING",
                [value for row in rows[start : start + size] for value in row],
            )
            if done.rowcount != size:
                return False
            start += size
        self._file.count(len(rows), sum(len(row[4]) for row in rows))
        return True

    @staticmethod
    def _known(connection: sqlite3.Connection, batch: Batch) -> Known:
        known: dict[tuple[int, bytes], tuple[int, bytes]] = {}
        for start in range(0, len(batch), MOST_ROWS):
            wanted = [(model, event.nonce) for model, event in batch[start : start + MOST_ROWS]]
            found = connection.execute(
                "SELECT event.model, event.nonce, event.seq, event.payload "
                f"FROM (VALUES {', '.join(['(?, ?)'] * len(wanted))}) AS given "
                "CROSS JOIN event ON event.model = given.column1 AND event.nonce = given.column2",
                [value for pair in wanted for value in pair],
            )
            known |= {(model, nonce): (seq, payload) for model, nonce, seq, payload in found}
        return known

    def events(
        self, model: int, after: int, upto: int | None = None, *, feedback: bool = True
    ) -> Iterator[list[Event]]:
        if upto is None:
            upto = max(
                (head for (head,) in self._file.rows("SELECT head FROM model WHERE id = ?", (model,))),
                default=0,
            )
        # The log's own order would be chosen otherwise, and all feedback read.
        index, kinds = ("", "") if feedback else ("INDEXED BY event_catalog", "AND kind <> 1")
        query = (
            f"SELECT seq, kind, nonce, payload, received FROM event {index} "
            f"WHERE model = ? AND seq > ? AND seq <= ? {kinds} ORDER BY seq LIMIT {CHUNK_EVENTS}"
        )
        while after < upto:
            chunk: list[Event] = []
            size = 0
            with (
                self._file.reading() as connection,
                closing(connection.execute(query, (model, after, upto))) as found,
            ):
                for row in found:
                    chunk.append(Event._make(row))
                    size += len(row[3])
                    if size >= CHUNK_BYTES:
                        break
            if not chunk:
                return
            yield chunk
            after = chunk[-1].seq

    # -- snapshots

    def save_snapshot(self, model: int, seq: int, content: bytes) -> None:
        with self._file.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?)", (model, seq, content))
            step("after snapshot insert")
            connection.execute(
                "DELETE FROM snapshot WHERE model = ?1 AND seq <> ?2 AND seq NOT IN (SELECT seq "
                "FROM snapshot WHERE model = ?1 AND seq <> ?2 ORDER BY seq DESC LIMIT ?3)",
                (model, seq, KEPT_SNAPSHOTS - 1),
            )
            self._file.count(1, len(content))
        step("after snapshot")

    def snapshots(self, model: int) -> list[tuple[int, bytes]]:
        return self._file.rows(
            "SELECT seq, content FROM snapshot WHERE model = ? ORDER BY seq DESC", (model,)
        )

    # -- keys

    def token_keys(self) -> list[TokenKey]:
        return [
            TokenKey(*row) for row in self._file.rows("SELECT id, secret, created FROM token_key ORDER BY id")
        ]

    def add_token_key(self, secret: bytes, created: float) -> TokenKey:
        with self._file.transaction() as connection:
            made = connection.execute(
                "INSERT INTO token_key (secret, created) VALUES (?, ?)", (secret, created)
            )
        return TokenKey(made.lastrowid or 0, secret, created)

    def drop_token_keys(self, before: int) -> None:
        with self._file.transaction() as connection:
            connection.execute("DELETE FROM token_key WHERE id < ?", (before,))

    def api_keys(self) -> list[ApiKey]:
        found = self._file.rows("SELECT id, name, role, hash, created FROM api_key ORDER BY id")
        return [ApiKey(*row) for row in found]

    def add_api_key(self, name: str, role: str, hash: bytes, created: float) -> ApiKey:
        with self._file.transaction() as connection:
            made = connection.execute(
                "INSERT INTO api_key (name, role, hash, created) VALUES (?, ?, ?, ?)",
                (name, role, hash, created),
            )
        return ApiKey(made.lastrowid or 0, name, role, hash, created)

    def revoke_api_key(self, key: int) -> bool:
        with self._file.transaction() as connection:
            return connection.execute("DELETE FROM api_key WHERE id = ?", (key,)).rowcount > 0

    # -- one process

    def note_replica(self, name: str, seqs: dict[int, int], now: float) -> None:
        pass

    def replicas(self) -> list[tuple[str, float, dict[int, int]]]:
        return []

    # -- damage

    def check(self) -> list[str]:
        with self._file.reading() as connection:
            found = [line for (line,) in connection.execute("PRAGMA integrity_check(20)") if line != "ok"]
            if found:
                return found  # No count over damaged tables means anything.
            counted = connection.execute(
                "SELECT id, name, head, count(seq), min(seq), max(seq) "
                "FROM model LEFT JOIN event ON model = id GROUP BY id ORDER BY id"
            )
            found = gaps(counted)
            strays = connection.execute(
                "SELECT DISTINCT model FROM event WHERE model NOT IN (SELECT id FROM model)"
            )
            found += [f"there are events of a model number {model}, but no such model" for (model,) in strays]
            # Not by the index of nonces, which could be what is damaged.
            twice = connection.execute(
                "SELECT model, nonce, count(*) FROM event NOT INDEXED "
                "GROUP BY model, nonce HAVING count(*) > 1 LIMIT 20"
            )
            found += [
                f"nonce {nonce.hex()} is {n} times in the log of model number {model}"
                for model, nonce, n in twice
            ]
        return found
