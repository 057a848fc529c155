import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstclick.data import Interactions, feedback_matrix, logs, read_interactions
from firstclick.errors import InvalidInput, UnknownName
from firstclick.files.duck import connected

# 4 users and 5 items, ids with gaps; user 30 and item 9 are never liked, (7, 100) is rated twice.
RATINGS = [
    ("7", "100", "5"),
    ("30", "9", "3"),
    ("7", "100", "1"),
    ("2", "20", "4"),
    ("11", "3", "4"),
    ("2", "1000", "5"),
    ("7", "20", "2"),
]


@pytest.fixture
def write(tmp_path):
    def write(text, name="ratings.dat", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
        return path

    return write


def lines(separator, rows=RATINGS, end="\n"):
    return "".join(separator.join(row) + end for row in rows)


def liked(interactions):
    """The set of (user id, item id) that attracted, whatever the codes are."""
    return {
        (interactions.user_ids[user], interactions.item_ids[item])
        for user, item, yes in zip(
            interactions.users, interactions.items, interactions.attracted, strict=True
        )
        if yes
    }


LIKED = {("7", "100"), ("2", "20"), ("11", "3"), ("2", "1000")}


def refusal(path, **options):
    with pytest.raises((InvalidInput, UnknownName)) as caught:
        read_interactions(path, **({"strict": True} | options))
    return str(caught.value)


@pytest.mark.parametrize("separator", ["::", "\t", ",", ";"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_separator_is_found_in_the_first_line(write, separator, end):
    read = read_interactions(write(lines(separator, end=end)), value_column=2, above=3)
    assert liked(read) == LIKED
    assert read.user_ids == ("2", "7", "11", "30")
    assert read.item_ids == ("3", "9", "20", "100", "1000")
    assert len(read.users) == len(read.items) == len(read.attracted) == len(RATINGS)


def test_double_colons_win_over_tabs_and_tabs_over_commas(write):
    assert read_interactions(write("a,b::c\td\n")).user_ids == ("a,b",)
    assert read_interactions(write("a,b\tc\n")).user_ids == ("a,b",)
    assert read_interactions(write("a;b,c\n")).user_ids == ("a;b",)


def test_a_given_separator_wins(write):
    assert liked(read_interactions(write("a,b|c\n"), separator="|")) == {("a,b", "c")}


def test_columns_may_be_named_and_in_any_order(write):
    text = "rating,item,user\n" + lines(",", [row[::-1] for row in RATINGS])
    path = write(text)
    named = read_interactions(path, user_column="user", item_column="item", value_column="rating", above=3)
    numbered = read_interactions(path, user_column="2", item_column=1, value_column="0", above=3, header=True)
    mixed = read_interactions(path, user_column="user", item_column=1, value_column=0, above=3)
    assert liked(named) == liked(numbered) == liked(mixed) == LIKED


def test_blanks_around_column_names_are_dropped(write):
    path = write("user, item\nann,x\n")
    assert liked(read_interactions(path, user_column="user", item_column="item")) == {("ann", "x")}


@pytest.mark.parametrize("separator", ["::", ","])
def test_no_kind_of_line_end_gets_into_a_field(write, separator):
    for end in ("\n", "\r\n", "\r"):
        path = write(lines(separator, end=end) + separator.join(["1", "2", "abc"]) + end)
        message = refusal(path, value_column=2)
        assert message == "ratings.dat line 8: value 'abc' in column 2 is not a number"


def test_quoted_fields_hold_separators_quotes_and_line_ends(write):
    path = write('user,item\nann,"Hello, ""World""\nagain"\nbob,x\n')
    read = read_interactions(path, user_column="user", item_column="item")
    assert liked(read) == {("ann", 'Hello, "World"\nagain'), ("bob", "x")}


def test_quotes_mean_nothing_between_tabs(write):
    assert liked(read_interactions(write('u\t12" vinyl\nv\t"x\n'))) == {("u", '12" vinyl'), ("v", '"x')}


def test_lines_are_counted_through_quoted_line_ends(write):
    path = write('u,"a\nb",1\nv,c,1\nw,d\n')
    assert refusal(path) == "ratings.dat line 4: expected 3 fields, got 2"


def test_a_byte_order_mark_is_no_part_of_the_first_column(write):
    path = write("user,item\nann,x\n", encoding="utf-8-sig")
    assert liked(read_interactions(path, user_column="user", item_column="item")) == {("ann", "x")}


def test_without_a_value_column_every_row_attracts(write):
    read = read_interactions(write(lines("::")))
    assert read.attracted.all()
    assert read.attracted.dtype == np.bool_


def test_a_value_column_alone_means_above_zero(write):
    read = read_interactions(write("u,a,0\nu,b,1\nu,c,-2\nu,d,0.5\n"), value_column=2)
    assert liked(read) == {("u", "b"), ("u", "d")}


def test_above_is_strict(write):
    read = read_interactions(write("u,a,3\nu,b,3.5\n"), value_column=2, above=3)
    assert liked(read) == {("u", "b")}


def test_users_and_items_never_attracted_still_count(write):
    read = read_interactions(write(lines("::")), value_column=2, above=3)
    matrix = feedback_matrix(read)
    assert matrix.shape == (4, 5)
    assert matrix[read.user_ids.index("30")].nnz == 0
    assert matrix[:, read.item_ids.index("9")].nnz == 0


def test_ids_that_are_not_all_integers_sort_as_text(write):
    read = read_interactions(write("10,b2\n9,b10\n1x,a\n"))
    assert read.user_ids == ("10", "1x", "9")
    assert read.item_ids == ("a", "b10", "b2")


def test_negative_and_zero_padded_ids_sort_as_numbers_and_stay_apart(write):
    assert read_interactions(write("7,1\n-3,1\n007,1\n10,1\n")).user_ids == ("-3", "007", "7", "10")


def test_blanks_around_ids_are_dropped(write):
    assert liked(read_interactions(write("u, a\n u,a\nu ,b\n"))) == {("u", "a"), ("u", "b")}


@pytest.mark.long
@given(st.randoms(use_true_random=False))
def test_the_order_of_lines_does_not_matter(tmp_path_factory, chance):
    folder = tmp_path_factory.mktemp("order")
    rows = RATINGS.copy()
    chance.shuffle(rows)
    first, second = folder / "a.csv", folder / "b.csv"
    first.write_text(lines(","))
    second.write_text(lines(",", rows))
    a, b = (read_interactions(path, value_column=2, above=3) for path in (first, second))
    assert (a.user_ids, a.item_ids) == (b.user_ids, b.item_ids)
    assert (feedback_matrix(a) != feedback_matrix(b)).nnz == 0


id_text = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Z"], exclude_characters="\ufeff"), min_size=1, max_size=5
)


@pytest.mark.long
@given(st.lists(st.tuples(id_text, id_text, st.booleans()), min_size=1, max_size=20))
def test_whatever_the_csv_module_writes_is_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "log.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("user", "item", "value"), *rows_as_numbers(rows)])
    read = read_interactions(
        path, user_column="user", item_column="item", value_column="value", separator=","
    )
    assert liked(read) == {(user, item) for user, item, yes in rows if yes}
    assert set(read.user_ids) == {user for user, _, _ in rows}
    assert set(read.item_ids) == {item for _, item, _ in rows}


def rows_as_numbers(rows):
    return [(user, item, int(yes)) for user, item, yes in rows]


def test_blank_lines_at_the_end_are_fine(write):
    assert len(read_interactions(write(lines("::") + "\n  \n\r\n")).users) == len(RATINGS)
    assert len(read_interactions(write(lines(",") + "\n  \n\r\n")).users) == len(RATINGS)


@pytest.mark.parametrize("separator", ["::", ","])
def test_blank_lines_elsewhere_are_refused(write, separator):
    text = lines(separator)
    assert refusal(write(text + "\n\n" + text)) == "ratings.dat line 8 is blank, but rows follow it"
    assert refusal(write("\n" + text)) == "ratings.dat line 1 is blank, but rows follow it"


def test_a_line_with_missing_or_extra_fields_is_named(write):
    text = lines("::")
    assert refusal(write(text + "1::2\n")) == "ratings.dat line 8: expected 3 fields, got 2"
    assert refusal(write(text + "1::2::3::4\n")) == "ratings.dat line 8: expected 3 fields, got 4"
    assert refusal(write(lines(",") + "1\n")) == "ratings.dat line 8: expected 3 fields, got 1"


@pytest.mark.parametrize(
    "value", ["abc", "nan", "inf", "-Infinity", "", "1_000", "1,000,000", "1.000,5", "n/a"]
)
def test_a_value_that_is_no_number_is_refused(write, value):
    path = write(lines("::") + f"1::2::{value}\n")
    assert refusal(path, value_column=2) == f"ratings.dat line 8: value {value!r} in column 2 is not a number"


def test_a_value_in_a_named_column_is_refused_by_that_name(write):
    path = write("u,i,stars\na,b,5\na,c,many\n")
    message = refusal(path, user_column="u", item_column="i", value_column="stars")
    assert message == "ratings.dat line 3: value 'many' in column stars is not a number"


def test_a_header_met_as_a_value_is_suspected(write):
    path = write("user,item,rating\na,b,5\n")
    assert refusal(path, value_column=2) == (
        "ratings.dat line 1: value 'rating' in column 2 is not a number; "
        "if line 1 is a header, name the columns or pass `header=True`"
    )


def test_an_empty_id_is_refused(write):
    assert refusal(write("u,a\n ,b\n")) == "ratings.dat line 2: empty user id in column 0"
    assert refusal(write("u::a\nv::\n")) == "ratings.dat line 2: empty item id in column 1"
    path = write("who,what\nu,a\nv,\n")
    message = refusal(path, user_column="who", item_column="what")
    assert message == "ratings.dat line 3: empty item id in column what"


def test_a_missing_column_is_refused_with_those_there_are(write):
    path = write("user,item,rating\na,b,5\n")
    assert refusal(path, user_column="usr", item_column="item") == (
        "ratings.dat has no column 'usr'; did you mean 'user'? its columns are user, item, rating"
    )
    assert refusal(path, user_column="zzz", item_column="item") == (
        "ratings.dat has no column 'zzz'; its columns are user, item, rating"
    )
    assert refusal(path, item_column="3") == "ratings.dat has no column 3; its columns are 0 to 2"
    assert refusal(path, item_column=-1) == "ratings.dat has no column -1; its columns are 0 to 2"


def test_a_column_name_that_occurs_twice_is_refused(write):
    path = write("id,item,id\na,b,c\n")
    message = refusal(path, user_column="id", item_column="item")
    assert message == "ratings.dat has 2 columns 'id'; give the number of one"


def test_users_and_items_cannot_be_one_column(write):
    path = write("user,item\na,b\n")
    message = refusal(path, user_column="item", item_column="item")
    assert message == "ratings.dat: `user_column` and `item_column` are both column 'item'"


def test_contradicting_options_are_refused(write):
    path = write("user,item\na,b\n")
    assert refusal(path, above=3) == "above needs `value_column`, the column to compare with it"
    assert refusal(path, value_column=1, above=float("nan")) == "above must be a number, got nan"
    assert refusal(path, user_column="user", header=False) == (
        "column 'user' is a name, but header=False says that ratings.dat has none"
    )
    assert refusal(path, separator="") == "separator must be text without quotes and line ends, got ''"


def test_a_file_without_rows_is_refused(write):
    assert refusal(write("")) == "ratings.dat is empty"
    assert refusal(write("\n \n")) == "ratings.dat is empty"
    assert refusal(write("user,item\n"), header=True) == "ratings.dat has a header but no rows"


def test_a_file_without_known_separator_is_refused(write):
    message = refusal(write("1 2 3\n"))
    assert message == "ratings.dat line 1: no '::', tab, comma or semicolon; pass `separator`"


def test_a_quote_that_never_ends_is_refused_where_it_begins(write):
    message = refusal(write('u,a\nv,"b\nw,c\n'))
    assert message.startswith(
        "ratings.dat line 2: a field that is badly quoted, or longer than 2,097,152 bytes"
    )


def test_a_path_without_readable_file_is_refused(write, tmp_path, monkeypatch):
    missing = tmp_path / "no.dat"
    assert refusal(missing) == f"{missing}: no such file"
    assert refusal(tmp_path) == f"{tmp_path} is a folder; name a file in it"
    path = write(lines(","))

    def denied(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    # Patched, because root may read what chmod forbids.
    monkeypatch.setattr(Path, "open", denied)
    assert refusal(path) == f"{path} cannot be read: Permission denied"


def test_undecodable_bytes_are_refused_with_line_encoding_and_way_out(write):
    path = write(b"u,a\n" * 5000 + b"v,caf\xe9\n" + b"w,b\n" * 5000)
    assert refusal(path) == (
        "ratings.dat line 5001: bytes that are not UTF-8; "
        "if it is a text file, pass its encoding, for example `encoding='latin-1'`"
    )
    assert ("v", "café") in liked(read_interactions(path, encoding="iso-8859-1"))


def test_an_unknown_encoding_is_refused(write):
    message = refusal(write(lines(",")), encoding="utf-9")
    assert message == "unknown encoding 'utf-9'; try 'utf-8' or 'latin-1'"


@pytest.mark.parametrize("separator", ["::", "\t", ","])
def test_a_file_that_ends_within_its_last_line_is_suspected_to_be_cut_short(write, separator):
    text = lines(separator)
    expected = "ratings.dat line 7: expected 3 fields, got 2"
    # Cut after '7::20', before the last separator.
    path = write(text[: text.rindex(separator)])
    assert refusal(path) == expected + "; the file ends within this line: is it cut short?"
    # The last line is whole, and the wrong one an earlier one: nothing is cut.
    path = write(separator.join("ab") + "\n" + text.rstrip("\n"))
    assert refusal(path) == "ratings.dat line 2: expected 2 fields, got 3"


@pytest.mark.parametrize("start", ["<!DOCTYPE html>\n", "\ufeff  <html lang='en'>", "<?xml version='1.0'?>"])
def test_a_web_page_is_recognised(write, start):
    message = refusal(write(start + "<head><title>Not Found, sorry</title></head>"))
    assert message == "ratings.dat line 1: a web page, not data; fetch the file itself"


def test_a_packed_file_is_unpacked_on_the_way(write):
    packed = gzip.compress(lines("::").encode())
    assert liked(read_interactions(write(packed, "log.dat.gz"), value_column=2, above=3)) == LIKED
    short = write(packed[:-12], "log.dat.gz")
    assert refusal(short) == "log.dat.gz: the packed data is cut short or damaged; fetch it again"
    assert refusal(write(lines("::"), "log.gz")).endswith("log.gz cannot be read: Not a gzipped file (b'7:')")
    latin = write(gzip.compress(b"u,a\nv,caf\xe9\n"), "log.csv.gz")
    assert refusal(latin).startswith("log.csv.gz line 2: bytes that are not UTF-8")


def test_progress_counts_bytes_and_ends_with_all_of_them(write):
    path = write("u,a\n" * 50_000)
    seen = []
    read_interactions(path, progress=lambda done, total: seen.append((done, total)))
    assert len(seen) > 1
    assert seen == sorted(seen)
    assert {total for _, total in seen} == {200_000}
    assert seen[-1] == (200_000, 200_000)


def test_names_and_groups_of_items_come_from_the_first_row_that_has_any(write):
    path = write(
        "who,what,called,kind\n"
        "bob,9,Nine , Drama|War|Drama\n"
        "ann,10,,\n"
        "bob,10,Ten,War\n"
        "cyd,10,Zehn,Comedy\n"
        "cyd,8,,\n"
    )
    columns = {"user_column": "who", "item_column": "what"}
    read = read_interactions(path, **columns, name_column="called", group_column="kind")
    assert read.item_ids == ("8", "9", "10")
    assert read.names == ("8", "Nine", "Ten")
    assert read.item_groups == ((), ("Drama", "War"), ("War",))
    assert {group: items.tolist() for group, items in read.groups().items()} == {"War": [1, 2], "Drama": [1]}
    plain = read_interactions(path, **columns)
    assert (plain.item_names, plain.item_groups, plain.names) == ((), (), plain.item_ids)
    assert refusal(path, **columns, name_column="caled") == (
        "ratings.dat has no column 'caled'; did you mean 'called'? its columns are who, what, called, kind"
    )


ODD = (
    "who,what,stars\n\nann,x,5\n,y,4\nann,,4\nbob,x,NA\nbob,y\nbob,y,n/a\ncyd,z,-\n , ,\ndan,w,4,4\n"
    "ann,y,3.5\neve,x,many\nbob,y,2\n"
)


def test_odd_rows_are_skipped_and_counted_with_their_lines(write):
    columns = {"user_column": "who", "item_column": "what", "value_column": "stars", "above": 3}
    for name, text in (
        ("log.csv", ODD),
        ("log.tsv", ODD.replace(",", "\t")),
        ("l.csv", ODD.replace("\n", "\r\n")),
    ):
        read = read_interactions(write(text, name), **columns)
        # Those who are in odd rows alone are nobody.
        assert (read.user_ids, read.item_ids) == (("ann", "bob"), ("x", "y"))
        assert read.users.tolist() == [0, 0, 1]
        assert read.attracted.tolist() == [True, True, False]
        assert read.facts == {"interactions": 3, "users": 2, "items": 2}
        assert read.columns == ("who", "what", "stars")
        assert [str(one) for one in read.skipped] == [
            "1 blank (line 2)",
            "2 without 3 fields (lines 7, 11)",
            "2 without a user (lines 4, 10)",
            "1 without an item (line 5)",
            "4 whose value is no number (lines 6, 8, 9, ...)",
        ]
    assert refusal(write("who,what,stars\n" + ODD.split("\n", 4)[4]), **columns) == (
        "ratings.dat line 4: expected 3 fields, got 2"
    )
    assert refusal(write("who,what,stars\nann,x,5\nbob,x,NA\n"), **columns) == (
        "ratings.dat line 3: value 'NA' in column stars is not a number"
    )


def test_a_log_of_odd_rows_alone_is_refused(write):
    for strict in (False, True):
        message = refusal(write("ann,x,NA\nbob,,1\n,\n"), value_column=2, strict=strict)
        assert message.startswith("ratings.dat ")
    assert refusal(write("ann,x,NA\nbob,,1\n,\n"), value_column=2, strict=False) == (
        "ratings.dat has no row that can be used: 1 without 3 fields (line 3), 1 without an item (line 2), "
        "1 whose value is no number (line 1)"
    )


@pytest.mark.parametrize("value", ["3,5", " 3,5 ", '"3,5"', "3.5", "+3,5", "35e-1", "3,50"])
def test_decimal_commas_are_numbers(write, value):
    read = read_interactions(write(f"u;a;{value}\nu;b;3,0\nu;c;1,234,567\n"), value_column=2, above=3.25)
    assert (liked(read), read.item_ids) == ({("u", "a")}, ("a", "b"))
    assert [str(one) for one in read.skipped] == ["1 whose value is no number (line 3)"]


def test_rows_that_a_join_gives_back_in_any_order_are_put_in_order():
    with connected() as db:
        db.execute(
            "CREATE TEMP TABLE coded AS SELECT * FROM (VALUES (2, 7), (0, 5), (1, 6)) t(place, user_code)"
        )
        place = logs._fetched(db, "place", np.int32)
        assert logs._fetched(db, "user_code", np.int32, place).tolist() == [5, 6, 7]


@pytest.mark.long
def test_rows_keep_the_order_of_a_file_that_several_threads_read(write):
    users = np.random.default_rng(1).integers(0, 50_000, 1_000_000)
    items = users * 7919 % 1009
    text = "\n".join(f"u{user},{item},{user % 5}" for user, item in zip(users, items, strict=True))
    read = read_interactions(write(text), value_column=2, above=2)
    ids, codes = np.unique([f"u{user}" for user in users], return_inverse=True)
    assert read.user_ids == tuple(ids.tolist())
    assert np.array_equal(read.users, codes)
    assert np.array_equal(np.array(read.item_ids, int)[read.items], items)
    assert np.array_equal(read.attracted, users % 5 > 2)


def test_what_was_read_is_counted(write):
    read = read_interactions(write(lines("::")))
    assert read.facts == {"interactions": 7, "users": 4, "items": 5}


def interactions(**changes):
    parts = {
        "users": np.array([0, 1, 1]),
        "items": np.array([2, 0, 1], dtype=np.int32),
        "attracted": np.array([True, False, True]),
        "user_ids": ("7", "9"),
        "item_ids": ("a", "c", "z"),
    }
    return Interactions(**(parts | changes))


RANKS = "interactions: item_ranks must be the integers 0 to 2, each once, got"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"users": np.array([0, 1])},
            "interactions: users, items and attracted must have one length, got shapes (2,), (3,) and (3,)",
        ),
        ({"attracted": np.array([1, 0, 1])}, "interactions: attracted must be bool, got int64"),
        ({"items": np.array([0.0, 1, 2])}, "interactions: item codes must be integers, got float64"),
        (
            {"users": np.array([0, 1, 2])},
            "interactions: user codes must be from 0 to 1 (2 ids), got 0 to 2",
        ),
        (
            {"items": np.array([-1, 1, 2])},
            "interactions: item codes must be from 0 to 2 (3 ids), got -1 to 2",
        ),
        ({"item_ids": ("a", "a", "z")}, "interactions: item ids must be distinct"),
        ({"item_names": ("A", "C")}, "interactions: item_names must be one per item (3), got 2"),
        ({"item_groups": ((), ("x",))}, "interactions: item_groups must be one per item (3), got 2"),
        ({"item_ranks": np.array([1, 0])}, f"{RANKS} [1 0]"),
        ({"item_ranks": np.array([1, 2, 3])}, f"{RANKS} [1 2 3]"),
        ({"item_ranks": np.array([2, 0, 2])}, f"{RANKS} [2 0 2]"),
        ({"item_ranks": np.array([2.0, 0, 1])}, f"{RANKS} [2. 0. 1.]"),
    ],
)
def test_interactions_that_do_not_fit_together_are_refused(changes, message):
    interactions(item_ranks=np.array([2, 0, 1]))
    with pytest.raises(InvalidInput) as caught:
        interactions(**changes)
    assert str(caught.value) == message
