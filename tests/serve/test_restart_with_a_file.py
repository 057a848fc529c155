"""A server that starts again with its file: what the file says anew is put, and nothing else changes."""

import pytest

from firstclick.catalog.item import Item
from firstclick.errors import InvalidInput
from firstclick.serve.config import Settings
from firstclick.serve.startup import open_for
from tests.support import seam

CSV = """sku;title;brand;price;available
a1;Red shoe;Acme;9,50;yes
a2;Blue shoe;Acme;12,00;yes
b1;Hat;Bolt;30,25;yes
b2;Cap;Bolt;8,00;no
c1;Scarf;Crux;7,00;yes
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "products.csv"
    path.write_text(CSV)
    return path


def start(path, *given, **settings):
    store = str(path.with_name("shop.db"))
    return open_for(Settings(store=store, catalog=path, k=2, **settings), given=given)


def test_a_file_that_stayed_as_it_was_undoes_nothing(path):
    with start(path).service as service:
        service.put_items("default", [Item("a1", "Crimson shoe", features={"price": 8})])
        service.set_available("default", off=["a2"], on=["b2"])
        seq = seam.model(service, "default").seq
    for _ in range(2):
        opened = start(path)
        with opened.service as service:
            model = service.model("default")
            assert (model.seq, [note for note in opened.notes if "put" in note]) == (seq, [])
            assert model.items.names["a1"] == "Crimson shoe"
            assert model.catalog.values["a1"] == ["Acme", 8]
            assert model.catalog.unavailable == {"a2"}
            service.maintenance.snapshot(model)


def test_what_the_file_says_anew_is_put_and_what_it_says_again_is_not(path):
    with start(path).service as service:
        service.put_items("default", [Item("a1", features={"price": 8}), Item("c1", features={"price": 1})])
        service.set_available("default", off=["a1", "c1"])
        seam.model(service, "default").snapshot()
    path.write_text(CSV.replace("9,50;yes", "9,75;yes") + "d1;Belt;Acme;15,00;yes\n")
    opened = start(path)
    assert "2 of 6 items of the catalog are new or changed, and were put" in opened.notes
    with opened.service as service:
        catalog = service.model("default").catalog
        assert [catalog.values[item] for item in ("a1", "c1", "d1")] == [
            ["Acme", "9,75"],
            ["Crux", 1],
            ["Acme", "15,00"],
        ]
        assert catalog.unavailable == {"b2", "c1"}, "the file says of a1 that it is there"
        service.roll_back("default", 1)
    with start(path).service as service:
        assert service.model("default").catalog.values["a1"] == ["Acme", "9,75"], (
            "the file is newer than event 1"
        )


def test_a_file_of_other_ids_is_refused(path):
    start(path).service.close()
    path.write_text("item_id;sku;brand\n" + "".join(f"{n};s{n};Acme\n" for n in range(4)))
    with pytest.raises(InvalidInput, match=r"no item of products.csv is in .* say --id COLUMN"):
        start(path)


def test_options_that_come_too_late_are_told(path):
    start(path).service.close()
    opened = start(path, "ignore", ignore=("brand",))
    opened.service.close()
    assert any(note.startswith("--ignore: model 'default' keeps what was decided") for note in opened.notes)
