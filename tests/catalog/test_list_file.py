"""A file that names items in an order."""

import polars as pl
import pytest

from firstclick import Catalog
from firstclick.catalog.list_file import read_list
from firstclick.errors import InvalidInput

CATALOG = Catalog(["tea", "coffee", 7, "12", "id", "cocoa"])


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("tea\ncocoa\ncoffee\n", ["tea", "cocoa", "coffee"]),
        ("tea\ncocoa", ["tea", "cocoa"]),
        ("\ufefftea\ncocoa\n", ["tea", "cocoa"]),
        ("tea\r\ncocoa\r\n", ["tea", "cocoa"]),
        ("what we show\ntea\ncocoa\n", ["what we show", "tea", "cocoa"]),
        ("id\ntea\ncocoa\n", ["tea", "cocoa"]),
        ("place,sku,price\n1,cocoa,2.5\n2,tea,3\n", ["cocoa", "tea"]),
        ("Price,Item_ID\n2.5,cocoa\n3,tea\n", ["cocoa", "tea"]),
        ("cocoa,2.5\ntea,3\n", ["cocoa", "tea"]),
        ("7\n12\n", [7, "12"]),
        ("tea\n7\n12\n", ["tea", 7, "12"]),
        ("milk\nbeer\n", ["milk", "beer"]),
    ],
)
def test_ids_are_read_in_order_with_a_header_or_without(tmp_path, text, items):
    file = tmp_path / "list.csv"
    file.write_text(text, encoding="utf-8")
    assert read_list(file, CATALOG) == items


def test_a_parquet_file_has_a_column_of_ids(tmp_path):
    file = tmp_path / "list.parquet"
    pl.DataFrame({"price": [1.5, 2.0], "product": ["cocoa", "tea"]}).write_parquet(file)
    assert read_list(file, CATALOG) == ["cocoa", "tea"]
    pl.DataFrame({"item": [12, 7]}).write_parquet(file)
    assert read_list(file, CATALOG)[1] == 7


@pytest.mark.parametrize("text", ["", "\n\n", "id\n", "id,price\n"])
def test_a_file_that_names_nothing_is_refused_with_its_name(tmp_path, text):
    file = tmp_path / "list.csv"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=r"list\.csv"):
        read_list(file, Catalog(["tea", "coffee"]))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InvalidInput, match="list"):
        read_list(tmp_path / "list.csv", CATALOG)
