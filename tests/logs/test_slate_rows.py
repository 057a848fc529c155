"""Logs with one row a slate: JSON lines, CSV, Parquet and frames say the same."""

import gzip
import json

import numpy as np
import pytest

from firstclick.errors import InvalidInput, UnknownName
from firstclick.files.parquet import write_parquet
from firstclick.logs import duck_log
from firstclick.logs.open_log import open_ranked_log
from firstclick.logs.ranked_log import NOT_TOLD
from tests.support.reading import plain, read

ROWS = [
    {"items": ["tea", "milk", "jam"], "clicks": [0, 2], "propensities": [0.5, 0.25, 0.25], "query": "q2"},
    {"items": ["milk", "tea"], "clicks": [], "propensities": [0.5, 0.1], "query": "q1", "examined": 2},
    {"items": ["jam", "bun", "tea"], "clicks": None, "propensities": None, "query": "q1"},
    {"items": ["bun"], "clicks": [0], "propensities": [1.0], "query": "q2", "examined": 1},
]
SLATES = [row["items"] for row in ROWS]
CLICKS = [row["clicks"] for row in ROWS]


def json_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def written(kind, folder):
    path = folder / f"log.{kind}"
    if kind == "jsonl":
        return json_lines(path, ROWS)
    if kind == "jsonl.gz":
        path.write_bytes(gzip.compress(json_lines(folder / "log.jsonl", ROWS).read_bytes()))
    elif kind == "parquet":
        types = {"items": "VARCHAR[]", "clicks": "BIGINT[]", "propensities": "DOUBLE[]", "query": "VARCHAR"}
        write_parquet(path, types | {"examined": "INTEGER"}, ROWS)
    else:
        mark = {"csv": ",", "tsv": "\t"}[kind]
        lines = [mark.join(["items", "clicks", "propensities", "query", "examined"])]
        for row in ROWS:
            clicks = "" if row["clicks"] is None else "|".join(map(str, row["clicks"])) or "-1"
            chances = "|".join(map(str, row["propensities"] or []))
            lines.append(
                mark.join(
                    ["|".join(row["items"]), clicks, chances, row["query"], str(row.get("examined", ""))]
                )
            )
        path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "parquet", "csv", "tsv"])
def test_every_file_gives_the_same_log(kind, tmp_path):
    log = open_ranked_log(written(kind, tmp_path))
    assert (log.items, log.k, list(log.segments)) == (["bun", "jam", "milk", "tea"], 3, ["q1", "q2"])
    found = read(log)
    assert (found.slates, found.clicks, found.numbers) == (SLATES, CLICKS, [0, 1, 2, 3])
    assert found.segments == ["q2", "q1", "q1", "q2"]
    # After the end of a shorter slate the last probability stays.
    assert found.chances == [[0.5, 0.25, 0.25], [0.5, 0.1, 0.1], [None] * 3, [1.0, 1.0, 1.0]]
    assert [batch.examined.tolist() for batch in log.batches()] == [[NOT_TOLD, 2, NOT_TOLD, 1]]
    assert (found.odd, found.doubtful) == ([], [])


def test_a_log_can_be_read_twice_and_its_order_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(duck_log, "BATCH", 1000)
    rows = [{"items": [number, number + 5000], "clicks": [number % 2]} for number in range(5000)]
    log = open_ranked_log(json_lines(tmp_path / "log.jsonl", rows))
    for _ in range(2):
        batches = list(log.batches())
        assert [batch.n for batch in batches] == [1000] * 5
        items = np.array(log.items)[np.concatenate([batch.items for batch in batches])]
        assert items[:, 0].tolist() == list(range(5000))
        assert np.concatenate([batch.numbers for batch in batches]).tolist() == list(range(5000))
        clicks = np.concatenate([batch.clicks for batch in batches])
        assert clicks.argmax(axis=1).tolist() == [number % 2 for number in range(5000)]


def test_whole_numbers_stay_whole_numbers_and_candidates_are_items(tmp_path):
    rows = [{"items": [3, 1], "clicks": [0], "candidates": [1, 3, 9]}, {"items": [1], "clicks": []}]
    log = open_ranked_log(json_lines(tmp_path / "log.jsonl", rows))
    assert log.items == [1, 3, 9]
    (batch,) = log.batches()
    assert batch.candidates is not None
    assert batch.candidate_starts is not None
    assert (batch.candidates.tolist(), batch.candidate_starts.tolist()) == ([0, 1, 2], [0, 3, 3])


def test_a_propensity_of_the_whole_slate_is_known_for_the_last_prefix_alone(tmp_path):
    rows = [
        {"items": ["a", "b", "c"], "click": 1, "propensity": 0.1},
        {"items": ["a", "b"], "propensity": 0.2},
    ]
    log = open_ranked_log(json_lines(tmp_path / "log.jsonl", rows))
    assert read(log).chances == [[None, None, 0.1], [None, 0.2, 0.2]]


@pytest.mark.parametrize(
    ("cells", "clicks", "note"),
    [
        (["0", "2", ""], [[0], [2], []], "count from 0 / 1 row with an empty click taken as no click"),
        (["1", "3", ""], [[0], [2], []], "count from 1"),
        (["0", "-1", ""], [[0], [], None], "1 row without clicks taken as not reported"),
        (["1", "0", "3"], [[0], [], [2]], "count from 1 / position 0 means no click"),
        (["1", "2", "1"], [[1], [2], [1]], "say `positions_from=1` if they count from 1"),
        (["b", "c", ""], [[1], [2], []], "'click' holds the ids of clicked items"),
        (["0|1|0", "0|0|0", "1|0|1"], [[1], [], [0, 2]], "'click' holds a mark for each position"),
        (["[0, 2]", "[]", ""], [[0, 2], [], None], "taken as not reported"),
        ([" 0 | 2 ", "1", "-1"], [[0, 2], [1], []], "count from 0"),
    ],
)
def test_how_clicks_are_written_is_found_out_and_told(cells, clicks, note, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("items;click\n" + "".join(f"a|b|c;{cell}\n" for cell in cells))
    found = read(open_ranked_log(path))
    assert found.clicks == clicks
    assert note in found.notes


def test_one_mistake_does_not_change_how_all_clicks_are_read(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("items,click\n" + "a|b|c,0\n" * 2000 + "a|b|c,3\n")
    found = read(open_ranked_log(path))
    assert found.clicks == [[0]] * 2000
    assert found.odd == ["1 with a click that is at no position of the slate (row 2000)"]


def test_what_was_found_out_can_be_said_instead(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("what,pos\na b c,1\nb c a,\nc a b,2\n")
    how = {"columns": {"items": "what", "click": "POS"}, "item_separator": " "}
    assert read(open_ranked_log(path, **how, positions_from=1)).clicks == [[0], [], [1]]
    assert read(open_ranked_log(path, **how, empty_click="not-reported")).clicks == [[1], None, [2]]
    with pytest.raises(UnknownName, match=r"log.csv has no column 'list' for 'items'; it has: what, pos"):
        open_ranked_log(path, columns={"items": "list"})
    for wrong in ({"clicks_as": "ids"}, {"empty_click": "x"}, {"positions_from": 2}, {"format": "tsv"}):
        with pytest.raises(InvalidInput, match=f"{next(iter(wrong))} must be"):
            open_ranked_log(path, **how, **wrong)


def test_a_flag_whether_anything_was_clicked_is_refused(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("items,click\na|b|c,0\nb|c|a,1\n")
    with pytest.raises(InvalidInput, match="'click' is 0 or 1 in every row"):
        open_ranked_log(path)
    assert read(open_ranked_log(path, clicks_as="positions")).clicks == [[0], [1]]


@pytest.mark.parametrize(
    ("items", "cells", "clicks", "note"),
    [
        (
            ["a", "b", "c"],
            [[False, True, False], [True, False, True]],
            [[1], [0, 2]],
            "a mark for each position",
        ),
        (["a", "b", "c"], [[], ["c"], [], []], [[], [2], [], []], "holds the ids of clicked items"),
        ([7, 9, 8], [[9], [], [7, 8]], [[1], [], [0, 2]], "holds the ids of clicked items"),
        ([0, 2, 1], [[2], [], [1]], [[2], [], [1]], "may be ids as well: say `clicks_as='items'`"),
        (["a", "b", "c"], [None, None], [None, None], "2 rows without clicks taken as not reported"),
    ],
)
def test_clicks_in_json_are_marks_or_ids_or_positions(items, cells, clicks, note, tmp_path):
    rows = [{"items": items, "clicks": cell} for cell in cells]
    found = read(open_ranked_log(json_lines(tmp_path / "log.jsonl", rows)))
    assert found.clicks == clicks
    assert note in found.notes


def test_what_is_neither_mark_nor_position_is_an_odd_row_and_no_click(tmp_path):
    rows = [{"items": ["a", "b"], "clicks": clicks} for clicks in ([0, 1], [1, 0], [1, 2])]
    found = read(open_ranked_log(json_lines(tmp_path / "log.jsonl", rows), clicks_as="marks"))
    assert (found.clicks, len(found.odd)) == ([[1], [0]], 1)
    rows = [{"items": ["a", "b"], "clicks": clicks} for clicks in ([0.0], [0.5], [1.0], [])]
    found = read(open_ranked_log(json_lines(tmp_path / "log.jsonl", rows)))
    assert (found.clicks, len(found.odd)) == ([[0], [1], []], 1)


def test_a_truth_value_whether_anything_was_clicked_is_refused(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("items,clicked\na|b|c,True\nb|c|a,False\n")
    with pytest.raises(InvalidInput, match="is 0 or 1 in every row"):
        open_ranked_log(path, columns={"click": "clicked"})


def test_a_column_says_whose_outcome_is_known(tmp_path):
    told = ((1, True), (None, True), (0, False))
    rows = [{"items": ["a", "b"], "click": click, "reported": known} for click, known in told]
    assert read(open_ranked_log(json_lines(tmp_path / "log.jsonl", rows))).clicks == [[1], [], None]


def test_a_log_without_clicks_has_no_reported_outcome(tmp_path):
    found = read(open_ranked_log(json_lines(tmp_path / "log.jsonl", [{"items": ["a", "b"]}])))
    assert found.clicks == [None]
    assert "has no column of clicks" in found.notes


def test_odd_rows_are_counted_and_named(tmp_path):
    good = {"items": ["a", "b"], "clicks": [1], "propensities": [0.5, 0.25]}
    rows = [
        good | {"clicks": [0]},
        {"items": [], "clicks": []},
        {"items": ["a", None], "clicks": []},
        good | {"items": ["a", "a"]},
        good | {"clicks": [2]},
        good | {"clicks": [-4]},
        good | {"propensities": [0.5, 0.0]},
        good | {"propensities": [1.5, 0.5]},
        good | {"propensities": [0.25, 0.5]},
        good | {"propensities": [0.25]},
        good | {"propensities": None},
        good | {"examined": 3},
        good | {"propensities": [0.5, float("nan")]},
    ]
    path = tmp_path / "log.jsonl"
    text = "".join(json.dumps(row) + "\n" for row in rows).replace("NaN", "null")
    path.write_text(text + "{broken\n" + json.dumps(good) + "\n")
    found = read(open_ranked_log(path))
    assert found.numbers == [0, 6, 7, 8, 9, 10, 11, 12, 14]
    assert found.odd == [
        "2 without items (rows 1, 13)",
        "1 with an empty place in the slate (row 2)",
        "1 with an item twice (row 3)",
        "2 with a click that is at no position of the slate (rows 4, 5)",
    ]
    assert found.doubtful == [
        "2 with a propensity that is not above 0 and at most 1; taken as not known (rows 6, 7)",
        "1 with propensities that rise from one prefix to the next; taken as not known (row 8)",
        "1 with more or fewer propensities than items; taken as not known (row 9)",
        "1 with an `examined` that is negative or above the length of the slate; taken as not told (row 11)",
    ]
    assert found.chances == [[0.5, 0.25], *[[None, None]] * 5, [0.5, 0.25], [0.5, None], [0.5, 0.25]]


def test_lines_that_are_no_rows_are_counted_and_named(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("items,click\na|b,0\n\na|b,0,7\nb|a,1\na|a,0\n")
    found = read(open_ranked_log(path))
    assert found.slates == [["a", "b"], ["b", "a"]]
    assert found.odd == ["1 blank (line 3)", "1 without 2 fields (line 4)", "1 with an item twice (row 2)"]


@pytest.mark.parametrize("chance", ["0", "-0.1", "1.01", "inf"])
def test_a_propensity_of_a_slate_that_is_none_is_taken_as_not_known(chance, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(f"items,click,propensity\na|b,0,{chance}\na|b,1,0.5\na|b,1,\n")
    found = read(open_ranked_log(path))
    assert found.chances == [[None, None], [None, 0.5], [None, None]]
    assert found.doubtful[0].startswith("1 with a propensity that is not above 0 and at most 1")


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("log.csv", "", "log.csv is empty"),
        ("log.csv", "items,click\n", "log.csv has no rows"),
        ("log.jsonl", "", "log.jsonl is empty"),
        ("log.jsonl", "not json\n", "has no line with an object"),
        ("log.csv", "a,b\n1,2\n", "log.csv has neither a column of slates .* it has: a, b; name them by"),
        ("log.parquet", "PAR", "is no Parquet file, or is cut short or damaged"),
        ("log.jsonl", '{"items": [], "click": null}\n', "no row has items"),
    ],
)
def test_files_without_a_log_are_refused_in_a_sentence(name, text, problem, tmp_path):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InvalidInput, match=problem):
        open_ranked_log(path)
    with pytest.raises(InvalidInput, match=r"nowhere.csv: no such file"):
        open_ranked_log(tmp_path / "nowhere.csv")


def test_times_are_seconds_since_the_epoch(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("items,click,time\na|b,0,2026-01-01T00:00:00Z\na|b,1,1767225601\na|b,,\n")
    (batch,) = open_ranked_log(path).batches()
    assert batch.times is not None
    assert plain(batch.times) == [1767225600.0, 1767225601.0, None]


def test_two_ids_with_one_hash_are_told_apart(tmp_path, monkeypatch):
    hashed = duck_log._hash
    monkeypatch.setattr(
        duck_log, "_hash", lambda cell, salt: hashed(cell, salt) if salt else f"length({cell})::UBIGINT"
    )
    log = open_ranked_log(json_lines(tmp_path / "log.jsonl", ROWS))
    assert read(log).slates == SLATES
