"""Items of a table that are put, sold out, changed and rolled back: what no random life says exactly."""

import numpy as np
import pytest

from firstclick.serve import Item
from tests.support.refusals import check_refused

TABLE = [
    {"brand": "Acme", "price": 9.5, "new": True}, {"brand": "Bolt", "price": 30, "new": False},
    {"brand": "Acme", "price": "12,00", "new": False}, {"brand": "Crux", "price": None, "new": True},
    {"brand": "Bolt", "price": 7, "new": True}, {"brand": "Crux", "price": 80, "new": False},
]  # fmt: skip
ITEMS = [Item(f"t{n}", f"name {n}", "odd" if n % 2 else "even", row) for n, row in enumerate(TABLE)]


@pytest.fixture
def table(open_shop):
    """A model made of a table."""
    table = open_shop(policy="cascade-mixed", items=ITEMS, seed=3)
    yield table
    assert table.audit().equal


def ids_that_can_be_shown(shop):
    return {item.id for item in ITEMS if shop.recommend(candidates=[item.id]).items}


def test_availability_outlives_puts_withdrawals_and_rollbacks(table):
    table.set_available(off=["t1", "t4"])
    for change in (
        lambda: table.put_items([Item("t1", "other", features={"price": 1})]),
        lambda: table.put_items(ITEMS),
        lambda: table.roll_back(1),
        lambda: table.withdraw_items(["t1", "t2"]),
        lambda: table.put_items([Item("t1"), Item("t2")]),
    ):
        change()
        assert not {"t1", "t4"} & ids_that_can_be_shown(table)
    table.put_items([Item("t1", available=True)])
    assert ids_that_can_be_shown(table) == {"t0", "t1", "t2", "t3", "t5"}


def test_features_by_column_name_are_merged_and_unknown_levels_noted(table):
    table.put_items([Item("t0", features={"price": "15,50"}), Item("t1", features=["Crux", 3, True])])
    assert table.items()["t0"].features == {"brand": "Acme", "price": "15,50", "new": True}
    assert table.items()["t1"].features == {"brand": "Crux", "price": 3, "new": True}
    table.put_items([Item("t0", features=None), Item("new", features={"brand": "Zeta", "size": 3})])
    assert table.items()["t0"].features == dict.fromkeys(("brand", "price", "new"))
    assert table.items()["new"].features == {"brand": "Zeta", "price": None, "new": None}
    # Only new items are counted, not those that are put every night.
    table.put_items(ITEMS)
    (note,) = table.describe()["notes"]
    assert note.startswith("brand: all new items have a level the model does not know")
    table.put_items([Item("t0", features={"price": "cheap"})])
    assert any(note.startswith("price: 1 cell") for note in table.describe()["notes"])
    for wrong in ([1, 2], "Acme", 7):
        check_refused(lambda wrong=wrong: table.put_items([Item("t0", features=wrong)]), "features")


def test_a_request_names_columns_and_the_rest_is_that_of_the_item(open_shop, tmp_path):
    """The same is learned as where the items themselves have these features."""
    shops = [open_shop(tmp_path / f"{n}.db", policy="cascade-lin-ts", items=ITEMS) for n in range(2)]
    features = [{"price": 4}, ["Acme", 5, True]]
    request = {"candidates": ["t3", "t5"], "request_id": "a"}
    shops[1].put_items([Item(id, features=row) for id, row in zip(("t3", "t5"), features, strict=True)])
    for shop, own in zip(shops, ({"features": features}, {}), strict=True):
        shop.feedback(shop.recommend(**request, **own), clicks=[0, 1], examined=2)
    for mine, its in zip(*(shop.state().values() for shop in shops), strict=True):
        np.testing.assert_array_equal(mine, its)
    check_refused(lambda: shops[0].recommend(candidates=["t3"], features=[{"prise": 4}]), "features")


@pytest.mark.parametrize("policy", ["cascade-mixed", "cascade-lin-ts", "cascade-ts"])
def test_an_item_keeps_its_row_and_its_counts_when_its_features_change(open_shop, policy):
    shop = open_shop(policy=policy, items=ITEMS, seed=3)
    for click in (0, 1, None, 2) * 10:
        shop.feedback(shop.recommend(), click)
    before = shop.state()
    for night in range(5):
        changed = [Item(f"t{n}", features=row | {"price": 10 * n + night}) for n, row in enumerate(TABLE)]
        shop.put_items(changed)
    after = shop.state()
    kept = ["examined", "hits"] if policy == "cascade-mixed" else list(before)
    for name in kept:
        np.testing.assert_array_equal(before[name], after[name])
    if policy == "cascade-mixed":
        assert after["precision"].tolist() != before["precision"].tolist()
    assert shop.audit().equal
    digest = shop.digest()
    shop.restart()
    assert shop.digest() == digest


def test_a_restart_reads_the_first_event_and_those_after_the_snapshot(table, monkeypatch):
    """Not the thirty nights before it."""
    for night in range(4):
        table.put_items([Item("t1", features={"price": night})])
    table.snapshot()
    snapshot = table.seq
    table.set_available(off=["t3"])
    store, reads = type(table.service.store), []
    events = store.events

    def note(self, model, after, upto=None, **more):
        reads.append((after, upto))
        return events(self, model, after, upto, **more)

    monkeypatch.setattr(store, "events", note)
    table.restart()
    assert table.describe()["restored_from"] == snapshot
    assert {after for after, _ in reads} <= {0, snapshot}
    assert all(upto == 1 for after, upto in reads if after == 0), reads
