"""A server that starts again with its file: changed lines of the file are put, and nothing else changes."""

import pytest

from firstclick import InvalidInput
from firstclick.serve import Item
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
    """The model of a server with this file, and what the server prints."""
    opened = open_for(
        Settings(store=str(path.with_name("shop.db")), catalog=path, k=2, **settings), given=given
    )
    return seam.model(opened.service, "default"), opened.notes


def unavailable(shop):
    return {id for id, item in shop.items().items() if not item.available}


def test_a_file_that_stayed_as_it_was_undoes_nothing(path):
    shop, _ = start(path)
    with shop:
        shop.put_items([Item("a1", "Crimson shoe", features={"price": 8})])
        shop.set_available(off=["a2"], on=["b2"])
        seq = shop.seq
    for _ in range(2):
        shop, notes = start(path)
        with shop:
            assert (shop.seq, [note for note in notes if "put" in note]) == (seq, [])
            item = shop.items()["a1"]
            assert (item.name, item.features) == ("Crimson shoe", {"brand": "Acme", "price": 8})
            assert unavailable(shop) == {"a2"}
            shop.snapshot()


def test_changed_lines_of_the_file_are_put_and_others_are_not(path):
    shop, _ = start(path)
    with shop:
        shop.put_items([Item("a1", features={"price": 8}), Item("c1", features={"price": 1})])
        shop.set_available(off=["a1", "c1"])
        shop.withdraw_items(["b1"])
        shop.snapshot()
    path.write_text(CSV.replace("9,50;yes", "9,75;yes") + "d1;Belt;Acme;15,00;yes\n")
    shop, notes = start(path)
    assert any(note.startswith("2 of 6 items of the catalog are new or changed") for note in notes)
    assert any("withdrawn and stay so" in note for note in notes)
    with shop:
        items = shop.items()
        assert [items[id].features["price"] for id in ("a1", "c1", "d1")] == ["9,75", 1, "15,00"]
        assert "b1" not in items
        # The changed line of a1 has it as available.
        assert unavailable(shop) == {"b2", "c1"}
        shop.roll_back(1)
    shop, _ = start(path)
    with shop:  # The file is newer than event 1.
        assert shop.items()["a1"].features["price"] == "9,75"


def test_a_file_of_other_ids_is_refused(path):
    start(path)[0].close()
    path.write_text("item_id;sku;brand\n" + "".join(f"{n};s{n};Acme\n" for n in range(4)))
    with pytest.raises(InvalidInput, match="--id COLUMN"):
        start(path)


def test_options_that_come_too_late_are_reported(path):
    start(path)[0].close()
    shop, notes = start(path, "ignore", ignore=("brand",))
    shop.close()
    assert any(note.startswith("--ignore: model 'default' keeps") for note in notes)
