"""A PostgreSQL server, a second one that follows it or is a backup of it, and one address for both."""

import os
import shutil
import socket
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import psycopg

from tests.support.stores import Server


class Pair:
    """A primary and its standby. Clients know one address, which stands for the primary until `exchange`."""

    def __init__(self):
        self.primary = Server()
        self._running = True
        self._standby = None
        self._relay = Relay(_socket_in(self.primary._folder))
        self.url = f"postgresql://postgres@127.0.0.1:{self._relay.port}/postgres?sslmode=disable"

    def start_standby(self):
        """A copy of the primary as it is now, which follows it from then on."""
        from pgserver._commands import pg_basebackup

        self._standby = folder = Path(tempfile.mkdtemp(prefix="fc-sb-"))
        user = self.primary._server.system_user
        if user is not None:
            shutil.chown(folder, user, user)
        address = self.primary._server.get_uri()
        pg_basebackup(["-d", address, "-X", "stream", "-R", "-c", "fast"], pgdata=folder, user=user)
        for left in (folder / "postmaster.pid", *folder.glob(".s.PGSQL.*.lock")):
            left.unlink(missing_ok=True)
        self._control("-w", "-o", f'-h "" -k {folder}', "-l", str(folder / "log"), "start")

    def stop_following(self):
        """From now on the standby misses what is committed, as behind a network that is cut."""
        self._ask_standby("ALTER SYSTEM SET primary_conninfo = ''")
        self._ask_standby("SELECT pg_reload_conf()")
        until = time.monotonic() + 20
        while self._ask_standby("SELECT count(*) FROM pg_stat_wal_receiver") != [(0,)]:
            assert time.monotonic() < until
            time.sleep(0.01)

    def exchange(self):
        """The primary is gone, and the standby takes its place and its address."""
        assert self._standby is not None
        self.primary.stop("immediate")
        self._running = False
        self._control("-w", "promote")
        self._relay.switch(_socket_in(self._standby))

    def close(self):
        self._relay.close()
        if self._standby is not None:
            if (self._standby / "postmaster.pid").exists():
                self._control("-w", "-m", "immediate", "stop")
            shutil.rmtree(self._standby, ignore_errors=True)
        if not self._running:
            self.primary.start()
        self.primary.close()

    def _control(self, *arguments):
        from pgserver._commands import pg_ctl

        pg_ctl([*arguments], pgdata=self._standby, user=self.primary._server.system_user, timeout=60)

    def _ask_standby(self, statement):
        address = f"postgresql://postgres@/postgres?host={self._standby}"
        with psycopg.connect(address, autocommit=True) as connection:
            done = connection.execute(statement.encode())
            return done.fetchall() if done.description else []


class Relay:
    """A port of this machine that carries bytes to and from the socket of a server."""

    def __init__(self, target):
        self._target = target
        self._open = []
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def switch(self, target):
        """Who is connected is cut off; who connects from now on reaches the other."""
        with self._lock:
            self._target = target
            cut, self._open = self._open, []
        for one in cut:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self):
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.switch("")

    def _accept(self):
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            with self._lock:
                try:
                    server.connect(self._target)
                except OSError:
                    client.close()
                    server.close()
                    continue
                self._open += [client, server]
            threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client, server):
        back = threading.Thread(target=self._carry, args=(server, client), daemon=True)
        back.start()
        self._carry(client, server)
        back.join()
        client.close()
        server.close()

    def _carry(self, source, target):
        with suppress(OSError):
            while content := source.recv(65_536):
                target.sendall(content)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def _socket_in(folder):
    return os.fspath(next(folder.glob(".s.PGSQL.*[0-9]")))
