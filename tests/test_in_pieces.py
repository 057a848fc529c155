"""Long lists in pieces come to the same as in one go."""

import json

import numpy as np
import pytest

from firstclick.in_pieces import PIECE, array_of, drop, json_pieces, sorted_pieces
from firstclick.streams import stream

LONG = 2 * PIECE + 17


def test_sorted_as_in_one_go():
    numbers = stream(1, "sorted").integers(0, 500, LONG).tolist()
    pairs = [(number, place) for place, number in enumerate(numbers)]
    assert sorted_pieces(pairs) == sorted(pairs)
    # Equal ones stay in their order, across pieces too.
    assert sorted_pieces(pairs, key=lambda pair: pair[0]) == sorted(pairs, key=lambda pair: pair[0])
    assert sorted_pieces([]) == []
    drop(pairs)
    assert pairs == []


def test_the_same_json():
    page = {
        "names": [(str(number), "ä", None, [1.5, {"a": 1}]) for number in range(LONG)],
        "inner": {"numbers": list(range(LONG)), "none": {}, "empty": []},
        "nan": float("nan"),
    }
    assert "".join(json_pieces(page)) == json.dumps(page)
    with pytest.raises(ValueError, match="not JSON compliant"):
        list(json_pieces(page, allow_nan=False))


@pytest.mark.parametrize("row", [[1, 2], [0.5, 2], [True, 1], np.array([1.0, 2.0]), 7, [2**63, 1]], ids=str)
def test_the_same_array(row):
    rows = [row] * (LONG - 1) + [[-1.5, 2] if isinstance(row, list | np.ndarray) else -1.5]
    made, wanted = array_of(rows), np.asarray(rows)
    assert made.dtype == wanted.dtype
    assert (made == wanted).all()


def test_what_is_no_table_of_numbers_is_left_to_numpy():
    rows = [[1, 2]] * LONG
    assert array_of([*rows, ["a", "b"]]).dtype.kind == "U"
    with pytest.raises(ValueError, match="inhomogeneous"):
        array_of([*rows, [1, 2, 3]])
