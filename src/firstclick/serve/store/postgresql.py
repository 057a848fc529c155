"""Logs in a PostgreSQL database, for several processes at once.

The seq of an event is taken from its model's row while that row is locked, so events become visible in the
order of their numbers, and a reader that goes on after the last it saw misses none. (A sequence of PostgreSQL
gives no such promise: a lower number may be committed after a higher one was read.)
"""

import time
from collections.abc import Iterator, Sequence
from itertools import islice

from psycopg.types.json import Jsonb

from firstclick.serve.log.events import Event
from firstclick.serve.log.tuning import DEFAULT, Clock, Tuning
from firstclick.serve.store.numbering import Batch, Row, heads_after, numbered
from firstclick.serve.store.postgresql_link import Connection, Link, PostgresSchema
from firstclick.serve.store.store import Appended, Chunk, Marks, Store
from firstclick.wire.errors import StoreBroken


class PostgresStore(Store):
    """Logs in a PostgreSQL database, for several processes at once."""

    kind = "postgresql"
    shared = True
    prefix = "firstclick_"

    def __init__(
        self,
        url: str,
        *,
        relaxed: bool = False,
        read_only: bool = False,
        tuning: Tuning = DEFAULT,
        clock: Clock = time,
    ) -> None:
        """Reach the database and make its tables; Unavailable when it cannot be reached.

        `relaxed` trusts the server not to crash: what was committed last may then be lost, nothing else.
        """
        self._link = link = Link(url, relaxed=relaxed, read_only=read_only, tuning=tuning)
        try:
            with link.patient() as connection:
                PostgresSchema(link.name, connection).prepare(read_only=read_only)
            careless = link.rows(
                "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off'"
            )
        except BaseException:
            link.close()
            raise
        notes = tuple(
            f"{link.name} runs with {name} off: a crash of its machine may lose what was acknowledged"
            for (name,) in careless
        )
        super().__init__(link, notes, tuning=tuning, clock=clock)

    def note_replica(self, name: str, seqs: dict[int, int], now: float) -> None:
        # Not on the connection that writes: this need not wait for a commit.
        self._link.rows(
            "WITH gone AS (DELETE FROM firstclick_replica WHERE heard < clock_timestamp() - "
            "interval '1 hour' AND name <> ?) INSERT INTO firstclick_replica "
            "VALUES (?, ?, ?, clock_timestamp()) ON CONFLICT (name) DO UPDATE "
            "SET seen = excluded.seen, seqs = excluded.seqs, heard = excluded.heard RETURNING name",
            (name, name, now, Jsonb(seqs)),
        )

    def replicas(self) -> list[tuple[str, float, dict[int, int]]]:
        found = self._link.rows(
            "SELECT name, seen, seqs FROM firstclick_replica WHERE heard > clock_timestamp() - "
            "interval '1 minute' ORDER BY name"
        )
        return [(name, seen, {int(model): seq for model, seq in seqs.items()}) for name, seen, seqs in found]

    def check(self) -> list[str]:
        with self._link.patient() as connection:
            return self._contradictions(connection)

    def _new_row(self, connection: Connection, statement: str, values: Sequence[object]) -> int:
        made = connection.execute(f"{statement} RETURNING id", values).fetchone()
        return int(made[0]) if made else 0

    def _insert_model(self, connection: Connection, model: int, name: str, head: int) -> None:
        connection.execute(
            "INSERT INTO firstclick_model (id, name, head) OVERRIDING SYSTEM VALUE VALUES (?, ?, ?)",
            (model, name, head),
        )

    def _append(self, connection: Connection, batch: Batch, folded: Marks) -> list[Appended]:
        models = [model for model, _ in batch]
        # In order of their numbers: two processes that lock the same models do not wait for each other.
        heads = connection.execute(
            "SELECT id, head FROM firstclick_model WHERE id = ANY(?) ORDER BY id FOR UPDATE",
            (list(set(models)),),
        ).fetchall()
        # Statements of their own: they see what was committed while the one before waited for its locks.
        links = self._links(connection, dict(heads), folded)
        known = connection.execute(
            "SELECT model, nonce, seq, payload FROM unnest(%b::bigint[], %b::bytea[]) "
            "AS given (model, nonce) JOIN firstclick_event USING (model, nonce)",
            (models, [event.nonce for _, event in batch]),
            binary=True,
        ).fetchall()
        found = {(model, nonce): (seq, payload) for model, nonce, seq, payload in known}
        rows, answers = numbered(batch, dict(heads), links, found)
        if not self._insert(connection, rows):
            # The log was asked under the same lock.
            raise StoreBroken("the index of nonces and the log contradict each other; audit the store")
        after = heads_after(rows)
        connection.execute(
            "UPDATE firstclick_model SET head = given.head FROM unnest(?::bigint[], ?::bigint[]) "
            "AS given (id, head) WHERE firstclick_model.id = given.id",
            (list(after), list(after.values())),
        )
        return answers

    def _insert(self, connection: Connection, rows: Sequence[Row]) -> bool:
        left = iter(rows)
        while part := self._some(left):
            models, seqs, kinds, nonces, payloads, received, links = map(list, zip(*part, strict=True))
            done = connection.execute(
                "INSERT INTO firstclick_event (model, seq, kind, nonce, payload, received, link) "
                "SELECT * FROM unnest(%b::bigint[], %b::bigint[], %b::smallint[], %b::bytea[], %b::bytea[], "
                "%b::double precision[], %b::bytea[]) ON CONFLICT (model, nonce) DO NOTHING",
                (models, seqs, [int(kind) for kind in kinds], nonces, payloads, received, links),
            )
            if done.rowcount != len(part):
                return False
        return True

    def _some(self, left: Iterator[Row]) -> list[Row]:
        """The next rows, of some megabytes at most unless one alone is larger."""
        part: list[Row] = []
        size = 0
        for row in islice(left, self.tuning.chunk_events):
            part.append(row)
            size += len(row[4])
            if size >= self.tuning.chunk_bytes:
                break
        return part

    def _chunk(self, model: int, after: int, upto: int, *, feedback: bool = True, without: int = 0) -> Chunk:
        kinds = "" if feedback else "AND kind <> 1"
        query = (
            "SELECT seq, kind, nonce, payload, received, link FROM (SELECT *, sum(length(payload)) OVER ("
            "ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM (SELECT seq, "
            "kind, nonce, CASE WHEN seq = ? THEN '' ELSE payload END AS payload, received, link "
            f"FROM firstclick_event WHERE model = ? AND seq > ? AND seq <= ? {kinds} ORDER BY seq "
            f"LIMIT {self.tuning.chunk_events}) AS next) AS next "
            f"WHERE coalesce(before, 0) < {self.tuning.chunk_bytes} ORDER BY seq"
        )
        rows = self._link.rows(query, (without, model, after, upto))
        return [Event(*row[:5]) for row in rows], [row[5] for row in rows]
