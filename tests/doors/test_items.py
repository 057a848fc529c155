"""Items come, change and go, at every door."""

import numpy as np
import pytest

from firstclick.serve import Item
from tests.support.doors import RankerDoor
from tests.support.shop import FEATURES, GROUPS, IDS, K, new_item

GOOD, BAD = [0.9, 0.9, 0.9, 0.9], [-0.9, -0.9, -0.9, -0.9]


def items_of_slates(door, n=30, **request):
    """The items of some slates."""
    return {item for _ in range(n) for item in door.recommend(**request).items}


def facts(door):
    return [door.facts()[name] for name in ("items", "withdrawn", "unavailable")]


def test_a_new_item_is_shown_and_learned(open_door):
    for policy, features in (("cascade-lin-ts", True), ("cascade-ts", False)):
        door = open_door(policy=policy, features=features)
        new = new_item() if features else Item("new")
        door.put([new, *([new_item("newer", features=BAD)] if features else [Item("newer")])])
        assert facts(door) == [len(IDS) + 2, 0, 0]
        assert door.recommend(candidates=["new"]).items == ["new"]
        before = door.scores(["new"])["new"]
        for _ in range(3):
            door.feedback(door.recommend(candidates=["new"]).handle, click=0)
        assert door.scores(["new"])["new"] > before
        assert set(door.recommend(candidates=["new", "newer", "i1"]).items) == {"new", "newer", "i1"}


def test_many_items_can_be_added_one_by_one(door):
    for number in range(20):
        door.put([new_item(number + 100, features=FEATURES[number % 13])])
    assert facts(door)[0] == len(IDS) + 20
    assert set(door.recommend(candidates=[100, 110, 119]).items) == {100, 110, 119}


def test_changed_features_count_and_what_was_learned_stays(door):
    for _ in range(10):
        slate = door.recommend(candidates=["i1"])
        door.feedback(slate.handle, click=0)
    before = door.scores(IDS)
    door.put([new_item("i4", features=FEATURES[1])])
    after = door.scores(IDS)
    assert after["i4"] == pytest.approx(before["i1"])
    assert {id: after[id] for id in IDS if id != "i4"} == pytest.approx(
        {id: score for id, score in before.items() if id != "i4"}
    )
    assert facts(door) == [len(IDS), 0, 0]


def test_a_withdrawn_item_is_not_shown_and_comes_back_by_a_put(door):
    door.withdraw(["i1", 7])
    assert facts(door)[:2] == [len(IDS) - 2, 2]
    assert not {"i1", 7} & items_of_slates(door)
    assert door.recommend(candidates=["i1", 7, "i2"]).items == ["i2"]
    door.put([new_item("i1", features=FEATURES[1])])
    assert facts(door)[0] == len(IDS) - 1
    assert set(door.recommend(candidates=["i1", 7]).items) == {"i1"}


def test_what_was_learned_of_an_item_outlives_its_withdrawal(open_door):
    door = open_door(policy="cascade-ts", features=False)
    for _ in range(2):
        door.feedback(door.recommend(candidates=["i1"]).handle, click=0)
    door.withdraw(["i1"])
    if isinstance(door, RankerDoor):
        door.ranker.catalog.show_again(["i1"])
    else:
        door.put([Item("i1")])
    assert door.scores(["i1"])["i1"] == pytest.approx(3 / 4)


def test_an_item_that_is_sold_out_is_not_shown_until_it_is_available_again(door):
    door.set_available(off=["i1", 7, 7])
    assert facts(door) == [len(IDS) - 2, 0, 2]
    assert not {"i1", 7} & items_of_slates(door)
    assert door.recommend(pinned={0: "i1"}).skipped_pins == ("i1",)
    door.set_available(on=["i1"], off=["i2"])
    assert "i1" in door.recommend(candidates=["i1", "i2"]).items
    assert facts(door)[2] == 2
    # The mark stays when the item is withdrawn, and put back.
    door.withdraw(["i2"])
    door.put([new_item("i2", features=FEATURES[2])])
    assert door.recommend(candidates=["i2"]).items == []
    door.set_available(on=["i2", 7])
    assert set(door.recommend(candidates=["i2", 7]).items) == {"i2", 7}


def test_availability_comes_with_an_item_too(open_at):
    for name in ("service", "http", "client"):
        door = open_at(name)
        door.put([new_item(available=False), Item("i1", available=False)])
        assert facts(door) == [len(IDS) - 1, 0, 2]
        assert door.recommend(candidates=["i1", "new"]).items == []
        door.put([Item("i1", name="One")])
        assert door.recommend(candidates=["i1"]).items == []
        door.put([Item("i1", available=True)])
        assert door.recommend(candidates=["i1"]).items == ["i1"]


def test_groups_come_with_items_and_change(open_door):
    door = open_door()
    door.put([new_item("new", group="odd"), new_item("free", group=None)])
    slate = door.recommend(candidates=["new", "i1", "free"], at_most={"odd": 1})
    assert len(slate.items) == 2
    assert "free" in slate.items
    door.put([Item("i1", group="third")])
    slate = door.recommend(candidates=["new", "i1", "free"], at_most={"odd": 1})
    assert set(slate.items) == {"new", "i1", "free"}
    assert door.recommend(candidates=["i1"], at_most={"third": 0}).items == []
    door.put([Item("i1", group=None)])
    assert len(door.recommend(candidates=["new", "i1", 7], at_most=1).items) == 2
    assert GROUPS[1] == GROUPS[3] == "odd"


def test_an_item_without_features_is_taken_for_a_typical_one(door):
    door.put([Item("cold", features=None)])
    for _ in range(6):
        door.feedback(door.recommend(candidates=["i1", "i2", "i4"]).handle, click=0)
    scores = door.scores([*IDS, "cold"])
    mean = np.mean([scores[id] for id in IDS])
    assert scores["cold"] == pytest.approx(mean, rel=1e-6)
    door.put([new_item("cold", features=FEATURES[1])])
    assert door.scores(["cold"])["cold"] == pytest.approx(scores["i1"])


def test_fields_that_are_not_given_stay(open_at):
    for name in ("service", "http", "client"):
        door = open_at(name)
        before = door.scores(["i1"])
        door.put([Item("i1", name="One")])
        assert door.scores(["i1"]) == before
        assert len(door.recommend(candidates=["i1", 7, "i5"], at_most={"odd": 1}).items) == 1
        assert door.service.model(door.model).items.names["i1"] == "One"


def test_a_change_is_made_as_a_whole(open_at):
    for name in ("service", "http"):
        door = open_at(name)
        door.change([new_item()], ["i1", "i1"])
        assert facts(door)[:2] == [len(IDS), 1]
        before = door.facts()
        for put, withdraw in (
            ([new_item("newer")], ["nothing"]),
            ([new_item("newer", features=[1.0])], ["i2"]),
        ):
            with pytest.raises(Exception, match="must"):
                door.change(put, withdraw)
        assert door.facts() == before
        # Withdrawn again, as in a repeated call, nothing happens.
        door.withdraw(["i1"])
        assert facts(door)[:2] == [len(IDS), 1]


def test_slates_have_k_items_while_there_are_as_many(door):
    door.withdraw(IDS[5:])
    for left in (5, 4, 3, 2, 1):
        assert len(door.recommend().items) == min(K, left)
        door.withdraw(IDS[left - 1 : left])
    assert door.recommend().items == []
