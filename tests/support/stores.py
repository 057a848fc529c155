"""Stores to test with, of both kinds. PostgreSQL is a real server, started once for all tests."""

import atexit
import itertools
import shutil
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import pytest

from firstclick.serve.log.events import Kind, NewEvent
from firstclick.serve.store import open_store

KINDS = ["sqlite", "postgresql"]
_names = itertools.count(1)


class Server:
    """A PostgreSQL server of our own, in a temporary folder, heard by a socket there."""

    def __init__(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a runtime folder that it then makes
            self._pgserver = pytest.importorskip("pgserver", reason="pgserver is not installed here")
        # Short, because the name of a socket is; in the open, because as root it runs as another user.
        self._folder = Path(tempfile.mkdtemp(prefix="fc-pg-"))
        get = self._pgserver.get_server
        try:
            self._server = get(self._folder, cleanup_mode=None)
        except subprocess.TimeoutExpired:
            self._server = get(self._folder, cleanup_mode=None)
            self.start()

    def new_database(self):
        """An address where no tables are: a schema of its own, which is made faster than a database."""
        name = f"test_{next(_names)}"
        self.run(f"CREATE SCHEMA {name}")
        return f"{self._server.get_uri()}&options=-csearch_path%3D{name}"

    def address_of(self, database):
        """The address of a database by its name."""
        return str(self._server.get_uri(database))

    def run(self, statement):
        import psycopg

        with psycopg.connect(self._server.get_uri(), autocommit=True) as connection:
            connection.execute(statement.encode())

    def kill_connections(self):
        """As an administrator would, or a failover."""
        self.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")

    def restart(self):
        self.stop()
        self.start()

    def start(self):
        """Wait longer than the ten seconds of pgserver: the machine may be busy."""
        for _ in range(12):
            try:
                self._server.ensure_postgres_running()
                return
            except (subprocess.SubprocessError, AssertionError):
                time.sleep(1)
        raise TimeoutError("PostgreSQL does not start")

    def stop(self, how="fast"):
        from pgserver._commands import pg_ctl

        pg_ctl(["-w", "-m", how, "stop"], pgdata=self._folder, user=self._server.system_user)

    def close(self):
        self.stop("immediate")
        self._server.cleanup()
        atexit.unregister(self._server._cleanup)
        shutil.rmtree(self._folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgresql():
    """The server, or skip."""
    server = Server()
    yield server
    server.close()


@pytest.fixture(params=KINDS)
def store_url(request, tmp_path):
    """The address of an empty store of either kind."""
    if request.param == "sqlite":
        return str(tmp_path / "shop.db")
    server = request.getfixturevalue("postgresql")
    return server.new_database()


@pytest.fixture
def store(store_url):
    """An empty store of either kind."""
    opened = open_store(store_url)
    yield opened
    opened.close()


@pytest.fixture
def postgresql_url(postgresql):
    """The address of an empty database."""
    return postgresql.new_database()


def feedback(number, payload=b"clicked", kind=Kind.FEEDBACK):
    """An event; the number is its nonce."""
    return NewEvent(kind, number.to_bytes(16, "big"), payload, 1_700_000_000.25 + number)


def log_of(store, model, after=0, upto=None, **how):
    """The events as one list."""
    return [event for chunk in store.events(model, after, upto, **how) for event in chunk]


def raised(call):
    """What a call raises, if anything."""
    try:
        call()
    except Exception as error:
        return error
    return None
