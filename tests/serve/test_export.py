"""Logs that move: exported, imported, forked in pieces, and archived."""

import hashlib
import tracemalloc
import zlib
from io import BytesIO
from itertools import chain

import msgspec
import pytest

from firstclick.errors import FirstclickError, WorkFailed
from firstclick.policies.cascade_lin_ts import CascadeLinTS
from firstclick.serve import Tuning
from firstclick.serve.log.events import Created, Event, ItemsChanged, Kind, packed, unpacked
from firstclick.serve.log.model_file import _HEAD, MAGIC, Block, ModelFile, model_file
from firstclick.serve.model.export import export_model, import_model
from firstclick.serve.model.fork import fork
from firstclick.serve.model.model import Model
from firstclick.serve.model.replay import recover
from firstclick.serve.model.slates import audit_slates
from firstclick.serve.store.store import Store
from firstclick.wire.errors import Malformed
from tests.support import logs
from tests.support.clock import Clock
from tests.support.logs import store_log
from tests.support.made_log import Log
from tests.support.refusals import check_refused
from tests.support.stores import feedback, log_of

# Archived events: the model stays what it was

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


# Models are copied in pieces: others write in between, and see no part of it before its end


@pytest.fixture
def made(store, log):
    """A stored log in which everything happens, as if it were long."""
    store.tuning = Tuning(events_at_once=17, chunk_events=50)
    return store_log(store, log)


def file_of(events, digest, size=40):
    chunks = (events[start : start + size] for start in range(0, len(events), size))
    return b"".join(model_file("made", chunks, lambda: digest))


def import_copy(store, made, log, **how):
    return import_model(store, "copy", file_of(log.events, log.model.digest()), **how)


def fork_copy(store, made, log, **how):
    return fork(store, store, made, "copy", **how).stored


def rows_in(store, table):
    ((n,),) = store._database.rows(f"SELECT count(*) FROM {store.prefix}{table}")
    return int(n)


@pytest.mark.parametrize(
    ("copy", "blocks"), [(import_copy, [40, 80, 120, 160, 200, 226]), (fork_copy, [50, 100, 150, 200, 226])]
)
def test_others_write_while_a_model_is_copied_and_do_not_see_it(store, made, log, copy, blocks):
    shop = store.create("shop", [feedback(0)])
    seen = []

    def progress(done, of):
        store.append([(shop.id, feedback(done))])
        assert store.check() == []
        seen.append((done, [model.name for model in store.models()]))

    copied = copy(store, made, log, progress=progress)
    assert [done for done, _ in seen] == blocks
    assert {*chain.from_iterable(names for _, names in seen)} == {"made", "shop"}
    assert [model.name for model in store.models()] == ["made", "shop", "copy"]
    assert log_of(store, copied.id)[1:] == log.events[1:]
    assert [seq for seq, _ in store.snapshots(copied.id)] == [226], "it need not be replayed"
    assert recover(store, copied, use_snapshots=False).digest() == recover(store, copied).digest()
    assert store.check() == []
    assert rows_in(store, "unfinished") == 0


@pytest.mark.parametrize("copy", [import_copy, fork_copy])
def test_a_name_that_is_taken_meanwhile_is_rejected(store, made, log, copy):
    def progress(done, of):
        if done == of:
            store.create("copy", [feedback(0)])

    check_refused(lambda: copy(store, made, log, progress=progress), "name", "conflict")
    assert rows_in(store, "event") == 227
    assert rows_in(store, "unfinished") == 0


def with_event(events, n, **changed):
    return [*events[:n], events[n]._replace(**changed), *events[n + 1 :]]


def same_nonce(events):
    return with_event(events, 200, nonce=events[3].nonce)


def bad_items(events):
    wrong = ItemsChanged(["new"], ["new"], [""], [None], [True], 2, bytes(16), [], 0, [], [], [])
    return with_event(events, 200, kind=Kind.ITEMS_CHANGED, payload=packed(wrong))


def too_many_in_a_slate(events):
    created = msgspec.structs.replace(unpacked(events[0], Created), k=1000)
    return with_event(events, 0, payload=packed(created))


def other_clicks(events):
    return with_event(events, 200, payload=events[3].payload)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (same_nonce, "nonce"),
        (bad_items, "features"),
        (too_many_in_a_slate, "k must"),
        (other_clicks, "digest"),
    ],
)
def test_a_file_that_is_rejected_leaves_nothing(store, log, change, word):
    store.tuning = Tuning(events_at_once=17)
    content = file_of(change(log.events), log.model.digest())
    with pytest.raises(FirstclickError, match=word):
        import_model(store, "copy", content)
    assert store.models() == []
    for table in ("event", "unfinished", "snapshot"):
        assert rows_in(store, table) == 0
    # Learned again it need not come to the same.
    if change is other_clicks:
        assert import_model(store, "copy", content, relearn=True).head == 226


def test_an_export_is_the_log_and_an_import_of_it_the_model(store, made, log, tmp_path, monkeypatch):
    path = tmp_path / "made.model"
    path.write_bytes(b"".join(export_model(store, made)))
    with path.open("rb") as file:
        copy = import_model(store, "copy", file)
    assert log_of(store, copy.id) == log.events
    digests = {recover(store, model, use_snapshots=False).digest() for model in (made, copy)}
    assert digests == {log.model.digest()}
    # Another version of the policy learns it again, and names its origin.
    monkeypatch.setattr(CascadeLinTS, "version", 2)
    with pytest.raises(FirstclickError, match="learned by version 1 of cascade-lin-ts"):
        import_model(store, "again", path.read_bytes())
    again = import_model(store, "again", path.read_bytes(), relearn=True)
    assert [*audit_slates(store, again).by_origin] == ["made (cascade-lin-ts)"]
    # Read as it comes: no more than some blocks are made ahead.
    pieces = export_model(store, made)
    assert len([next(pieces), next(pieces)]) == 2
    with pytest.raises(FirstclickError, match="cut off"):
        import_model(store, "part", BytesIO(path.read_bytes()[:-1]))


# The file of a model


@pytest.fixture(scope="module")
def events():
    return Log().eventful().events


def chunks(events, size):
    return (events[start : start + size] for start in range(0, len(events), size))


def written(events, size=30):
    first = events[0].seq
    base = b"" if first == 1 else b"what was known"
    return b"".join(model_file("shop", chunks(events, size), lambda: "d1", first=first, base=base))


def blocks_of(content):
    """The blocks, each with its checksum."""
    blocks, at = [], len(MAGIC)
    while at < len(content):
        size = _HEAD.unpack_from(content, at)[3]
        end = at + _HEAD.size + size + 32
        blocks.append(content[at:end])
        at = end
    return blocks


def sealed(blocks):
    """The file of these blocks, as somebody would make it who knows the format."""
    content, seal = MAGIC, b""
    for block in blocks:
        seal = hashlib.sha256(seal + block[:-32]).digest()
        content += block[:-32] + seal
    return content


def block(kind, raw, n_events=0, n_changes=0, size=None):
    packed = zlib.compress(raw, 1)
    size = len(raw) if size is None else size
    return _HEAD.pack(kind, n_events, n_changes, len(packed), size) + packed + bytes(32)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_exported_file_is_read_back(events, size):
    file = ModelFile(BytesIO(written(events, size)))
    assert (file.name, file.first, file.last, file.digest, file.base) == ("shop", 1, len(events), "d1", b"")
    assert [event for chunk in file.events() for event in chunk] == events
    assert file.rollbacks == [event for event in events if event.kind == Kind.ROLLED_BACK]
    for after, upto in ((0, 1), (1, None), (29, 61), (30, 30), (200, 10_000), (len(events), None)):
        for all_kinds in (True, False):
            found = [e for chunk in file.events(after, upto, feedback=all_kinds) for e in chunk]
            wanted = [e for e in events[after:upto] if all_kinds or e.kind != Kind.FEEDBACK]
            assert found == wanted, (after, upto, all_kinds)


def test_a_gap_in_the_log_is_not_written(events):
    with pytest.raises(WorkFailed, match="event 51"):
        written([*events[:50], *events[51:]])


def test_every_cut_and_every_changed_byte_is_refused(events):
    content = written(events[:60])
    for end in range(len(content)):
        with pytest.raises(Malformed, match=r"cut off|not an exported model"):
            ModelFile(BytesIO(content[:end]))
    for at in range(len(content)):
        changed = bytearray(content)
        changed[at] ^= 1
        with pytest.raises(Malformed):
            ModelFile(BytesIO(changed))
    with pytest.raises(Malformed):
        ModelFile(BytesIO(content + b"\0"))


def wrong_blocks(events):
    """Lists of blocks that do not make a file, whatever their checksums are."""
    page, one, two, *others, end = blocks_of(written(events[:150]))
    yield [page, one, *others, end]
    yield [page, one, one, two, *others, end]
    yield [page, two, one, *others, end]  # begins without the creation
    yield [one, two, *others, end]
    yield [page, end]
    yield [page, one, two, *others, block(Block.END, b'{"events": 59, "digest": "d1"}')]
    yield [page, one, two, *others, block(Block.END, b"[]")]
    yield [block(Block.PAGE, b'{"name": "shop", "first": "1"}'), one, two, *others, end]
    for kind, raw, *numbers in (
        (9, b"what is this"),
        (Block.EVENTS, b"", 0),
        (Block.EVENTS, b"short", 3),
        # More is in it than it says: nothing may be unpacked that was not announced.
        (Block.EVENTS, bytes(10**6), 1, 1, 100),
        (Block.EVENTS, bytes(100), 1, 1, 2**40),
    ):
        yield [page, block(kind, raw, *numbers), one, two, *others, end]
    # A part of a log without what was known before.
    page, _, *others = blocks_of(written(events[99:]))
    yield [page, *others]


def test_missing_repeated_moved_and_made_up_blocks_are_refused(events):
    right = blocks_of(written(events[:150]))
    assert len(right) == 7
    assert ModelFile(BytesIO(sealed(right))).last == 150
    for blocks in wrong_blocks(events):
        with pytest.raises(Malformed, match="not an exported model"):
            ModelFile(BytesIO(sealed(blocks)))
    for blocks in ([*right[:3], *right[4:]], [right[0], right[-1]]):
        with pytest.raises(Malformed):
            ModelFile(BytesIO(MAGIC + b"".join(blocks)))


def test_other_format_and_rollback_to_a_later_event_are_refused(events):
    with pytest.raises(Malformed, match="has format '2', and this firstclick reads format '1'"):
        ModelFile(BytesIO(MAGIC[:-1] + b"2" + written(events)[len(MAGIC) :]))
    rollback = next(event for event in events if event.kind == Kind.ROLLED_BACK)
    with pytest.raises(Malformed, match="do not fit together"):
        ModelFile(BytesIO(written([*events[:20], rollback._replace(seq=21)])))


@pytest.mark.long
def test_writing_and_reading_hold_a_few_blocks_only(events, tmp_path):
    n_blocks, size = 150, 1000
    payload = next(e.payload for e in events if e.kind == Kind.FEEDBACK)

    def made():
        yield events[:1]
        for number in range(n_blocks):
            first = 2 + number * size
            yield [Event(first + i, 1, (first + i).to_bytes(16, "big"), payload, 1.0) for i in range(size)]

    path = tmp_path / "shop.model"
    tracemalloc.start()
    try:
        with path.open("wb") as file:
            file.writelines(model_file("shop", made(), lambda: "d1"))
        with path.open("rb") as file:
            assert sum(map(len, ModelFile(file).events())) == n_blocks * size + 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # All of the events at once take some 40 MB.
    assert peak < 4_000_000
