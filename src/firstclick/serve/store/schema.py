"""The tables of both databases, and the number of their format.

The format is stored beside the tables. A database with another format is refused.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from firstclick.errors import InvalidInput
from firstclick.serve.store.crash_points import step

FORMAT = 1

SQLITE_TABLES = [
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # AUTOINCREMENT: the number of a model or key that is gone is never given again.
    """CREATE TABLE model (
        id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, head INTEGER NOT NULL)""",
    # `link`: see serve/log/history.py.
    """CREATE TABLE event (
        model INTEGER NOT NULL, seq INTEGER NOT NULL, kind INTEGER NOT NULL,
        nonce BLOB NOT NULL CHECK (length(nonce) = 16), payload BLOB NOT NULL, received REAL NOT NULL,
        link BLOB NOT NULL, PRIMARY KEY (model, seq)) WITHOUT ROWID""",
    # This index decides what is a duplicate.
    "CREATE UNIQUE INDEX event_nonce ON event (model, nonce)",
    # All but feedback: the few events among millions that change a catalog.
    "CREATE INDEX event_catalog ON event (model, seq) WHERE kind <> 1",
    """CREATE TABLE snapshot (
        model INTEGER NOT NULL, seq INTEGER NOT NULL, content BLOB NOT NULL, PRIMARY KEY (model, seq))""",
    """CREATE TABLE token_key (
        id INTEGER PRIMARY KEY AUTOINCREMENT, secret BLOB NOT NULL, created REAL NOT NULL)""",
    """CREATE TABLE api_key (
        id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, role TEXT NOT NULL,
        hash BLOB NOT NULL UNIQUE, created REAL NOT NULL, model TEXT)""",
    # Models whose events are being put in, or removed, piece by piece: they have no row in `model`.
    "CREATE TABLE unfinished (model INTEGER PRIMARY KEY, touched REAL NOT NULL)",
    # What an archived model knew after event `seq`. The events below it, but for the first, are archived;
    # `issued` is when the newest slate among them was recommended, in ms.
    """CREATE TABLE base (
        model INTEGER PRIMARY KEY, seq INTEGER NOT NULL, issued INTEGER NOT NULL,
        content BLOB NOT NULL)""",
    f"INSERT INTO meta VALUES ('format', '{FORMAT}')",
]

POSTGRESQL_TABLES = [
    "CREATE TABLE firstclick_meta (key text PRIMARY KEY, value text NOT NULL)",
    # Room in the page for new versions of a row: its head changes with every commit.
    """CREATE TABLE firstclick_model (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE,
        head bigint NOT NULL) WITH (fillfactor = 20)""",
    """CREATE TABLE firstclick_event (
        model bigint NOT NULL, seq bigint NOT NULL, kind smallint NOT NULL,
        nonce bytea NOT NULL CHECK (octet_length(nonce) = 16), payload bytea NOT NULL,
        received double precision NOT NULL, link bytea NOT NULL, PRIMARY KEY (model, seq))""",
    "CREATE UNIQUE INDEX firstclick_event_nonce ON firstclick_event (model, nonce)",
    "CREATE INDEX firstclick_event_catalog ON firstclick_event (model, seq) WHERE kind <> 1",
    """CREATE TABLE firstclick_snapshot (
        model bigint NOT NULL, seq bigint NOT NULL, content bytea NOT NULL, PRIMARY KEY (model, seq))""",
    """CREATE TABLE firstclick_token_key (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, secret bytea NOT NULL,
        created double precision NOT NULL)""",
    """CREATE TABLE firstclick_api_key (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, role text NOT NULL,
        hash bytea NOT NULL UNIQUE, created double precision NOT NULL, model text)""",
    # Who is alive is known again within a second: not worth the disk. `heard` is the server's clock.
    """CREATE UNLOGGED TABLE firstclick_replica (
        name text PRIMARY KEY, seen double precision NOT NULL, seqs jsonb NOT NULL,
        heard timestamptz NOT NULL)""",
    """CREATE TABLE firstclick_unfinished (
        model bigint PRIMARY KEY, touched double precision NOT NULL)""",
    """CREATE TABLE firstclick_base (
        model bigint PRIMARY KEY, seq bigint NOT NULL, issued bigint NOT NULL, content bytea NOT NULL)""",
    f"INSERT INTO firstclick_meta VALUES ('format', '{FORMAT}')",
]


class Schema(ABC):
    """The tables in a database, which messages call by `name`."""

    tables: ClassVar[list[str]]

    def __init__(self, name: str, connection: Any) -> None:
        self._name = name
        self._connection = connection

    @abstractmethod
    def stored_format(self) -> str | None:
        """Return the format of the tables, None if there are none; InvalidInput if they are not ours."""

    @abstractmethod
    def create(self) -> None:
        """Create the tables in one transaction; do nothing when another process was faster."""

    def prepare(self, *, read_only: bool) -> None:
        """Create the tables where there are none; InvalidInput for another format."""
        if self.stored_format() is None:
            if read_only:
                raise InvalidInput(
                    f"{self._name} is empty: it has no tables of firstclick; start a server on it once, or "
                    "name another store"
                )
            self.create()
            step("after creation of tables")
        if (stored := self.stored_format()) != str(FORMAT):
            raise InvalidInput(
                f"{self._name} has format {stored}, and this firstclick reads format {FORMAT}; use the "
                "firstclick that made it, or name another store"
            )
