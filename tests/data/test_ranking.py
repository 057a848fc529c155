import numpy as np

from firstclick.data.ranking import most_first, places


def test_the_largest_count_comes_first_and_among_equals_the_lower_code():
    assert most_first(np.array([2, 0, 5, 2, 0])).tolist() == [2, 0, 3, 1, 4]
    assert most_first(np.zeros(0, np.int64)).tolist() == []


def test_with_ids_the_lower_id_comes_first_among_equals():
    counts = np.array([2, 0, 5, 2, 0])
    assert most_first(counts, ["d", "e", "c", "b", "a"]).tolist() == [2, 3, 0, 4, 1]
    assert most_first(counts, [b"d", b"e", b"c", b"b", b"a"]).tolist() == [2, 3, 0, 4, 1]


def test_a_place_is_where_the_code_is_in_the_list():
    assert places([4, 0, 2], 6).tolist() == [1, -1, 2, -1, 0, -1]
    assert places(np.array([1]), 2).tolist() == [-1, 0]
    assert places([], 3).tolist() == [-1, -1, -1]
