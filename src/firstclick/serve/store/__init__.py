"""Where logs are kept."""

import time
from pathlib import Path

from firstclick.errors import InvalidInput
from firstclick.extras import needed_by
from firstclick.files.reading import as_path
from firstclick.serve.log.tuning import DEFAULT, Clock, Tuning
from firstclick.serve.store.store import Store


def open_store(
    url: str | Path,
    *,
    relaxed: bool = False,
    read_only: bool = False,
    tuning: Tuning = DEFAULT,
    clock: Clock = time,
) -> Store:
    """The store at a path or `sqlite:path`, or `postgresql://...`; made if it is not there yet."""
    text = url if isinstance(url, str) else str(as_path(url))
    if text.startswith(("postgresql://", "postgres://")):
        with needed_by("a store in PostgreSQL"):
            from firstclick.serve.store.postgresql import PostgresStore
        return PostgresStore(text, relaxed=relaxed, read_only=read_only, tuning=tuning, clock=clock)
    from firstclick.serve.store.sqlite import SqliteStore

    path = text.removeprefix("sqlite:")
    if not path or "://" in text or (path != text and path.startswith("//")):
        scheme = text.partition("://")[0]
        raise InvalidInput(
            "a store is a file (shop.db, sqlite:shop.db) or a database (postgresql://user@host/name), not "
            f"{scheme!r}"
        )
    return SqliteStore(path, relaxed=relaxed, read_only=read_only, tuning=tuning, clock=clock)
