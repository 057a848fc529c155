"""Logs with one row an impression: views are put together, wherever their rows are."""

import pytest

from firstclick.errors import InvalidInput
from firstclick.logs.open_log import open_ranked_log
from tests.support.reading import plain, read

HEAD = "view,position,item,clicked,propensity,query\n"
ROWS = [
    "v1,2,milk,0,0.1,q1", "v2,1,jam,1,0.5,q2", "v1,1,tea,1,0.4,q1", "v2,2,tea,1,0.2,q2", "v3,1,bun,,0.5,q1",
    "v1,3,bun,0,0.1,q1",
]  # fmt: skip


def log_file(folder, rows, head=HEAD):
    path = folder / "views.csv"
    path.write_text(head + "".join(f"{row}\n" for row in rows))
    return path


def test_rows_of_a_view_need_not_be_together_nor_in_order(tmp_path):
    found = read(open_ranked_log(log_file(tmp_path, ROWS)))
    assert found.slates == [["tea", "milk", "bun"], ["jam", "tea"], ["bun"]]
    assert found.clicks == [[0], [0, 1], None]
    assert found.numbers == [0, 1, 4]
    assert found.segments == ["q1", "q2", "q1"]
    assert found.chances[0] == [0.4, 0.1, 0.1]
    assert "positions in 'position' count from 1" in found.notes
    assert "'propensity' is the probability of the items down to the row" in found.notes


def test_positions_may_count_from_0(tmp_path):
    rows = ["v1,0,tea,1", "v1,1,milk,0", "v2,1,tea,0", "v2,0,milk,0"]
    found = read(open_ranked_log(log_file(tmp_path, rows, "view,position,item,clicked\n")))
    assert found.slates == [["tea", "milk"], ["milk", "tea"]]
    assert "positions in 'position' count from 0" in found.notes


def test_without_positions_the_order_of_rows_counts(tmp_path):
    found = read(open_ranked_log(log_file(tmp_path, ["v1,b,0", "v2,c,1", "v1,a,1"], "view,item,clicked\n")))
    assert (found.slates, found.clicks) == ([["b", "a"], ["c"]], [[1], [0]])


def test_holes_and_two_items_at_one_position_are_odd_unless_gaps_are_closed(tmp_path):
    rows = ["v1,1,a,0", "v1,3,b,1", "v2,1,a,0", "v2,1,b,0", "v3,1,a,1", "v4,2,a,1", "v5,x,a,1"]
    path = log_file(tmp_path, rows, "view,position,item,clicked\n")
    found = read(open_ranked_log(path))
    assert found.slates == [["a"]]
    assert found.odd == ["4 with an empty place in the slate (rows 0, 2, 5, ...)"]
    closed = read(open_ranked_log(path, gaps="close"))
    assert closed.slates[0] == ["a", "b"]
    assert closed.clicks[0] == [1]
    with pytest.raises(InvalidInput, match="gaps must be 'close'"):
        open_ranked_log(path, gaps="open")


@pytest.mark.parametrize(
    ("chances", "word"),
    [
        ([0.2, 0.2], "whole slate"),
        ([0.3, 0.1], "items down to the row"),
        ([0.1, 0.4], "whatever is above it"),
    ],
)
def test_what_a_propensity_is_of_is_found_out_and_told(chances, word, tmp_path):
    rows = [f"v1,1,a,0,{chances[0]}", f"v1,2,b,0,{chances[1]}"]
    log = open_ranked_log(log_file(tmp_path, rows, "view,position,item,clicked,propensity\n"))
    assert word in log.notes[-1]
    (batch,) = log.batches()
    if word == "whatever is above it":
        assert batch.propensities is None
        assert batch.logged_places is not None
        assert batch.logged_places.tolist() == [chances]
    else:
        assert batch.propensities is not None
        assert plain(batch.propensities[0]) == ([None, 0.2] if word == "whole slate" else chances)


def test_the_columns_of_expedia_are_known(tmp_path):
    rows = ["17,9,1,0,1", "17,4,2,1,1", "18,9,1,0,0"]
    path = log_file(tmp_path, rows, "srch_id,prop_id,position,click_bool,random_bool\n")
    found = read(open_ranked_log(path))
    assert (found.slates, found.clicks) == ([["9", "4"], ["9"]], [[1], []])
