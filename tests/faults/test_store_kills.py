"""kill -9 at every step of a store: what was acknowledged is there, and nothing by halves."""

import itertools
import signal
from pathlib import Path

import pytest

from firstclick.serve.model.archive import ArchivedLog, opened_archives
from firstclick.serve.model.audit import audit_stored
from firstclick.serve.model.replay import recover
from firstclick.serve.store import open_store
from firstclick.serve.store import store as store_module
from tests.faults.killed import BATCH, BATCHES, BEFORE, CHANGES, SMALL_PIECES, Kill, exported, fill
from tests.support.stores import KINDS, feedback, log_of

WRITING = ["before begin", "after begin", "after insert", "after commit"]
SAVING = ["after snapshot insert", "after snapshot"]
ARCHIVING = [("after archive file", 1), ("after base insert", 1), ("after base", 1)]
REMOVING = [("after removal of archived events", times) for times in (1, 3, 6)]
LOADING = [("after load", 1), ("after load", 4), ("after publish", 1)]


@pytest.fixture(
    params=[pytest.param(kind, marks=[pytest.mark.long] if kind == "postgresql" else []) for kind in KINDS]
)
def urls(request, tmp_path):
    """Addresses of empty stores, as many as are wanted."""
    if request.param == "sqlite":
        return (str(tmp_path / f"shop-{n}.db") for n in itertools.count())
    server = request.getfixturevalue("postgresql")
    return (server.new_database() for _ in itertools.count())


def kill_all(zygote, kills):
    """Let a process do the work of each, and be killed."""
    assert {zygote.call("work", kill)["code"] for kill in kills} == {-signal.SIGKILL}


def killed(zygote, urls, folder, steps):
    """Yield for each (step, times) the kill, its store, and what was acknowledged before it."""
    asked = [
        Kill("write", next(urls), step, times, str(folder / f"acks-{number}"))
        for number, (step, times) in enumerate(steps)
    ]
    kill_all(zygote, asked)
    for kill in asked:
        with open_store(kill.url) as store:
            yield kill, store, Path(kill.file).read_text().split() if Path(kill.file).exists() else []
            assert store.check() == []


def test_killed_at_any_step_of_an_append(zygote, urls, tmp_path):
    steps = itertools.product([*WRITING, *SAVING], (2, BATCHES))
    for kill, store, acks in killed(zygote, urls, tmp_path, steps):
        (model,) = store.models()
        committed = sum(n.isdigit() for n in acks) + (kill.step == "after commit")
        found = [int.from_bytes(event.nonce, "big") for event in log_of(store, model.id)]
        assert found == list(range(1 + committed * BATCH)), kill
        saved = sum(n.startswith("s") for n in acks) + (kill.step == "after snapshot")
        newest = [1 + (n + 1) * BATCH for n in range(saved)][-3:]
        assert [seq for seq, _ in store.snapshots(model.id)] == newest[::-1], kill
        everything = [(model.id, feedback(n)) for n in range(1 + BATCHES * BATCH)]
        answers = store.append(everything)
        assert [answer.seq for answer in answers] == list(range(1, 2 + BATCHES * BATCH))
        assert sum(answer.new for answer in answers) == len(everything) - len(found)


def test_killed_at_any_step_of_a_creation(zygote, urls, tmp_path):
    for kill, store, acks in killed(zygote, urls, tmp_path, [(step, 1) for step in WRITING]):
        assert acks == []
        assert [model.head for model in store.models()] == ([1] if kill.step == "after commit" else []), kill
        assert store.create("shop", [feedback(0)]).head == 1


def test_killed_after_a_checkpoint_or_between_creation_and_use(zygote, urls, tmp_path, request):
    steps = [("after creation of tables", 1)]
    if request.node.callspec.params["urls"] == "sqlite":
        steps += [("after checkpoint", 1), ("after checkpoint", 2)]
    for kill, store, acks in killed(zygote, urls, tmp_path, steps):
        acked = sum(n.isdigit() for n in acks)
        heads = [] if kill.step == "after creation of tables" else [1 + acked * BATCH]
        assert [model.head for model in store.models()] == heads


@pytest.mark.long
def test_killed_archive_loses_nothing(zygote, urls, tmp_path):
    asked = [
        Kill("archive", next(urls), step, times, str(tmp_path / f"{step}-{times}.archive"))
        for step, times in [*ARCHIVING, *REMOVING]
    ]
    (wanted,) = {fill(kill.url) for kill in asked}
    kill_all(zygote, asked)
    for kill in asked:
        with open_store(kill.url, tuning=SMALL_PIECES) as store:
            (stored,) = store.models()
            is_set = kill.step in ("after base", REMOVING[0][0])
            assert (stored.id in store.bases()) == is_set, kill
            assert store.check() == [], kill
            assert recover(store, stored, use_snapshots=False).digest() == wanted, kill
            # The file is whole before anything is removed.
            with opened_archives([Path(kill.file)]) as files:
                whole = ArchivedLog(store, stored, files)
                audit = audit_stored(store, stored, log=whole)
                assert (audit.equal, audit.digest, audit.start) == (True, wanted, 1), kill
                assert len([e for chunk in whole.events(stored.id, 0) for e in chunk]) == stored.head
            left = [event.seq for event in log_of(store, stored.id) if 1 < event.seq < BEFORE]
            if is_set:
                removed = 0 if kill.step == "after base" else 40 * kill.times
                assert len(left) == max(0, BEFORE - 2 - removed), kill
                while store.sweep():
                    pass
            else:
                CHANGES["archive"](store, kill.file)
            assert [event.seq for event in log_of(store, stored.id)] == [1, *range(BEFORE, stored.head + 1)]
            assert recover(store, stored, use_snapshots=False).digest() == wanted


@pytest.mark.long
@pytest.mark.parametrize("work", ["import", "fork"])
def test_killed_import_or_fork_is_not_seen(zygote, urls, tmp_path, monkeypatch, work):
    file, source = tmp_path / "made.model", next(urls)
    wanted = fill(source)
    exported(source, file)
    asked = [Kill(work, next(urls), step, times, str(file)) for step, times in LOADING]
    before = ["made"] if work == "fork" else []
    for kill in asked if before else []:
        fill(kill.url)
    kill_all(zygote, asked)
    digests = set()
    for kill in asked:
        with open_store(kill.url, tuning=SMALL_PIECES) as store:
            assert store.check() == []
            if kill.step == "after load":
                assert [stored.name for stored in store.models()] == before
                assert not store.sweep(), "it may still be at work"
                ((number,),) = store._database.rows(f"SELECT model FROM {store.prefix}unfinished")
                assert len(log_of(store, number, upto=10**6)) > 0
                with monkeypatch.context() as later:
                    later.setattr(store_module, "ABANDONED_AFTER", -1.0)
                    while store.sweep():
                        pass
                assert log_of(store, number, upto=10**6) == []
                CHANGES[work](store, file)
            models = {stored.name: recover(store, stored) for stored in store.models()}
            assert [*models] == [*before, "copy"]
            assert all(models[name].digest() == wanted for name in before)
            digests.add((models["copy"].seq, models["copy"].digest()))
    ((_, digest),) = digests
    assert work == "fork" or digest == wanted
