"""Logs of slates, of impressions and of public data sets: what is read, what is odd, what is refused.

How text, JSON and Parquet are read is tested in tests/files/test_read_table.py.
"""

import json
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from firstclick.errors import InvalidInput, UnknownName
from firstclick.logs import duck_log, finn
from firstclick.logs.open_log import open_ranked_log

ROWS = [
    {"items": ["tea", "milk", "jam"], "clicks": [0, 2], "propensities": [0.5, 0.25, 0.25], "query": "q2"},
    {"items": ["milk", "tea"], "clicks": [], "propensities": [0.5, 0.1], "query": "q1", "examined": 2},
    {"items": ["jam", "bun", "tea"], "clicks": None, "propensities": None, "query": "q1"},
    {"items": ["bun"], "clicks": [0], "propensities": [1.0], "query": "q2", "examined": 1},
]
CSV = (
    "items,clicks,propensities,query,examined\ntea|milk|jam,0|2,0.5|0.25|0.25,q2,\n"
    "milk|tea,-1,0.5|0.1,q1,2\njam|bun|tea,,,q1,\nbun,0,1.0,q2,1\n"
)


def as_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def log(tmp_path):
    """`log(content, **how)`: the log in this text, in these rows or in these arrays."""

    def log(content, name=None, **how):
        path = tmp_path / (name or ("log.csv" if isinstance(content, str) else "log.jsonl"))
        if isinstance(content, dict):
            np.savez_compressed(path, **content)
        else:
            path.write_text(content if isinstance(content, str) else as_lines(content))
        return open_ranked_log(path, **how)

    return log


def plain(chances):
    return [None if np.isnan(chance) else float(chance) for chance in chances]


def read(log):
    """A log read to its end, as plain lists; the clicks of a slate that is not reported are None."""
    content = SimpleNamespace(slates=[], clicks=[], numbers=[], chances=[], segments=[])
    for batch in log.batches():
        chances, segments = batch.propensities, batch.segments
        content.slates += [[log.items[code] for code in row if code >= 0] for row in batch.items]
        pairs = zip(batch.clicks, batch.reported, strict=True)
        content.clicks += [np.flatnonzero(row).tolist() if reported else None for row, reported in pairs]
        content.numbers += batch.numbers.tolist()
        content.chances += [plain(row) for row in ([] if chances is None else chances)]
        content.segments += [log.segments[code] for code in ([] if segments is None else segments)]
    content.odd, content.doubtful = list(map(str, log.skipped)), list(map(str, log.doubtful))
    content.notes = " / ".join(log.notes)
    return content


# Slates


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "csv"])
def test_every_kind_of_file_gives_the_same_log(kind, tmp_path):
    path = tmp_path / f"log.{kind}"
    if kind == "parquet":
        pl.DataFrame(ROWS).write_parquet(path)
    else:
        path.write_text(CSV if kind == "csv" else as_lines(ROWS))
    log = open_ranked_log(path)
    assert (log.items, log.k, list(log.segments)) == (["bun", "jam", "milk", "tea"], 3, ["q1", "q2"])
    result = read(log)
    assert (result.slates, result.clicks) == ([row["items"] for row in ROWS], [row["clicks"] for row in ROWS])
    assert (result.numbers, result.segments) == ([0, 1, 2, 3], ["q2", "q1", "q1", "q2"])
    # After the end of a shorter slate the last probability stays.
    assert result.chances == [[0.5, 0.25, 0.25], [0.5, 0.1, 0.1], [None] * 3, [1.0, 1.0, 1.0]]
    assert [batch.examined.tolist() for batch in log.batches()] == [[-1, 2, -1, 1]]
    assert (result.odd, result.doubtful) == ([], [])


def test_log_is_read_twice_and_in_order(log, monkeypatch):
    monkeypatch.setattr(duck_log, "BATCH", 1000)
    log = log([{"items": [number, number + 5000], "clicks": [number % 2]} for number in range(5000)])
    for _ in range(2):
        result = read(log)
        assert result.slates == [[number, number + 5000] for number in range(5000)]
        assert result.clicks == [[0], [1]] * 2500
        assert result.numbers == list(range(5000))


def test_two_ids_with_one_hash_are_two_items(log, monkeypatch):
    hashed = duck_log._hash
    monkeypatch.setattr(
        duck_log, "_hash", lambda cell, salt: hashed(cell, salt) if salt else f"length({cell})::UBIGINT"
    )
    assert read(log(ROWS)).slates == [row["items"] for row in ROWS]


def test_whole_numbers_stay_whole_numbers_and_candidates_are_items(log):
    odd = {"items": [3, 3], "clicks": [], "candidates": [9, 3]}
    log = log([odd, {"items": [3, 1], "clicks": [0], "candidates": [1, 3, 9]}, {"items": [1], "clicks": []}])
    assert log.items == [1, 3, 9]
    (batch,) = log.batches()
    assert (batch.candidates.tolist(), batch.candidate_starts.tolist()) == ([0, 1, 2], [0, 3, 3])


def test_propensity_of_a_whole_slate_is_known_for_its_last_prefix(log):
    rows = [
        {"items": ["a", "b", "c"], "click": 1, "propensity": 0.1},
        {"items": ["a", "b"], "propensity": 0.2},
    ]
    assert read(log(rows)).chances == [[None, None, 0.1], [None, 0.2, 0.2]]
    for chance in ("0", "-0.1", "1.01", "inf"):
        result = read(log(f"items,click,propensity\na|b,0,{chance}\na|b,1,0.5\na|b,1,1\na|b,1,\n"))
        assert result.chances == [[None, None], [None, 0.5], [None, 1.0], [None, None]]
        assert result.doubtful[0].startswith("1 with a propensity that is not above 0 and at most 1")


def test_times_are_seconds_since_the_epoch(log):
    (batch,) = log("items,click,time\na|b,0,2026-01-01T00:00:00Z\na|b,1,1767225601\na|b,,\n").batches()
    assert plain(batch.times) == [1767225600.0, 1767225601.0, None]


# How clicks are written


@pytest.mark.parametrize(
    ("items", "cells", "clicks", "note"),
    [
        # Text.
        ("a|b|c", ["0", "2", ""], [[0], [2], []], "count from 0 / 1 row with an empty click taken as no"),
        ("a|b|c", ["1", "3", ""], [[0], [2], []], "count from 1"),
        ("a|b|c", ["0", "-1", ""], [[0], [], None], "1 row without clicks taken as not reported"),
        ("a|b|c", ["1", "0", "3"], [[0], [], [2]], "count from 1 / position 0 means no click"),
        ("a|b|c", ["1", "2", "1"], [[1], [2], [1]], "say `positions_from=1` if they count from 1"),
        ("a|b|c", ["b", "c", ""], [[1], [2], []], "'click' holds the ids of clicked items"),
        ("a|b|c", ["0|1|0", "0|0|0", "1|0|1"], [[1], [], [0, 2]], "'click' holds a mark for each position"),
        ("a|b|c", ["[0, 2]", "[]", ""], [[0, 2], [], None], "taken as not reported"),
        ("a|b|c", [" 0 | 2 ", "1", "-1"], [[0, 2], [1], []], "count from 0"),
        # JSON.
        (["a", "b"], [[False, True], [True, True]], [[1], [0, 1]], "a mark for each position"),
        (["a", "b", "c"], [[], ["c"], [], []], [[], [2], [], []], "holds the ids of clicked items"),
        ([7, 9, 8], [[9], [], [7, 8]], [[1], [], [0, 2]], "holds the ids of clicked items"),
        ([0, 2, 1], [[2], [], [1]], [[2], [], [1]], "may be ids as well: say `clicks_as='items'`"),
        (["a", "b"], [None, None], [None, None], "2 rows without clicks taken as not reported"),
    ],
)
def test_clicks_are_positions_marks_or_ids(items, cells, clicks, note, log):
    if isinstance(items, str):
        content = "items;click\n" + "".join(f"{items};{cell}\n" for cell in cells)
    else:
        content = [{"items": items, "clicks": cell} for cell in cells]
    result = read(log(content))
    assert result.clicks == clicks
    assert note in result.notes


def test_clicks_that_are_wrong_are_odd_rows(log):
    for cells, how, clicks in (
        ([[0, 1], [1, 0], [1, 2]], {"clicks_as": "marks"}, [[1], [0]]),
        ([[0.0], [0.5], [1.0], []], {}, [[0], [1], []]),
        ([*[[0]] * 2000, [3]], {}, [[0]] * 2000),
    ):
        result = read(log([{"items": ["a", "b"], "clicks": cell} for cell in cells], **how))
        assert (result.clicks, len(result.odd)) == (clicks, 1)


def test_options_overrule_the_defaults(log):
    text = "what,pos\na b c,1\nb c a,\nc a b,2\n"
    how = {"columns": {"items": "what", "click": "POS"}, "item_separator": " "}
    assert read(log(text, **how, positions_from=1)).clicks == [[0], [], [1]]
    assert read(log(text, **how, empty_click="not-reported")).clicks == [[1], None, [2]]
    with pytest.raises(UnknownName, match="no column 'list' for 'items'"):
        log(text, columns={"items": "list"})
    for wrong in ({"clicks_as": "ids"}, {"empty_click": "x"}, {"positions_from": 2}, {"format": "tsv"}):
        with pytest.raises(InvalidInput, match=f"{next(iter(wrong))} must be"):
            log(text, **how, **wrong)


def test_flag_for_any_click_is_refused(log):
    flags = "items,click\na|b|c,0\nb|c|a,1\n"
    for text in (flags, flags.replace("0", "True").replace("1", "False")):
        with pytest.raises(InvalidInput, match="is 0 or 1 in every row"):
            log(text)
    assert read(log(flags, clicks_as="positions")).clicks == [[0], [1]]


def test_outcome_is_known_where_a_column_says_so(log):
    reports = ((1, True), (None, True), (0, False))
    rows = [{"items": ["a", "b"], "click": click, "reported": known} for click, known in reports]
    assert read(log(rows)).clicks == [[1], [], None]
    result = read(log([{"items": ["a", "b"]}]))
    assert (result.clicks, "has no column of clicks" in result.notes) == ([None], True)


def test_odd_rows_are_counted_and_named(log):
    good = {"items": ["a", "b"], "clicks": [1], "propensities": [0.5, 0.25]}
    rows = [
        {"clicks": [0]}, {"items": [], "clicks": []}, {"items": ["a", None], "clicks": []},
        {"items": ["a", "a"]}, {"clicks": [2]}, {"clicks": [-4]}, {"propensities": [0.5, 0.0]},
        {"propensities": [1.5, 0.5]}, {"propensities": [0.25, 0.5]}, {"propensities": [0.25]},
        {"propensities": None}, {"examined": 3}, {"propensities": [0.5, None]},
    ]  # fmt: skip
    text = as_lines(good | row for row in rows) + "{broken\n" + json.dumps(good) + "\n"
    result = read(log(text, "log.jsonl"))
    assert result.numbers == [0, 6, 7, 8, 9, 10, 11, 12, 14]
    assert result.odd == [
        "2 without items (rows 1, 13)",
        "1 with an empty place in the slate (row 2)",
        "1 with an item twice (row 3)",
        "2 with a click that is at no position of the slate (rows 4, 5)",
    ]
    rows = [text.rpartition("(")[2] for text in result.doubtful]
    assert rows == ["rows 6, 7)", "row 8)", "row 9)", "row 11)"]
    assert result.chances == [[0.5, 0.25], *[[None, None]] * 5, [0.5, 0.25], [0.5, None], [0.5, 0.25]]
    result = read(log("items,click\na|b,0\n\na|b,0,7\nb|a,1\na|a,0\n"))
    assert result.slates == [["a", "b"], ["b", "a"]]
    assert result.odd == ["1 blank (line 3)", "1 without 2 fields (line 4)", "1 with an item twice (row 2)"]


# Impressions: a row for each item of a slate, which is called a view


def test_impressions_of_a_view_need_not_be_together_nor_in_order(log):
    result = read(
        log(
            "view,position,item,clicked,propensity,query\nv1,2,milk,0,0.1,q1\nv2,1,jam,1,0.5,q2\n"
            "v1,1,tea,1,0.4,q1\nv2,2,tea,1,0.2,q2\nv3,1,bun,,0.5,q1\nv1,3,bun,0,0.1,q1\n"
        )
    )
    assert result.slates == [["tea", "milk", "bun"], ["jam", "tea"], ["bun"]]
    assert result.clicks == [[0], [0, 1], None]
    assert (result.numbers, result.segments) == ([0, 1, 4], ["q1", "q2", "q1"])
    assert result.chances[0] == [0.4, 0.1, 0.1]
    assert "positions in 'position' count from 1" in result.notes
    assert "'propensity' is the probability of the items down to the row" in result.notes


@pytest.mark.parametrize(
    ("text", "slates", "clicks", "note"),
    [
        ("view,position,item,clicked\nv1,0,tea,1\nv1,1,milk,0\nv2,1,tea,0\nv2,0,milk,0\n",
         [["tea", "milk"], ["milk", "tea"]], [[0], []], "positions in 'position' count from 0"),
        ("view,item,clicked\nv1,b,0\nv2,c,1\nv1,a,1\n", [["b", "a"], ["c"]], [[1], [0]],
         "without a column of positions, the rows of a view are in the order of the slate"),
        # The columns of Expedia.
        ("srch_id,prop_id,position,click_bool,random_bool\n17,9,1,0,1\n17,4,2,1,1\n18,9,1,0,0\n",
         [["9", "4"], ["9"]], [[1], []], ""),
    ],
)  # fmt: skip
def test_positions_of_impressions_are_found(text, slates, clicks, note, log):
    result = read(log(text))
    assert (result.slates, result.clicks) == (slates, clicks)
    assert note in result.notes


def test_holes_in_a_view_are_odd_unless_gaps_are_closed(log):
    rows = "v1,1,a,0 v1,3,b,1 v2,1,a,0 v2,1,b,0 v3,1,a,1 v4,2,a,1 v5,x,a,1".replace(" ", "\n")
    text = f"view,position,item,clicked\n{rows}\n"
    result = read(log(text))
    assert result.slates == [["a"]]
    assert result.odd == ["4 with an empty place in the slate (rows 0, 2, 5, ...)"]
    closed = read(log(text, gaps="close"))
    assert (closed.slates[0], closed.clicks[0]) == (["a", "b"], [1])
    assert "items of a view move up where positions are missing" in closed.notes
    with pytest.raises(InvalidInput, match="gaps must be 'close'"):
        log(text, gaps="open")


def test_meaning_of_a_propensity_is_found(log):
    def of(*chances):
        return log(f"view,position,item,clicked,propensity\nv1,1,a,0,{chances[0]}\nv1,2,b,0,{chances[1]}\n")

    assert read(of(0.2, 0.2)).chances == [[None, 0.2]], "of the whole slate"
    assert read(of(0.3, 0.1)).chances == [[0.3, 0.1]], "of the items down to the row"
    (batch,) = of(0.1, 0.4).batches()
    # Of the item, whatever is above it.
    assert (batch.propensities, batch.logged_places.tolist()) == (None, [[0.1, 0.4]])


# Public data sets


def test_row_of_open_bandit_is_a_slate_of_one_item(log):
    log = log(
        ",timestamp,item_id,position,click,propensity_score,user_feature_0\n"
        "0,2019-11-24 00:00:34.762830+00:00,14,3,0,0.0125,81ce\n"
        "1,2019-11-24 00:00:53.965051+00:00,27,1,1,0.05,81ce\n"
        "2,2019-11-24 00:00:58.000000+00:00,14,1,0,0.0,81ce\n"
    )
    result = read(log)
    assert (log.k, result.slates, result.clicks) == (1, [["14"], ["27"], ["14"]], [[], [0], []])
    assert result.chances == [[0.0125], [0.05], [None]]
    assert result.segments == ["position 3", "position 1", "position 1"]
    (batch,) = log.batches()
    assert batch.times[0] == pytest.approx(1574553634.76283)


# Two users: no click, a click on 7, an empty step; a click on 5, one elsewhere, an item twice.
FINN = {
    "slate": np.array(
        [[[1, 5, 7, 0], [1, 6, 7, 5], [0, 0, 0, 0]], [[1, 5, 0, 0], [1, 5, 6, 0], [1, 5, 5, 0]]], np.int32
    ),
    "click": np.array([[1, 7, 0], [5, 7, 1]], np.int32),
    "slate_lengths": np.array([[3, 4, 0], [2, 3, 3]], np.int32),
    "interaction_type": np.array([[1, 2, 0], [2, 2, 1]], np.int32),
    "userId": np.array([11, 12]),
}


def test_slates_of_finn_have_neither_fill_nor_the_no_click_item(log, monkeypatch):
    monkeypatch.setattr(finn, "_USERS_AT_ONCE", 1)
    seen = []
    log = log(FINN, "data.npz", progress=lambda *progress: seen.append(progress))
    assert (log.items, log.k) == ([5, 6, 7], 3)
    result = read(log)
    assert result.slates == [[5, 7], [6, 7, 5], [5]]
    assert result.clicks == [[], [1], [0]]
    assert (result.numbers, result.segments) == ([0, 1, 3], ["1", "2", "2"])
    assert result.odd == [
        "1 with an item twice (row 5)", "1 with a click that is at no position of the slate (row 4)",
    ]  # fmt: skip
    assert seen[-1] == (2, 2)


def test_clicks_of_a_yandex_session_belong_to_the_last_slate_with_the_url(log):
    text = (
        "0\t0\tQ\t8\t0\t7\t103\t51\n0\t5\tC\t103\n1\t0\tQ\t9\t0\t103\t7\n0\t9\tQ\t8\t1\t103\t4\n"
        "0\t12\tC\t103\n0\t13\tC\t51\n0\t14\tC\t4\n1\t3\tC\t999\n"
    )
    result = read(log(text, "sessions.txt"))
    assert result.slates == [[7, 103, 51], [103, 7], [103, 4]]
    assert result.clicks == [[1, 2], [], [0, 1]]
    assert (result.numbers, result.segments) == ([0, 2, 3], ["8", "9", "8"])


@pytest.mark.parametrize(
    "matrix",
    [
        "item,position,propensity\na,1,0.75\na,2,0.25\nb,1,0.25\nb,2,0.5\nz,1,0.5\n",
        "item,1,2\na,0.75,0.25\nb,0.25,0.5\nz,0.5,0\n",
    ],
)
def test_matrix_gives_the_probability_of_each_item_at_its_position(matrix, log, tmp_path):
    (tmp_path / "places.csv").write_text(matrix)
    log = log("items,click\na|b,0\nb|a,\nb,0\nc|a,1\n", places=tmp_path / "places.csv")
    (batch,) = log.batches()
    expected = [[0.75, 0.5], [0.25, 0.25], [0.25, None], [None, 0.25]]
    assert [plain(row) for row in batch.logged_places] == expected
    assert batch.propensities is None
    assert "of items that the log never has" in log.notes[-1]


def test_matrix_that_does_not_fit_is_refused(log, tmp_path):
    places, text = tmp_path / "places.csv", "items,click\na|b,0\nb|a,\n"
    for matrix, problem in (
        ("item,position,propensity\nz,1,0.5\n", "no probability is of an item and position"),
        ("item,position,propensity\na,1,many\n", "expected a number, got 'many'"),
        ("item,position,chance\na,1,0.5\n", "the matrix has no column 'propensity'"),
    ):
        places.write_text(matrix)
        with pytest.raises(InvalidInput, match=problem):
            log(text, places=places)
    places.write_text("item,1,2\na,0.5,1.5\nb,0.5,0.5\n")
    result = read(log(text, places=places))
    assert result.doubtful == ["1 of the matrix that are not from 0 to 1; taken as not known (row 0)"]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("log.csv", "items,click\n", "has no rows"),
        ("log.csv", "a,b\n1,2\n", "it has: a, b; name them by"),
        ("log.jsonl", '{"items": [], "click": null}\n', "no row has items"),
        ("log.npz", "PK\3\4 and nothing", "is no .npz file"),
        ("data.npz", {"slate": FINN["slate"]}, "has no array 'click'"),
        ("data.npz", FINN | {"click": np.zeros((2, 4), np.int32)}, "users x steps x places"),
        ("data.npz", FINN | {"click": np.array([[1.5]])}, "whole numbers"),
        ("data.npz", FINN | {"click": np.zeros((2, 3), np.int32)}, "has no slates"),
    ],
)
def test_files_without_a_log_are_refused(name, content, problem, log):
    with pytest.raises(InvalidInput, match=problem):
        log(content, name)
