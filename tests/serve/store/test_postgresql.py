"""What a store in PostgreSQL promises beside the rest: several processes, a server that comes and goes."""

import socket
import subprocess
import sys
import threading
import time

import pytest

from firstclick.errors import InvalidInput
from firstclick.serve import Tuning
from firstclick.serve.store import open_store, postgresql_link
from firstclick.serve.store import store as module
from firstclick.serve.store.postgresql import PostgresStore
from firstclick.serve.store.store import Appended
from firstclick.wire.errors import StoreBroken, Unavailable
from tests.support.stores import (
    KEEP_ANSWER,
    LOSE,
    LOSE_ANSWER,
    Relay,
    at_once,
    feedback,
    log_of,
    raised,
    sql,
)


@pytest.fixture
def shop(postgresql_url):
    """A store with one model, number 1, and one event."""
    with PostgresStore(postgresql_url) as store:
        store.create("shop", [feedback(0)])
        yield store


@pytest.fixture
def other(shop, postgresql_url):
    """Another process's view of the same store."""
    with PostgresStore(postgresql_url) as store:
        yield store


class Pause:
    """Holds the first append that comes to `after insert`, its transaction open, until told to go on."""

    def __init__(self, monkeypatch):
        self._taken = threading.Lock()
        self._reached = threading.Event()
        self._go = threading.Event()
        self.error = None
        monkeypatch.setattr(module, "step", self._step)

    def _step(self, name):
        if name == "after insert" and self._taken.acquire(blocking=False):
            self._reached.set()
            assert self._go.wait(30)

    def start(self, call):
        def run():
            self.error = raised(call)

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        assert self._reached.wait(30)

    def finish(self):
        self._go.set()
        self._thread.join(30)
        assert not self._thread.is_alive()


# -- several processes


def test_two_processes_count_the_same_events_once(shop, other):
    answers = []

    def send(store, shift):
        for n in range(0, 60, 3):
            answers.extend(store.append([(1, feedback(1 + (n + m + shift) % 60)) for m in range(3)]))

    at_once([lambda s=s, n=n: send(s, n) for s in (shop, other) for n in (0, 20)])
    assert sum(answer.new for answer in answers) == 60
    assert sorted(event.nonce[-1] for event in log_of(other, 1)) == list(range(61))
    assert [event.seq for event in log_of(shop, 1)] == list(range(1, 62))
    assert shop.check() == []


def test_batches_of_many_models_do_not_wait_for_each_other(shop, other):
    models = [1, shop.create("bakery", []).id, shop.create("bar", []).id]

    def send(store, order, first):
        for n in range(first, first + 60):
            store.append([(model, feedback(n)) for model in order])

    at_once([lambda: send(shop, models, 1000), lambda: send(other, models[::-1], 2000)])
    assert [model.head for model in shop.models()] == [121, 120, 120]


def test_reader_misses_no_event_of_a_slow_append(shop, other, postgresql_url, monkeypatch):
    seen = [event.seq for event in log_of(shop, 1)]
    pause = Pause(monkeypatch)
    pause.start(lambda: other.append([(1, feedback(1))]))
    with PostgresStore(postgresql_url) as fast:
        quick = threading.Thread(target=lambda: fast.append([(1, feedback(2))]), daemon=True)
        quick.start()
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        end = time.monotonic() + 30
        while quick.is_alive() and not shop._link.rows(waiting):
            assert time.monotonic() < end
            time.sleep(0.01)
        seen += [event.seq for event in log_of(shop, 1, seen[-1], 99)]
        pause.finish()
        quick.join(30)
    seen += [event.seq for event in log_of(shop, 1, seen[-1], 99)]
    assert seen == [event.seq for event in log_of(shop, 1, 0, 99)] == [1, 2, 3]


def test_many_processes_may_start_at_once(postgresql_url):
    stores = []
    at_once([lambda: stores.append(PostgresStore(postgresql_url))] * 6)
    assert [store.models() for store in stores] == [[]] * 6
    for store in stores:
        store.close()


def test_replicas_are_known_to_each_other(shop, other, postgresql_url):
    shop.note_replica("host:1", {1: 10, 2: 20}, 100.0)
    other.note_replica("host:2", {}, 99.0)
    shop.note_replica("host:1", {1: 11, 2: 20}, 101.0)
    assert other.replicas() == [("host:1", 101.0, {1: 11, 2: 20}), ("host:2", 99.0, {})]
    sql(postgresql_url, "UPDATE {replica} SET heard = heard - interval '2 minutes' WHERE name = 'host:2'")
    assert [name for name, *_ in shop.replicas()] == ["host:1"]


def test_paused_process_loses_its_own_transaction_only(postgresql_url, other, monkeypatch):
    stopped = PostgresStore(postgresql_url, tuning=Tuning(idle_seconds=1))
    pause = Pause(monkeypatch)
    pause.start(lambda: stopped.append([(1, feedback(1))]))
    assert other.append([(1, feedback(2))]) == [Appended(2, True, b"clicked")]
    pause.finish()
    assert isinstance(pause.error, Unavailable)
    assert stopped.append([(1, feedback(1))]) == [Appended(3, True, b"clicked")]
    assert stopped.check() == []
    stopped.close()


def test_wait_for_a_locked_row_is_short(shop, postgresql_url, monkeypatch):
    impatient = PostgresStore(postgresql_url, tuning=Tuning(lock_seconds=0.1))
    pause = Pause(monkeypatch)
    pause.start(lambda: shop.append([(1, feedback(1))]))
    with pytest.raises(Unavailable, match="lock timeout"):
        impatient.append([(1, feedback(2))])
    pause.finish()
    assert pause.error is None
    assert impatient.append([(1, feedback(2))]) == [Appended(3, True, b"clicked")]
    impatient.close()


# -- a server that comes and goes


def test_ended_connections_are_opened_again(shop, postgresql):
    for n, end in enumerate((postgresql.kill_connections, postgresql.restart), start=1):
        shop.models()
        end()
        assert shop.models()[0].head == n
        end()
        assert shop.append([(1, feedback(n))]) == [Appended(n + 1, True, b"clicked")]
    assert shop.check() == []


def test_transaction_of_an_ended_connection_leaves_nothing(shop, postgresql, monkeypatch):
    pause = Pause(monkeypatch)
    pause.start(lambda: shop.append([(1, feedback(1))]))
    postgresql.kill_connections()
    pause.finish()
    assert isinstance(pause.error, Unavailable)
    assert shop.models()[0].head == 1
    assert shop.append([(1, feedback(1))]) == [Appended(2, True, b"clicked")]


def test_server_that_is_down_is_unavailable_until_it_is_back(shop, postgresql, postgresql_url):
    postgresql.stop()
    try:
        for call in (
            shop.models,
            lambda: shop.append([(1, feedback(1))]),
            lambda: shop.create("bakery", []),
            lambda: log_of(shop, 1),
            shop.check,
            lambda: PostgresStore(postgresql_url),
        ):
            error = raised(call)
            assert isinstance(error, Unavailable)
            assert not isinstance(error, StoreBroken)
            assert "PostgreSQL at" in str(error)
    finally:
        postgresql.start()
    assert shop.append([(1, feedback(1))]) == [Appended(2, True, b"clicked")]


@pytest.mark.parametrize(("fate", "there"), [(LOSE, False), (LOSE_ANSWER, True), (KEEP_ANSWER, True)])
def test_network_cut_at_the_commit_is_settled_by_a_retry(
    shop, postgresql, postgresql_url, fate, there, monkeypatch
):
    monkeypatch.setattr(postgresql_link.Connection, "patience", 1.0)
    relay, fates = Relay(postgresql.folder), []
    relay.at_commit = lambda number: fates.pop() if fates else ""
    store = PostgresStore(relay.address_of(postgresql_url))
    batch = [(1, feedback(1)), (1, feedback(2))]
    fates.append(fate)
    with pytest.raises(Unavailable, match="lost while it committed"):
        store.append(batch)
    assert shop.models()[0].head == (3 if there else 1)
    assert store.append(batch) == [
        Appended(2, not there, b"clicked"),
        Appended(3, not there, b"clicked"),
    ]
    fates.append(fate)
    assert isinstance(raised(lambda: store.create("bakery", [feedback(0)])), Unavailable)
    assert store.create("bakery", [feedback(0)]).head == 1
    assert store.check() == []
    store.close()
    relay.close()


# -- opening


@pytest.mark.parametrize(
    ("asked", "kept"), [("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")]
)
def test_commits_reach_the_disk_whatever_the_default(shop, postgresql_url, asked, kept):
    url = f"{postgresql_url}%20-csynchronous_commit%3D{asked}"
    for relaxed, expected in ((False, kept), (True, "off")):
        with PostgresStore(url, relaxed=relaxed) as store:
            assert store._link.rows("SHOW synchronous_commit") == [(expected,)]
            assert store._link.rows("SHOW transaction_isolation") == [("read committed",)]


def test_unreachable_address_hides_the_password():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
    with pytest.raises(Unavailable, match=r"127.0.0.1/shop cannot be asked now") as caught:
        open_store(f"postgresql://me:hidden@127.0.0.1:{port}/shop")
    assert "hidden" not in str(caught.value)
    with pytest.raises(InvalidInput, match="cannot be read"):
        open_store("postgresql://me@host:99999999/shop?colour=red")


def test_missing_table_is_named(shop, postgresql_url):
    sql(postgresql_url, "DROP TABLE {snapshot}")
    with pytest.raises(StoreBroken, match="firstclick_snapshot"):
        shop.snapshots(1)


def test_missing_psycopg_names_what_to_install():
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from firstclick.serve.store import open_store\n"
        "try: open_store('postgresql://host/shop')\n"
        "except ValueError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'firstclick[postgresql]'" in done.stdout


def test_catalog_events_are_found_without_reading_all_feedback(shop, postgresql_url):
    shop.append([(1, feedback(n)) for n in range(1, 5000)])
    sql(postgresql_url, "ANALYZE {event}")
    plan = sql(
        postgresql_url,
        "EXPLAIN SELECT * FROM {event} WHERE model = 1 AND seq > 0 AND seq <= 5000 AND kind <> 1 "
        "ORDER BY seq LIMIT 4096",
    )
    assert any("firstclick_event_catalog" in line for (line,) in plan), plan
