"""Snapshots are a cache: whatever is wrong with them, a restart comes to what the log says."""

import json
import sqlite3

import numpy as np
import pytest

from firstclick.serve.log.events import Kind
from firstclick.serve.log.snapshot import read_snapshot, write_snapshot
from firstclick.serve.model import model as model_module
from firstclick.serve.model.audit import audit_served
from firstclick.serve.service import open_service
from firstclick.serve.store import open_store
from tests.support import seam
from tests.support.made_log import K, made_items


@pytest.fixture
def place(tmp_path):
    """A store with three snapshots and events after each."""
    path = str(tmp_path / "shop.db")
    with open_service(path) as service:
        service.create("shop", policy="cascade-lin-ts", k=K, items=made_items(), seed=5)
        for n in range(3):
            answer(service, 30)
            service.put_items("shop", made_items(1, first=60 + n))
            answer(service, 5)
            seam.model(service, "shop").snapshot()
        answer(service, 10)
    return path


def answer(service, n):
    slates = [service.recommend("shop") for _ in range(n)]
    service.feedback_batch("shop", [(slate.token, place % K) for place, slate in enumerate(slates)])


def snapshots(place):
    with open_store(place, read_only=True) as store:
        return dict(store.snapshots(1))


def change(place, seq, content):
    connection = sqlite3.connect(place)
    connection.execute("UPDATE snapshot SET content = ? WHERE seq = ?", (content, seq))
    connection.commit()
    connection.close()


def rewritten(**facts):
    """A snapshot that is whole, and says something else."""

    def damage(content):
        page, arrays = read_snapshot(content)
        return write_snapshot(page | facts, arrays)

    return damage


def fewer_numbers(content):
    page, arrays = read_snapshot(content)
    name = next(name for name, array in arrays.items() if array.ndim)
    return write_snapshot(page, arrays | {name: arrays[name][:-1]})


def other_numbers(content):
    page, arrays = read_snapshot(content)
    return write_snapshot(page, {name: array.astype(np.float32) for name, array in arrays.items()})


DAMAGES = {
    "one bit": lambda content: content[:-100] + bytes([content[-100] ^ 1]) + content[-99:],
    "one bit of its checksum": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "cut off": lambda content: content[: len(content) // 2],
    "nothing but a head": lambda content: content[:12],
    "empty": lambda content: b"",
    "zeros": lambda content: bytes(len(content)),
    "something else": lambda content: json.dumps({"seq": 3}).encode(),
    "a length beyond all bounds": lambda content: content[:8] + b"\xff\xff\xff\xff" + content[12:],
    "made by other code": rewritten(code="another"),
    "without a history": rewritten(history=None),
    "without a number": rewritten(seq="many"),
    "with an array too short": fewer_numbers,
    "with other numbers": other_numbers,
}


class Folded:
    """How many pieces of feedback are read from the log when a service starts."""

    def __init__(self, monkeypatch):
        self.n = 0
        learn = model_module.Model._learn

        def counted(model, events):
            self.n += len(events)
            learn(model, events)

        monkeypatch.setattr(model_module.Model, "_learn", counted)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_broken_snapshot_is_passed_over(place, damage, monkeypatch):
    with open_service(place) as service:
        wanted = seam.model(service, "shop").digest()
    kept = snapshots(place)
    # The newest, then the one before, then all: the last is recovery from the log alone.
    folded_before = 0
    for seq in sorted(kept, reverse=True):
        change(place, seq, damage(kept[seq]))
        with monkeypatch.context() as patched:
            folded = Folded(patched)
            with open_service(place) as service:
                assert seam.model(service, "shop").digest() == wanted
                assert folded.n > folded_before, "it should have begun with an older snapshot"
                folded_before = folded.n
                assert audit_served(service.store, service.model("shop")).equal
    assert folded_before == 3 * 35 + 10


def test_a_broken_snapshot_is_told_of(place, caplog):
    newest = max(snapshots(place))
    change(place, newest, b"nothing")
    with open_service(place):
        assert f"shop: snapshot at {newest} is not used: the snapshot is damaged" in caplog.text


def test_whole_snapshots_are_used(place, monkeypatch):
    folded = Folded(monkeypatch)
    with open_service(place):
        assert folded.n == 10


def test_a_snapshot_from_beyond_the_log_is_not_used(place):
    """As after a restored copy of the log beside newer snapshots."""
    connection = sqlite3.connect(place)
    (head,) = connection.execute("SELECT head FROM model").fetchone()
    connection.execute("DELETE FROM event WHERE seq > ?", (head - 15,))
    connection.execute("UPDATE model SET head = ?", (head - 15,))
    connection.commit()
    connection.close()
    with open_service(place) as service:
        model = service.model("shop")
        assert model.seq == head - 15
        assert audit_served(service.store, model).equal


def test_there_are_catalog_events_in_the_tail_and_before(place):
    """The tests above would say little of a log with feedback alone."""
    with open_store(place, read_only=True) as store:
        assert _kinds(store) == {Kind.CREATED: 1, Kind.FEEDBACK: 115, Kind.ITEMS_CHANGED: 3}


def _kinds(store):
    kinds = [event.kind for chunk in store.events(1, 0) for event in chunk]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}
