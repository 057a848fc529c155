"""A request that is sent again gets the same slate."""

import pytest

from firstclick.serve import request_table
from firstclick.serve.request_table import KEPT_SECONDS, RequestTable
from firstclick.serve.service import open_service
from firstclick.wire.errors import Conflict
from firstclick.wire.feedback import ServedSlate
from tests.support.clock import Clock
from tests.support.made_log import K, made_items


@pytest.fixture
def service(tmp_path):
    with open_service(str(tmp_path / "shop.db")) as service:
        service.create("shop", policy="cascade-lin-ts", k=K, items=made_items(), seed=5)
        yield service


def test_the_same_slate_and_token_whatever_was_learned_in_between(service):
    first = service.recommend("shop", request_id="visit 1", exclude=["i3"])
    for _ in range(30):
        service.feedback("shop", service.recommend("shop"), 0)
    assert service.recommend("shop", request_id="visit 1", exclude=["i3"]) == first
    assert service.feedback("shop", first, 1).status == "accepted"
    assert service.recommend("shop", request_id="visit 1", exclude=["i3"]) == first
    assert service.feedback("shop", first, 1).status == "duplicate"
    assert service.recommended["shop"] == 31, "a slate that is asked for again is one slate"


def test_generators_are_read_once(service):
    ids = [f"i{n}" for n in range(10)]
    slate = service.recommend("shop", request_id="1", exclude=(item for item in ids))
    assert set(slate.items) == {"i10", "i11", "i12"}
    slate = service.recommend("shop", request_id="2", candidates=(item for item in ids[:2]))
    assert set(slate.items) == {"i0", "i1"}


def test_nothing_is_kept_of_a_deleted_model(service):
    service.recommend("shop", request_id="1")
    assert service._requests._known
    service.delete("shop")
    assert not service._requests._known


def test_ids_belong_to_a_model(service):
    service.create(
        "bakery", policy="cascade-ts", k=2, items=[i._replace(features=None) for i in made_items()]
    )
    assert service.recommend("shop", request_id="1") != service.recommend("bakery", request_id="1", k=1)


def test_after_a_restart_the_slate_may_differ_and_the_first_feedback_counts(tmp_path):
    place = str(tmp_path / "shop.db")
    with open_service(place) as service:
        service.create("shop", policy="cascade-lin-ts", k=K, items=made_items(), seed=5)
        first = [service.recommend("shop", request_id=str(n)) for n in range(20)]
        for _ in range(30):
            service.feedback("shop", service.recommend("shop"), 2)
    with open_service(place) as service:
        second = [service.recommend("shop", request_id=str(n)) for n in range(20)]
        differing = [n for n in range(20) if first[n].items != second[n].items]
        assert differing
        n = differing[0]
        assert service.feedback("shop", second[n], 0).status == "accepted"
        with pytest.raises(Conflict):
            service.feedback("shop", first[n], 0)


def test_answers_are_kept_for_an_hour_and_only_so_many(monkeypatch):
    monkeypatch.setattr(request_table, "MOST_KEPT", 3)
    clock = Clock()
    table = RequestTable(clock)
    slates = [ServedSlate([n], [None], str(n), n) for n in range(5)]
    for n, slate in enumerate(slates):
        assert table.keep(1, bytes([n]), b"asked", slate) is slate
    assert [table.find(1, bytes([n])) is not None for n in range(5)] == [False, False, True, True, True]
    assert table.keep(1, bytes([4]), b"asked", slates[0]) is slates[4], "another thread was first"
    with pytest.raises(Conflict, match="another request"):
        table.keep(1, bytes([4]), b"other", slates[0])
    clock.move(KEPT_SECONDS + 1)
    assert table.find(1, bytes([4])) is None
    assert table.keep(1, bytes([4]), b"asked", slates[0]) is slates[0]
