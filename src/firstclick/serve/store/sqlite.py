"""Logs in one SQLite file, for one process."""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from firstclick.errors import WorkFailed
from firstclick.serve.log.events import Event
from firstclick.serve.log.tuning import DEFAULT, Clock, Tuning
from firstclick.serve.store.numbering import Batch, Known, Row, heads_after, numbered
from firstclick.serve.store.sqlite_file import SqliteFile
from firstclick.serve.store.store import Appended, Chunk, Marks, Store
from firstclick.wire.errors import StoreBroken

# Each `execute` gives up the interpreter's lock, and a busy thread beside it takes up to 5 ms to give it
# back: so many rows go into one statement (of seven values each; SQLite takes 32,766).
MOST_ROWS = 256


class SqliteStore(Store):
    """Logs in one SQLite file, for one process."""

    kind = "sqlite"
    shared = False
    prefix = ""

    def __init__(
        self,
        path: str | Path,
        *,
        relaxed: bool = False,
        read_only: bool = False,
        tuning: Tuning = DEFAULT,
        clock: Clock = time,
    ) -> None:
        """Open the file, or make it; InvalidInput when it cannot be, or another process has it.

        `relaxed` trusts the computer not to lose power: what was committed last may then be lost, nothing
        else. `read_only` works beside the one service that writes.
        """
        self._file = SqliteFile(Path(path), relaxed=relaxed, read_only=read_only, tuning=tuning)
        super().__init__(self._file, self._file.notes, tuning=tuning, clock=clock)

    def check(self) -> list[str]:
        with self._file.reading() as connection:
            damage = [line for (line,) in connection.execute("PRAGMA integrity_check(20)") if line != "ok"]
            # No count over damaged tables means anything. And none by the index of nonces, which could be
            # what is damaged.
            return damage or self._contradictions(connection, "NOT INDEXED")

    def _new_row(self, connection: sqlite3.Connection, statement: str, values: Sequence[object]) -> int:
        done = connection.execute(statement, values)
        return (done.lastrowid or 0) if done.rowcount else 0

    def _insert_model(self, connection: sqlite3.Connection, model: int, name: str, head: int) -> None:
        connection.execute("INSERT INTO model (id, name, head) VALUES (?, ?, ?)", (model, name, head))

    def _append(self, connection: sqlite3.Connection, batch: Batch, folded: Marks) -> list[Appended]:
        rows, answers = self._numbered(connection, batch, folded, {})
        if not self._insert(connection, rows):
            # The index knew some of them. As if nothing had been tried, look which.
            connection.execute("ROLLBACK")
            connection.execute("BEGIN IMMEDIATE")
            rows, answers = self._numbered(connection, batch, folded, _known(connection, batch))
            if not self._insert(connection, rows):
                raise StoreBroken("the index of nonces and the log contradict each other; audit the store")
        for model, head in heads_after(rows).items():
            connection.execute("UPDATE model SET head = ? WHERE id = ?", (head, model))
        return answers

    def _numbered(
        self, connection: sqlite3.Connection, batch: Batch, folded: Marks, known: Known
    ) -> tuple[list[Row], list[Appended]]:
        heads: dict[int, int] = {}
        for model in {model for model, _ in batch}:
            heads |= connection.execute("SELECT id, head FROM model WHERE id = ?", (model,)).fetchall()
        return numbered(batch, heads, self._links(connection, heads, folded), known)

    def _insert(self, connection: sqlite3.Connection, rows: Sequence[Row]) -> bool:
        start = 0
        while start < len(rows):
            # Powers of two, so that a handful of prepared statements serves all sizes.
            size = min(MOST_ROWS, 1 << ((len(rows) - start).bit_length() - 1))
            done = connection.execute(
                "INSERT INTO event (model, seq, kind, nonce, payload, received, link) VALUES "
                + ", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * size)
                + " ON CONFLICT (model, nonce) DO NOTHING",
                [value for row in rows[start : start + size] for value in row],
            )
            if done.rowcount != size:
                return False
            start += size
        self._wrote(len(rows), sum(len(row[4]) for row in rows))
        return True

    def copy_to(self, path: Path) -> None:
        """Write all that is there at this moment into a file, which is empty yet; others go on writing."""
        # Not SQLite's backup API: that copies free pages too, and what was deleted may still be in them.
        with self._file.reading() as connection:
            try:
                connection.execute("VACUUM INTO ?", (str(path),))
            except sqlite3.Error as error:
                raise WorkFailed(f"{self._file.path} cannot be copied: {error}") from None

    def compact(self) -> None:
        self._file.compact()

    def _wiped(self) -> bool:
        return self._file.empty_wal()

    def _wrote(self, rows: int, size: int) -> None:
        self._file.count(rows, size)

    def _chunk(self, model: int, after: int, upto: int, *, feedback: bool = True, without: int = 0) -> Chunk:
        # The log's own order would be chosen otherwise, and all feedback read.
        index, kinds = ("", "") if feedback else ("INDEXED BY event_catalog", "AND kind <> 1")
        query = (
            "SELECT seq, kind, nonce, CASE WHEN seq = ? THEN X'' ELSE payload END, received, link "
            f"FROM event {index} WHERE model = ? AND seq > ? AND seq <= ? {kinds} ORDER BY seq "
            f"LIMIT {self.tuning.chunk_events}"
        )
        chunk: list[Event] = []
        links: list[bytes] = []
        size = 0
        with (
            self._file.reading() as connection,
            closing(connection.execute(query, (without, model, after, upto))) as found,
        ):
            for seq, kind, nonce, payload, received, link in found:
                chunk.append(Event(seq, kind, nonce, payload, received))
                links.append(link)
                size += len(payload)
                if size >= self.tuning.chunk_bytes:
                    break
        return chunk, links


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
