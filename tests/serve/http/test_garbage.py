"""The garbage collector while a server runs."""

import gc

import pytest

from firstclick.serve.http.garbage import MANY, SOME, Garbage


@pytest.fixture
def garbage():
    before = gc.get_threshold()
    made = Garbage()
    yield made
    made.close()
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


class Knot:
    """Refers to itself: only the collector can free it."""

    alive = 0

    def __init__(self):
        self.me = self
        Knot.alive += 1

    def __del__(self):
        Knot.alive -= 1


def survivors(collections):
    """New objects that outlive so many collections of the middle generation."""
    return [kept for _ in range(collections) for kept in ([[] for _ in range(100)], gc.collect(1))[0]]


def test_no_full_collection_comes_by_itself(garbage):
    full = gc.get_stats()[2]["collections"]
    kept = [[number] for number in range(300_000)]
    assert gc.get_stats()[2]["collections"] == full
    assert gc.get_stats()[1]["collections"] > 0
    assert len(kept) == 300_000


def test_a_little_is_looked_at_and_then_left_alone(garbage):
    gc.disable()
    try:
        Knot()
        kept = survivors(SOME)
        assert Knot.alive == 0, "young circles go as ever"
        frozen, full = gc.get_freeze_count(), gc.get_stats()[2]["collections"]
        garbage.tidy()
        assert gc.get_stats()[2]["collections"] == full + 1
        assert gc.get_freeze_count() >= frozen + len(kept)
        garbage.tidy()
        assert gc.get_stats()[2]["collections"] == full + 1, "nothing came since"
    finally:
        gc.enable()


def test_much_is_left_alone_unseen(garbage):
    gc.disable()
    try:
        kept = survivors(MANY)
        frozen, full = gc.get_freeze_count(), gc.get_stats()[2]["collections"]
        garbage.tidy()
        assert gc.get_stats()[2]["collections"] == full
        assert gc.get_freeze_count() >= frozen + len(kept)
    finally:
        gc.enable()
