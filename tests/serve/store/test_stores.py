"""What every kind of store promises."""

import sqlite3
import threading
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from firstclick.errors import InvalidInput
from firstclick.serve import Tuning
from firstclick.serve.log.events import Event, Kind
from firstclick.serve.store import open_store
from firstclick.serve.store.store import ABANDONED_AFTER, Appended
from firstclick.wire.errors import Conflict, Unavailable, Unknown
from tests.support.clock import Clock
from tests.support.stores import at_once, feedback, log_of, raised, sql

CREATED = feedback(0, b"born", Kind.CREATED)


# -- models put in and removed piece by piece


def test_abandoned_load_is_removed(store_url):
    clock = Clock()
    store = open_store(store_url, clock=clock)
    number = store.reserve()
    store.load(number, [Event(seq, *feedback(seq)) for seq in (1, 2, 3)])
    clock.move(ABANDONED_AFTER - 1)
    assert not store.sweep(), "another process may be at it"
    clock.move(2)
    assert store.sweep()
    assert not store.sweep()
    assert log_of(store, number, 0, 9) == []
    with pytest.raises(Unavailable, match="start again"):
        store.load(number, [Event(4, *feedback(4))])
    store.close()


# -- logs


def test_a_batch_of_thousands_with_duplicates_anywhere(store):
    shop = store.create("shop", [CREATED]).id
    store.append([(shop, feedback(n)) for n in range(1, 1500)])
    answers = store.append([(shop, feedback(n)) for n in range(1000, 3001)])
    assert [answer.seq for answer in answers] == list(range(1001, 3002))
    assert [answer.new for answer in answers] == [False] * 500 + [True] * 1501
    assert store.check() == []


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches=st.lists(
        st.lists(st.tuples(st.integers(0, 1), st.integers(0, 30), st.binary(max_size=3)), max_size=12),
        max_size=6,
    )
)
def test_any_batches_leave_what_a_dictionary_would(store, batches):
    models = [store.create(f"model {len(store.models())}", []).id for _ in range(2)]
    logs = [{}, {}]
    for batch in batches:
        expected = []
        for which, nonce, payload in batch:
            new = nonce not in logs[which]
            logs[which].setdefault(nonce, (len(logs[which]) + 1, payload))
            seq, stored = logs[which][nonce]
            expected.append(Appended(seq, new, stored))
        assert store.append([(models[which], feedback(n, p)) for which, n, p in batch]) == expected
    assert [model.head for model in store.models()[-2:]] == [len(log) for log in logs]
    for model, log in zip(models, logs, strict=True):
        found = [(event.seq, event.nonce[-1], event.payload) for event in log_of(store, model)]
        assert found == [(seq, nonce, payload) for nonce, (seq, payload) in log.items()]


@pytest.mark.parametrize(
    ("wrong", "kind"), [({"nonce": b"short"}, InvalidInput), ({"payload": None}, Exception)]
)
def test_one_bad_event_refuses_its_batch(store, wrong, kind):
    shop = store.create("shop", [CREATED]).id
    bad = feedback(7)._replace(**wrong)
    for call in (
        lambda: store.append([(shop, feedback(1)), (shop, bad), (shop, feedback(2))]),
        lambda: store.create("bakery", [CREATED, bad]),
    ):
        assert isinstance(raised(call), kind)
    assert [(model.name, model.head) for model in store.models()] == [("shop", 1)]
    assert store.append([(shop, feedback(2))]) == [Appended(2, True, b"clicked")]
    assert store.check() == []


def test_event_of_an_unknown_model_refuses_its_batch(store):
    shop = store.create("shop", [CREATED]).id
    with pytest.raises(Unknown, match=f"no model number {shop + 1}"):
        store.append([(shop, feedback(1)), (shop + 1, feedback(2))])
    assert store.models()[0].head == 1


# -- creation


def test_a_name_is_given_once(store):
    first = store.create("shop", [CREATED, feedback(1)])
    with pytest.raises(Conflict, match="shop"):
        store.create("shop", [feedback(9, b"another", Kind.CREATED)])
    assert log_of(store, first.id) == [Event(1, *CREATED), Event(2, *feedback(1))]
    assert store.models() == [first]
    assert store.create("Shop", []).id != first.id
    store.append([(first.id, feedback(2))])
    assert store.create("shop", [CREATED, feedback(1)]) == first._replace(head=3), "sent again, the same"
    with pytest.raises(InvalidInput, match="events 2 and 3"):
        store.create("bakery", [CREATED, feedback(1), feedback(1)])
    assert [model.name for model in store.models()] == ["shop", "Shop"]


# -- reading


def test_events_are_read_between_two_numbers_and_without_feedback(store):
    kinds = [Kind.FEEDBACK if n % 50 else Kind.ITEMS_CHANGED for n in range(1, 200)]
    events = [feedback(n, b"", kind) for n, kind in enumerate(kinds, start=1)]
    shop = store.create("shop", [CREATED, *events]).id

    def numbers(*between, **how):
        return [event.seq for event in log_of(store, shop, *between, **how)]

    assert numbers(3, 7) == [4, 5, 6, 7]
    assert numbers(198) == numbers(198, 999) == [199, 200]
    assert numbers(200) == numbers(5, 5) == log_of(store, shop + 1) == []
    assert numbers(feedback=False) == [1, 51, 101, 151]
    assert numbers(1, 150, feedback=False) == [51, 101]


def test_chunks_are_bounded_in_events_and_in_bytes(store):
    store.tuning = Tuning(chunk_events=4, chunk_bytes=100)
    small, large = [feedback(n, b"x") for n in range(1, 7)], [feedback(n, b"x" * 60) for n in range(7, 12)]
    shop = store.create("shop", [*small, *large]).id
    chunks = [[event.seq for event in chunk] for chunk in store.events(shop, 0)]
    assert chunks == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10], [11]]


def test_reader_sees_the_log_as_it_was_when_it_began(store):
    shop = store.create("shop", [CREATED]).id
    chunks = store.events(shop, 0)
    seen = next(chunks)
    store.append([(shop, feedback(1))])
    assert [event.seq for chunk in [seen, *chunks] for event in chunk] == [1]


# -- snapshots and keys


def test_sweeping_processes_take_turns(store, store_url):
    store.tuning = Tuning(events_at_once=7)
    shop, bakery = (store.create(name, [CREATED]) for name in ("shop", "bakery"))
    store.append([(shop.id, feedback(n)) for n in range(1, 500)])
    assert store.delete(shop.id)
    assert not store.delete(shop.id)
    begin = threading.Barrier(3)

    def sweep(one):
        begin.wait()
        while one.sweep():
            pass

    with ExitStack() as opened:
        # An SQLite file has one process, with several threads.
        stores = [
            opened.enter_context(open_store(store_url, tuning=store.tuning)) if store.shared else store
            for _ in range(3)
        ]
        at_once([lambda one=one: sweep(one) for one in stores])
    assert log_of(store, shop.id, 0, 999) == []
    assert store.models() == [bakery]
    assert store.check() == []


def test_a_snapshot_that_a_deleted_model_left_is_removed(store):
    with store._database.transaction() as connection:
        connection.execute(f"INSERT INTO {store.prefix}snapshot VALUES (?, ?, ?)", (7, 1, b"late"))
    while store.sweep():
        pass
    assert store.snapshots(7) == []


def test_the_newest_three_snapshots_are_kept(store):
    assert [store.create(name, [CREATED]).id for name in ("shop", "bakery")] == [1, 2]
    for seq in (10, 20, 30, 40, 50):
        store.save_snapshot(1, seq, b"at %d" % seq)
    store.save_snapshot(2, 7, b"another model's")
    assert store.snapshots(1) == [(50, b"at 50"), (40, b"at 40"), (30, b"at 30")]
    store.save_snapshot(1, 40, b"made anew")
    assert store.snapshots(1) == [(50, b"at 50"), (40, b"made anew"), (30, b"at 30")]
    store.save_snapshot(1, 5, b"older, but it was asked for")
    assert [seq for seq, _ in store.snapshots(1)] == [50, 40, 5]
    assert store.snapshots(2) == [(7, b"another model's")]


def test_token_keys_count_up_even_when_older_ones_are_dropped(store):
    keys = [store.add_token_key(bytes([n]) * 32, n + 0.5) for n in range(3)]
    assert store.token_keys() == keys
    assert keys[0].id < keys[1].id < keys[2].id
    store.drop_token_keys(keys[2].id)
    assert store.token_keys() == keys[2:]
    store.drop_token_keys(keys[2].id + 1)
    assert store.add_token_key(b"new", 9.0).id > keys[2].id


def test_api_keys_are_added_and_revoked(store):
    first = store.add_api_key("shop front", "write", b"h" * 32, 1.5)
    second = store.add_api_key("dashboard", "read", b"i" * 32, 2.5)
    assert store.api_keys() == [first, second]
    assert store.revoke_api_key(first.id)
    assert not store.revoke_api_key(first.id)
    assert store.api_keys() == [second]
    of_a_model = store.add_api_key("web", "page", b"j" * 32, 1.5, "shop")
    assert of_a_model.id > second.id
    assert (of_a_model.role, of_a_model.model) == ("page", "shop")
    assert store.api_keys() == [second, of_a_model]


# -- several threads


def test_threads_count_the_same_events_once(store):
    shop = store.create("shop", [CREATED]).id
    answers = []

    def send(shift):
        for n in range(40):
            answers.extend(store.append([(shop, feedback(1 + (n + shift) % 40, b"%d" % shift))]))

    at_once([lambda shift=shift: send(shift) for shift in (0, 10, 20, 30)])
    assert sum(answer.new for answer in answers) == 40
    assert sorted(event.nonce[-1] for event in log_of(store, shop)) == list(range(41))
    stored = {event.seq: event.payload for event in log_of(store, shop)}
    assert all(stored[answer.seq] == answer.payload for answer in answers)
    assert store.check() == []


def test_readers_see_whole_batches_while_others_write(store):
    shop = store.create("shop", []).id
    seen = []

    def read():
        while not seen or seen[-1] < 200:
            seen.append(len(log_of(store, shop)))

    def write():
        for start in range(1, 200, 10):
            store.append([(shop, feedback(n)) for n in range(start, start + 10)])

    at_once([read, read, write])
    assert {n % 10 for n in seen} == {0}


# -- damage


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("DELETE FROM {event} WHERE seq = 3", "should hold events 1 to 6, and holds 5 from 1 to 6"),
        ("DELETE FROM {event} WHERE seq = 6", "should hold events 1 to 6, and holds 5 from 1 to 5"),
        ("DELETE FROM {event} WHERE seq = 1", "should hold events 1 to 6, and holds 5 from 2 to 6"),
        ("UPDATE {model} SET head = 7", "should hold events 1 to 7, and holds 6 from 1 to 6"),
        ("UPDATE {event} SET seq = 9 WHERE seq = 6", "should hold events 1 to 6, and holds 6 from 1 to 9"),
        ("DELETE FROM {model}", "events of a model number 1"),
    ],
)
def test_check_names_what_is_wrong_with_a_log(store, store_url, statement, sentence):
    store.create("shop", [CREATED, *map(feedback, range(1, 6))])
    assert store.check() == []
    sql(store_url, statement)
    (found,) = store.check()
    assert sentence in found


def test_check_finds_an_event_that_was_counted_twice(store, store_url):
    shop = store.create("shop", [CREATED, feedback(1)]).id
    again = "SELECT model, 3, kind, nonce, payload, 0, link FROM {event} WHERE seq = 2"
    sql(store_url, f"DROP INDEX {'firstclick_' if store.shared else ''}event_nonce")
    sql(store_url, f"INSERT INTO {{event}} {again}")
    sql(store_url, "UPDATE {model} SET head = 3")
    (problem,) = store.check()
    assert f"{feedback(1).nonce.hex()} is 2 times in the log of model number {shop}" in problem


# -- opening and closing


def test_closed_store_is_unavailable(store):
    store.close()
    for call in (store.models, lambda: store.append([(1, CREATED)]), lambda: store.create("shop", [])):
        with pytest.raises(Unavailable, match="closed"):
            call()
    store.close()


def test_read_only_store_refuses_to_write(store, store_url):
    shop = store.create("shop", [CREATED]).id
    reader = open_store(store_url, read_only=True)
    store.append([(shop, feedback(1))])
    assert log_of(reader, shop) == log_of(store, shop)
    assert reader.check() == []
    with pytest.raises(InvalidInput, match="for reading only"):
        reader.append([(shop, feedback(2))])
    reader.close()


@pytest.mark.parametrize("read_only", [False, True])
def test_store_of_another_format_is_refused_unchanged(store, store_url, read_only):
    store.create("shop", [CREATED])
    store.close()
    sql(store_url, "UPDATE {meta} SET value = '2' WHERE key = 'format'")
    with pytest.raises(InvalidInput, match="has format 2, and this firstclick reads format 1"):
        open_store(store_url, read_only=read_only)
    sql(store_url, "UPDATE {meta} SET value = '1' WHERE key = 'format' AND value = '2'")
    with open_store(store_url) as again:
        assert [model.head for model in again.models()] == [1]


def test_a_store_without_tables_is_not_opened_for_reading(store_url):
    if not store_url.startswith("postgresql"):
        sqlite3.connect(store_url).close()
    with pytest.raises(InvalidInput, match="start a server on it once"):
        open_store(store_url, read_only=True)


@pytest.mark.parametrize("url", ["", "sqlite:", "mysql://host/shop", "sqlite:///shop.db"])
def test_unknown_kind_of_address_is_refused(url):
    with pytest.raises(InvalidInput, match=r"a store is a file \(shop.db"):
        open_store(url)
