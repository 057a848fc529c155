"""`read_table`: CSV, Parquet and JSON lines as columns, and what is wrong with a file in one sentence."""

import csv
import datetime
import gzip
import os
import socket
import threading
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstclick.errors import InvalidInput
from firstclick.files import text_file
from firstclick.files.table import read_table


@pytest.fixture
def write(tmp_path):
    def write(content, name="items.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def rows(table):
    return list(zip(*(column.tolist() for column in table.columns), strict=True))


def refusal(path, **options):
    with pytest.raises(InvalidInput) as caught:
        read_table(path, **options)
    return str(caught.value)


def parquet(path, query):
    with duckdb.connect() as db:
        db.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "::"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_texts_stay_as_written_without_blanks_around_them(write, separator, end, mark):
    lines = [["id", " price ", "note"], ["007", "1e3", " a b "], ["7", "", "NULL"], ["x", "3.50", "true"]]
    result = [("id", "price", "note"), ("007", "1e3", "a b"), ("7", None, "NULL"), ("x", "3.50", "true")]
    path = write(mark + "".join(separator.join(line) + end for line in lines))
    for header, names in ((1, ["id", "price", "note"]), (0, ["0", "1", "2"])):
        table = read_table(path, header=bool(header))
        assert (table.separator, table.names, table.skipped) == (separator, names, ())
        assert rows(table) == result[header:]
        assert table.where(2) == f"items.csv line {3 + header}"


@pytest.mark.parametrize(
    ("text", "result", "lines", "skipped"),
    [
        # The separator is found in the first line.
        ("1;2;3,5\n", [("1", "2", "3,5")], [1], []),
        ("a;b,c\n", [("a;b", "c")], [1], []),
        ("a,b\tc\n", [("a,b", "c")], [1], []),
        ("a,b::c\td\n", [("a,b", "c\td")], [1], []),
        # Quotes and blanks mean nothing between tabs.
        ('1\t12" vinyl\tx\n2\t"x\t\n3\t"y"\tx\n \t \t\n \t\n\n2\tb\ty\n',
         [("1", '12" vinyl', "x"), ("2", '"x', None), ("3", '"y"', "x"), (None, None, None), ("2", "b", "y")],
         [1, 2, 3, 4, 7], ["1 blank (line 6)", "1 without 3 fields (line 5)"]),
        # Elsewhere they hold separators, quotes and line ends.
        ('id,"the ""name""",x\n1,"Hello, ""World""\n\nagain",\n"",12" vinyl,y\n2,"",z\n1,2\n3,"b",c\n',
         [("id", 'the "name"', "x"), ("1", 'Hello, "World"\n\nagain', None), (None, '12" vinyl', "y"),
          ("2", None, "z"), ("3", "b", "c")],
         [1, 2, 5, 6, 8], ["1 without 3 fields (line 7)"]),
        # One column needs no separator.
        ('id\n7\n\n  \n"8 ""x"""\n""\n9\n\n', [("id",), ("7",), ('"8 ""x"""',), ('""',), ("9",)],
         [1, 2, 5, 6, 7], ["2 blank (lines 3, 4)"]),
    ],
)  # fmt: skip
def test_separators_quotes_and_blanks_are_understood(write, text, result, lines, skipped):
    path = write(text)
    table = read_table(path, header=False)
    assert rows(table) == result
    assert [table.where(row) for row in range(len(result))] == [f"items.csv line {line}" for line in lines]
    assert [str(reason) for reason in table.skipped] == skipped
    if len(result) > 1:
        table = read_table(path)
        assert (tuple(table.names), rows(table)) == (result[0], result[1:])


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_odd_rows_are_skipped_and_counted_with_their_lines(write, end, quote):
    lines = ["", "id,name", "", "1,a", "  ", "2", f"{quote}3{quote},c", "", "", "4,d,e", "5,f", "", " \t"]
    path = write(end.join(lines) + end)
    table = read_table(path)
    assert rows(table) == [("1", "a"), ("3", "c"), ("5", "f")]
    assert [table.where(row) for row in range(3)] == [f"items.csv line {line}" for line in (4, 7, 11)]
    assert [str(reason) for reason in table.skipped] == [
        "5 blank (lines 1, 3, 5, ...)",
        "2 without 2 fields (lines 6, 10)",
    ]
    assert refusal(path, strict=True) == "items.csv line 1 is blank, but rows follow it"
    path = write(end.join([*lines[1:2], *lines[3:4], *lines[9:]]))
    assert refusal(path, strict=True) == "items.csv line 3: expected 2 fields, got 3"
    assert rows(read_table(write(end.join([lines[1], lines[3], "", "", " "])), strict=True)) == [("1", "a")]


def test_line_numbers_are_right_in_a_long_file(write, monkeypatch):
    monkeypatch.setattr(text_file, "_NUMBERED", 1000)
    monkeypatch.setattr(text_file, "_AT_ONCE", 7)
    for quoted in (False, True):
        lines, expected = ["id,name"], []
        for i in range(3000):
            odd = i * 7919 % 11
            if odd > 1:
                expected.append((str(i), len(lines) + 1))
            lines.append("" if odd == 0 else "alone" if odd == 1 else f"{i},x")
            if odd == 2 and quoted:
                lines[-1:] = [f'{i},"a', "", 'b""c"']
        table = read_table(write("\n".join(lines)))
        assert table.columns[0].tolist() == [one for one, _ in expected]
        result = [table.where(row) for row in range(len(expected))]
        assert result == [f"items.csv line {line}" for _, line in expected]


def test_large_files_that_several_threads_read_stay_in_order(write):
    n, wide = 300_000, "x" * 40
    lines = [f"{i},{wide}" for i in range(n)]
    lines[234_567] = "alone"
    path = write("id,x\n" + "\n".join(lines) + "\n")
    assert path.stat().st_size > 8_000_000
    table = read_table(path)
    expected = [*range(234_567), *range(234_568, n)]
    assert np.array_equal(table.columns[0].astype(np.int64), expected)
    assert table.where(260_000) == "items.csv line 260003"
    assert table.skipped[0].first == (234_569,)
    lines[11] = '3,"4'
    message = refusal(write("id,x\n" + "\n".join(lines)))
    assert message.startswith("items.csv line 13: a field that is badly quoted, or longer than")


def test_header_alone_is_a_table_without_rows(write, tmp_path):
    for text in ("id,f,f,F\n", "id,f,f,F", "id,f,f,F\n\n \n"):
        table = read_table(write(text))
        assert (table.names, rows(table), table.skipped) == (["id", "f", "f", "F"], [], ())
    path = parquet(tmp_path / "x.parquet", "SELECT 1 AS id, 'a' AS name, [1] AS l WHERE false")
    table = read_table(path)
    assert (table.names, [len(column) for column in table.columns]) == (["id", "name", "l"], [0, 0, 0])


def test_packed_files_and_pipes_are_read(write, tmp_path):
    text = b"id,name\n\n1,a\n"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    thread = threading.Thread(target=lambda: pipe.write_bytes(text))
    thread.start()
    for path in (write(gzip.compress(text), "items.csv.gz"), pipe):
        table = read_table(path)
        assert (rows(table), table.where(0)) == ([("1", "a")], f"{path.name} line 3")
    thread.join()


def test_file_name_is_not_a_pattern(write):
    for other in ("axb.csv", "a1.csv"):
        write("id\nother\n", other)
    for name in ("a*b.csv", "a[1].csv", "a?.csv", "it's.csv", "ünï.csv", "{x}.csv"):
        assert rows(read_table(write("id,x\nmine,1\n", name))) == [("mine", "1")]


def test_encoding_is_utf_8_unless_given(write):
    path = write("id,name\n1,x\n" * 20_000 + "2,café\n3,y\n")
    latin = write(path.read_text().encode("latin-1"))
    assert refusal(latin) == (
        "items.csv line 40001: bytes that are not UTF-8; if it is a text file, pass its encoding, "
        "for example `encoding='latin-1'`"
    )
    table = read_table(latin, encoding="latin-1")
    assert rows(table)[-2:] == [("2", "café"), ("3", "y")]
    assert table.where(len(table.columns[0]) - 1) == "items.csv line 40002"
    assert refusal(latin, encoding="ascii") == (
        "items.csv line 40001: bytes that are not ascii; pass its encoding, for example `encoding='latin-1'`"
    )
    assert refusal(latin, encoding="utf-9") == "unknown encoding 'utf-9'; try 'utf-8' or 'latin-1'"
    assert rows(read_table(write("id,x\n1,ü\n".encode("utf-16")), encoding="utf-16")) == [("1", "ü")]
    cut = write("id,name\n1,é".encode()[:-1])
    assert refusal(cut).startswith("items.csv line 2: bytes that are not UTF-8")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", " is empty"),
        (b" \n\n\r\n", " is empty"),
        (b"\xef\xbb\xbf", " is empty"),
        (b"<!DOCTYPE html>\n<p>", " line 1: a web page, not data; fetch the file itself"),
        (b"\xef\xbb\xbf\n  <html lang='en'>", " line 2: a web page, not data; fetch the file itself"),
        (b"id,x\n1,2\n3,\0\n", " line 3: a NUL byte; is this a text file?"),
        (b"id,x\r1,2\r3,\0\n", " line 3: a NUL byte; is this a text file?"),
        (b"id,x\r\n1,2\r\n3,\0\r\n", " line 3: a NUL byte; is this a text file?"),
        (b"id,x\r\n1,2\r\n3,\xe9\r\n", " line 3: bytes that are not UTF-8; *"),
        (b"PK\x03\x04\x14\0\0\0", " line 1: a NUL byte; is this a text file?"),
        (b'id,x\n1,2\n3,"4\n5,6\n', ' line 3: a field that is badly quoted, or longer than *'),
        (b'id,x\n1,2\n3,"4"5\n5,6\n', ' line 3: a field that is badly quoted, or longer than *'),
        (b'id,"x\n1,2\n', " line 1: badly quoted field (unexpected end of data)"),
    ],
)  # fmt: skip
def test_other_files_are_refused_in_one_sentence(write, content, message):
    result = refusal(write(content))
    assert result.startswith("items.csv" + message.rstrip("*"))
    assert "\n" not in result
    assert message.endswith("*") or result == "items.csv" + message


def test_long_lines_are_refused_before_they_are_read(write, tmp_path):
    path = tmp_path / "items.csv"
    with path.open("wb") as file:
        file.write(b"id,x\n1,2\n" + b"x" * 100)
        file.truncate(3_000_000_000)  # A hole: nothing is on the disk.
    assert refusal(path) == "items.csv line 3: a NUL byte; is this a text file?"
    long = "id,x\n1,2\n3," + "x" * (5 * text_file.LONGEST_LINE)
    assert refusal(write(long)) == "items.csv line 3: longer than 2,097,152 bytes; is this a text file?"
    long = "id,x\n1,2\n3," + "x" * (text_file.LONGEST_LINE - 100_000) + "\n4,5\n"
    assert len(rows(read_table(write(long)))[1][1]) == text_file.LONGEST_LINE - 100_000


def test_paths_that_cannot_be_read_are_refused(write, tmp_path):
    for name in ("none.csv", "none.parquet", "none.jsonl"):
        assert refusal(tmp_path / name) == f"{tmp_path / name}: no such file"
    for name in ("folder", "folder.parquet", "folder.jsonl"):
        (tmp_path / name).mkdir()
        assert refusal(tmp_path / name) == f"{tmp_path / name} is a folder; name a file in it"
    packed = gzip.compress(b"id,name\n" + os.urandom(5000).hex().encode())
    for cut in (packed[:-12], packed[:100] + bytes(100) + packed[200:]):
        assert refusal(write(cut, "x.csv.gz")) == (
            "x.csv.gz: the packed data is cut short or damaged; fetch it again"
        )
    assert "x.csv.gz cannot be read: Not a gzipped file" in refusal(write("id,name\n", "x.csv.gz"))
    assert refusal(write("id,x\n"), separator="").startswith("separator must be text without quotes")


def test_file_without_permission_is_refused(write, monkeypatch):
    def denied(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    path = write("id,x\n")
    # Patched, because root may read what chmod forbids.
    monkeypatch.setattr(Path, "open", denied)
    assert refusal(path) == f"{path} cannot be read: Permission denied"


def test_parquet_gives_python_values(tmp_path):
    path = parquet(
        tmp_path / "x.parquet",
        "SELECT * FROM (VALUES (1, 'a ', 0.5::DOUBLE, true, DATE '2026-01-02', "
        "TIMESTAMP '2026-01-02 03:04:05', [1, 2], 7::UTINYINT), "
        "(NULL, NULL, 'nan', NULL, NULL, NULL, NULL, NULL)) "
        't("id ", name, price, "a ""b""", day, "at", list, small)',
    )
    table = read_table(path)
    assert table.names == ["id", "name", "price", 'a "b"', "day", "at", "list", "small"]
    first, second = rows(table)
    day = datetime.date(2026, 1, 2)
    at = datetime.datetime(2026, 1, 2, 3, 4, 5)
    assert first == (1, "a ", 0.5, True, day, at, [1, 2], 7)
    assert list(map(type, first)) == [int, str, float, bool, datetime.date, datetime.datetime, list, int]
    assert second[2] != second[2]
    assert second[:2] + second[3:] == (None,) * 7
    assert table.where(1) == "x.parquet row 1 (from 0)"
    assert (table.skipped, table.separator) == ((), "")


def test_damaged_parquet_is_refused(tmp_path):
    path = parquet(tmp_path / "x.parquet", "SELECT range AS id, 'name' || range AS name FROM range(5000)")
    whole = path.read_bytes()
    zeros = whole[:4] + bytes(3000) + whole[3004:]
    for content in (b"", whole[:-20], whole[:500], b"<!DOCTYPE html>", b"id,x\n1,2\n", zeros):
        path.write_bytes(content)
        message = refusal(path)
        assert message.startswith("x.parquet is no Parquet file, or is cut short or damaged (")
        assert "\n" not in message


def test_json_lines_give_python_values(write):
    text = '\ufeff{"id": "007", "tags": ["a"], "n": 1}\n\n{"n": 2.5, "id": null, "more": true}\n'
    for name, content in (("x.jsonl", text.encode()), ("x.ndjson.gz", gzip.compress(text.encode()))):
        path = write(content, name)
        table = read_table(path)
        assert table.names == ["id", "tags", "n", "more"]
        assert rows(table) == [("007", ["a"], 1, None), (None, None, 2.5, True)]
        assert table.where(1) == f"{name} line 3"
        assert [str(reason) for reason in table.skipped] == ["1 blank (line 2)"]
        assert refusal(path, strict=True) == f"{name} line 2 is blank, but rows follow it"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"id": 1}\n{"id"\n', " line 2: no JSON (Expecting ':' delimiter)"),
        (b'{"id": 1}\n[1]\n', ' line 2: expected an object such as {"id": "tea"}, got [1]'),
        (b'{"id": 1, "id": 2}\n', " line 1: two values are called 'id'; leave out one of them"),
        (b'{"id": 1%b}\n' % (b"0" * 5000), " line 1: a number has too many digits to be read"),
        (b"[" * 100_000, " line 1: no JSON (too deep)"),
        (b"", " is empty"),
        (b"<html>", " line 1: a web page, not data; fetch the file itself"),
        (b'{"a": "x"}\n{"a": "\xe9"}\n',
         " line 2: bytes that are not utf-8; if it is a text file, pass its encoding, for example "
         "`encoding='latin-1'`"),
    ],
)  # fmt: skip
def test_wrong_json_lines_are_named(write, content, message):
    assert refusal(write(content, "x.jsonl")) == "x.jsonl" + message


cell = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"), max_size=6)


@pytest.mark.long
@given(st.lists(st.tuples(cell, cell), min_size=1, max_size=12), st.sampled_from([",", ";"]))
def test_files_of_the_csv_module_are_read_back(tmp_path_factory, written, separator):
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=separator, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *written])
    table = read_table(path, separator=separator, strict=True)
    assert rows(table) == [tuple(one.strip() or None for one in row) for row in written]
    line = 2
    for row, cells in enumerate(written):
        assert table.where(row) == f"x.csv line {line}"
        line += 1 + sum(one.count("\n") for one in cells)


def test_nothing_is_fetched_printed_or_left_behind(write, tmp_path, monkeypatch, capfd):
    def refused(*_):
        raise AssertionError("no network")

    monkeypatch.setattr(socket.socket, "connect", refused)
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.chdir(tmp_path)
    path = write(gzip.compress(b"id,x\n1,2\n"), "x.csv.gz")
    before = sorted(tmp_path.rglob("*"))
    read_table(path)
    assert sorted(tmp_path.rglob("*")) == before
    assert capfd.readouterr() == ("", "")
    # The connection that others share does not know what was read.
    assert duckdb.sql("SELECT count(*) FROM duckdb_tables()").fetchall() == [(0,)]


def test_files_are_read_where_duckdb_cannot_report_progress(write, monkeypatch):
    # As in a Jupyter notebook without ipywidgets.
    connect = duckdb.connect

    class Refusing:
        def __init__(self, *args, **options):
            self.connection = connect(*args, **options)

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            self.connection.close()

        def __getattr__(self, name):
            return getattr(self.connection, name)

        def execute(self, query, *rest):
            if "progress_bar" in query:
                raise duckdb.InvalidInputException("ipywidgets is missing")
            return self.connection.execute(query, *rest)

    monkeypatch.setattr(duckdb, "connect", Refusing)
    assert len(read_table(write("id,price\na,1\nb,2\n")).columns) == 2
