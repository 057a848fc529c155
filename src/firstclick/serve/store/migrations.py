"""The tables of a store, made and changed by numbered steps.

Step n brings a database from schema n - 1 to schema n, in one transaction with its new number: a process that
is killed leaves a whole schema behind, and the next start goes on from there. A step that was released is
never changed; it leaves in place what processes of the version before still read and write, because with
PostgreSQL they run on while the first new one starts.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from firstclick.errors import InvalidInput
from firstclick.serve.store.crash_points import step

SQLITE_STEPS: list[Sequence[str]] = [
    (
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        # AUTOINCREMENT: the number of a model or key that is gone is never given again.
        """CREATE TABLE model (
            id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, head INTEGER NOT NULL)""",
        """CREATE TABLE event (
            model INTEGER NOT NULL, seq INTEGER NOT NULL, kind INTEGER NOT NULL,
            nonce BLOB NOT NULL CHECK (length(nonce) = 16), payload BLOB NOT NULL, received REAL NOT NULL,
            PRIMARY KEY (model, seq)) WITHOUT ROWID""",
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
            hash BLOB NOT NULL UNIQUE, created REAL NOT NULL)""",
    ),
    (
        # Models whose events are being put in, or removed, piece by piece: they have no row in `model`.
        "CREATE TABLE unfinished (model INTEGER PRIMARY KEY, touched REAL NOT NULL)",
        # See serve/log/history.py. NULL in events of earlier versions.
        "ALTER TABLE event ADD COLUMN link BLOB",
        # A server of an earlier version may have folded events that the store has lost since.
        "DELETE FROM snapshot",
        # What an archived model knew after event `seq`. The events below it, but for the first, are archived;
        # `issued` is when the newest slate among them was recommended, in ms.
        """CREATE TABLE base (
            model INTEGER PRIMARY KEY, seq INTEGER NOT NULL, issued INTEGER NOT NULL,
            content BLOB NOT NULL)""",
    ),
]

POSTGRESQL_STEPS: list[Sequence[str]] = [
    (
        "CREATE TABLE firstclick_meta (key text PRIMARY KEY, value text NOT NULL)",
        # Room in the page for new versions of a row: its head changes with every commit.
        """CREATE TABLE firstclick_model (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE,
            head bigint NOT NULL) WITH (fillfactor = 20)""",
        """CREATE TABLE firstclick_event (
            model bigint NOT NULL, seq bigint NOT NULL, kind smallint NOT NULL,
            nonce bytea NOT NULL CHECK (octet_length(nonce) = 16), payload bytea NOT NULL,
            received double precision NOT NULL, PRIMARY KEY (model, seq))""",
        "CREATE UNIQUE INDEX firstclick_event_nonce ON firstclick_event (model, nonce)",
        "CREATE INDEX firstclick_event_catalog ON firstclick_event (model, seq) WHERE kind <> 1",
        """CREATE TABLE firstclick_snapshot (
            model bigint NOT NULL, seq bigint NOT NULL, content bytea NOT NULL, PRIMARY KEY (model, seq))""",
        """CREATE TABLE firstclick_token_key (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, secret bytea NOT NULL,
            created double precision NOT NULL)""",
        """CREATE TABLE firstclick_api_key (
            id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, role text NOT NULL,
            hash bytea NOT NULL UNIQUE, created double precision NOT NULL)""",
        # Who is alive is known again within a second: not worth the disk. `heard` is the server's clock.
        """CREATE UNLOGGED TABLE firstclick_replica (
            name text PRIMARY KEY, seen double precision NOT NULL, seqs jsonb NOT NULL,
            heard timestamptz NOT NULL)""",
    ),
    (
        """CREATE TABLE firstclick_unfinished (
            model bigint PRIMARY KEY, touched double precision NOT NULL)""",
        "ALTER TABLE firstclick_event ADD COLUMN link bytea",
        "DELETE FROM firstclick_snapshot",
        """CREATE TABLE firstclick_base (
            model bigint PRIMARY KEY, seq bigint NOT NULL, issued bigint NOT NULL, content bytea NOT NULL)""",
    ),
]


class Schema(ABC):
    """The tables in a database, which messages call by `name`."""

    steps: ClassVar[list[Sequence[str]]]

    def __init__(self, name: str, connection: Any) -> None:
        self._name = name
        self._connection = connection

    @abstractmethod
    def number(self) -> int:
        """The number of its schema; 0 before the first step."""

    @abstractmethod
    def apply(self, number: int, statements: Sequence[str]) -> None:
        """Step `number` and its number, in one transaction; nothing when another process was faster."""

    def migrate(self) -> None:
        """Bring the database to the newest schema."""
        for number in range(self._known() + 1, len(self.steps) + 1):
            self.apply(number, self.steps[number - 1])
            step("after migration step")

    def check_current(self) -> None:
        """Refuse a database that has another schema than this version's."""
        if (schema := self._known()) < len(self.steps):
            raise InvalidInput(
                f"{self._name} was made by an older firstclick (schema {schema}, this one reads "
                f"{len(self.steps)}), or is empty; start a server on it once, which brings it up to date"
            )

    def _known(self) -> int:
        """The schema's number; a newer version's is refused: what its tables mean is not known here."""
        if (schema := self.number()) > len(self.steps):
            raise InvalidInput(
                f"{self._name} was made by a newer firstclick (schema {schema}, this one knows "
                f"{len(self.steps)}); install that version, or name another store"
            )
        return schema
