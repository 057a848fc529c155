"""kill -9 at every step of an archive, an import or a fork: nothing is lost, or seen by halves."""

import itertools
from pathlib import Path

import pytest

from firstclick.serve.model.archive import ArchivedLog, archive, opened_archives
from firstclick.serve.model.audit import audit_stored
from firstclick.serve.model.export import import_model
from firstclick.serve.model.fork import fork
from firstclick.serve.model.replay import recover
from firstclick.serve.store import open_store
from firstclick.serve.store import store as store_module
from tests.faults.killed_archive import BEFORE, SMALL_PIECES, Kill, exported, fill, kills
from tests.support.stores import KINDS, log_of

pytestmark = pytest.mark.long

STEPS = [
    ("after archive file", 1), ("after base insert", 1), ("after base", 1),
    *(("after removal of archived events", times) for times in (1, 3, 6)),
]  # fmt: skip


@pytest.fixture(params=KINDS)
def urls(request, tmp_path):
    """Addresses of empty stores, as many as are wanted."""
    if request.param == "sqlite":
        return (str(tmp_path / f"shop-{n}.db") for n in itertools.count())
    server = request.getfixturevalue("postgresql")
    return (server.new_database() for _ in itertools.count())


def test_an_archive_that_is_killed_loses_nothing(urls, tmp_path):
    asked = [
        Kill(next(urls), step, times, str(tmp_path / f"{step}-{times}.archive")) for step, times in STEPS
    ]
    (wanted,) = {fill(kill.url) for kill in asked}
    kills(asked)
    for kill in asked:
        with open_store(kill.url, tuning=SMALL_PIECES) as store:
            (stored,) = store.models()
            is_set = kill.step in ("after base", "after removal of archived events")
            assert (stored.id in store.bases()) == is_set, kill
            assert store.check() == [], kill
            assert recover(store, stored, use_snapshots=False).digest() == wanted, kill
            # The file is whole before anything is removed.
            with opened_archives([Path(kill.file)]) as files:
                whole = ArchivedLog(store, stored, files)
                told = audit_stored(store, stored, log=whole)
                assert (told.equal, told.digest, told.start) == (True, wanted, 1), kill
                assert len([e for chunk in whole.events(stored.id, 0) for e in chunk]) == stored.head
            left = [event.seq for event in log_of(store, stored.id) if 1 < event.seq < BEFORE]
            if is_set:
                removed = 0 if kill.step == "after base" else 40 * kill.times
                assert len(left) == max(0, BEFORE - 2 - removed), kill
                while store.sweep():
                    pass
            else:
                archive(store, stored, BEFORE, Path(kill.file), token_days=7.0)
            assert [event.seq for event in log_of(store, stored.id)] == [1, *range(BEFORE, stored.head + 1)]
            assert recover(store, stored, use_snapshots=False).digest() == wanted


def test_an_import_that_is_killed_leaves_nothing_that_is_seen(urls, tmp_path, monkeypatch):
    source, file = next(urls), tmp_path / "made.model"
    wanted = fill(source)
    exported(source, file)
    asked = [
        Kill(next(urls), step, times, str(file), importing=True)
        for step, times in (("after load", 1), ("after load", 4), ("after publish", 1))
    ]
    kills(asked)
    for kill in asked:
        with open_store(kill.url, tuning=SMALL_PIECES) as store:
            assert store.check() == []
            if kill.step == "after publish":
                (stored,) = store.models()
                assert recover(store, stored).digest() == wanted
                continue
            assert store.models() == []
            assert not store.sweep(), "it may still be at work"
            ((number,),) = store._database.rows(f"SELECT model FROM {store.prefix}unfinished")
            assert len(log_of(store, number, upto=10**6)) > 0
            with monkeypatch.context() as later:
                later.setattr(store_module, "ABANDONED_AFTER", -1.0)
                while store.sweep():
                    pass
            assert log_of(store, number, upto=10**6) == []
            assert recover(store, import_model(store, "copy", file.read_bytes())).digest() == wanted


def test_a_fork_that_is_killed_leaves_nothing_that_is_seen(urls, monkeypatch):
    asked = [
        Kill(next(urls), step, times, "", forking=True)
        for step, times in (("after load", 1), ("after load", 4), ("after publish", 1))
    ]
    (before,) = {fill(kill.url) for kill in asked}
    kills(asked)
    digests = set()
    for kill in asked:
        with open_store(kill.url, tuning=SMALL_PIECES) as store:
            assert store.check() == []
            made = store.models()[0]
            assert recover(store, made).digest() == before
            if kill.step == "after load":
                assert [stored.name for stored in store.models()] == ["made"]
                with monkeypatch.context() as later:
                    later.setattr(store_module, "ABANDONED_AFTER", -1.0)
                    while store.sweep():
                        pass
                ((left,),) = store._database.rows(f"SELECT count(*) FROM {store.prefix}event")
                assert left == made.head
                fork(store, store, made, "copy", "cascade-ts", seed=1)
            made, forked = store.models()
            assert (forked.name, forked.head) == ("copy", made.head)
            digests.add(recover(store, forked).digest())
    assert len(digests) == 1
