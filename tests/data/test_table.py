import gzip

import numpy as np
import pandas as pd
import polars as pl
import pytest

from firstclick.data import interactions_from_frame
from firstclick.data.sources import make_source, source_classes
from firstclick.data.sources.table import Table
from firstclick.errors import InvalidInput, UnknownName

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
    "user_column": "who",
    "item_column": "film",
    "value_column": "stars",
    "above": 3,
    "name_column": "title",
    "group_column": "genre",
}
TABLE = Table(user="who", item="film", value="stars", above=3, item_name="title", item_group="genre")


def text(folder, separator, name):
    rows = [list(LOG), *zip(*LOG.values(), strict=True)]
    path = folder / name
    path.write_text("".join(separator.join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    return path


def as_csv(folder):
    return text(folder, ",", "log.csv")


def as_tsv(folder):
    return text(folder, "\t", "log.tsv")


def as_colons(folder):
    return text(folder, "::", "log.dat")


def as_packed(folder):
    path = folder / "log.csv.gz"
    path.write_bytes(gzip.compress(as_csv(folder).read_bytes()))
    return path


def as_parquet(folder):
    path = folder / "log.parquet"
    pl.DataFrame(LOG).write_parquet(path, row_group_size=3)
    return path


def check(read):
    liked = {
        (read.user_ids[user], read.item_ids[item])
        for user, item in zip(read.users[read.attracted], read.items[read.attracted], strict=True)
    }
    assert read.user_ids == ("70", "ann", "bo b", "dan")
    assert read.item_ids == ("5", "30", "110")
    assert liked == {("70", "5"), ("ann", "110"), ("bo b", "5")}
    assert len(read.users) == 7
    assert read.names == ("Five", "Thirty", "110")
    assert read.item_groups == (("Drama", "War"), (), ("War",))
    assert read.facts == {"interactions": 7, "users": 4, "items": 3}


def refusal(path, **changes):
    with pytest.raises((InvalidInput, UnknownName)) as caught:
        Table(**(TABLE.settings | {"strict": "yes"} | changes)).load(path)
    return str(caught.value)


def frame_refusal(frame, **changes):
    with pytest.raises((InvalidInput, UnknownName)) as caught:
        interactions_from_frame(frame, **(COLUMNS | {"strict": True} | changes))
    return str(caught.value)


@pytest.mark.parametrize("write", [as_csv, as_tsv, as_colons, as_packed, as_parquet])
def test_every_kind_of_file_gives_the_same_interactions(tmp_path, write):
    check(TABLE.load(write(tmp_path)))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(LOG),
        pd.DataFrame(LOG, index=[7.5, 3, 3, 1, 0, 9, 8]),
        pd.DataFrame(LOG).astype({"who": "category", "film": "Int64", "stars": "Float32"}),
        pd.DataFrame(LOG).astype({"film": float, "stars": object}),
        pl.DataFrame(LOG),
        pl.DataFrame(LOG).with_columns(pl.col("who").cast(pl.Categorical), pl.col("film").cast(pl.Int16)),
    ],
    ids=["pandas", "pandas-index", "pandas-nullable", "pandas-float-ids", "polars", "polars-categorical"],
)
def test_frames_of_every_make_give_the_same_interactions(frame):
    check(interactions_from_frame(frame, **COLUMNS))


def test_groups_may_be_lists_in_frames_and_parquet_files(tmp_path):
    log = {"user": ["u", "v", "u"], "item": [3, 3, 1], "groups": [None, ["War", " Drama", "War"], []]}
    pl.DataFrame(log).write_parquet(tmp_path / "log.parquet")
    expected = ((), ("War", "Drama"))
    columns = {"user_column": 0, "item_column": "1", "group_column": "groups"}
    for frame in (pd.DataFrame(log), pl.DataFrame(log)):
        assert interactions_from_frame(frame, **columns).item_groups == expected
    read = Table(item_group="groups").load(tmp_path / "log.parquet")
    assert read.item_groups == expected


def test_columns_may_be_numbers_in_text_or_not():
    frame = pd.DataFrame([["u", 1, "x"], ["v", 2, "x"]], columns=["a", "b", "a"])
    assert interactions_from_frame(frame, user_column=2, item_column="0").item_ids == ("u", "v")
    assert Table(user=2, item=0) == Table(user="2", item="0")
    assert make_source("table:user=customer,top_items=3").settings["user"] == "customer"
    assert source_classes()["table"] is Table


def test_only_the_most_active_users_and_the_most_met_items_are_kept_and_all_are_counted(tmp_path):
    # ann and dan have two rows like 70, and come after it; 5 is met most.
    for read in (
        Table(user="who", item="film", top_users=2, top_items=1).load(as_csv(tmp_path)),
        interactions_from_frame(
            pd.DataFrame(LOG), user_column="who", item_column="film", top_users=2, top_items=1
        ),
    ):
        assert (read.user_ids, read.item_ids) == (("70", "ann"), ("5",))
        assert read.users.tolist() == [0, 0]
        assert read.facts == {"interactions": 7, "users": 4, "items": 3}
    read = Table(user="who", item="film", top_users=5, top_items=9).load(as_csv(tmp_path))
    assert (len(read.user_ids), len(read.item_ids), len(read.users)) == (4, 3, 7)


def test_a_last_line_without_an_end_is_a_line_like_others(tmp_path):
    path = as_csv(tmp_path)
    path.write_text(path.read_text().rstrip("\n"))
    check(TABLE.load(path))


def test_progress_of_a_parquet_file_ends_with_all_of_it(tmp_path):
    seen = []
    path = as_parquet(tmp_path)
    Table(user="who", item="film").load(path, lambda *progress: seen.append(progress))
    assert seen == sorted(seen)
    assert seen[-1] == (path.stat().st_size,) * 2


def test_nulls_are_refused_with_their_row(tmp_path):
    def with_null(column):
        return LOG | {column: [*LOG[column][:4], None, *LOG[column][5:]]}

    for column, message in [
        ("who", "row 4 (from 0): empty user id in column who"),
        ("film", "row 4 (from 0): empty item id in column film"),
        ("stars", "row 4 (from 0): value {} in column stars is not a number"),
    ]:
        log = with_null(column)
        pl.DataFrame(log).write_parquet(tmp_path / "log.parquet")
        assert refusal(tmp_path / "log.parquet") == "log.parquet " + message.format("None")
        assert frame_refusal(pl.DataFrame(log)) == "the frame " + message.format("nan")
        assert frame_refusal(pd.DataFrame(log)) == "the frame " + message.format("nan")
    nullable = pd.DataFrame(with_null("film")).astype({"film": object})
    nullable.loc[4, "film"] = pd.NA
    assert frame_refusal(nullable) == "the frame row 4 (from 0): empty item id in column film"


def test_odd_rows_of_frames_and_parquet_are_skipped_and_counted(tmp_path):
    log = LOG | {"who": [None, *LOG["who"][1:]], "stars": [4.5, 3.0, None, 5.0, 4.0, 2.0, 3.0]}
    pl.DataFrame(log).write_parquet(tmp_path / "log.parquet")
    for read in (
        TABLE.load(tmp_path / "log.parquet"),
        interactions_from_frame(pl.DataFrame(log), **COLUMNS),
        interactions_from_frame(pd.DataFrame(log), **COLUMNS),
    ):
        assert [str(one) for one in read.skipped] == [
            "1 without a user (row 0)",
            "1 whose value is no number (row 2)",
        ]
        assert read.user_ids == ("ann", "bo b", "dan")
        assert len(read.users) == 5
        assert read.columns == tuple(LOG)


def test_wrong_cells_are_refused_in_every_form(tmp_path):
    log = LOG | {"who": [*LOG["who"][:6], "  "], "stars": [*map(str, LOG["stars"][:6]), "1_0"]}
    pl.DataFrame(log).write_parquet(tmp_path / "log.parquet")
    blank = "row 6 (from 0): empty user id in column who"
    number = "row 6 (from 0): value '1_0' in column stars is not a number"
    for refused, owner in (
        (lambda **changes: frame_refusal(pd.DataFrame(log), **changes), "the frame "),
        (lambda **changes: frame_refusal(pl.DataFrame(log), **changes), "the frame "),
    ):
        assert refused() == owner + blank
        assert refused(user_column="noise") == owner + number
    assert refusal(tmp_path / "log.parquet") == "log.parquet " + blank
    assert refusal(tmp_path / "log.parquet", user="noise") == "log.parquet " + number
    lists = pd.DataFrame({"user": [["u"], ["v"]], "item": [1, 2]})
    message = frame_refusal(
        lists, user_column="user", item_column="item", value_column=None, above=None,
        name_column=None, group_column=None,
    )  # fmt: skip
    assert message == "the frame row 0 (from 0): ids must be text or numbers, got ['u'] and 1"


def test_numbers_that_no_float_and_no_text_can_hold_are_refused_with_their_row():
    for column, message in [
        ("stars", "value a whole number of about 5,001 digits in column stars is not a number"),
        ("who", "ids, names and groups must be text or numbers of at most 4,300 digits"),
        ("film", "ids, names and groups must be text or numbers of at most 4,300 digits"),
        ("title", "ids, names and groups must be text or numbers of at most 4,300 digits"),
    ]:
        log = LOG | {"film": [*LOG["film"][:6], 7]}  # An item is called by its first name.
        frame = pd.DataFrame(log | {column: pd.Series([*log[column][:6], 10**5000], dtype=object)})
        assert frame_refusal(frame) == f"the frame row 6 (from 0): {message}"
    frame = pd.DataFrame(LOG)
    assert frame_refusal(frame, above=10**400).startswith(
        "above must be a number, got a whole number of about"
    )
    assert frame_refusal(frame, user_column=10**5000).startswith("the frame has no column a whole number of")
    assert frame_refusal(frame, user_column="9" * 5000).startswith("the frame has no column '9999")


def test_unknown_columns_are_refused_with_the_nearest_in_every_form(tmp_path):
    said = (
        "has no column 'titel'; did you mean 'title'? its columns are film, who, stars, title, genre, noise"
    )
    for write in (as_csv, as_parquet):
        path = write(tmp_path)
        assert refusal(path, item_name="titel") == f"{path.name} {said}"
        assert refusal(path, item="9") == f"{path.name} has no column 9; its columns are 0 to 5"
        message = f"{path.name}: `user_column` and `item_column` are both column 'film'"
        assert refusal(path, user="film") == message
    for frame in (pd.DataFrame(LOG), pl.DataFrame(LOG)):
        assert frame_refusal(frame, name_column="titel") == f"the frame {said}"
        assert frame_refusal(frame, above=float("nan")) == "above must be a number, got nan"
        assert (
            frame_refusal(frame, value_column=None)
            == "above needs `value_column`, the column to compare with it"
        )


@pytest.mark.parametrize("given", [LOG, pl.LazyFrame(LOG), pd.Series([1]), np.ones((3, 2))])
def test_what_is_no_frame_is_refused(given):
    kind = type(given).__name__
    assert frame_refusal(given) == f"interactions need a frame of pandas or polars, got {kind}"


def test_logs_without_rows_are_refused(tmp_path):
    path = as_csv(tmp_path)
    path.write_text(path.read_text().splitlines()[0] + "\n")
    assert refusal(path) == "log.csv has a header but no rows"
    assert frame_refusal(pd.DataFrame(LOG)[:0]) == "the frame has no rows"
    pl.DataFrame(LOG)[:0].write_parquet(tmp_path / "log.parquet")
    assert refusal(tmp_path / "log.parquet") == "log.parquet has no rows"


def test_a_file_that_is_no_parquet_file_is_refused(tmp_path):
    path = as_parquet(tmp_path)
    whole = path.read_bytes()
    for content in (b"", whole[:-20], b"<!DOCTYPE html><p>Not Found</p>", as_csv(tmp_path).read_bytes()):
        path.write_bytes(content)
        assert refusal(path).startswith("log.parquet is no Parquet file, or is cut short or damaged (")
    # The end, where the columns are listed, is whole, and the data is not.
    path.write_bytes(whole[:4] + bytes(len(whole[4:200])) + whole[200:])
    assert "log.parquet" in refusal(path)


def test_options_of_text_files_do_not_go_with_parquet(tmp_path):
    message = refusal(as_parquet(tmp_path), separator=";")
    assert message == "log.parquet is a Parquet file: it has no separator and no header line"


def test_a_path_without_a_file_is_refused(tmp_path):
    for name in ("none.csv", "none.parquet"):
        assert refusal(tmp_path / name) == f"{tmp_path / name}: no such file"
    assert refusal(tmp_path) == f"{tmp_path} is a folder; name a file in it"
    assert refusal(None) == "table needs the path of its file: a CSV, TSV or Parquet file"
    assert TABLE.find(as_csv(tmp_path)) == {"log": tmp_path / "log.csv"}
