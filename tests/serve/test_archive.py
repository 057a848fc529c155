"""Archived events: the model stays what it was, the file and the store together are the log as it was."""

import time

import pytest

from firstclick.errors import InvalidInput, WorkFailed
from firstclick.serve import Tuning
from firstclick.serve.log.events import Kind, NewEvent, RolledBack, feedback_payload, packed
from firstclick.serve.log.token import Token
from firstclick.serve.model import archive as archive_module
from firstclick.serve.model.archive import ArchivedLog, archive, opened_archives
from firstclick.serve.model.audit import audit_stored
from firstclick.serve.model.export import export_model, import_model
from firstclick.serve.model.fork import fork
from firstclick.serve.model.model import Model
from firstclick.serve.model.replay import recover
from firstclick.serve.service import Service
from firstclick.serve.store import open_store
from firstclick.serve.store.store import Store
from firstclick.wire.errors import Conflict, Expired, Malformed, Unavailable
from tests.support import seam
from tests.support.made_log import K, Log, made_items
from tests.support.stores import log_of

# Where no later event of `Log.eventful` goes back to one before: event 175 is a rollback itself, and event
# 221 goes back to event 215.
SAFE = (50, 175, 215, 224)


@pytest.fixture(scope="module")
def log():
    return Log().eventful()


@pytest.fixture
def stored(store, log):
    return store.create("made", [NewEvent(*event[1:]) for event in log.events])


def archived(store, stored, before, out, **how):
    archive(store, stored, before, out, **({"token_days": 7.0} | how))


def digest(store, stored, **how):
    return recover(store, stored, **how).digest()


@pytest.mark.parametrize("before", SAFE)
def test_a_model_stays_what_it_was(store, stored, log, before, tmp_path):
    wanted = log.model.digest()
    archived(store, stored, before, tmp_path / "old")
    assert [event.seq for event in log_of(store, stored.id)] == [1, *range(before, stored.head + 1)]
    assert store.check() == []
    model = recover(store, stored, use_snapshots=False)
    assert (model.digest(), model.seq, model.archived_before) == (wanted, stored.head, before)
    assert model.recommend(7).rows.tolist() == log.model.recommend(7).rows.tolist()
    told = audit_stored(store, stored)
    assert (told.equal, told.start, told.digest) == (True, before, wanted)
    with opened_archives([tmp_path / "old"]) as files:
        whole = ArchivedLog(store, stored, files)
        told = audit_stored(store, stored, log=whole)
        assert (told.equal, told.start, told.compared, told.digest) == (True, 1, 1, wanted)
        assert [event for chunk in whole.events(stored.id, 0) for event in chunk] == log.events
        content = b"".join(export_model(whole, stored))
        again = fork(store, whole, stored, "again").stored
        assert digest(store, again) == wanted
    assert digest(store, import_model(store, "copy", content)) == wanted
    assert store.check() == []


def test_archiving_goes_on_later(store, stored, log, tmp_path):
    wanted = log.model.digest()
    paths = [tmp_path / f"{before}" for before in SAFE]
    for before, path in zip(SAFE, paths, strict=True):
        archived(store, stored, before, path)
        assert digest(store, stored) == wanted
    assert [event.seq for event in log_of(store, stored.id)] == [1, *range(SAFE[-1], stored.head + 1)]
    for start in range(len(paths)):
        with opened_archives(paths[start:][::-1]) as files:
            told = audit_stored(store, stored, log=ArchivedLog(store, stored, files))
            assert (told.equal, told.digest) == (True, wanted)
            assert told.start == (1 if start == 0 else SAFE[start - 1])
    for wrong, sentence in (
        ([paths[0], *paths[2:]], "one archive ends with event 49, the next begins with event 175"),
        (paths[:-1], "the archive ends with event 214, and the store goes on with event 224"),
        ([*paths, paths[1]], "name each file once"),
    ):
        with opened_archives(wrong) as files, pytest.raises(InvalidInput, match=sentence):
            ArchivedLog(store, stored, files)
    with pytest.raises(Malformed, match="events 50 to 174 of an archived model"), paths[1].open("rb") as file:
        import_model(store, "part", file)
    with pytest.raises(Conflict, match="events 2 to 223 of model 'made' are archived, and the whole log"):
        export_model(store, stored)
    with pytest.raises(Conflict, match="--archive FILE"):
        fork(store, store, stored, "again")


def test_a_changed_or_foreign_archive_is_noticed(store, stored, log, tmp_path):
    old = tmp_path / "old"
    archived(store, stored, 50, old)
    other = store.create("other", [NewEvent(*event[1:]) for event in log.events])
    with opened_archives([old]) as files, pytest.raises(InvalidInput, match="is of model 'made', and not of"):
        ArchivedLog(store, other, files)
    content = bytearray(old.read_bytes())
    content[len(content) // 2] ^= 1
    whole = old.read_bytes()
    old.write_bytes(content)
    with pytest.raises(Malformed, match="changed or damaged"), opened_archives([old]):
        pass
    old.write_bytes(whole[:-40])
    with pytest.raises(Malformed, match="cut off"), opened_archives([old]):
        pass
    # Of a log with the same number of events, which says something else.
    events = [event for event in log.events if event.seq < 50]
    events[20] = events[20]._replace(payload=events[30].payload)
    old.write_bytes(b"".join(archive_module.model_file("made", iter([events]), lambda: "d")))
    with opened_archives([old]) as files:
        told = audit_stored(store, stored, log=ArchivedLog(store, stored, files))
    assert not told.equal
    assert "the snapshot after event 50 has digest" in told.differing[0]


@pytest.mark.parametrize(
    ("before", "sentence"),
    [
        (2, "--before must be a number from 3 to 226, the last event, got 2"),
        (227, "--before must be a number from 3 to 226"),
        (61, "event 175 rolls back to event 60, so events before 61 are still needed; archive before"),
    ],
)  # fmt: skip
def test_what_is_still_needed_is_not_archived(store, stored, log, before, sentence, tmp_path):
    with pytest.raises((InvalidInput, Conflict), match=sentence):
        archived(store, stored, before, tmp_path / "old")
    assert not (tmp_path / "old").exists()
    assert log_of(store, stored.id) == log.events


def test_slates_that_can_still_be_answered_are_not_archived(store, tmp_path):
    with Service(store) as service:
        service.create("shop", policy="cascade-lin-ts", k=K, items=made_items())
        for _ in range(5):
            service.feedback("shop", service.recommend("shop"), click=0)
        (stored,) = store.models()
        with pytest.raises(InvalidInput, match=r"the slate of event 2 was .* good for 7 days: .* wait until"):
            archived(store, stored, 5, tmp_path / "old")
        assert not (tmp_path / "old").exists()
        assert store.bases() == {}


def test_a_rollback_to_an_archived_event_is_refused_and_others_are_not(store, stored, log, tmp_path):
    archived(store, stored, 215, tmp_path / "old")
    with Service(store) as service:
        head = seam.model(service, "made").seq
        for seq in (2, 214):
            with pytest.raises(Malformed, match=f"seq must be 1, or from 215 to {head}, got {seq}"):
                service.roll_back("made", seq)
        service.roll_back("made", 215)
        then = log.model_at(215).engine.state
        assert service.model("made").engine.state.moment.tolist() == then.moment.tolist()
        service.roll_back("made", 1)
        assert service.audit("made").equal
        # One that was asked for before the events were archived, and comes to the store afterwards.
        late = NewEvent(Kind.ROLLED_BACK, b"l" * 16, packed(RolledBack(100)), 1.0)
        with pytest.raises(Unavailable, match="events up to 214 were archived a moment ago"):
            store.append([(stored.id, late)])
        (now,) = store.models()
        assert now.head == seam.model(service, "made").seq == head + 2
        assert digest(store, now, use_snapshots=False) == seam.model(service, "made").digest()


def test_feedback_that_is_archived_is_not_counted_again(store, tmp_path):
    """However old a slate may be for the server: the nonce is not known any more."""
    with Service(store, token_days=30) as service:
        service.create("shop", policy="cascade-lin-ts", k=K, items=made_items())
        model = service.model("shop")
        now, rows = time.time(), model.recommend(5).rows.astype("<u4").tobytes()
        issued = {days: int((now - days * 86_400) * 1000) for days in (20, 15, 13, 12, 11, 9)}
        slates = {
            days: service.keys.sign(Token(model.id, at, bytes([days]) * 16, rows))
            for days, at in issued.items()
        }
        for days in (20, 12, 15, 9):
            service.feedback("shop", slates[days], click=0)
        service.feedback("shop", service.recommend("shop"), click=0)
        (stored,) = store.models()
        archived(store, stored, 5, tmp_path / "old")
        assert store.bases()[stored.id].issued == issued[12]
        # The server may not have heard of it yet: then the store refuses what it lets through.
        (outcome,) = service.feedback_batch("shop", [(slates[12], 0)])
        assert isinstance(outcome, Unavailable | Expired)
        late = NewEvent(Kind.FEEDBACK, bytes([13]) * 16, feedback_payload(0, issued[13], rows), now)
        with pytest.raises(Unavailable, match="events up to 4 were archived a moment ago"):
            store.append([(stored.id, late)])
        service.maintenance._follow_archives()
        for days in (20, 12, 15, 13):
            with pytest.raises(Expired, match="recommended before event 5, and what was counted of that"):
                service.feedback("shop", slates[days], click=0)
        assert service.feedback("shop", slates[9], click=0).status == "duplicate"
        assert service.feedback("shop", slates[11], click=1).status == "accepted"
        assert model.click_stats.slates == 6
        assert service.audit("shop").equal


def test_what_a_model_knew_outlives_the_code_that_learned_it(store, stored, log, tmp_path, monkeypatch):
    wanted = log.model.digest()
    archived(store, stored, 215, tmp_path / "old")
    store.save_snapshot(stored.id, *log.model.snapshot())
    monkeypatch.setattr(Model, "_code", lambda self: "other code")
    assert recover(store, stored).restored_from == 215, "the snapshot is of other code, the base is believed"
    assert digest(store, stored) == wanted
    told = audit_stored(store, stored)
    assert (told.equal, told.compared, told.start) == (True, 0, 215)
    monkeypatch.setattr(type(log.model.engine.policy), "version", 99)
    assert "learned by version" in audit_stored(store, stored).not_folded


def test_snapshots_of_archived_events_go_with_them(store, stored, log, tmp_path):
    early, late = log.model_at(100).snapshot(), log.model_at(220).snapshot()
    for snapshot in (early, late):
        store.save_snapshot(stored.id, *snapshot)
    archived(store, stored, 215, tmp_path / "old")
    assert [seq for seq, _ in store.snapshots(stored.id)] == [220]
    # As a server makes one that has not heard of it yet.
    store.save_snapshot(stored.id, *early)
    told = audit_stored(store, stored)
    assert (told.equal, told.compared) == (True, 1)
    assert digest(store, stored) == log.model.digest()


def test_a_damaged_base_is_not_believed(store, stored, tmp_path):
    archived(store, stored, 215, tmp_path / "old")
    base = store.base(stored.id)
    assert base is not None
    for content in (base.content[:-1], base.content[:90] + b"?" + base.content[91:], b""):
        with store._database.transaction() as connection:
            connection.execute(
                f"UPDATE {store.prefix}base SET content = ? WHERE model = ?", (content, stored.id)
            )
        with pytest.raises(WorkFailed, match="events of model 'made' up to 214 are archived, and what"):
            recover(store, stored)
        assert "the log cannot be folded" in audit_stored(store, stored).differing[0]
        # The file has all of it.
        with opened_archives([tmp_path / "old"]) as files:
            told = audit_stored(store, stored, log=ArchivedLog(store, stored, files))
        assert "what was known when events were archived cannot be read" in told.differing[0]


def test_a_store_without_its_events_is_not_sound(store, stored, tmp_path):
    archived(store, stored, 215, tmp_path / "old")
    assert store.check() == []
    for seq, sentence in (
        (215, "the log of model 'made' should hold events 215 to 226, and holds 11 from 216 to 226"),
        (1, "the creation of model 'made', event 1 of its log, is missing"),
    ):
        with store._database.transaction() as connection:
            connection.execute(
                f"DELETE FROM {store.prefix}event WHERE model = ? AND seq = ?", (stored.id, seq)
            )
        assert sentence in store.check()


def test_of_two_who_archive_at_once_one_is_refused(store, stored, log, tmp_path, monkeypatch):
    set_base = Store.set_base

    def late(self, *given):
        monkeypatch.setattr(Store, "set_base", set_base)
        archived(store, stored, 215, tmp_path / "first")
        set_base(self, *given)

    monkeypatch.setattr(Store, "set_base", late)
    with pytest.raises(Conflict, match="archived, set back or deleted meanwhile; nothing was removed"):
        archived(store, stored, 175, tmp_path / "second")
    assert store.bases()[stored.id].seq == 215
    assert digest(store, stored) == log.model.digest()
    # And a rollback that came while the file was written.
    monkeypatch.setattr(Store, "set_base", lambda self, *given: (roll_back(216), set_base(self, *given)))

    def roll_back(to):
        store.append([(stored.id, NewEvent(Kind.ROLLED_BACK, b"r" * 16, packed(RolledBack(to)), 1.0))])

    with pytest.raises(Conflict, match="event 227 rolls back to event 216, so events before 222"):
        archived(store, stored, 222, tmp_path / "third")
    assert store.bases()[stored.id].seq == 215


def test_a_fold_goes_on_when_events_are_archived_under_it(store, stored, log, tmp_path, monkeypatch):
    store.tuning = Tuning(chunk_events=20)
    done = []

    def progress(seq, of):
        done.append(seq)
        if len(done) == 2:
            archived(store, stored, 215, tmp_path / "old")

    assert recover(store, stored, use_snapshots=False, progress=progress).digest() == log.model.digest()
    assert done[0] < 50 < 215 <= done[-1]


def test_a_deleted_model_leaves_no_base(store, stored, tmp_path):
    archived(store, stored, 215, tmp_path / "old")
    store.delete(stored.id)
    while store.sweep():
        pass
    assert store.bases() == {}
    assert store.check() == []


def test_servers_go_on_beside_an_archive(postgresql_url, log, tmp_path):
    """Another process archives; one server is behind what it archives."""
    with (
        open_store(postgresql_url) as beside,
        Service(open_store(postgresql_url), poll_seconds=3600) as ahead,
        Service(open_store(postgresql_url), poll_seconds=3600) as behind,
    ):
        begun = log.events[:100]
        stored = beside.create("made", [NewEvent(*event[1:]) for event in begun])
        for service in (ahead, behind):
            service.models.take_up(stored)
        beside.append([(stored.id, NewEvent(*event[1:])) for event in log.events[100:]])
        ahead.run_background()
        archived(beside, stored._replace(head=len(log.events)), 215, tmp_path / "old")
        for service in (behind, ahead):
            service.maintenance._heard = 0.0
            service.run_background()
            until = time.monotonic() + 20
            while service.model("made").set_back and time.monotonic() < until:
                time.sleep(0.02)  # It is loaded again, from where the log begins now.
            service.run_background()
            then = digest(beside, stored._replace(head=len(log.events)))
            assert then == log.model.digest()
            assert service.audit("made").equal
            assert service.models.set_backs == {}, "nothing is lost"
        for service in (behind, ahead):
            service.feedback("made", service.recommend("made"), click=0)
        behind.run_background()
        ahead.run_background()
        assert seam.model(ahead, "made").digest() == seam.model(behind, "made").digest()
        assert ahead.model("made").archived_before == 215
