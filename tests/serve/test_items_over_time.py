"""Items that are put, sold out, restocked, changed and rolled back: nothing is lost on the way."""

import numpy as np
import pytest

from firstclick.catalog.item import Item
from firstclick.serve.model.audit import audit_served
from firstclick.serve.service import open_service
from firstclick.wire.errors import Malformed
from tests.support import seam
from tests.support.serving import ITEMS, a_site

SHOP = "/v1/models/shop"
TABLE = [
    {"brand": "Acme", "price": 9.5, "new": True},
    {"brand": "Bolt", "price": 30, "new": False},
    {"brand": "Acme", "price": "12,00", "new": False},
    {"brand": "Crux", "price": None, "new": True},
    {"brand": "Bolt", "price": 7, "new": True},
    {"brand": "Crux", "price": 80, "new": False},
]


@pytest.fixture
def site(tmp_path):
    with a_site(tmp_path) as site:
        yield site
        assert audit_served(site.service.store, site.service.model("shop")).equal


@pytest.fixture
def table(tmp_path):
    """A model made of a table."""
    with open_service(str(tmp_path / "table.db")) as service:
        items = [Item(f"t{n}", f"name {n}", "odd" if n % 2 else "even", row) for n, row in enumerate(TABLE)]
        service.create("shop", policy="cascade-mixed", k=3, items=items, seed=3)
        yield service
        assert audit_served(service.store, service.model("shop")).equal


def item(site, id):
    (found,) = (one for one in site.ask("GET", f"{SHOP}/items").json()["items"] if str(one["id"]) == id)
    return dict(found)


def ever_shown(service, n=60):
    model = service.model("shop")
    return {item for number in range(n) for item in model.recommend(number).items}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_only_what_is_sent_changes_and_null_clears(site, method):
    tea = {"id": "tea", "name": "Tea", "group": "leaves", "features": [0.0, 1.0], "available": True}
    assert item(site, "tea") == tea
    for body, changed in (
        ({}, {}),
        ({"features": [0.5, 0.5]}, {"features": [0.5, 0.5]}),
        ({"name": "Green tea"}, {"name": "Green tea"}),
        ({"group": None}, {"group": ""}),
        ({"available": False}, {"available": False}),
        ({"name": None, "group": "drinks"}, {"name": "", "group": "drinks"}),
        ({"features": None}, {"features": [0.725, 0.475]}),  # the mean of all
    ):
        answer = site.ask(method, f"{SHOP}/items/tea", body)
        assert answer.status_code == 200, answer.text
        tea |= changed
        found = item(site, "tea")
        assert found.pop("features") == pytest.approx(tea["features"])
        assert found == {word: value for word, value in tea.items() if word != "features"}


def test_what_was_not_sent_is_merged_when_it_is_folded(site):
    """Two processes: what one has not sent, the other may have changed meanwhile."""
    first, second = ({"name": "New"}, {"group": "cups"})
    bodies = [dict(id="tea", **body) for body in (first, second)]
    site.ask("POST", f"{SHOP}/items:bulk", {"put": bodies[:1]})
    site.ask("POST", f"{SHOP}/items:bulk", {"put": bodies[1:]})
    assert {word: item(site, "tea")[word] for word in ("name", "group")} == {"name": "New", "group": "cups"}


def test_availability_outlives_puts_withdrawals_and_rollbacks(site):
    service = site.service
    off = site.ask("POST", f"{SHOP}/items:availability", {"off": ["tea", 7]})
    assert off.status_code == 200
    every = [{"id": one.id, "name": one.name, "features": list(one.features)} for one in ITEMS]
    for change in (
        lambda: site.ask("PUT", f"{SHOP}/items/tea", {"name": "Tea", "features": [0, 1]}),
        lambda: site.ask("POST", f"{SHOP}/items:bulk", {"put": every}),
        lambda: site.ask("POST", f"{SHOP}/rollback", {"seq": 1}),
        lambda: site.ask("DELETE", f"{SHOP}/items/tea"),
        lambda: site.ask("PUT", f"{SHOP}/items/tea", {}),
    ):
        assert change().status_code == 200
        assert ever_shown(service) == {"espresso", "cake"}
        assert audit_served(service.store, service.model("shop")).equal
    assert item(site, "tea")["available"] is False
    facts = site.ask("GET", SHOP).json()
    assert (facts["items"], facts["withdrawn"], facts["unavailable"]) == (2, 0, 2)
    assert site.ask("PUT", f"{SHOP}/items/tea", {"available": True}).status_code == 200
    assert site.ask("POST", f"{SHOP}/items:availability", {"on": [7]}).status_code == 200
    assert ever_shown(service) == {"espresso", "tea", 7, "cake"}


def test_a_rollback_takes_back_names_features_and_withdrawals_alone(table):
    model = table.model("shop")
    table.put_items("shop", [Item("t1", "other", "odd", {"price": 1})])
    table.withdraw_items("shop", ["t2"])
    table.set_available("shop", off=["t4"])
    table.roll_back("shop", 1)
    assert model.items.names["t1"] == "name 1"
    assert model.catalog.values["t1"] == ["Bolt", 30, False]
    assert model.catalog.table[1].tolist() == model.created.first_features()[1].tolist()
    assert ever_shown(table) == {"t0", "t1", "t2", "t3", "t5"}


def test_features_by_column_name_and_what_is_not_named_stays(table):
    model = table.model("shop")
    catalog, encoder = model.catalog, model.catalog.encoder
    assert encoder is not None
    assert encoder.inputs == ("brand", "price", "new")
    table.put_items("shop", [Item("t0", features={"price": "15,50"}), Item("t1", features=["Crux", 3, True])])
    assert catalog.values["t0"] == ["Acme", "15,50", True]
    assert catalog.values["t1"] == ["Crux", 3, True]
    rows, _ = encoder.encode([catalog.values["t0"], catalog.values["t1"]])
    assert catalog.table[:2].tolist() == rows.tolist()
    table.put_items("shop", [Item("t0", features=None), Item("new", features={"brand": "Zeta", "size": 3})])
    assert catalog.values["t0"] == [None, None, None]
    assert catalog.values["new"] == ["Zeta", None, None]
    rows, _ = encoder.encode([catalog.values["t0"], catalog.values["new"]])
    assert catalog.table[[0, 6]].tolist() == rows.tolist()
    assert model.describe()["notes"] == [
        "brand: all new items have a level the model does not know; start a new model to learn them"
    ]
    table.put_items("shop", [Item("t0", features={"price": "cheap"})])
    assert (
        "price: 1 cell of later items could not be read as a number; taken as missing"
        in model.describe()["notes"]
    )
    for wrong in ([1, 2], "Acme", 7):
        with pytest.raises(Malformed, match=r"must be an object by column name, or a list of 3 values"):
            table.put_items("shop", [Item("t0", features=wrong)])


def test_a_request_names_columns_and_the_rest_is_that_of_the_item(table):
    shown = table.recommend("shop", k=2, candidates=["t3", "t5"], features=[{"price": 4}, ["Acme", 5, True]])
    model = table.model("shop")
    assert model.catalog.encoder is not None
    expected, _ = model.catalog.encoder.encode([["Crux", 4, True], ["Acme", 5, True]])
    token = table.keys.read(shown.token, model.id, days=1)
    rows = np.frombuffer(token.features).reshape(2, -1)
    assert sorted(rows.tolist()) == sorted(expected.tolist())
    with pytest.raises(Malformed, match=r"features names no column .* 'prise' .* did you mean 'price'"):
        table.recommend("shop", candidates=["t3"], features=[{"prise": 4}])


@pytest.mark.parametrize(
    "policy", ["cascade-mixed", pytest.param("cascade-lin-ucb", marks=pytest.mark.long), "cascade-ts"]
)
def test_an_item_keeps_its_row_and_its_counts_when_its_features_change(tmp_path, policy):
    place = str(tmp_path / "kept.db")
    with open_service(place) as service:
        items = [Item(f"t{n}", features=row) for n, row in enumerate(TABLE)]
        model = service.create("shop", policy=policy, k=3, items=items, seed=3)
        for click in (0, 1, None, 2) * 10:
            service.feedback("shop", service.recommend("shop"), click)
        before = [array.copy() for array in model.engine.state]
        for night in range(5):
            service.put_items(
                "shop",
                [Item(f"t{n}", features=row | {"price": 10 * n + night}) for n, row in enumerate(TABLE)],
            )
        assert len(model.catalog.items) == len(TABLE)
        after = model.engine.state
        if policy == "cascade-mixed":
            assert after.examined.tolist() == before[0].tolist()
            assert after.hits.tolist() == before[1].tolist()
            assert after.precision.tolist() != before[3].tolist()
        else:
            assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
        assert audit_served(service.store, model).equal
        digest = model.digest()
    with open_service(place) as service:
        assert seam.model(service, "shop").digest() == digest


def test_a_snapshot_holds_what_changed_of_the_catalog_and_no_more(table):
    """With it a restart reads the first event and those after it: not thirty nights of items."""
    model = table.model("shop")
    page, arrays = model.items.snapshot()
    assert (page["added"], page["touched"], arrays["catalog.changed"].tolist()) == ([], [], [])
    table.put_items("shop", [Item("t1", features={"price": 2}), Item("x", "X", "odd", {"brand": "Bolt"})])
    table.set_available("shop", off=["t3"])
    page, arrays = model.items.snapshot()
    assert page["added"] == ["x"]
    assert arrays["catalog.changed"].tolist() == [1, 6]
    table.maintenance.snapshot(model)
    reads = []
    events = table.store.events

    def noted(model, after, upto=None, **more):
        reads.append((after, upto))
        return events(model, after, upto, **more)

    table.store.events = noted
    try:
        again = table.models._models.pop("shop")
        (stored,) = table.store.models()
        found = table.models.take_up(stored)
    finally:
        table.store.events = events
    assert found is not None
    assert found.digest() == again.digest()
    # The creation, and what came after the snapshot.
    assert {after for after, _ in reads} == {0, model.seq}
