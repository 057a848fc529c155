import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from firstclick.catalog.feature_scale import FeatureScale, note_of_small_columns
from firstclick.catalog.file import read_catalog, write_catalog
from firstclick.catalog.item import Item
from firstclick.errors import FirstclickError, InvalidInput

DRINKS = 'id,name,group,strong,sweet\ne1,Espresso,coffee,1,0\n007,"Tea, black",,0.5,-0.25\n'


def written(folder: Path, content: str | bytes, name: str = "items.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def words(items):
    return [item[:3] for item in items]


def features(items):
    return np.array([item.features for item in items])


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
    assert words(read.items) == [("e1", "Espresso", "coffee"), ("007", "Tea, black", "")]
    by_name = dict(zip(read.feature_names, features(read.items).T.tolist(), strict=True))
    assert by_name == {"strong": [1.0, 0.5], "sweet": [0.0, -0.25]}


def test_parquet_keeps_whole_numbers_and_reads_all_kinds_of_numbers(tmp_path):
    table = {
        "id": pl.Series([7, 8], dtype=pl.Int32), "name": pl.Series(["Seven", None], dtype=pl.Categorical),
        "half": pl.Series([0.5, 1.5], dtype=pl.Float32), "count": [3, 4], "organic": [True, False],
    }  # fmt: skip
    pl.DataFrame(table, strict=False).write_parquet(tmp_path / "items.parquet")
    read = read_catalog(tmp_path / "items.parquet")
    assert words(read.items) == [(7, "Seven", ""), (8, "", "")]
    assert type(read.items[0].id) is int
    assert features(read.items).tolist() == [[0.5, 3, 1], [1.5, 4, 0]]
    pl.DataFrame({"id": ["007", " b "]}).write_parquet(tmp_path / "items.pq")
    assert words(read_catalog(tmp_path / "items.pq").items) == [("007", "", ""), ("b", "", "")]


@pytest.mark.parametrize("content", ["id\na\nb\n", "name,id\nAye,a\nBee,b\n"])
def test_features_need_not_be(tmp_path, content):
    read = read_catalog(written(tmp_path, content))
    assert [(item.id, item.features) for item in read.items] == [("a", None), ("b", None)]
    assert read.feature_names == ()


WRONG = [
    ("", "items.csv is empty"),
    ("id,f\n", "items.csv has columns but no items; add a row for each item"),
    (
        "sku,name,f\na,A,1\n",
        "items.csv line 1 has no column 'id'; call the column of item ids so (columns: sku, name, f)",
    ),
    ("id,f\na,1\n ,2\n", "items.csv line 3: the id is empty; every item needs one of its own"),
    (
        'id,name,f\na,"two\nlines",1\nb,,2\na,,3\n',
        "items.csv line 5: id 'a' is there twice, first in items.csv line 2; every item needs one of its own",
    ),
    (
        "id,f,price\na,1,2\nb,1,cheap\n",
        "items.csv line 3: price must be a number, as every column but id, name and group is a feature, got "
        "'cheap'; mend it, or leave the column out",
    ),
    ("id,f\na,1\nb,\n", "items.csv line 3: f must be a number, *, got ''; mend it, or leave the column out"),
    (
        "id,f\na,1_000\n",
        "items.csv line 2: f must be a number, *, got '1_000'; mend it, or leave the column out",
    ),
    (
        "id;f;g\na;2;0,5\n",
        "items.csv line 2: g must be a number, *, got '0,5'; write a point for the decimal comma",
    ),
    (
        "id,f,g\na,1,2\nb,nan,2\n",
        "items.csv line 3: f must be a finite number, at most 1e+100 in size, got nan",
    ),
    ("id,f,g\na,1,-inf\n", "items.csv line 2: g must be a finite number, at most 1e+100 in size, got -inf"),
    ("id,f\na,1e101\n", "items.csv line 2: f must be a finite number, at most 1e+100 in size, got 1e+101"),
    ("id,f,g\na,1,2\nb,1\nc,1,2\n", "items.csv line 3: expected 3 fields, got 2"),
    ("id,f,f\na,1,2\n", "items.csv line 1: two columns are called 'f'; rename or leave out one of them"),
    ("id,ID\na,1\n", "items.csv line 1: two columns are called 'ID'; rename or leave out one of them"),
    (
        ",id,f\n0,a,1\n",
        "items.csv line 1: column 1 has no name; name it, or leave it out (pandas writes such a column of "
        "row numbers unless told index=False)",
    ),
    (
        "id,name\na,Caf\xe9\n".encode("iso-8859-1"),
        "items.csv line 2: bytes that are not UTF-8; save the file as UTF-8 (spreadsheets call it "
        "'CSV UTF-8')",
    ),
    ("id,name\na,b\n".encode("utf-16"), "items.csv line 1: bytes that are not UTF-8; save the file *"),
    ('id,name\na,"b\n', "items.csv line 2: a field that is badly quoted, *"),
    ("<!DOCTYPE html>\n", "items.csv line 1: a web page, not data; fetch the file itself"),
]  # fmt: skip


def refusal(path: Path) -> str:
    with pytest.raises(FirstclickError) as refused:
        read_catalog(path)
    return str(refused.value)


def fits(message: str, pattern: str) -> bool:
    """Whether the message is the pattern, where '*' stands for what others test."""
    start, star, end = pattern.partition("*")
    return message.startswith(start) and message.endswith(end) and (bool(star) or message == pattern)


@pytest.mark.parametrize(("content", "message"), WRONG, ids=[message[:40] for _, message in WRONG])
def test_what_is_wrong_is_said_with_its_line(tmp_path, content, message):
    said = refusal(written(tmp_path, content))
    assert fits(said, message), said


def test_no_such_file_and_a_folder(tmp_path):
    assert refusal(tmp_path / "none.csv") == f"{tmp_path / 'none.csv'}: no such file"
    assert refusal(tmp_path) == f"{tmp_path} is a folder; name a file in it"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"sku": [1]}, " has no column 'id'; call the column of item ids so (columns: sku)"),
        ({"id": pl.Series([], dtype=pl.Int64)}, " has columns but no items; add a row for each item"),
        ({"id": [1, 1]}, " row 1 (from 0): id 1 is there twice, first in items.parquet row 0 (from 0); *"),
        ({"id": ["a", None]}, " row 1 (from 0): the id is empty; every item needs one of its own"),
        ({"id": [1.5]}, " row 0 (from 0): an id must be text or a whole number, got 1.5"),
        ({"id": [True]}, " row 0 (from 0): an id must be text or a whole number, got True"),
        ({"id": [1, 2], "f": [1.0, None]}, " row 1 (from 0): f must be a finite number, *, got nan"),
        ({"id": [1, 2], "f": [1, None]}, " row 1 (from 0): f must be a finite number, *, got nan"),
        ({"id": [1, 2], "f": [True, None]}, " row 1 (from 0): f must be a finite number, *, got nan"),
        (
            {"id": [1], "f": ["1"]},
            ": column 'f' must hold numbers, as every column but id, name and group is a feature, got "
            "'1'; convert it or leave it out",
        ),
    ],
)
def test_what_is_wrong_with_parquet_is_said_with_its_row(tmp_path, table, message):
    pl.DataFrame(table, strict=False).write_parquet(tmp_path / "items.parquet")
    said = refusal(tmp_path / "items.parquet")
    assert fits(said, "items.parquet" + message), said


def test_what_pandas_writes_by_itself(tmp_path):
    frame = pl.DataFrame({"id": ["a", "b"], "f": [1.0, 2.0], "__index_level_0__": [3, 5]})
    frame.write_parquet(tmp_path / "items.parquet")
    assert "column 3 has no name" in refusal(tmp_path / "items.parquet")
    frame[:, :2].write_parquet(tmp_path / "items.parquet")
    assert len(read_catalog(tmp_path / "items.parquet").items) == 2


def test_a_damaged_parquet_file(tmp_path):
    path = written(tmp_path, "id,f\n", "items.parquet")
    assert refusal(path).startswith("items.parquet is no Parquet file, or is cut short or damaged (")


def test_features_are_scaled_with_a_constant_beside_them():
    rows = np.array([[3.0, 4.0], [0.0, 1.0]])
    scale = FeatureScale.fitted(["a", "b"], rows)
    assert scale == FeatureScale(("a", "b"), 5.0, 5 * np.sqrt(2))
    scaled = scale.apply(rows)
    assert np.linalg.norm(scaled, axis=1).max() == pytest.approx(1)
    assert scaled == pytest.approx(np.array([[3, 4, 5], [0, 1, 5]]) / (5 * np.sqrt(2)))


def test_a_column_that_is_constant_already_is_the_constant():
    rows = np.array([[3.0, 4, 0], [0, 4, 0]])
    scale = FeatureScale.fitted(["a", "one", "zero"], rows)
    assert scale == FeatureScale(("a", "one", "zero"), 0.0, 5.0)
    assert scale.apply(rows).tolist() == [[0.6, 0.8, 0], [0, 0.8, 0]]


def test_one_item_has_no_column_that_is_constant_and_zeros_are_scaled_by_nothing():
    assert FeatureScale.fitted(["a"], np.array([[3.0]])) == FeatureScale(("a",), 3.0, 3 * np.sqrt(2))
    assert FeatureScale.fitted(["a"], np.zeros((2, 1))) == FeatureScale(("a",), 1.0, np.sqrt(2))


def test_columns_that_are_tiny_beside_another_are_noted():
    rows = np.array([[500.0, 1, 20], [900, 0, 30]])
    assert note_of_small_columns(["kcal", "vegan", "price"], rows) == (
        "kcal goes up to 900, and beside it vegan is tiny and learned slowly; bring columns to like sizes"
    )
    assert note_of_small_columns(["a", "b", "nothing"], np.array([[1.0, 0.0, 0], [0.5, -0.021, 0]])) == ""


# Below the smallest normal number digits are lost, whatever is done.
numbers = st.floats(-1e100, 1e100, allow_subnormal=False) | st.floats(-2, 2, allow_subnormal=False)
matrices = nps.arrays(np.float64, nps.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=numbers)


@given(matrices)
def test_one_row_alone_gets_the_same_bits_and_the_longest_norm_is_1(rows):
    names = [f"f{j}" for j in range(rows.shape[1])]
    scale = FeatureScale.fitted(names, rows)
    all_at_once = scale.apply(rows)
    again = FeatureScale.from_json(json.loads(json.dumps(scale.as_json())))
    assert again == scale
    for row, expected in zip(rows, all_at_once, strict=True):
        assert again.apply([row.tolist()])[0].tobytes() == expected.tobytes()
    assert all_at_once.shape == (len(rows), scale.n_features)
    assert np.linalg.norm(all_at_once, axis=1).max() == pytest.approx(1, rel=1e-9) or not rows.any()


@given(matrices, st.sampled_from([2.0**-40, 2.0**12]))
def test_the_unit_of_the_features_does_not_matter(rows, unit):
    rows = np.where(np.abs(rows) > 1e60, 1.0, rows)  # nothing beyond 1e100 in the other unit
    rows = np.where(np.abs(rows) < 1e-200, 0.0, rows)  # and nothing that loses its digits
    names = [f"f{j}" for j in range(rows.shape[1])]
    ours = FeatureScale.fitted(names, rows).apply(rows)
    theirs = FeatureScale.fitted(names, unit * rows).apply(unit * rows)
    assert not rows.any() or ours.tolist() == theirs.tolist()


def test_a_row_of_another_length_is_refused_with_the_names():
    scale = FeatureScale(("price", "size"), 1.0, 2.0)
    with pytest.raises(InvalidInput, match=r"^an item has 2 features here \(price, size\), got 3$"):
        scale.apply([[1.0, 2.0, 3.0]])


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
rows = st.lists(
    st.tuples(texts.map(str.strip).filter(bool), texts, texts, st.floats(-1e100, 1e100)),
    min_size=1, unique_by=lambda row: row[0],
)  # fmt: skip


@pytest.mark.parametrize("name", ["items.csv", "items.parquet"])
@given(content=rows)
def test_what_is_written_is_read_again(tmp_path_factory, name, content):
    path = tmp_path_factory.getbasetemp() / name
    items = [Item(*row[:3], np.array([row[3], 2.0])) for row in content]
    write_catalog(path, items, ["f1", "f2"])
    read = read_catalog(path)
    assert words(read.items) == [(item.id, item.name.strip(), item.group.strip()) for item in items]
    assert features(read.items).tolist() == features(items).tolist()


def test_a_spreadsheet_reads_what_is_written(tmp_path):
    items = [Item("a", 'say "hi", twice', "g", np.array([0.1])), Item("b", "", "", np.array([1e-9]))]
    write_catalog(tmp_path / "items.csv", items, ["f1"])
    text = (tmp_path / "items.csv").read_text()
    assert text == '"id","name","group","f1"\n"a","say ""hi"", twice","g",0.1\n"b","","",1e-09\n'
    assert pd.read_csv(io.StringIO(text))["f1"].tolist() == [0.1, 1e-9]
