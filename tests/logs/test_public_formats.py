"""Formats of public data: Open Bandit, FINN.no slates, Yandex sessions, and matrices of propensities."""

import numpy as np
import pytest

from firstclick.errors import InvalidInput
from firstclick.logs import finn
from firstclick.logs.open_log import open_ranked_log
from tests.support.reading import plain, read


def test_a_row_of_open_bandit_is_a_slate_of_one_place(tmp_path):
    path = tmp_path / "all.csv"
    path.write_text(
        ",timestamp,item_id,position,click,propensity_score,user_feature_0\n"
        "0,2019-11-24 00:00:34.762830+00:00,14,3,0,0.0125,81ce\n"
        "1,2019-11-24 00:00:53.965051+00:00,27,1,1,0.05,81ce\n"
        "2,2019-11-24 00:00:58.000000+00:00,14,1,0,0.0,81ce\n"
    )
    log = open_ranked_log(path)
    found = read(log)
    assert log.k == 1
    assert (found.slates, found.clicks) == ([["14"], ["27"], ["14"]], [[], [0], []])
    assert found.chances == [[0.0125], [0.05], [None]]
    assert found.segments == ["position 3", "position 1", "position 1"]
    (batch,) = log.batches()
    assert batch.times is not None
    assert batch.times[0] == pytest.approx(1574553634.76283)


def finn_file(path, **changed):
    """Two users: no click, a click on 7, an empty step; a click on 5, one elsewhere, an item twice."""
    slate = np.array(
        [[[1, 5, 7, 0], [1, 6, 7, 5], [0, 0, 0, 0]], [[1, 5, 0, 0], [1, 5, 6, 0], [1, 6, 6, 0]]], np.int32
    )
    arrays = {
        "slate": slate,
        "click": np.array([[1, 7, 0], [5, 7, 1]], np.int32),
        "slate_lengths": np.array([[3, 4, 0], [2, 3, 3]], np.int32),
        "interaction_type": np.array([[1, 2, 0], [2, 2, 1]], np.int32),
        "userId": np.array([11, 12]),
    } | changed
    np.savez_compressed(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


def test_finn_slates_have_neither_fill_nor_the_no_click_item(tmp_path, monkeypatch):
    monkeypatch.setattr(finn, "_USERS_AT_ONCE", 1)
    log = open_ranked_log(finn_file(tmp_path / "data.npz"))
    assert (log.items, log.k) == ([5, 6, 7], 3)
    found = read(log)
    assert found.slates == [[5, 7], [6, 7, 5], [5]]
    assert found.clicks == [[], [1], [0]]
    assert found.numbers == [0, 1, 3]
    assert found.segments == ["1", "2", "2"]
    assert found.odd == [
        "1 with an item twice (row 5)", "1 with a click that is at no position of the slate (row 4)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"click": None}, "has no array 'click'; it has: interaction_type, slate"),
        ({"click": np.zeros((2, 4), np.int32)}, "must be users x steps x places"),
        ({"click": np.array([[1.5]])}, "must hold whole numbers"),
        ({"click": np.zeros((2, 3), np.int32)}, "has no slates"),
    ],
)
def test_other_npz_files_are_refused(changed, problem, tmp_path):
    with pytest.raises(InvalidInput, match=problem):
        open_ranked_log(finn_file(tmp_path / "data.npz", **changed))
    (tmp_path / "broken.npz").write_bytes(b"PK\3\4 and nothing")
    with pytest.raises(InvalidInput, match=r"broken\.npz is no \.npz file"):
        open_ranked_log(tmp_path / "broken.npz")


def test_clicks_of_a_yandex_session_belong_to_the_last_page_with_the_url(tmp_path):
    path = tmp_path / "sessions.txt"
    path.write_text(
        "0\t0\tQ\t8\t0\t7\t103\t51\n0\t5\tC\t103\n1\t0\tQ\t9\t0\t103\t7\n0\t9\tQ\t8\t1\t103\t4\n"
        "0\t12\tC\t103\n0\t13\tC\t51\n0\t14\tC\t4\n1\t3\tC\t999\n"
    )
    found = read(open_ranked_log(path))
    assert found.slates == [[7, 103, 51], [103, 7], [103, 4]]
    assert found.clicks == [[1, 2], [], [0, 1]]
    assert found.numbers == [0, 2, 3]
    assert found.segments == ["8", "9", "8"]


@pytest.mark.parametrize(
    "matrix",
    [
        "item,position,propensity\na,1,0.75\na,2,0.25\nb,1,0.25\nb,2,0.5\nz,1,0.5\n",
        "item,1,2\na,0.75,0.25\nb,0.25,0.5\nz,0.5,0\n",
    ],
)
def test_a_matrix_gives_the_probability_of_each_item_at_its_position(matrix, tmp_path):
    (tmp_path / "log.csv").write_text("items,click\na|b,0\nb|a,\nb,0\nc|a,1\n")
    (tmp_path / "places.csv").write_text(matrix)
    log = open_ranked_log(tmp_path / "log.csv", places=tmp_path / "places.csv")
    (batch,) = log.batches()
    assert batch.logged_places is not None
    assert [plain(row) for row in batch.logged_places] == [
        [0.75, 0.5],
        [0.25, 0.25],
        [0.25, None],
        [None, 0.25],
    ]
    assert batch.propensities is None
    assert "of items that the log never has" in log.notes[-1]


def test_a_matrix_that_does_not_fit_is_told(tmp_path):
    (tmp_path / "log.csv").write_text("items,click\na|b,0\nb|a,\n")
    for text, problem in (
        ("item,position,propensity\nz,1,0.5\n", "no probability is of an item and position of log.csv"),
        ("item,position,propensity\na,1,many\n", "expected a number, got 'many'"),
        ("item,position,chance\na,1,0.5\n", "the matrix has no column 'propensity'"),
    ):
        (tmp_path / "places.csv").write_text(text)
        with pytest.raises(InvalidInput, match=problem):
            open_ranked_log(tmp_path / "log.csv", places=tmp_path / "places.csv")
    (tmp_path / "places.csv").write_text("item,1,2\na,0.5,1.5\nb,0.5,0.5\n")
    found = read(open_ranked_log(tmp_path / "log.csv", places=tmp_path / "places.csv"))
    assert found.doubtful == ["1 of the matrix that are not from 0 to 1; taken as not known (row 0)"]
