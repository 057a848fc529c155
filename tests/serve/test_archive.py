"""Archived events: the model stays what it was, the file and the store together are the log as it was."""

import pytest

from firstclick.errors import FirstclickError
from firstclick.serve import Tuning
from firstclick.serve.log.model_file import model_file
from firstclick.serve.model.model import Model
from firstclick.serve.model.replay import recover
from firstclick.serve.store.store import Store
from tests.support import logs
from tests.support.clock import Clock
from tests.support.made_log import Log
from tests.support.refusals import check_refused

# Where no later event of `Log.eventful` goes back to one before: event 175 is a rollback itself, and event
# 221 goes back to event 215.
SAFE = (50, 175, 215, 224)
HEAD = 227
DAY = 86_400


@pytest.fixture(scope="module")
def log():
    return Log().eventful()


@pytest.fixture
def shop(open_shop, store_url, log):
    """A model in whose log everything happens."""
    logs.store_log(store_url, log)
    # Its start adds event 227, the build.
    return open_shop(store_url, name="made", clock=Clock(), tuning=logs.QUIET)


@pytest.fixture
def old(tmp_path):
    return tmp_path / "old"


def numbers(shop):
    return [event.seq for event in logs.raw_events(shop)]


def rejected(call, word):
    with pytest.raises(FirstclickError, match=word):
        call()


def execute(shop, statement, *values):
    with shop.service.store._database.transaction() as connection:
        connection.execute(statement.format(shop.service.store.prefix), values)


@pytest.mark.parametrize("before", SAFE)
def test_a_model_stays_what_it_was(shop, old, before):
    events, digest, slate = (
        logs.raw_events(shop),
        shop.digest(),
        shop.model("made").internals.recommend(7).items,
    )
    logs.move_to_archive(shop, before, old)
    assert numbers(shop) == [1, *range(before, len(events) + 1)]
    assert shop.service.store.check() == []
    audit = logs.audit_of_store(shop)
    assert (audit.equal, audit.start, audit.digest) == (True, before, digest)
    audit = logs.audit_of_store(shop, old)
    assert (audit.equal, audit.start, audit.compared, audit.digest) == (True, 1, 1, digest)
    with logs.whole_log(shop, [old]) as whole:
        assert [event for chunk in whole.events(logs.entry_of(shop).id, 0) for event in chunk] == events
    shop.service.import_model("copy", logs.export_of(shop, old))
    assert shop.model("copy").digest() == digest
    assert logs.replay(logs.fork_of(shop, "again", old)) == digest
    shop.restart()
    assert (shop.digest(), shop.describe()["archived_before"]) == (digest, before)
    assert shop.model("made").internals.recommend(7).items == slate


def test_archiving_goes_on_later(shop, tmp_path):
    digest, paths = shop.digest(), [tmp_path / f"{before}" for before in SAFE]
    for before, path in zip(SAFE, paths, strict=True):
        logs.move_to_archive(shop, before, path)
        assert logs.replay(shop) == digest
    assert numbers(shop) == [1, *range(SAFE[-1], HEAD + 1)]
    for start in range(len(paths)):
        audit = logs.audit_of_store(shop, *paths[start:][::-1])
        assert (audit.equal, audit.digest) == (True, digest)
        assert audit.start == (1 if start == 0 else SAFE[start - 1])
    for wrong, word in (
        ([paths[0], *paths[2:]], "ends with event 49, the next begins with event 175"),
        (paths[:-1], "the store goes on with event 224"),
        ([*paths, paths[1]], "once"),
    ):
        rejected(lambda wrong=wrong: logs.audit_of_store(shop, *wrong), word)
    with paths[1].open("rb") as file:
        rejected(lambda: shop.service.import_model("part", file), "50 to 174")
    rejected(shop.export, "2 to 223")
    rejected(lambda: logs.fork_of(shop, "again"), "--archive FILE")


def test_a_changed_or_foreign_archive_is_detected(shop, old):
    logs.move_to_archive(shop, 50, old)
    whole = old.read_bytes()
    shop.service.import_model("other", logs.export_of(shop, old))
    rejected(lambda: logs.audit_of_store(shop.model("other"), old), "'made'")
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 1
    for content, word in ((changed, "changed or damaged"), (whole[:-40], "cut off")):
        old.write_bytes(content)
        rejected(lambda: logs.audit_of_store(shop, old), word)
    # Of a log with the same number of events and other content.
    events = logs.raw_events(shop.model("other"))[:49]
    events[20] = events[20]._replace(payload=events[30].payload)
    old.write_bytes(b"".join(model_file("made", iter([events]), lambda: "d")))
    audit = logs.audit_of_store(shop, old)
    assert not audit.equal
    assert "snapshot after event 50" in audit.differing[0]


@pytest.mark.parametrize(("before", "word"), [(2, "from 3 to 227"), (228, "from 3 to 227"), (61, "event 60")])
def test_events_that_are_needed_are_not_archived(shop, old, before, word):
    rejected(lambda: logs.move_to_archive(shop, before, old), word)
    assert not old.exists()
    assert numbers(shop) == [*range(1, HEAD + 1)]


def test_slates_with_a_good_token_are_not_archived(open_shop, store_url, old):
    shop = open_shop(store_url)
    for _ in range(5):
        shop.feedback(shop.recommend(), click=0)
    rejected(lambda: logs.move_to_archive(shop, 5, old, token_days=7.0), "good for 7 days")
    assert not old.exists()
    assert shop.service.store.bases() == {}


def test_a_rollback_to_an_archived_event_is_rejected(shop, old, log):
    logs.move_to_archive(shop, 215, old)
    # The store rejects one that was checked before the events were archived.
    rejected(lambda: logs.append_unchecked(shop, "RolledBack", 100), "archived a moment ago")
    shop.restart()
    for seq in (2, 214):
        check_refused(lambda seq=seq: shop.roll_back(seq), "seq")
    shop.roll_back(215)
    assert shop.state()["moment"].tolist() == log.model_at(215).engine.state.moment.tolist()
    shop.roll_back(1)
    assert shop.audit().equal
    assert logs.replay(shop) == shop.digest()
    assert shop.seq == HEAD + 2


def test_archived_feedback_is_not_counted_again(open_shop, store_url, old):
    """However old a slate may be for the server: its nonce is not known any more."""
    shop = open_shop(store_url, clock=Clock(), token_days=30, snapshot_seconds=1e9)
    slates = {}
    for day in (20, 15, 13, 12, 11, 9):
        slates[day] = shop.recommend()
        shop.service.clock.move(DAY)
    for day in (20, 12, 15, 9):
        shop.feedback(slates[day], click=0)
    logs.move_to_archive(shop, 5, old)
    # This process has not followed yet: the store rejects what it lets through.
    for day in (12, 13):
        check_refused(lambda day=day: shop.feedback(slates[day], click=0), "", "unavailable")
    shop.run_background()
    for day in (20, 12, 15, 13):
        check_refused(lambda day=day: shop.feedback(slates[day], click=0), "token", "expired")
    assert shop.feedback(slates[9], click=0).status == "duplicate"
    assert shop.feedback(slates[11], click=1).status == "accepted"
    assert shop.describe()["slates"] == 5
    assert shop.audit().equal


def test_what_a_model_knew_outlives_the_code_that_learned_it(shop, old, monkeypatch):
    digest = shop.digest()
    logs.move_to_archive(shop, 215, old)
    shop.snapshot()
    monkeypatch.setattr(Model, "_code", lambda self: "other code")
    restored = recover(shop.service.store, logs.entry_of(shop))
    assert restored.restored_from == 215, "the snapshot is of other code"
    assert logs.replay(shop, use_snapshots=True) == digest
    audit = logs.audit_of_store(shop)
    assert (audit.equal, audit.compared, audit.start) == (True, 0, 215)
    monkeypatch.setattr(type(shop.model("made").internals.engine.policy), "version", 99)
    assert "learned by version" in logs.audit_of_store(shop).not_folded


def test_snapshots_of_archived_events_are_removed_with_them(shop, old, log):
    store, entry = shop.service.store, logs.entry_of(shop)
    early, late = log.model_at(100).snapshot(), log.model_at(220).snapshot()
    for snapshot in (early, late):
        store.save_snapshot(entry.id, *snapshot)
    logs.move_to_archive(shop, 215, old)
    assert [seq for seq, _ in store.snapshots(entry.id)] == [220]
    # As a server writes one that has not followed yet.
    store.save_snapshot(entry.id, *early)
    audit = logs.audit_of_store(shop)
    assert (audit.equal, audit.compared) == (True, 1)
    assert logs.replay(shop, use_snapshots=True) == shop.digest()
    # A deleted model leaves nothing.
    shop.delete()
    while store.sweep():
        pass
    assert store.bases() == {}
    assert store.check() == []


def test_a_damaged_base_is_not_used(shop, old):
    logs.move_to_archive(shop, 215, old)
    base = shop.service.store.base(logs.entry_of(shop).id).content
    for content in (base[:-1], base[:90] + b"?" + base[91:], b""):
        execute(shop, "UPDATE {}base SET content = ?", content)
        rejected(lambda: logs.replay(shop), "up to 214 are archived")
        assert "the log cannot be folded" in logs.audit_of_store(shop).differing[0]
        # The file has all of it.
        assert "cannot be read" in logs.audit_of_store(shop, old).differing[0]


def test_a_store_without_its_events_is_not_sound(shop, old):
    logs.move_to_archive(shop, 215, old)
    for seq, sentence in (
        (215, "the log of model 'made' should hold events 215 to 227, and holds 12 from 216 to 227"),
        (1, "the creation of model 'made', event 1 of its log, is missing"),
    ):
        execute(shop, "DELETE FROM {}event WHERE seq = ?", seq)
        assert sentence in shop.service.store.check()


def test_of_two_archivings_at_once_one_is_rejected(shop, tmp_path, monkeypatch):
    set_base = Store.set_base

    def archive_first(self, *base):
        monkeypatch.undo()
        logs.move_to_archive(shop, 215, tmp_path / "first")
        set_base(self, *base)

    monkeypatch.setattr(Store, "set_base", archive_first)
    rejected(lambda: logs.move_to_archive(shop, 175, tmp_path / "second"), "nothing was removed")
    assert shop.service.store.bases()[logs.entry_of(shop).id].seq == 215
    assert logs.replay(shop) == shop.digest()

    # A rollback that comes while the file is written.
    def roll_back_first(self, *base):
        logs.append_unchecked(shop, "RolledBack", 216)
        set_base(self, *base)

    monkeypatch.setattr(Store, "set_base", roll_back_first)
    rejected(lambda: logs.move_to_archive(shop, 222, tmp_path / "third"), "rolls back to event 216")
    assert shop.service.store.bases()[logs.entry_of(shop).id].seq == 215


def test_a_replay_goes_on_when_events_are_archived_under_it(shop, old):
    store, done = shop.service.store, []
    store.tuning = Tuning(chunk_events=20)

    def progress(seq, of):
        done.append(seq)
        if len(done) == 2:
            logs.move_to_archive(shop, 215, old)

    model = recover(store, logs.entry_of(shop), use_snapshots=False, progress=progress)
    assert model.digest() == shop.digest()
    assert done[0] < 50 < 215 <= done[-1]


def test_servers_follow_an_archive(open_shop, postgresql_url, log, old):
    """Another process archives; one server is behind what it archives."""
    logs.store_log(postgresql_url, log)
    clock = Clock()
    ahead, behind = (open_shop(postgresql_url, name="made", clock=clock) for _ in range(2))
    ahead.run_background()
    for _ in range(9):
        ahead.feedback(ahead.recommend(), click=0)
    digest = ahead.digest()
    logs.move_to_archive(ahead, 232, old)
    clock.move(2)
    for shop in (behind, ahead):
        shop.run_background()
        shop.run_background()  # It is loaded again, from where the log begins now.
        assert (shop.digest(), shop.audit().equal) == (digest, True)
        assert shop.describe()["diverged"] == [], "nothing is lost"
    for shop in (behind, ahead):
        shop.feedback(shop.recommend(), click=0)
    for shop in (behind, ahead):
        shop.run_background()
        assert shop.describe()["archived_before"] == 232
    assert ahead.digest() == behind.digest()
