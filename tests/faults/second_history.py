"""A second history of a store, as after a standby was promoted without its last commits or a backup was
restored, and the exchange of one history for the other behind a server's back."""

import itertools
import re
import sqlite3
import time

import psycopg

from firstclick.serve.store import open_store

TABLES = ("meta", "model", "event", "snapshot", "token_key", "api_key", "unfinished")
_names = itertools.count(1)


def copied(url, folder):
    """The address of another store with all that this one holds now."""
    if url.startswith("postgresql"):
        other = f"copy_{next(_names)}"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {other}".encode())
        address = re.sub(r"search_path%3D\w+", f"search_path%3D{other}", url)
        open_store(address).close()
        replaced(address, url)
        return address
    path = folder / f"copy-{next(_names)}.db"
    with sqlite3.connect(url) as source, sqlite3.connect(path) as target:
        source.backup(target)
    source.close()
    target.close()
    return str(path)


def replaced(url, by):
    """The store holds what the other holds, from one moment to the next: its file or database stays."""
    if url.startswith("postgresql"):
        _replaced_tables(url, by)
        return
    source, target = sqlite3.connect(by), sqlite3.connect(url, timeout=20)
    until = time.monotonic() + 20
    while True:
        try:
            source.backup(target)
            break
        except sqlite3.OperationalError:  # The server writes just now.
            assert time.monotonic() < until
            time.sleep(0.005)
    source.close()
    target.close()


def _replaced_tables(url, by):
    source, target = (re.findall(r"search_path%3D(\w+)", address)[0] for address in (by, url))
    with psycopg.connect(url) as connection:
        # All that is read is of one moment: the first statement after the locks. Only who writes waits.
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        for table in ("model", "snapshot"):
            connection.execute(f"LOCK TABLE {target}.firstclick_{table} IN EXCLUSIVE MODE".encode())
        for table in TABLES:
            name = f"firstclick_{table}"
            connection.execute(f"DELETE FROM {target}.{name}".encode())
            overriding = "OVERRIDING SYSTEM VALUE" if table in ("model", "token_key", "api_key") else ""
            connection.execute(
                f"INSERT INTO {target}.{name} {overriding} SELECT * FROM {source}.{name}".encode()
            )
            if overriding:
                connection.execute(
                    f"SELECT setval(pg_get_serial_sequence('{target}.{name}', 'id'), "
                    f"coalesce(max(id), 1)) FROM {target}.{name}".encode()
                )
