import io
import json
from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstclick.catalog.file import catalog_from_frame, read_catalog, write_catalog
from firstclick.catalog.item import Item
from firstclick.errors import FirstclickError, InvalidInput

DRINKS = 'id,name,group,strong,sweet\ne1,Espresso,coffee,1,0\n007,"Tea, black",,0.5,-0.25\n'


def written(folder, content, name="items.csv"):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        DRINKS,
        "\ufeff" + DRINKS,
        DRINKS.replace("\n", "\r\n"),
        DRINKS.rstrip("\n"),
        DRINKS.replace(",", ";").replace("Tea;", "Tea,"),
        DRINKS.replace('"Tea, black"', "Tea| black").replace(",", "\t").replace("|", ","),
        DRINKS.replace("id,name,group", " ID ,Name,GROUP"),
        'sweet,"group","id",strong,name\n0,coffee, e1 ,1,Espresso\n-0.25,,007,0.5,"Tea, black"\n\n',
    ],
    ids=["commas", "mark", "returns", "no last end", "semicolons", "tabs", "case", "order"],
)
def test_the_same_items_however_they_are_written(tmp_path, content):
    read = read_catalog(written(tmp_path, content))
    assert (read.ids, read.names, read.groups) == (["e1", "007"], ["Espresso", "Tea, black"], ["coffee", ""])
    assert read.columns == {"strong": ["1", "0.5"], "sweet": ["0", "-0.25"]}
    assert read.available == [None, None]
    # For a service without an encoder.
    by_name = dict(
        zip(read.feature_names, np.array([item.features for item in read.items]).T.tolist(), strict=True)
    )
    assert by_name == {"strong": [1.0, 0.5], "sweet": [0.0, -0.25]}


def test_parquet_keeps_whole_numbers_dates_and_lists(tmp_path):
    table = {
        "id": pl.Series([7, 8], dtype=pl.Int32), "name": pl.Series(["Seven", None], dtype=pl.Categorical),
        "half": pl.Series([0.5, None], dtype=pl.Float32), "organic": [True, False],
        "since": pl.Series([date(2024, 5, 1), None]), "at": [datetime(2024, 5, 1, 6), datetime(2024, 5, 2)],
        "vec": [[1.0, 2.0], [3.0, 4.5]],
    }  # fmt: skip
    pl.DataFrame(table).write_parquet(tmp_path / "items.parquet")
    read = read_catalog(tmp_path / "items.parquet")
    assert (read.ids, read.names) == ([7, 8], ["Seven", ""])
    assert type(read.ids[0]) is int
    assert read.columns == {
        "half": [0.5, None], "organic": [True, False], "since": ["2024-05-01", None],
        "at": ["2024-05-01T06:00:00", "2024-05-02T00:00:00"], "vec": [[1.0, 2.0], [3.0, 4.5]],
    }  # fmt: skip


def test_json_lines_may_lack_values(tmp_path):
    lines = [{"id": 3, "price": 2.5, "tags": ["a", "b"]}, {"id": 4, "brand": "Bolt"}]
    read = read_catalog(written(tmp_path, "\n".join(map(json.dumps, lines)), "items.jsonl"))
    assert read.ids == [3, 4]
    assert read.columns == {"price": [2.5, None], "tags": ["a|b", None], "brand": [None, "Bolt"]}


def test_latin_1_told_by_name(tmp_path):
    path = written(tmp_path, "id,name\na,Caf\xe9\n".encode("iso-8859-1"))
    assert read_catalog(path, encoding="latin-1").names == ["Café"]
    assert refusal(path) == (
        "items.csv line 2: bytes that are not UTF-8; if it is a text file, pass its encoding, for example "
        "`encoding='latin-1'`"
    )


def test_features_need_not_be(tmp_path):
    read = read_catalog(written(tmp_path, "id\na\nb\n"))
    assert [(item.id, item.features) for item in read.items] == [("a", None), ("b", None)]
    assert (read.feature_names, read.encoder().n_features) == ((), 0)


def refusal(path, **options):
    with pytest.raises(FirstclickError) as refused:
        read_catalog(path, **options)
    return str(refused.value)


WRONG = [
    ("", "items.csv is empty"),
    ("id,f\n", "items.csv has columns but no items; add a row for each item"),
    (
        "shop,name,f\na,A,1\na,B,2\n",
        "items.csv has no column 'id', and no other that is surely one of ids; say `id=COLUMN` "
        "(columns: shop, name, f)",
    ),
    (
        "id,f\na,1\n ,2\nb,3\n,4\n",
        "items.csv: 2 ids are empty (line 3, 5); every item needs an id of its own",
    ),
    (
        'id,name,f\na,"two\nlines",1\nb,,2\na,,3\n,,4\nb,,5\n',
        "items.csv: 1 id is empty (line 6), and 2 ids are there more than once ('a' in line 2, 5; 'b' in "
        "line 4, 7); every item needs an id of its own",
    ),
    (
        "id,f,g\na,1,2\nb,1\nc,1,2\n",
        "items.csv: a row must have a cell for each column, there are 1 without 3 fields (line 3); mend "
        "them, or quote cells that hold the separator",
    ),
    ("id,f,f\na,1,2\n", "items.csv: two columns are called 'f'; rename or leave out one of them"),
    ("id,ID\na,1\n", "items.csv: two columns are called 'ID'; rename or leave out one of them"),
    (
        "id,available\na,yes\nb,soon\nc,later\n",
        "items.csv: column 'available' must say yes or no, or how many are left, got 'soon' (line 3, 4); "
        "mend it, or rename the column",
    ),
    ("<!DOCTYPE html>\n", "items.csv line 1: a web page, not data; fetch the file itself"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "message"), WRONG, ids=[message[:40] for _, message in WRONG])
def test_what_is_wrong_is_said_with_all_its_lines(tmp_path, content, message):
    assert refusal(written(tmp_path, content)) == message


def test_no_such_file_and_a_folder(tmp_path):
    assert refusal(tmp_path / "none.csv") == f"{tmp_path / 'none.csv'}: no such file"
    assert refusal(tmp_path) == f"{tmp_path} is a folder; name a file in it"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"id": pl.Series([], dtype=pl.Int64)}, " has columns but no items; add a row for each item"),
        ({"id": [1, 2, 1]}, ": 1 id is there more than once (1 in row 0 (from 0), 2 (from 0)); *"),
        ({"id": ["a", None]}, ": 1 id is empty (row 1 (from 0)); *"),
        ({"id": [1.5]}, ": 1 id is neither text nor a whole number, 1.5 for instance (row 0 (from 0)); *"),
        ({"id": [True]}, ": 1 id is neither text nor a whole number, True for instance (row 0 (from 0)); *"),
    ],
)
def test_what_is_wrong_with_parquet_is_said_with_its_row(tmp_path, table, message):
    pl.DataFrame(table).write_parquet(tmp_path / "items.parquet")
    said = refusal(tmp_path / "items.parquet")
    assert said == "items.parquet" + message.replace("*", "every item needs an id of its own")


def test_blank_lines_are_left_out_and_noted(tmp_path):
    read = read_catalog(written(tmp_path, "id,f,g\na,1,2\n\n,,\nc,1,2\n , ,\n"))
    assert read.ids == ["a", "c"]
    assert read.notes == ("3 blank lines of items.csv left out",)
    assert read.line(1) == "line 5"


def test_the_first_column_is_one_of_ids_if_it_has_codes(tmp_path):
    assert read_catalog(written(tmp_path, "Art.-Nr.,f\n007,1\nA.8,2\n")).ids == ["007", "A.8"]
    for first in ("1.5", "Red shoe", "9,5", "a/b"):
        with pytest.raises(InvalidInput, match="no other that is surely one of ids"):
            read_catalog(written(tmp_path, f'thing,f\n"{first}",1\nb,2\n'))


@pytest.mark.parametrize(
    ("header", "chosen"),
    [
        ("sku,f", "sku"), ("Product ID,f", "Product ID"), ("filmId,f", "filmId"), ("f,ASIN", "ASIN"),
        ("ean,product_id", "product_id"),
    ],
)  # fmt: skip
def test_another_column_is_taken_for_the_ids_where_none_is_called_so(tmp_path, header, chosen):
    read = read_catalog(written(tmp_path, f"{header}\nx1,y1\nx2,y2\n"))
    assert read.ids == (["x1", "x2"] if header.startswith(chosen) else ["y1", "y2"])
    assert read.notes[0] == f"ids are taken from column {chosen!r}, because none is called id"
    assert (read.chosen[0].name, read.chosen[0].kind) == (chosen, "id")


def test_not_one_with_an_id_twice_or_without_one(tmp_path):
    path = written(tmp_path, "sku,key,f\nx1,,1\nx1,k2,2\n")
    assert "say `id=COLUMN` (columns: sku, key, f)" in refusal(path)
    assert read_catalog(path, id="F").ids == ["1", "2"]
    assert refusal(path, id="sku").startswith("items.csv: 1 id is there more than once ('x1' in line 2, 3)")
    assert (
        refusal(path, id="skus")
        == "id names 'skus', and no column of items.csv is called so; did you mean 'sku'?"
    )


def test_ids_that_differ_in_case_or_blanks_are_noted_and_kept(tmp_path):
    read = read_catalog(written(tmp_path, "id,f\nA 1,1\nb,2\na1,3\n"))
    assert read.ids == ["A 1", "b", "a1"]
    assert read.notes == (
        "1 id differs from another in case or blanks alone, 'a1' (line 4) and 'A 1' (line 2) for instance; "
        "they are different items",
    )


def test_groups_that_differ_in_case_or_blanks_are_noted_and_kept(tmp_path):
    read = read_catalog(written(tmp_path, "id,group\na,Bosch\nb,DeWalt\nc,bosch \nd,Bosch\n"))
    assert read.groups == ["Bosch", "DeWalt", "bosch", "Bosch"]
    assert read.notes == (
        "groups 'Bosch' and 'bosch' differ in case or blanks alone, and `at_most` counts them apart; spell a "
        "group in one way",
    )


def test_a_column_of_stock_is_noted_unless_another_is_called_available(tmp_path):
    read = read_catalog(written(tmp_path, "id,In_Stock\na,3\nb,0\n"))
    assert read.available == [None, None]
    assert read.notes == (
        "column 'In_Stock' is a feature: items without stock are shown; call it available to hide them",
    )
    both = read_catalog(written(tmp_path, "id,stock,available\na,3,yes\nb,0,no\n"))
    assert (both.available, both.notes) == ([True, False], ())
    assert read_catalog(written(tmp_path, "id,stock\na,3\n"), ignore=["stock"]).notes == ()


def test_a_title_is_the_name_where_none_is_called_so(tmp_path):
    rows = "".join(f"{i},https://x.org/{i},Text {i},Film {i},{'ab'[i % 2]}\n" for i in range(20))
    read = read_catalog(written(tmp_path, "id,url,blurb,title,kind\n" + rows))
    assert read.names[3] == "Film 3"
    assert "names are taken from column 'title', because none is called name" in read.notes
    assert set(read.columns) == {"url", "blurb", "kind"}
    # Said otherwise; then the next text that differs in every row, which is not an address.
    other = read_catalog(tmp_path / "items.csv", ignore=["title"])
    assert other.names[3] == "Text 3"
    assert set(other.columns) == {"url", "title", "kind"}
    assert read_catalog(written(tmp_path, "id,name,title\na,N,T\nb,M,U\n")).names == ["N", "M"]


def test_what_is_available(tmp_path):
    read = read_catalog(written(tmp_path, "id,Available\na,yes\nb,\nc,0\nd,17\ne,FALSE\n"))
    assert read.available == [True, None, False, True, False]
    assert read.columns == {}


def test_a_column_that_means_something_can_be_overruled(tmp_path):
    content = "id,group,f\n" + "".join(f"{i},{'gh'[i % 3 == 0]},{i % 5}\n" for i in range(9))
    read = read_catalog(written(tmp_path, content), category=["group"])
    assert read.groups == [""] * 9
    assert read.encoder().names == ("group=g", "group=h", "group=other", "f")
    assert "'id' is the column of ids" in refusal(tmp_path / "items.csv", ignore=["id"])
    assert refusal(tmp_path / "items.csv", number=["grp"]) == (
        "number names 'grp', and no column is called so; did you mean 'group'?"
    )


def test_names_and_groups_may_be_long_and_have_blanks(tmp_path):
    name = "a  " + 300 * "x"
    read = read_catalog(written(tmp_path, f"id,name,group\na,{name},g  h\n"))
    assert (read.names, read.groups) == ([name], ["g  h"])


def test_row_numbers_of_pandas_are_told_and_left_out(tmp_path):
    frame = pd.DataFrame({"id": list("abcd"), "f": [1.0, 2.0, 5.0, 3.0]})
    frame.to_csv(tmp_path / "items.csv")
    read = read_catalog(tmp_path / "items.csv")
    decision = read.encoder().decisions[0]
    assert (decision.name, read.encoder().names) == ("column 1", ("f",))
    assert decision.reason == "row numbers; they say nothing of an item"
    # What pandas calls an index of its own in a Parquet file.
    columns = {"id": list("abcd"), "f": [1.0, 2.0, 5.0, 3.0], "__index_level_0__": [3, 5, 7, 9]}
    pl.DataFrame(columns).write_parquet(tmp_path / "items.parquet")
    assert "f" in read_catalog(tmp_path / "items.parquet").encoder().names


def test_times_with_a_zone_are_those_of_utc(tmp_path):
    noon = pl.Series([datetime(2024, 5, 1, 12), datetime(2024, 6, 1, 12), None]).dt.replace_time_zone(
        "Europe/Berlin"
    )
    pl.DataFrame({"id": list("abc"), "at": noon}).write_parquet(tmp_path / "items.parquet")
    assert read_catalog(tmp_path / "items.parquet").columns["at"] == [
        "2024-05-01T10:00:00",
        "2024-06-01T10:00:00",
        None,
    ]


FRAME = {
    "id": [3, 1], "price": [1.5, None], "since": [datetime(2024, 5, 1), None], "ok": [True, None],
    "brand": ["Acme", None],
}  # fmt: skip


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        pl.DataFrame,
        dict,
        lambda x: pd.DataFrame(x).set_index("id"),
        lambda x: pd.DataFrame(x).convert_dtypes().astype({"brand": "category"}),
    ],
)
def test_frames_are_read_like_files(make):
    read = catalog_from_frame(make(FRAME))
    assert read.ids == [3, 1]
    assert all(type(item) is int for item in read.ids)
    assert read.columns == {
        "price": [1.5, None],
        "since": ["2024-05-01T00:00:00", None],
        "ok": [True, None],
        "brand": ["Acme", None],
    }


@pytest.mark.parametrize("frame", [{}, pd.DataFrame({"id": []}), "text", 3, {"id": ["a"], "f": [1, 2]}])
def test_no_frame_or_an_empty_one(frame):
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
def test_what_is_written_is_read_again(tmp_path_factory, name, content):
    path = tmp_path_factory.getbasetemp() / name
    items = [Item(*row[:3], np.array([row[3], 2.0])) for row in content]
    write_catalog(path, items, ["f1", "f2"])
    read = read_catalog(path)
    assert [item[:3] for item in read.items] == [
        (one.id, one.name.strip(), one.group.strip()) for one in items
    ]
    assert [item.features.tolist() for item in read.items] == [one.features.tolist() for one in items]


def test_a_spreadsheet_reads_what_is_written(tmp_path):
    items = [Item("a", 'say "hi", twice', "g", np.array([0.1])), Item("b", "", "", np.array([1e-9]))]
    write_catalog(tmp_path / "items.csv", items, ["f1"])
    text = (tmp_path / "items.csv").read_text()
    assert text == '"id","name","group","f1"\n"a","say ""hi"", twice","g",0.1\n"b","","",1e-09\n'
    assert pd.read_csv(io.StringIO(text))["f1"].tolist() == [0.1, 1e-9]
