"""A model goes in block by block: others write in between, nobody sees a part of it, or a refused one."""

from io import BytesIO
from itertools import chain

import msgspec
import pytest

from firstclick.serve import Tuning
from firstclick.serve.log.events import Created, ItemsChanged, Kind, NewEvent, packed, unpacked
from firstclick.serve.log.model_file import model_file
from firstclick.serve.model.export import export_model, import_model
from firstclick.serve.model.fork import fork
from firstclick.serve.model.replay import recover
from firstclick.wire.errors import Conflict, Malformed
from tests.support.made_log import Log
from tests.support.stores import feedback, log_of


@pytest.fixture(scope="module")
def log():
    return Log().eventful()


@pytest.fixture(autouse=True)
def small_pieces(store):
    """As if the log were long."""
    store.tuning = Tuning(events_at_once=17, chunk_events=50)


def file_of(events, digest, size=40):
    chunks = (events[start : start + size] for start in range(0, len(events), size))
    return b"".join(model_file("made", chunks, lambda: digest))


def rows_in(store, table):
    ((n,),) = store._database.rows(f"SELECT count(*) FROM {store.prefix}{table}")
    return int(n)


def test_others_write_while_a_model_is_imported_and_do_not_see_it(store, log):
    shop = store.create("shop", [feedback(0)])
    seen = []

    def progress(done, of):
        store.append([(shop.id, feedback(done))])
        seen.append((done, [model.name for model in store.models()]))

    stored = import_model(store, "copy", file_of(log.events, log.model.digest()), progress=progress)
    assert [done for done, _ in seen] == [40, 80, 120, 160, 200, 226]
    assert {*chain.from_iterable(names for _, names in seen)} == {"shop"}
    assert [model.name for model in store.models()] == ["shop", "copy"]
    assert log_of(store, stored.id) == log.events
    assert [seq for seq, _ in store.snapshots(stored.id)] == [226], "nobody has to fold it again"
    assert recover(store, stored).digest() == log.model.digest()
    assert store.check() == []
    assert rows_in(store, "unfinished") == 0


def _same_nonce_later(events):
    return [*events[:200], events[200]._replace(nonce=events[3].nonce), *events[201:]]


def _bad_items_later(events):
    wrong = ItemsChanged(["new"], ["new"], [""], [None], [True], 2, bytes(16), [])
    return [
        *events[:200],
        events[200]._replace(kind=Kind.ITEMS_CHANGED, payload=packed(wrong)),
        *events[201:],
    ]


def _too_many_in_a_slate(events):
    created = msgspec.structs.replace(unpacked(events[0], Created), k=1000)
    return [events[0]._replace(payload=packed(created)), *events[1:]]


def _other_clicks(events):
    return [*events[:200], events[200]._replace(payload=events[3].payload), *events[201:]]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_same_nonce_later, "two events have one nonce"),
        (_bad_items_later, "cannot be folded: .*features"),
        (_too_many_in_a_slate, "cannot be folded: k must be at most"),
        (_other_clicks, "do not come to the digest that it was exported with"),
    ],
)
def test_a_file_that_is_refused_leaves_nothing(store, log, change, sentence):
    content = file_of(change(log.events), log.model.digest())
    with pytest.raises(Malformed, match=sentence):
        import_model(store, "copy", content)
    assert store.models() == []
    for table in ("event", "unfinished", "snapshot"):
        assert rows_in(store, table) == 0
    # Learned anew it need not come to the same.
    if change is _other_clicks:
        assert import_model(store, "copy", content, relearn=True).head == 226


def test_a_name_that_is_taken_meanwhile_is_refused(store, log):
    def progress(done, of):
        if done == of:
            store.create("copy", [feedback(0)])

    with pytest.raises(Conflict, match="name 'copy' is taken by another model"):
        import_model(store, "copy", file_of(log.events, log.model.digest()), progress=progress)
    assert rows_in(store, "event") == 1
    assert rows_in(store, "unfinished") == 0


def test_an_export_is_the_log_and_an_import_of_it_the_model(store, log, tmp_path):
    stored = store.create("made", [NewEvent(*event[1:]) for event in log.events])
    path = tmp_path / "made.model"
    path.write_bytes(b"".join(export_model(store, stored)))
    with path.open("rb") as file:
        copy = import_model(store, "copy", file)
    assert log_of(store, copy.id) == log.events
    again = fork(store, store, stored, "again").stored
    assert log_of(store, again.id)[1:] == log.events[1:]
    digests = {recover(store, one, use_snapshots=False).digest() for one in (stored, copy, again)}
    assert digests == {log.model.digest()}
    # Read as it comes: no more than some blocks are made ahead.
    pieces = export_model(store, stored)
    assert len([next(pieces), next(pieces)]) == 2
    with pytest.raises(Malformed, match="cut off"):
        import_model(store, "part", BytesIO(b"".join(export_model(store, stored))[:-1]))
