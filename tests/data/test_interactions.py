"""Interactions from text, Parquet files and frames: ids, values, names, groups and rows that are odd.

Separators, quotes, line ends, encodings and damaged files are in tests/files/test_read_table.py.
"""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pytest

from firstclick.data import Interactions, feedback_matrix, interactions_from_frame, logs, read_interactions
from firstclick.data.sources import make_source
from firstclick.errors import FirstclickError, InvalidInput
from firstclick.files.duck import connected

# 4 users and 3 items, ids with gaps; 'dan' and 30 attract never, and (70, 5) is there twice.
LOG = {
    "film": [5, 30, 5, 110, 5, 30, 5],
    "who": ["70", "ann", "70", "ann", "bo b", "dan", "dan"],
    "stars": [4.5, 3.0, 1.0, 5.0, 4.0, 2.0, 3.0],
    "title": ["Five", "Thirty", "Cinq", "", "Five", "Thirty", "Five"],
    "genre": ["Drama|War", "", "Comedy", "War", "", "", ""],
    "noise": list("abcdefg"),
}
COLUMNS = {
    "user_column": "who", "item_column": "film", "value_column": "stars", "above": 3, "name_column": "title",
    "group_column": "genre",
}  # fmt: skip
NAMED = {"user_column": "user", "item_column": "item"}
TABLE = "table:user=who,item=film,value=stars,above=3,item_name=title,item_group=genre"


@pytest.fixture
def write(tmp_path):
    def write(text, name="log.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def files(write, tmp_path):
    """`files(log)`: the log as text, as packed text and as Parquet."""

    def files(log):
        rows = [list(log), *zip(*log.values(), strict=True)]
        text = "".join(",".join("" if cell is None else str(cell) for cell in row) + "\n" for row in rows)
        pl.DataFrame(log).write_parquet(tmp_path / "log.parquet", row_group_size=3)
        packed = gzip.compress(text.replace(",", ";").encode())
        return [write(text), write(packed, "log.csv.gz"), tmp_path / "log.parquet"]

    return files


def liked(read):
    """User and item of each row that attracted."""
    rows = zip(read.users[read.attracted], read.items[read.attracted], strict=True)
    return {(read.user_ids[user], read.item_ids[item]) for user, item in rows}


def check(read):
    assert (read.user_ids, read.item_ids) == (("70", "ann", "bo b", "dan"), ("5", "30", "110"))
    assert liked(read) == {("70", "5"), ("ann", "110"), ("bo b", "5")}
    assert (len(read.users), feedback_matrix(read).shape) == (7, (4, 3))
    assert read.names == ("Five", "Thirty", "110")
    assert read.item_groups == (("Drama", "War"), (), ("War",))
    assert {group: items.tolist() for group, items in read.groups().items()} == {"War": [0, 2], "Drama": [0]}
    assert read.facts == {"interactions": 7, "users": 4, "items": 3}


def refusal(call, *arguments, **options):
    with pytest.raises(FirstclickError) as caught:
        call(*arguments, **({"strict": True} | options))
    return str(caught.value)


def test_every_kind_of_file_gives_the_same_interactions(files):
    for path in files(LOG):
        check(read_interactions(path, **COLUMNS))
        check(make_source(TABLE).load(path))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(LOG, index=[7.5, 3, 3, 1, 0, 9, 8]),
        pd.DataFrame(LOG).astype({"who": "category", "film": "Int64", "stars": "Float32"}),
        pd.DataFrame(LOG).astype({"film": float, "stars": object}),
        pl.DataFrame(LOG).with_columns(pl.col("who").cast(pl.Categorical), pl.col("film").cast(pl.Int16)),
    ],
    ids=["pandas-index", "pandas-nullable", "pandas-float-ids", "polars-categorical"],
)
def test_frames_of_every_make_give_the_same_interactions(frame):
    check(interactions_from_frame(frame, **COLUMNS))


def test_columns_are_named_or_numbered(write):
    path = write("stars, film,who\n5,a,u\n1,b,u\n5,b,v\n")
    columns = {"user_column": "2", "item_column": 1, "value_column": "0", "above": 3}
    for changed in (
        {"header": True},
        {"user_column": "who"},
        {"item_column": "film", "value_column": "stars"},
    ):
        assert liked(read_interactions(path, **(columns | changed))) == {("u", "a"), ("v", "b")}
    frame = pd.DataFrame([["u", 1, "x"], ["v", 2, "x"]], columns=["a", "b", "a"])
    assert interactions_from_frame(frame, user_column=2, item_column="0").item_ids == ("u", "v")
    assert make_source("table:user=2,item=0") == make_source("table:item=0,user=2")
    assert liked(read_interactions(write("a,b|c\n"), separator="|")) == {("a,b", "c")}


def test_values_above_a_threshold_attract(write, tmp_path):
    path = write("u,a,0\nu,b,3\nu,c,-2\nu,d,3.5\n")
    for options, items in (({}, "abcd"), ({"value_column": 2}, "bd"), ({"value_column": 2, "above": 3}, "d")):
        read = read_interactions(path, **options)
        assert liked(read) == {("u", item) for item in items}
        assert (read.item_ids, read.attracted.dtype) == (tuple("abcd"), np.bool_)
    # Decimal commas are numbers.
    for value in ("3,5", " 3,5 ", '"3,5"', "3.5", "+3,5", "35e-1", "3,50"):
        read = read_interactions(write(f"u;a;{value}\nu;b;3,0\nu;c;1,234,567\n"), value_column=2, above=3.25)
        assert (liked(read), read.item_ids) == ({("u", "a")}, ("a", "b"))
        assert [str(reason) for reason in read.skipped] == ["1 whose value is no number (line 3)"]
    texts = {"user": ["u"] * 3, "item": ["a", "b", "c"], "value": ["3,5", "3,0", "1,234,567"]}
    pl.DataFrame(texts).write_parquet(tmp_path / "texts.parquet")
    columns = NAMED | {"value_column": "value", "above": 3.25}
    for read in (
        read_interactions(tmp_path / "texts.parquet", **columns),
        interactions_from_frame(pd.DataFrame(texts), **columns),
        interactions_from_frame(pl.DataFrame(texts), **columns),
    ):
        assert (liked(read), read.item_ids) == ({("u", "a")}, ("a", "b"))


def test_ids_sort_as_numbers_if_all_are_whole_and_lose_their_blanks(write):
    read = read_interactions(write("10,7\n9, -3\n1x,007\n 9 ,10\n"))
    assert (read.user_ids, read.item_ids) == (("10", "1x", "9"), ("-3", "007", "7", "10"))


def test_first_row_with_a_name_or_groups_decides(write, tmp_path):
    path = write(
        "who,what,called,kind\nbob,9,Nine , Drama|War|Drama\nann,10,,\nbob,10,Ten,War\ncyd,10,Zehn,Crime\n"
    )
    columns = {"user_column": "who", "item_column": "what"}
    read = read_interactions(path, **columns, name_column="called", group_column="kind")
    assert (read.names, read.item_groups) == (("Nine", "Ten"), (("Drama", "War"), ("War",)))
    plain = read_interactions(path, **columns)
    assert (plain.item_names, plain.item_groups, plain.names) == ((), (), plain.item_ids)
    log = {"user": ["u", "v", "u"], "item": [3, 3, 1], "groups": [None, ["War", " Drama", "War"], []]}
    pl.DataFrame(log).write_parquet(tmp_path / "log.parquet")
    columns = {"user_column": 0, "item_column": "1", "group_column": "groups"}
    for read in (
        interactions_from_frame(pd.DataFrame(log), **columns),
        interactions_from_frame(pl.DataFrame(log), **columns),
        make_source("table:item_group=groups").load(tmp_path / "log.parquet"),
    ):
        assert read.item_groups == ((), ("War", "Drama"))


def test_most_active_users_and_most_met_items_are_kept_and_all_counted(files):
    # ann and dan have two rows like 70, and come after it; 5 is met most.
    source = make_source("table:user=who,item=film,top_users=2,top_items=1")
    columns = {"user_column": "who", "item_column": "film", "top_users": 2, "top_items": 1}
    for read in (source.load(files(LOG)[0]), interactions_from_frame(pd.DataFrame(LOG), **columns)):
        assert (read.user_ids, read.item_ids, read.users.tolist()) == (("70", "ann"), ("5",), [0, 0])
        assert read.facts == {"interactions": 7, "users": 4, "items": 3}


ODD = (
    "who,what,stars\n\nann,x,5\n,y,4\nann,,4\nbob,x,NA\nbob,y\nbob,y,n/a\ncyd,z,-\n , ,\ndan,w,4,4\n"
    "ann,y,3.5\neve,x,many\nbob,y,2\n"
)


def test_odd_rows_are_skipped_and_counted(write, files):
    columns = {"user_column": "who", "item_column": "what", "value_column": "stars", "above": 3}
    read = read_interactions(write(ODD), **columns)
    # Users who are in odd rows alone are left out.
    assert (read.user_ids, read.item_ids) == (("ann", "bob"), ("x", "y"))
    assert (read.users.tolist(), read.attracted.tolist()) == ([0, 0, 1], [True, True, False])
    assert (read.facts["interactions"], read.columns) == (3, ("who", "what", "stars"))
    assert [str(reason) for reason in read.skipped] == [
        "1 blank (line 2)",
        "2 without 3 fields (lines 7, 11)",
        "2 without a user (lines 4, 10)",
        "1 without an item (line 5)",
        "4 whose value is no number (lines 6, 8, 9, ...)",
    ]
    log = LOG | {"who": [None, *LOG["who"][1:]], "stars": [4.5, 3.0, None, 5.0, 4.0, 2.0, 3.0]}
    for read in (
        read_interactions(files(log)[-1], **COLUMNS),
        interactions_from_frame(pl.DataFrame(log), **COLUMNS),
        interactions_from_frame(pd.DataFrame(log), **COLUMNS),
    ):
        assert [str(reason) for reason in read.skipped] == [
            "1 without a user (row 0)",
            "1 whose value is no number (row 2)",
        ]
        assert (read.user_ids, len(read.users), read.columns) == (("ann", "bo b", "dan"), 5, tuple(LOG))


def test_log_of_odd_rows_alone_is_refused(write):
    path = write("ann,x,NA\nbob,,1\n,\n")
    assert refusal(read_interactions, path, value_column=2) == ("log.csv line 3: expected 3 fields, got 2")
    assert refusal(read_interactions, path, value_column=2, strict=False) == (
        "log.csv has no row that can be used: 1 without 3 fields (line 3), 1 without an item (line 2), "
        "1 whose value is no number (line 1)"
    )


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("u,a,1\nv,b", {},
         " line 2: expected 3 fields, got 2; the file ends within this line: is it cut short?"),
        ("u,a\n ,b\n", {}, " line 2: empty user id in column 0"),
        ("user,item\nu,a\nv,\n", NAMED, " line 3: empty item id in column item"),
        ("user,item,stars\na,b,5\na,c,many\n", NAMED | {"value_column": "stars"},
         " line 3: value 'many' in column stars is not a number"),
        ("user,item,rating\na,b,5\n", {"value_column": 2},
         " line 1: value 'rating' in column 2 is not a number; if line 1 is a header, name the columns or "
         "pass `header=True`"),
        ("user,item,rating\na,b,5\n", NAMED | {"user_column": "usr"},
         " has no column 'usr'; did you mean 'user'? its columns are user, item, rating"),
        ("user,item\na,b\n", NAMED | {"user_column": "zzz"},
         " has no column 'zzz'; its columns are user, item"),
        ("a,b,c\n", {"item_column": "3"}, " has no column 3; its columns are 0 to 2"),
        ("a,b,c\n", {"item_column": -1}, " has no column -1; its columns are 0 to 2"),
        ("1 2 3\n", {}, " line 1: no '::', tab, comma or semicolon; pass `separator`"),
        ("id,item,id\na,b,c\n", NAMED | {"user_column": "id"},
         " has 2 columns 'id'; give the number of one"),
        ("user,item\na,b\n", NAMED | {"user_column": "item"},
         ": `user_column` and `item_column` are both column 'item'"),
        ("user,item\n", {"header": True}, " has a header but no rows"),
        *[(f"1::1::3\n1::2::{value}\n", {"value_column": 2},
           f" line 2: value {value!r} in column 2 is not a number")
          for value in ("abc", "nan", "-Infinity", "", "1_000", "1,000,000", "1.000,5")],
    ],
)  # fmt: skip
def test_wrong_text_is_refused_with_its_line(write, text, options, message):
    assert refusal(read_interactions, write(text), **options) == "log.csv" + message


def test_contradicting_options_are_refused(write):
    for options, word in (
        ({"above": 3}, "needs `value_column`"),
        ({"value_column": 1, "above": float("nan")}, "above must be a number, got nan"),
        ({"user_column": "user", "header": False}, "header=False"),
    ):
        assert word in refusal(read_interactions, write("user,item\na,b\n"), **options)
    with pytest.raises(InvalidInput, match=r"^table needs the path of its file: a CSV, TSV or Parquet file$"):
        make_source(TABLE).load(None)


def test_wrong_cells_of_frames_and_parquet_are_refused_with_their_row(files):
    def refusals(log, **changed):
        options = COLUMNS | changed
        for frame in (pd.DataFrame(log), pl.DataFrame(log)):
            yield refusal(interactions_from_frame, frame, **options).removeprefix("the frame row ")
        yield refusal(read_interactions, files(log)[-1], **options).removeprefix("log.parquet row ")

    for column, message in [
        ("who", "4 (from 0): empty user id in column who"),
        ("film", "4 (from 0): empty item id in column film"),
        ("stars", "4 (from 0): value {} in column stars is not a number"),
    ]:
        log = LOG | {column: [*LOG[column][:4], None, *LOG[column][5:]]}
        assert list(refusals(log)) == [message.format(value) for value in ("nan", "nan", "None")]
    log = LOG | {"who": [*LOG["who"][:6], "  "], "stars": [*map(str, LOG["stars"][:6]), "1_0"]}
    assert set(refusals(log)) == {"6 (from 0): empty user id in column who"}
    number = "6 (from 0): value '1_0' in column stars is not a number"
    assert set(refusals(log, user_column="noise")) == {number}
    nullable = pd.DataFrame(LOG).astype({"film": object})
    nullable.loc[4, "film"] = pd.NA
    assert "row 4 (from 0): empty item id" in refusal(interactions_from_frame, nullable, **COLUMNS)
    lists = pd.DataFrame({"user": [["u"], ["v"]], "item": [1, 2]})
    message = "the frame row 0 (from 0): ids must be text or numbers, got ['u'] and 1"
    assert refusal(interactions_from_frame, lists, **NAMED) == message


def test_numbers_that_no_float_and_no_text_can_hold_are_refused():
    for column, word in (
        ("stars", "value a whole number of about 5,001 digits in column stars"),
        ("who", "at most 4,300 digits"),
    ):
        frame = pd.DataFrame(LOG | {column: pd.Series([*LOG[column][:6], 10**5000], dtype=object)})
        message = refusal(interactions_from_frame, frame, **COLUMNS)
        assert message.startswith("the frame row 6 (from 0): ")
        assert word in message


def test_wrong_columns_and_empty_logs_are_refused_in_every_form(files):
    unknown = (
        "has no column 'titel'; did you mean 'title'? its columns are film, who, stars, title, genre, noise"
    )
    empty = {name: cells[:0] for name, cells in LOG.items()}
    options = COLUMNS | {"name_column": "titel"}
    for frame in (pd.DataFrame(LOG), pl.DataFrame(LOG)):
        assert refusal(interactions_from_frame, frame, **options) == f"the frame {unknown}"
        assert refusal(interactions_from_frame, frame[:0], **COLUMNS) == "the frame has no rows"
    path = files(LOG)[-1]
    assert refusal(read_interactions, path, **options) == f"log.parquet {unknown}"
    message = "log.parquet is a Parquet file: it has no separator and no header line"
    assert refusal(read_interactions, path, **COLUMNS, separator=";") == message
    for path, problem in zip(files(empty)[::2], ("a header but no rows", "no rows"), strict=True):
        assert refusal(read_interactions, path, **COLUMNS) == f"{path.name} has {problem}"
    for other in (LOG, pl.LazyFrame(LOG)):
        assert f"got {type(other).__name__}" in refusal(interactions_from_frame, other, **COLUMNS)


def test_rows_that_a_join_returns_in_any_order_are_put_in_order():
    with connected() as db:
        rows = "(VALUES (2, 7), (0, 5), (1, 6)) t(place, user_code)"
        db.execute(f"CREATE TEMP TABLE coded AS SELECT * FROM {rows}")
        place = logs._fetched(db, "place", np.int32)
        assert logs._fetched(db, "user_code", np.int32, place).tolist() == [5, 6, 7]


def interactions(**changes):
    parts = {
        "users": np.array([0, 1, 1]),
        "items": np.array([2, 0, 1], dtype=np.int32),
        "attracted": np.array([True, False, True]),
        "user_ids": ("7", "9"),
        "item_ids": ("a", "c", "z"),
    }
    return Interactions(**(parts | changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"users": np.array([0, 1])}, r"one length, got shapes \(2,\), \(3,\) and \(3,\)"),
        ({"attracted": np.array([1, 0, 1])}, "attracted must be bool, got int64"),
        ({"items": np.array([0.0, 1, 2])}, "item codes must be integers, got float64"),
        ({"users": np.array([0, 1, 2])}, r"user codes must be from 0 to 1 \(2 ids\), got 0 to 2"),
        ({"items": np.array([-1, 1, 2])}, r"item codes must be from 0 to 2 \(3 ids\), got -1 to 2"),
        ({"item_ids": ("a", "a", "z")}, "item ids must be distinct"),
        ({"item_groups": ((), ("x",))}, r"item_groups must be one per item \(3\), got 2"),
        ({"item_ranks": np.array([2, 0, 2])}, "item_ranks must be the integers 0 to 2, each once"),
    ],
)  # fmt: skip
def test_interactions_that_do_not_fit_together_are_refused(changes, words):
    interactions(item_ranks=np.array([2, 0, 1]))
    with pytest.raises(InvalidInput, match=f"^interactions: .*{words}"):
        interactions(**changes)
