"""A PostgreSQL server, a second one that follows it or is a backup of it, and one address for both."""

import shutil
import tempfile
from pathlib import Path

import psycopg

from tests.support.clock import wait_for
from tests.support.stores import Relay, Server


class Pair:
    """A primary and its standby. Clients know one address, which stands for the primary until `exchange`."""

    def __init__(self):
        self.primary = Server()
        self._running = True
        self._standby = None
        self._relay = Relay(self.primary.folder)
        self.url = f"postgresql://postgres@127.0.0.1:{self._relay.port}/postgres?sslmode=disable"

    def start_standby(self):
        """A copy of the primary as it is now, which follows it from then on."""
        from pgserver._commands import pg_basebackup

        self._standby = folder = Path(tempfile.mkdtemp(prefix="fc-sb-"))
        user = self.primary.user
        if user is not None:
            shutil.chown(folder, user, user)
        copy = ["-d", self.primary.address_of(), "-X", "stream", "-R", "-c", "fast"]
        pg_basebackup(copy, pgdata=folder, user=user)
        for left in (folder / "postmaster.pid", *folder.glob(".s.PGSQL.*.lock")):
            left.unlink(missing_ok=True)
        self._control("-w", "-o", f'-h "" -k {folder}', "-l", str(folder / "log"), "start")

    def stop_following(self):
        """From now on the standby misses what is committed, as behind a network that is cut."""
        self._ask_standby("ALTER SYSTEM SET primary_conninfo = ''")
        self._ask_standby("SELECT pg_reload_conf()")
        wait_for(lambda: self._ask_standby("SELECT count(*) FROM pg_stat_wal_receiver") == [(0,)])

    def exchange(self):
        """The primary is gone, and the standby takes its place and its address."""
        self.primary.stop("immediate")
        self._running = False
        self._control("-w", "promote")
        self._relay.switch(self._standby)

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

        pg_ctl([*arguments], pgdata=self._standby, user=self.primary.user, timeout=60)

    def _ask_standby(self, statement):
        address = f"postgresql://postgres@/postgres?host={self._standby}"
        with psycopg.connect(address, autocommit=True) as connection:
            done = connection.execute(statement.encode())
            return done.fetchall() if done.description else []
