"""Stores to test with, of both kinds. PostgreSQL is a real server, started once for all tests."""

import atexit
import itertools
import re
import selectors
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path

import pytest

from firstclick.serve.log.events import Kind, NewEvent
from firstclick.serve.store import open_store

KINDS = ["sqlite", "postgresql"]
_names = itertools.count(1)


class Server:
    """A PostgreSQL server in a temporary folder, reached by a socket there."""

    def __init__(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a runtime folder that it then makes
            self._pgserver = pytest.importorskip("pgserver", reason="pgserver is not installed here")
        # Short, because the name of a socket is; in the open, because as root it runs as another user.
        self.folder = Path(tempfile.mkdtemp(prefix="fc-pg-"))
        get = self._pgserver.get_server
        try:
            self._server = get(self.folder, cleanup_mode=None)
        except subprocess.TimeoutExpired:
            self._server = get(self.folder, cleanup_mode=None)
            self.start()

    @property
    def user(self):
        return self._server.system_user

    def new_database(self):
        """An address where no tables are: a schema of its own, which is made faster than a database."""
        name = f"test_{next(_names)}"
        self.run(f"CREATE SCHEMA {name}")
        return f"{self._server.get_uri()}&options=-csearch_path%3D{name}"

    def address_of(self, database="postgres"):
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

        pg_ctl(["-w", "-m", how, "stop"], pgdata=self.folder, user=self.user)

    def close(self):
        self.stop("immediate")
        self._server.cleanup()
        atexit.unregister(self._server._cleanup)
        shutil.rmtree(self.folder, ignore_errors=True)


LOSE, LOSE_ANSWER, KEEP_ANSWER = "lose it", "lose its answer", "keep its answer"


class Relay:
    """A port that carries bytes to and from a PostgreSQL server, until something happens to a COMMIT."""

    def __init__(self, folder):
        self.folder = folder  # of the server that is reached
        # What happens to the COMMIT of this number on its connection: LOSE, LOSE_ANSWER, KEEP_ANSWER or "".
        self.at_commit = lambda number: ""
        self._lock, self._open = threading.Lock(), []
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def address_of(self, url):
        """The address of this database by way of the relay."""
        folder = f"host={self.folder}"
        assert folder in url
        return url.replace(folder, f"host=127.0.0.1&port={self.port}")

    def switch(self, folder):
        """Cut all connections; later ones reach the server in the other folder."""
        with self._lock:
            self.folder = folder
            cut, self._open = self._open, []
        for end in cut:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.switch(self.folder)

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                with self._lock:
                    try:
                        server.connect(str(next(self.folder.glob(".s.PGSQL.*[0-9]"))))
                    except (OSError, StopIteration):
                        client.close()
                        server.close()
                        continue
                    self._open += [client, server]
                threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client, server):
        with client, server, suppress(OSError):
            self._carry(client, server)

    def _carry(self, client, server):
        commits, deaf = 0, False
        with selectors.DefaultSelector() as ready:
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in ready.select():
                    content, fate = key.fileobj.recv(65_536), ""
                    if key.fileobj is client and b"COMMIT\0" in content:
                        commits += 1
                        fate = self.at_commit(commits)
                    if not content or fate == LOSE:
                        return
                    if fate:
                        server.sendall(content)
                        assert b"COMMIT" in server.recv(65_536)
                        if fate == LOSE_ANSWER:
                            return
                        deaf = True
                    elif not deaf:
                        key.data.sendall(content)


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
    return request.getfixturevalue("postgresql").new_database()


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


def sql(url, statement, *values):
    """Run a statement behind the store's back and return its rows; names of tables are in braces."""
    if str(url).startswith("postgresql"):
        import psycopg

        text = re.sub(r"{(\w+)}", r"firstclick_\1", statement).replace("?", "%s")
        with psycopg.connect(url) as connection:
            cursor = connection.execute(text.encode(), values)
            return cursor.fetchall() if cursor.description else []
    connection = sqlite3.connect(url, timeout=20)
    rows = connection.execute(re.sub(r"{(\w+)}", r"\1", statement), values).fetchall()
    connection.commit()
    connection.close()
    return rows


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


def at_once(calls):
    """Run each in a thread; an error in one of them is an error here."""
    errors = []
    threads = [
        threading.Thread(target=lambda call=call: errors.append(raised(call)), daemon=True) for call in calls
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    for error in filter(None, errors):
        raise error
