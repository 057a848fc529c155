"""Logs in a PostgreSQL database, for several processes at once.

The seq of an event is taken from its model's row while that row is locked, so events become visible in the
order of their numbers, and a reader that goes on after the last it saw misses none. (A sequence of PostgreSQL
gives no such promise: a lower number may be committed after a higher one was read.)
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from psycopg.types.json import Jsonb

from firstclick.errors import InvalidInput
from firstclick.serve.log.events import Event, NewEvent
from firstclick.serve.log.token import TokenKey
from firstclick.serve.store import migrations
from firstclick.serve.store.crash_points import step
from firstclick.serve.store.numbering import Batch, Row, first_rows, gaps, heads_after, numbered
from firstclick.serve.store.postgresql_link import Connection, Link, Schema
from firstclick.serve.store.store import KEPT_SNAPSHOTS, ApiKey, Appended, Store, StoredModel
from firstclick.wire.errors import Conflict

CHUNK_EVENTS = 4096
CHUNK_BYTES = 16_000_000


class PostgresStore(Store):
    """Logs in a PostgreSQL database, for several processes at once."""

    kind = "postgresql"
    shared = True

    def __init__(self, url: str, *, relaxed: bool = False, read_only: bool = False) -> None:
        """Reach the database and make or change its tables; Unavailable when it cannot be reached.

        `relaxed` trusts the server not to crash: what was committed last may then be lost, nothing else.
        """
        self._link = Link(url, relaxed=relaxed, read_only=read_only)
        try:
            with self._link.patient() as connection:
                steps = migrations.POSTGRESQL_STEPS
                schema = Schema(connection)
                if not read_only:
                    migrations.migrate(self._link.name, schema, steps)
                migrations.check_known(self._link.name, schema.number(), len(steps))
                if schema.number() < len(steps):
                    raise InvalidInput(
                        f"{self._link.name} has tables of an older firstclick, or none; start a server on it "
                        "once, which brings them up to date"
                    )
            careless = self._link.rows(
                "SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off'"
            )
        except BaseException:
            self.close()
            raise
        self.notes = tuple(
            f"{self._link.name} runs with {name} off: a crash of its machine may lose what was acknowledged"
            for (name,) in careless
        )

    def close(self) -> None:
        self._link.close()

    # -- logs

    def models(self) -> list[StoredModel]:
        return [
            StoredModel(*row)
            for row in self._link.rows("SELECT id, name, head FROM firstclick_model ORDER BY id")
        ]

    def create(self, name: str, events: Sequence[NewEvent]) -> StoredModel:
        step("before begin")
        with self._link.transaction() as connection:
            step("after begin")
            made = connection.execute(
                "INSERT INTO firstclick_model (name, head) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING "
                "RETURNING id",
                (name, len(events)),
            ).fetchone()
            if made is None:
                there = connection.execute(
                    "SELECT id, name, head, nonce FROM firstclick_model LEFT JOIN firstclick_event "
                    "ON model = id AND seq = 1 WHERE name = %s",
                    (name,),
                ).fetchone()
                if there is None or not events or there[3] != events[0].nonce:
                    raise Conflict(f"there is a model {name!r} already; choose another name")
                return StoredModel(*there[:3])  # The same call, sent again because no answer came.
            model = StoredModel(made[0], name, len(events))
            _insert(connection, first_rows(model.id, name, events))
            step("after insert")
        step("after commit")
        return model

    def append(self, batch: Batch) -> list[Appended]:
        if not batch:
            return []
        step("before begin")
        with self._link.transaction() as connection:
            step("after begin")
            models = [model for model, _ in batch]
            # In order of their numbers: two processes that lock the same models do not wait for each other.
            heads = connection.execute(
                "SELECT id, head FROM firstclick_model WHERE id = ANY(%s) ORDER BY id FOR UPDATE",
                (list(set(models)),),
            ).fetchall()
            # A statement of its own: it sees what was committed while the one before waited for its locks.
            known = connection.execute(
                "SELECT model, nonce, seq, payload FROM unnest(%b::bigint[], %b::bytea[]) "
                "AS given (model, nonce) JOIN firstclick_event USING (model, nonce)",
                (models, [event.nonce for _, event in batch]),
                binary=True,
            ).fetchall()
            found = {(model, nonce): (seq, payload) for model, nonce, seq, payload in known}
            rows, answers = numbered(batch, dict(heads), found)
            _insert(connection, rows)
            after = heads_after(rows)
            connection.execute(
                "UPDATE firstclick_model SET head = given.head FROM unnest(%s::bigint[], %s::bigint[]) "
                "AS given (id, head) WHERE firstclick_model.id = given.id",
                (list(after), list(after.values())),
            )
            step("after insert")
        step("after commit")
        return answers

    def events(
        self, model: int, after: int, upto: int | None = None, *, feedback: bool = True
    ) -> Iterator[list[Event]]:
        if upto is None:
            heads = self._link.rows("SELECT head FROM firstclick_model WHERE id = %s", (model,))
            upto = max((head for (head,) in heads), default=0)
        kinds = "" if feedback else "AND kind <> 1"
        query = (
            "SELECT seq, kind, nonce, payload, received FROM (SELECT *, sum(length(payload)) OVER ("
            "ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM (SELECT * "
            f"FROM firstclick_event WHERE model = %s AND seq > %s AND seq <= %s {kinds} ORDER BY seq "
            f"LIMIT {CHUNK_EVENTS}) AS next) AS next WHERE coalesce(before, 0) < {CHUNK_BYTES} ORDER BY seq"
        )
        while after < upto:
            chunk = [Event._make(row) for row in self._link.rows(query, (model, after, upto))]
            if not chunk:
                return
            yield chunk
            after = chunk[-1].seq

    # -- snapshots

    def save_snapshot(self, model: int, seq: int, content: bytes) -> None:
        with self._link.transaction() as connection:
            connection.execute(
                "INSERT INTO firstclick_snapshot VALUES (%s, %s, %b) ON CONFLICT (model, seq) DO UPDATE "
                "SET content = excluded.content",
                (model, seq, content),
            )
            step("after snapshot insert")
            connection.execute(
                "DELETE FROM firstclick_snapshot WHERE model = %(model)s AND seq <> %(seq)s AND seq NOT IN ("
                "SELECT seq FROM firstclick_snapshot WHERE model = %(model)s AND seq <> %(seq)s "
                "ORDER BY seq DESC LIMIT %(others)s)",
                {"model": model, "seq": seq, "others": KEPT_SNAPSHOTS - 1},
            )
        step("after snapshot")

    def snapshots(self, model: int) -> list[tuple[int, bytes]]:
        return self._link.rows(
            "SELECT seq, content FROM firstclick_snapshot WHERE model = %s ORDER BY seq DESC", (model,)
        )

    # -- keys

    def token_keys(self) -> list[TokenKey]:
        found = self._link.rows("SELECT id, secret, created FROM firstclick_token_key ORDER BY id")
        return [TokenKey(*row) for row in found]

    def add_token_key(self, secret: bytes, created: float) -> TokenKey:
        with self._link.transaction() as connection:
            made = connection.execute(
                "INSERT INTO firstclick_token_key (secret, created) VALUES (%s, %s) RETURNING id",
                (secret, created),
            )
            return TokenKey(_id(made), secret, created)

    def drop_token_keys(self, before: int) -> None:
        with self._link.transaction() as connection:
            connection.execute("DELETE FROM firstclick_token_key WHERE id < %s", (before,))

    def api_keys(self) -> list[ApiKey]:
        found = self._link.rows("SELECT id, name, role, hash, created FROM firstclick_api_key ORDER BY id")
        return [ApiKey(*row) for row in found]

    def add_api_key(self, name: str, role: str, hash: bytes, created: float) -> ApiKey:
        with self._link.transaction() as connection:
            made = connection.execute(
                "INSERT INTO firstclick_api_key (name, role, hash, created) VALUES (%s, %s, %s, %s) "
                "RETURNING id",
                (name, role, hash, created),
            )
            return ApiKey(_id(made), name, role, hash, created)

    def revoke_api_key(self, key: int) -> bool:
        with self._link.transaction() as connection:
            return connection.execute("DELETE FROM firstclick_api_key WHERE id = %s", (key,)).rowcount > 0

    # -- several processes

    def note_replica(self, name: str, seqs: dict[int, int], now: float) -> None:
        # Not on the connection that writes: this need not wait for a commit.
        self._link.rows(
            "WITH gone AS (DELETE FROM firstclick_replica WHERE heard < clock_timestamp() - "
            "interval '1 hour' AND name <> %(name)s) INSERT INTO firstclick_replica "
            "VALUES (%(name)s, %(seen)s, %(seqs)s, clock_timestamp()) ON CONFLICT (name) DO UPDATE "
            "SET seen = excluded.seen, seqs = excluded.seqs, heard = excluded.heard RETURNING name",
            {"name": name, "seen": now, "seqs": Jsonb(seqs)},
        )

    def replicas(self) -> list[tuple[str, float, dict[int, int]]]:
        found = self._link.rows(
            "SELECT name, seen, seqs FROM firstclick_replica WHERE heard > clock_timestamp() - "
            "interval '1 minute' ORDER BY name"
        )
        return [(name, seen, {int(model): seq for model, seq in seqs.items()}) for name, seen, seqs in found]

    # -- damage

    def check(self) -> list[str]:
        with self._link.patient() as connection:
            found = gaps(
                connection.execute(
                    "SELECT id, name, head, count(seq), min(seq), max(seq) FROM firstclick_model "
                    "LEFT JOIN firstclick_event ON model = id GROUP BY id ORDER BY id"
                )
            )
            strays = connection.execute(
                "SELECT DISTINCT model FROM firstclick_event WHERE model NOT IN (SELECT id "
                "FROM firstclick_model)"
            )
            found += [f"there are events of a model number {model}, but no such model" for (model,) in strays]
            twice = connection.execute(
                "SELECT model, nonce, count(*) FROM firstclick_event GROUP BY model, nonce "
                "HAVING count(*) > 1 LIMIT 20"
            )
            found += [
                f"nonce {nonce.hex()} is {n} times in the log of model number {model}"
                for model, nonce, n in twice
            ]
        return found


def _id(made: Any) -> int:
    return int(made.fetchone()[0])


def _insert(connection: Connection, rows: Sequence[Row]) -> None:
    """All rows; a nonce that is there already is an error, because the log was asked under the same lock."""
    left = iter(rows)
    while part := _some(left):
        models, seqs, kinds, nonces, payloads, received = map(list, zip(*part, strict=True))
        connection.execute(
            "INSERT INTO firstclick_event (model, seq, kind, nonce, payload, received) SELECT * FROM unnest("
            "%b::bigint[], %b::bigint[], %b::smallint[], %b::bytea[], %b::bytea[], %b::double precision[])",
            (models, seqs, [int(kind) for kind in kinds], nonces, payloads, received),
        )


def _some(left: Iterator[Row]) -> list[Row]:
    """The next rows, of some megabytes at most unless one alone is larger."""
    part: list[Row] = []
    size = 0
    for row in islice(left, CHUNK_EVENTS):
        part.append(row)
        size += len(row[4])
        if size >= CHUNK_BYTES:
            break
    return part
