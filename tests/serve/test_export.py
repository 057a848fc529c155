"""A model is imported or forked in pieces: others write in between, and see no part of it before its end."""

from io import BytesIO
from itertools import chain

import msgspec
import pytest

from firstclick.errors import FirstclickError
from firstclick.serve import Tuning
from firstclick.serve.log.events import Created, ItemsChanged, Kind, packed, unpacked
from firstclick.serve.log.model_file import model_file
from firstclick.serve.model.export import export_model, import_model
from firstclick.serve.model.fork import fork
from firstclick.serve.model.replay import recover
from firstclick.serve.model.slates import audit_slates
from tests.support.logs import store_log
from tests.support.made_log import Log
from tests.support.refusals import check_refused
from tests.support.stores import feedback, log_of


@pytest.fixture(scope="module")
def log():
    return Log().eventful()


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


def test_an_export_is_the_log_and_an_import_of_it_the_model(store, made, log, tmp_path):
    path = tmp_path / "made.model"
    path.write_bytes(b"".join(export_model(store, made)))
    with path.open("rb") as file:
        copy = import_model(store, "copy", file)
    assert log_of(store, copy.id) == log.events
    digests = {recover(store, model, use_snapshots=False).digest() for model in (made, copy)}
    assert digests == {log.model.digest()}
    # Learned again it names its origin.
    again = import_model(store, "again", path.read_bytes(), relearn=True)
    assert [*audit_slates(store, again).by_origin] == ["made (cascade-lin-ts)"]
    # Read as it comes: no more than some blocks are made ahead.
    pieces = export_model(store, made)
    assert len([next(pieces), next(pieces)]) == 2
    with pytest.raises(FirstclickError, match="cut off"):
        import_model(store, "part", BytesIO(path.read_bytes()[:-1]))
