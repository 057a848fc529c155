"""What a store in a SQLite file promises beside the rest: one owner, the disk, and errors one can act on."""

import os
import sqlite3
import stat
import tempfile
from pathlib import Path

import pytest

from firstclick.errors import InvalidInput
from firstclick.serve import Tuning
from firstclick.serve.store import open_store, sqlite_file
from firstclick.serve.store.sqlite import SqliteStore
from firstclick.wire.errors import StoreBroken, Unavailable
from tests.support.stores import feedback, log_of, raised, sql


@pytest.fixture
def path(tmp_path):
    return tmp_path / "shop.db"


@pytest.fixture
def shop(path, request):
    """A store with one model, number 1, and one event; with its tuning where a test names one."""
    store = SqliteStore(path, tuning=getattr(request, "param", Tuning()))
    store.create("shop", [feedback(0)])
    yield store
    store.close()


class Failing:
    """The connection that writes, but for one statement that fails as SQLite would."""

    def __init__(self, store, statement):
        self._connection, self.statement = store._file._writer, statement
        self.executed = []
        store._file._writer = self

    def execute(self, statement, *parameters):
        self.executed.append(statement)
        if statement.startswith(self.statement):
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
            error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
            raise error
        return self._connection.execute(statement, *parameters)

    def __getattr__(self, name):
        return getattr(self._connection, name)


# -- the disk


def test_commits_reach_the_disk_unless_relaxed(path):
    for relaxed, level in ((False, 2), (True, 1)):
        with SqliteStore(path, relaxed=relaxed) as store:
            ask = store._file._writer.execute
            assert ask("PRAGMA synchronous").fetchone() == (level,)
            assert ask("PRAGMA journal_mode").fetchone() == ("wal",)
            assert ask("PRAGMA mmap_size").fetchone() in ((0,), None)


def test_failed_sync_ends_all_writing(shop):
    failing = Failing(shop, "COMMIT")
    with pytest.raises(StoreBroken, match="SQLITE_IOERR_FSYNC"):
        shop.append([(1, feedback(1))])
    failing.statement = "nothing"
    tried = len(failing.executed)
    for call in (
        lambda: shop.append([(1, feedback(1))]),
        lambda: shop.create("bakery", []),
        lambda: shop.save_snapshot(1, 1, b""),
        lambda: shop.add_token_key(b"", 0.0),
    ):
        with pytest.raises(StoreBroken, match="until a restart"):
            call()
    assert len(failing.executed) == tried, "a broken store must not even try"
    assert len(log_of(shop, 1)) == 1, "reading goes on"


@pytest.mark.parametrize("shop", [Tuning(checkpoint_pages=1)], indirect=True)
def test_failed_sync_in_a_checkpoint_ends_all_writing(shop):
    Failing(shop, "PRAGMA wal_checkpoint")
    for _ in range(2):
        with pytest.raises(StoreBroken):
            shop.append([(1, feedback(1))])
    assert len(log_of(shop, 1)) == 1


def test_full_disk_is_reported_and_work_continues_with_room(shop):
    connection = shop._file._writer
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    batch = [(1, feedback(n, b"x" * 500)) for n in range(1, 100)]
    error = raised(lambda: shop.append(batch))
    assert isinstance(error, Unavailable)
    assert not isinstance(error, StoreBroken)
    assert "is full" in str(error)
    assert shop.models()[0].head == 1
    connection.execute("PRAGMA max_page_count = 100000")
    assert [answer.seq for answer in shop.append(batch)] == list(range(2, 101))
    assert shop.check() == []


@pytest.mark.parametrize("shop", [Tuning(checkpoint_pages=100)], indirect=True)
def test_write_ahead_log_stays_small_beside_a_slow_reader(shop, path):
    shop.append([(1, feedback(n)) for n in range(1, 10)])
    chunks = shop.events(1, 0)
    next(chunks)
    for batch in range(100):
        shop.append([(1, feedback(100 + batch * 50 + n, b"x" * 200)) for n in range(50)])
    assert path.with_name("shop.db-wal").stat().st_size < 2_000_000
    assert path.stat().st_size > 1_000_000


# -- one owner


def test_a_second_service_on_the_file_is_refused(shop, path, tmp_path):
    (tmp_path / "link.db").symlink_to(path)
    for name in ("shop.db", "link.db"):
        with pytest.raises(InvalidInput, match=f"{name} is in use by process {os.getpid()};.*PostgreSQL"):
            SqliteStore(tmp_path / name)
    shop.close()
    SqliteStore(path).close()


def test_reader_changes_no_byte(shop, path, tmp_path):
    shop.append([(1, feedback(n)) for n in range(1, 100)])
    # As a killed service leaves it: a file, a write-ahead log that was not carried over, no shared memory.
    left = tmp_path / "left"
    left.mkdir()
    names = ("shop.db", "shop.db-wal")
    before = {name: (tmp_path / name).read_bytes() for name in names}
    for name, content in before.items():
        (left / name).write_bytes(content)
    assert len(before["shop.db-wal"]) > 10_000
    for _ in range(2):
        with SqliteStore(left / "shop.db", read_only=True) as reader:
            assert len(log_of(reader, 1)) == 100
    assert {name: (left / name).read_bytes() for name in before} == before
    assert not (left / "shop.db.lock").exists()


@pytest.mark.parametrize("name", ["shop.db", "shop.db-wal"])
def test_removed_file_is_noticed(shop, tmp_path, name):
    shop.append([(1, feedback(1))])
    (tmp_path / name).rename(tmp_path / "elsewhere")
    for _ in range(2):
        with pytest.raises(StoreBroken, match=r"removed or replaced while in use"):
            shop.append([(1, feedback(2))])
    (tmp_path / "elsewhere").rename(tmp_path / name)


def test_foreign_events_in_the_log_are_noticed(shop, path):
    sql(path, "INSERT INTO event VALUES (1, 2, 1, x'00112233445566778899aabbccddeeff', x'', 0, x'')")
    with pytest.raises(StoreBroken, match="contradicts itself"):
        shop.append([(1, feedback(1))])


# -- opening


def test_file_with_secrets_is_readable_by_its_owner_only(shop, tmp_path):
    for name in ("shop.db", "shop.db-wal"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_places_where_no_store_can_be(tmp_path):
    for place, how, reason in (
        (tmp_path, {}, "is a folder"),
        (tmp_path / "nowhere" / "shop.db", {}, "no folder"),
        (tmp_path / "shop.db", {"read_only": True}, "there is no file"),
    ):
        with pytest.raises(InvalidInput, match=reason):
            open_store(place, **how)
    assert list(tmp_path.iterdir()) == []


def test_names_with_odd_letters(tmp_path):
    for name in ("a b.db", "50%.db", "what?.db", "#1.db", "ä.db", ":memory:"):
        with open_store(f"sqlite:{tmp_path / name}") as store:
            store.create("shop", [feedback(0)])
        assert (tmp_path / name).stat().st_size > 4096


def test_a_file_that_may_not_be_written():
    if not hasattr(os, "seteuid"):
        pytest.skip("no users here")
    me = os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        SqliteStore(path).close()
        path.chmod(0o444)
        (Path(folder) / "shop.db.lock").chmod(0o666)
        Path(folder).chmod(0o777)
        os.seteuid(65534 if me == 0 else me)  # the administrator may write anything
        try:
            error = raised(lambda: SqliteStore(path))
        finally:
            os.seteuid(me)
    assert isinstance(error, InvalidInput)
    assert "shop.db cannot be opened to be written" in str(error)


def test_files_that_are_not_a_store(path):
    path.write_bytes(b"these are the notes of the meeting of last week, in which nothing was decided " * 20)
    with pytest.raises(StoreBroken, match="is not a SQLite database"):
        SqliteStore(path)
    assert path.read_bytes().startswith(b"these are the notes")
    path.unlink()
    sql(path, "CREATE TABLE songs (title)")
    with pytest.raises(InvalidInput, match="a database of another program"):
        SqliteStore(path)


def test_damaged_file_is_reported(shop, path):
    shop.append([(1, feedback(n, bytes([n % 256]) * 100)) for n in range(1, 2000)])
    shop.close()
    content = bytearray(path.read_bytes())
    for page in range(8, len(content) // 4096, 3):
        content[page * 4096 : page * 4096 + 600] = b"\xff" * 600
    path.write_bytes(content)
    with SqliteStore(path, read_only=True) as reader:
        with pytest.raises(StoreBroken, match="is damaged"):
            log_of(reader, 1)
        assert reader.check() != []


def test_a_file_system_on_a_network_is_noted(shop, path, monkeypatch):
    assert shop.notes == ()
    mounts = f"/dev/sda / ext4 rw 0 0\nserver:/x {path.parent} nfs4 rw 0 0\n"
    real = Path.read_text
    monkeypatch.setattr(
        Path, "read_text", lambda self, *how: mounts if str(self) == "/proc/mounts" else real(self, *how)
    )
    (note,) = sqlite_file._network_note(path)
    assert "nfs4" in note


def test_catalog_events_are_found_without_reading_all_feedback(shop):
    asked = []
    with shop._file.reading() as connection:
        connection.set_trace_callback(asked.append)
    assert log_of(shop, 1, 0, 1, feedback=False) == []
    with shop._file.reading() as connection:
        connection.set_trace_callback(None)
        (plan,) = connection.execute(f"EXPLAIN QUERY PLAN {asked[-1]}").fetchall()
    assert "USING INDEX event_catalog (model=? AND seq>? AND seq<?)" in plan[3]
