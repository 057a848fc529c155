"""The garbage collector while a server runs."""

import gc

import pytest

from firstclick.serve.http.garbage import MANY, NEVER, SOME, Garbage


@pytest.fixture
def garbage():
    """The rules, in a process that collects nothing by itself: other threads allocate too."""
    before = gc.get_threshold()
    gc.disable()
    garbage = Garbage()
    yield garbage
    garbage.close()
    gc.enable()
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


def full_collections():
    return gc.get_stats()[2]["collections"]


@pytest.mark.parametrize(("collections", "n_full"), [(0, 0), (SOME, 1), (MANY, 0)])
def test_a_few_objects_are_examined_once_and_many_never(garbage, collections, n_full):
    full, kept = full_collections(), []
    for _ in range(collections):
        kept += [[] for _ in range(100)]
        gc.collect(1)
    assert gc.get_threshold()[2] == NEVER
    garbage.tidy()
    assert full_collections() == full + n_full
    assert not {*map(id, kept)} & {*map(id, gc.get_objects())}, "they are frozen"
    garbage.tidy()
    assert full_collections() == full + n_full, "nothing came since"


def test_no_full_collection_comes_by_itself(garbage):
    full, middle = full_collections(), gc.get_stats()[1]["collections"]
    gc.enable()
    kept = [[number] for number in range(300_000)]
    assert full_collections() == full
    assert gc.get_stats()[1]["collections"] > middle
    assert len(kept) == 300_000
