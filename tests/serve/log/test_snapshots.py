"""Snapshots are a cache: whatever is wrong with them, a restart comes to what the log says."""

import itertools
import json
import shutil
from collections import Counter

import numpy as np
import pytest

from firstclick.serve.log.snapshot import BadSnapshot, read_snapshot, write_snapshot
from tests.support.shop import K, new_items, shop_at
from tests.support.stores import sql


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A store with three snapshots and events after each; its place and its digest."""
    place = tmp_path_factory.mktemp("snapshots") / "shop.db"

    def answer(n):
        slates = [shop.recommend() for _ in range(n)]
        shop.feedback_batch([(slate.token, number % K) for number, slate in enumerate(slates)])

    with shop_at(place, policy="cascade-lin-ts") as shop:
        for n in range(3):
            answer(30)
            shop.put_items(new_items(1, first=160 + n))
            answer(5)
            shop.snapshot()
        answer(10)
        kinds = Counter(event["kind"] for event in shop.events())
        assert kinds == {"created": 1, "feedback": 115, "items-changed": 3}
        return place, shop.digest()


@pytest.fixture
def place(written, tmp_path):
    return str(shutil.copy(written[0], tmp_path / "shop.db"))


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


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_broken_snapshot_is_skipped(written, place, damage, caplog):
    kept = dict(sql(place, "SELECT seq, content FROM snapshot"))
    # The newest, then the one before, then all: the last is recovery from the log alone.
    newest_first = [*sorted(kept, reverse=True), 0]
    for seq, older in itertools.pairwise(newest_first):
        with shop_at(place) as shop:
            assert shop.describe()["restored_from"] == seq
        sql(place, "UPDATE snapshot SET content = ? WHERE seq = ?", damage(kept[seq]), seq)
        with shop_at(place) as shop:
            assert (shop.describe()["restored_from"], shop.digest()) == (older, written[1])
            assert shop.audit().equal
        assert f"shop: snapshot at {seq} is not used" in caplog.text


def test_every_changed_bit_and_every_cut_is_noticed():
    content = write_snapshot({"seq": 3, "history": [1, 2]}, {"counts": np.arange(4.0)})
    for at in range(len(content)):
        changed = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        for broken in (changed, content[:at]):
            with pytest.raises(BadSnapshot):
                read_snapshot(broken)


def test_snapshot_beyond_the_log_is_not_used(place):
    """As after a restored copy of the log beside newer snapshots."""
    ((head,),) = sql(place, "SELECT head FROM model")
    sql(place, "DELETE FROM event WHERE seq > ?", head - 15)
    sql(place, "UPDATE model SET head = ?", head - 15)
    with shop_at(place) as shop:
        assert shop.seq == head - 15
        assert shop.audit().equal
