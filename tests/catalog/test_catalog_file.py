"""Files and frames of items, files of lists, and how a catalog is described."""

import io
import json
from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstclick import Catalog
from firstclick.catalog.describe import catalog_as_json, short_description
from firstclick.catalog.file import catalog_from_frame, read_catalog, write_catalog
from firstclick.catalog.list_file import read_list
from firstclick.errors import FirstclickError, InvalidInput
from firstclick.serve import Item

DRINKS = 'id,name,group,strong,sweet\ne1,Espresso,coffee,1,0\n007,"Tea, black",,0.5,-0.25\n'


@pytest.fixture
def read(tmp_path):
    """`read(text or table of polars, **options)`: the catalog of this file."""

    def read(content, name="items.csv", **options):
        if isinstance(content, dict):
            name = "items.parquet"
            pl.DataFrame(content).write_parquet(tmp_path / name)
        else:
            (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_catalog(tmp_path / name, **options)

    return read


@pytest.fixture
def refusal(read):
    def refusal(content, **options):
        with pytest.raises(FirstclickError) as refused:
            read(content, **options)
        return str(refused.value)

    return refusal


@pytest.mark.parametrize(
    "content",
    [
        DRINKS.replace("id,name,group", " ID ,Name,GROUP"),
        'sweet,"group","id",strong,name\n0,coffee, e1 ,1,Espresso\n-0.25,,007,0.5,"Tea, black"\n\n',
    ],
    ids=["case", "order"],
)
def test_catalog_is_the_same_however_it_is_written(read, content):
    result = read(content)
    assert (result.ids, result.names, result.groups) == (
        ["e1", "007"], ["Espresso", "Tea, black"], ["coffee", ""],
    )  # fmt: skip
    assert result.columns == {"strong": ["1", "0.5"], "sweet": ["0", "-0.25"]}
    # For a service without an encoder.
    rows = np.array([item.features for item in result.items]).T.tolist()
    assert dict(zip(result.feature_names, rows, strict=True)) == {"strong": [1.0, 0.5], "sweet": [0.0, -0.25]}


def test_parquet_keeps_whole_numbers_dates_and_lists(read):
    noon = pl.Series([datetime(2024, 5, 1, 12), None]).dt.replace_time_zone("Europe/Berlin")
    result = read({
        "id": pl.Series([7, 8], dtype=pl.Int32), "name": pl.Series(["Seven", None], dtype=pl.Categorical),
        "half": pl.Series([0.5, None], dtype=pl.Float32), "organic": [True, False],
        "since": pl.Series([date(2024, 5, 1), None]), "at": [datetime(2024, 5, 1, 6), datetime(2024, 5, 2)],
        "vec": [[1.0, 2.0], [3.0, 4.5]], "zone": noon,
    })  # fmt: skip
    assert (result.ids, result.names) == ([7, 8], ["Seven", ""])
    assert type(result.ids[0]) is int
    assert result.columns == {
        "half": [0.5, None], "organic": [True, False], "since": ["2024-05-01", None],
        "at": ["2024-05-01T06:00:00", "2024-05-02T00:00:00"], "vec": [[1.0, 2.0], [3.0, 4.5]],
        "zone": ["2024-05-01T10:00:00", None],
    }  # fmt: skip


KIND = [f"{i},https://x.org/{i},Text {i},Film {i},{'ab'[i % 2]}\n" for i in range(20)]
LONG_NAME = "a  " + 300 * "x"


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("id\na\nb\n", {}, {"ids": ["a", "b"], "columns": {}, "feature_names": ()}),
        (f"id,name,group\na,{LONG_NAME},g  h\n", {}, {"names": [LONG_NAME], "groups": ["g  h"]}),
        ("id,f,g\na,1,2\n\n,,\nc,1,2\n , ,\n", {},
         {"ids": ["a", "c"], "notes": ("3 blank lines of items.csv left out",)}),
        ("id,Available\na,yes\nb,\nc,0\nd,17\ne,FALSE\n", {},
         {"available": [True, None, False, True, False], "columns": {}}),
        ("Art.-Nr.,f\n007,1\nA.8,2\n", {}, {"ids": ["007", "A.8"]}),
        ("sku,key,f\nx1,,1\nx1,k2,2\n", {"id": "F"}, {"ids": ["1", "2"]}),
        ("id,f\nA 1,1\nb,2\na1,3\n", {}, {"ids": ["A 1", "b", "a1"], "notes": (
            "1 id differs from another in case or blanks alone, 'a1' (line 4) and 'A 1' (line 2) for "
            "instance; they are different items",)}),
        ("id,group\na,Bosch\nb,DeWalt\nc,bosch \nd,Bosch\n", {},
         {"groups": ["Bosch", "DeWalt", "bosch", "Bosch"], "notes": (
             "groups 'Bosch' and 'bosch' differ in case or blanks alone, and `at_most` counts them apart; "
             "spell a group in one way",)}),
        ("id,In_Stock\na,3\nb,0\n", {}, {"available": [None] * 2, "notes": (
            "column 'In_Stock' is a feature: items without stock are shown; call it available to hide "
            "them",)}),
        ("id,stock,available\na,3,yes\nb,0,no\n", {}, {"available": [True, False], "notes": ()}),
        ("id,url,blurb,title,kind\n" + "".join(KIND), {}, {
            "names": [f"Film {i}" for i in range(20)],
            "notes": ("names are taken from column 'title', because none is called name",)}),
        # Then the next text that differs in every row, which is not an address.
        ("id,url,blurb,title,kind\n" + "".join(KIND), {"ignore": ["title"]}, {
            "names": [f"Text {i}" for i in range(20)]}),
    ],
)  # fmt: skip
def test_columns_of_ids_names_groups_and_stock_are_recognised(read, content, options, expected):
    result = read(content, **options)
    assert {name: getattr(result, name) for name in expected} == expected


def test_another_column_has_the_ids_where_none_is_called_id(read):
    for header, chosen in (
        ("sku,f", 0), ("Product ID,f", 0), ("filmId,f", 0), ("f,ASIN", 1), ("ean,product_id", 1),
    ):  # fmt: skip
        result = read(f"{header}\nx1,y1\nx2,y2\n")
        name = header.split(",")[chosen]
        assert result.ids == [["x1", "x2"], ["y1", "y2"]][chosen]
        assert result.notes[0] == f"ids are taken from column {name!r}, because none is called id"
        assert (result.chosen[0].name, result.chosen[0].kind) == (name, "id")


def test_columns_with_a_meaning_can_be_overruled(read, refusal):
    content = "id,group,f\n" + "".join(f"{i},{'gh'[i % 3 == 0]},{i % 5}\n" for i in range(9))
    result = read(content, category=["group"])
    assert result.groups == [""] * 9
    assert result.encoder().names == ("group=g", "group=h", "group=other", "f")
    assert "'id' is the column of ids" in refusal(content, ignore=["id"])
    assert "did you mean 'group'?" in refusal(content, number=["grp"])
    assert "did you mean 'group'?" in refusal(content, id="grup")


def test_row_numbers_of_pandas_are_left_out(read):
    frame = {"id": list("abcd"), "f": [1.0, 2.0, 5.0, 3.0]}
    encoder = read(pd.DataFrame(frame).to_csv()).encoder()
    assert (encoder.decisions[0].name, encoder.names) == ("column 1", ("f",))
    assert encoder.decisions[0].reason == "row numbers; they say nothing of an item"


OWN = "; every item needs an id of its own"
NO_IDS = " has no column 'id', and no other that is surely one of ids; say `id=COLUMN` (columns: "


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("id,f\n", {}, " has columns but no items; add a row for each item"),
        ("shop,name,f\na,A,1\na,B,2\n", {}, NO_IDS + "shop, name, f)"),
        *[(f'thing,f\n"{first}",1\nb,2\n', {}, NO_IDS + "thing, f)") for first in ("1.5", "Red shoe")],
        ("sku,key,f\nx1,,1\nx1,k2,2\n", {}, NO_IDS + "sku, key, f)"),
        ("sku,f\nx1,1\nx1,2\n", {"id": "sku"}, f": 1 id is there more than once ('x1' in line 2, 3){OWN}"),
        ("id,f\na,1\n ,2\nb,3\n,4\n", {}, f": 2 ids are empty (line 3, 5){OWN}"),
        ('id,name,f\na,"two\nlines",1\nb,,2\na,,3\n,,4\nb,,5\n', {},
         ": 1 id is empty (line 6), and 2 ids are there more than once ('a' in line 2, 5; 'b' in line 4, 7)"
         + OWN),
        ("id,f,g\na,1,2\nb,1\nc,1,2\n", {}, ": a row must have a cell for each column, there are 1 "
         "without 3 fields (line 3); mend them, or quote cells that hold the separator"),
        ("id,ID\na,1\n", {}, ": two columns are called 'ID'; rename or leave out one of them"),
        ("id,available\na,yes\nb,soon\nc,later\n", {}, ": column 'available' must say yes or no, or how "
         "many are left, got 'soon' (line 3, 4); mend it, or rename the column"),
        (b"id,name\na,Caf\xe9\n", {}, " line 2: bytes that are not UTF-8; if it is a text file, pass its "
         "encoding, for example `encoding='latin-1'`"),
        ({"id": [1, 2, 1]}, {}, f": 1 id is there more than once (1 in row 0 (from 0), 2 (from 0)){OWN}"),
        ({"id": ["a", None]}, {}, f": 1 id is empty (row 1 (from 0)){OWN}"),
        ({"id": [True]}, {},
         f": 1 id is neither text nor a whole number, True for instance (row 0 (from 0)){OWN}"),
    ],
)  # fmt: skip
def test_wrong_files_are_refused_with_all_lines(refusal, content, options, message):
    assert (
        refusal(content, **options) == f"items.{'parquet' if isinstance(content, dict) else 'csv'}{message}"
    )


FRAME = {
    "id": [3, 1], "price": [1.5, None], "since": [datetime(2024, 5, 1), None], "ok": [True, None],
    "brand": ["Acme", None],
}  # fmt: skip


@pytest.mark.parametrize(
    "make",
    [
        pl.DataFrame,
        dict,
        lambda x: pd.DataFrame(x).set_index("id"),
        lambda x: pd.DataFrame(x).convert_dtypes().astype({"brand": "category"}),
    ],
)
def test_frames_are_read_like_files(make):
    result = catalog_from_frame(make(FRAME))
    assert (result.ids, {type(item) for item in result.ids}) == ([3, 1], {int})
    assert result.columns == {
        "price": [1.5, None], "since": ["2024-05-01T00:00:00", None], "ok": [True, None],
        "brand": ["Acme", None],
    }  # fmt: skip


@pytest.mark.parametrize("frame", [{}, pd.DataFrame({"id": []}), "text", 3, {"id": ["a"], "f": [1, 2]}])
def test_other_values_and_empty_frames_are_refused(frame):
    with pytest.raises(InvalidInput, match=r"^frame |no items"):
        catalog_from_frame(frame)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
rows = st.lists(
    st.tuples(texts.map(str.strip).filter(bool), texts, texts, st.floats(-1e100, 1e100)),
    min_size=1, unique_by=lambda row: row[0],
)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", ["items.csv", "items.parquet"])
@given(content=rows)
def test_written_catalog_is_read_again(tmp_path_factory, name, content):
    path = tmp_path_factory.getbasetemp() / name
    items = [Item(*row[:3], np.array([row[3], 2.0])) for row in content]
    write_catalog(path, items, ["f1", "f2"])
    result = read_catalog(path).items
    assert [item[:3] for item in result] == [(one.id, one.name.strip(), one.group.strip()) for one in items]
    assert [item.features.tolist() for item in result] == [one.features.tolist() for one in items]


def test_spreadsheet_reads_a_written_catalog(tmp_path):
    items = [Item("a", 'say "hi", twice', "g", np.array([0.1])), Item("b", "", "", np.array([1e-9]))]
    write_catalog(tmp_path / "items.csv", items, ["f1"])
    text = (tmp_path / "items.csv").read_text()
    assert text == '"id","name","group","f1"\n"a","say ""hi"", twice","g",0.1\n"b","","",1e-09\n'
    assert pd.read_csv(io.StringIO(text))["f1"].tolist() == [0.1, 1e-9]
    for ids in ([7, 8], ["7", "x"]):
        items = [Item(id, "", "", np.array([0.5])) for id in ids]
        write_catalog(tmp_path / "items.parquet", items, ["f1"])
        assert read_catalog(tmp_path / "items.parquet").ids == ids


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("tea\ncocoa\ncoffee\n", ["tea", "cocoa", "coffee"]),
        ("id\ntea\ncocoa\n", ["tea", "cocoa"]),
        ("place,sku,price\n1,cocoa,2.5\n2,tea,3\n", ["cocoa", "tea"]),
        ("Price,Item_ID\n2.5,cocoa\n3,tea\n", ["cocoa", "tea"]),
        ("cocoa,2.5\ntea,3\n", ["cocoa", "tea"]),
        ("tea\n7\n12\n", ["tea", 7, "12"]),
        ({"price": [1.5, 2.0], "product": ["cocoa", "tea"]}, ["cocoa", "tea"]),
        ({"item": [12, 7]}, [12, 7]),
        *[(text, None) for text in ("", "id\n", "id,price\n")],
    ],
)
def test_list_file_names_items_in_order_with_a_header_or_without(tmp_path, text, items):
    file = tmp_path / ("list.parquet" if isinstance(text, dict) else "list.csv")
    if isinstance(text, dict):
        pl.DataFrame(text).write_parquet(file)
    else:
        file.write_text(text)
    catalog = Catalog(["tea", "coffee", 7, "12", "id", "cocoa"])
    if items is None:
        with pytest.raises(InvalidInput, match=r"list\.csv"):
            read_list(file, Catalog(["tea"]))
    else:
        assert read_list(file, catalog) == items


N = 40
SHOP = {
    "sku": [f"A{i}" for i in range(N)],
    "title": [f"Article {i}" for i in range(N)],
    "price": ["on request", *(f"{1.5**i:.2f}" for i in range(N - 1))],
    "year": [2020 + i % 3 for i in range(N)],
    "brand": ["Acme", "Bolt", "Bolt", "Crux"] * (N // 4),
    "organic": ["yes", "no"] * (N // 2),
    "currency": ["EUR"] * N,
    **{f"vec_{j}": [(i * (j + 3)) % 7 + 0.5 for i in range(N)] for j in range(12)},
}
SHOP["vec_3"] = ["broken", *SHOP["vec_3"][1:]]


def test_description_has_a_row_for_each_column_or_embedding():
    file = catalog_from_frame(SHOP)
    encoder = file.encoder()
    page = json.loads(json.dumps(catalog_as_json(file, encoder), allow_nan=False))
    assert (page["items"], page["features"], len(page["feature_names"])) == (N, *[encoder.n_features] * 2)
    rows = {row["column"]: row for row in page["columns"]}
    assert sum(row["features"] for row in page["columns"]) == encoder.n_features
    assert rows["price"] == {
        "column": "price", "columns": 1, "taken_as": "number", "features": 1, "missing": 1,
        "examples": ["on request", "1.00", "1.50"], "reason": "log scale; 1 to 4,914,370",
        "problems": ["1 cell is no number, 'on request' in row 0 (from 0); taken as missing"],
    }  # fmt: skip
    embedding = rows["vec_0 ... vec_11"]
    assert [embedding[name] for name in ("features", "columns", "missing")] == [12, 12, 1]


def test_short_description_counts_kinds_and_names_problems():
    file = catalog_from_frame(SHOP, category=["year"])
    assert short_description(file.encoder(), file, "products.csv") == [
        "catalog: 40 items, 19 columns -> 22 features (1 number, 2 categories, 1 yes/no, 1 embedding); "
        "left out: currency (constant); `firstclick catalog describe products.csv` tells more",
        "price: 1 cell is no number, 'on request' in row 0 (from 0); taken as missing",
        "vec_3: 1 cell is no number, 'broken' in row 0 (from 0); taken as missing",
    ]
