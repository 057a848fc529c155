import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from firstclick.data import Interactions, feedback_matrix, most_attractive
from firstclick.errors import InvalidInput
from firstclick.worlds.matrix import check_matrix


def log(rows, n_users, n_items):
    users, items, attracted = zip(*rows, strict=True) if rows else ((), (), ())
    return Interactions(
        users=np.array(users, dtype=np.int32),
        items=np.array(items, dtype=np.int32),
        attracted=np.array(attracted, dtype=np.bool_),
        user_ids=tuple(f"u{user}" for user in range(n_users)),
        item_ids=tuple(f"i{item}" for item in range(n_items)),
    )


def assert_canonical(matrix):
    assert isinstance(matrix, sparse.csr_matrix)
    assert matrix.dtype == np.uint8
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    # Built anew, because SciPy remembers the answer it was told.
    fresh = sparse.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    assert fresh.has_canonical_format
    assert (matrix.data == 1).all()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6), st.booleans()), max_size=40))
def test_an_entry_is_one_exactly_where_any_interaction_attracted(rows):
    matrix = feedback_matrix(log(rows, 4, 7))
    expected = np.zeros((4, 7), dtype=np.uint8)
    for user, item, attracted in rows:
        expected[user, item] |= attracted
    assert_canonical(matrix)
    np.testing.assert_array_equal(matrix.toarray(), expected)


def test_a_pair_attracted_256_times_counts_once():
    matrix = feedback_matrix(log([(1, 2, True)] * 256, 2, 5))
    assert matrix[1, 2] == 1
    assert matrix.nnz == 1


SMALL = np.array([[0, 1, 0, 1, 0], [1, 1, 0, 0, 0], [0, 1, 0, 1, 0]])


@pytest.mark.parametrize(
    "form",
    [
        lambda dense: dense,
        lambda dense: dense.tolist(),
        lambda dense: dense.astype(bool),
        lambda dense: dense.astype(float),
        lambda dense: sparse.csr_matrix(dense),
        lambda dense: sparse.csc_array(dense.astype(np.float32)),
        lambda dense: sparse.coo_matrix(dense.astype(bool)),
        lambda dense: sparse.dok_array(dense.astype(np.uint8)),
    ],
)
def test_any_form_of_zeros_and_ones_becomes_canonical(form):
    matrix = check_matrix(form(SMALL))
    assert_canonical(matrix)
    np.testing.assert_array_equal(matrix.toarray(), SMALL)


@pytest.mark.parametrize("dtype", [np.uint8, np.bool_, np.float64])
def test_loose_sparse_matrices_become_canonical_and_are_themselves_left_alone(dtype):
    # Unsorted, with a stored zero, and with indices wider than needed.
    loose = sparse.csr_array(
        (
            np.array([1, 1, 0, 1], dtype=dtype),
            np.array([3, 1, 0, 2], dtype=np.int64),
            np.array([0, 3, 4], dtype=np.int64),
        ),
        shape=(2, 5),
    )
    matrix = check_matrix(loose)
    assert_canonical(matrix)
    np.testing.assert_array_equal(matrix.toarray(), [[0, 1, 0, 1, 0], [0, 0, 1, 0, 0]])
    matrix.data[:] = 0
    matrix.indices[:] = 0
    np.testing.assert_array_equal(loose.indices, [3, 1, 0, 2])
    np.testing.assert_array_equal(loose.data, [1, 1, 0, 1])


@pytest.mark.parametrize("times", [2, 256, 257])
def test_duplicates_in_a_sparse_matrix_are_refused_and_do_not_wrap_around(times):
    ones = np.ones(times, dtype=np.uint8)
    at = np.full(times, 1), np.full(times, 3)
    with pytest.raises(InvalidInput, match=rf"got {times} at row 1, column 3$"):
        check_matrix(sparse.coo_matrix((ones, at), shape=(2, 5)))


def test_duplicates_of_true_are_true():
    given = sparse.coo_matrix((np.array([True, True]), ([1, 1], [3, 3])), shape=(2, 5))
    assert check_matrix(given).nnz == 1


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (
            [[0, 1, 0], [0, 3, 1]],
            "feedback matrix: entries must be 0 or 1, got 3 at row 1, column 1",
        ),
        (
            sparse.csr_matrix([[0, 0, 0], [1, 0, 0.5]]),
            "feedback matrix: entries must be 0 or 1, got 0.5 at row 1, column 2",
        ),
        (
            [[0, np.nan, 1]],
            "feedback matrix: entries must be 0 or 1, got nan at row 0, column 1",
        ),
        ([[0, -1]], "feedback matrix: entries must be 0 or 1, got -1 at row 0, column 1"),
        (
            [0, 1],
            "feedback matrix: expected users x items with at least one of each, got shape (2,)",
        ),
        (
            np.zeros((0, 4)),
            "feedback matrix: expected users x items with at least one of each, got shape (0, 4)",
        ),
        ([["0", "1"]], "feedback matrix: entries must be numbers 0 or 1, got type <U1"),
        ([[1j]], "feedback matrix: entries must be numbers 0 or 1, got type complex128"),
    ],
)
def test_other_matrices_are_refused(matrix, message):
    with pytest.raises(InvalidInput) as caught:
        check_matrix(matrix)
    assert str(caught.value) == message


def test_ragged_lists_are_refused():
    with pytest.raises(InvalidInput, match=r"^feedback matrix: not an array"):
        check_matrix([[0, 1], [1]])


def test_the_most_attractive_columns_come_first_and_equals_by_number():
    # Attracted users per column: 1, 3, 0, 2, 0.
    np.testing.assert_array_equal(most_attractive(SMALL, 5), [1, 3, 0, 2, 4])
    np.testing.assert_array_equal(most_attractive(sparse.csc_matrix(SMALL), 2), [1, 3])
    assert most_attractive(SMALL, 2).dtype == np.int64


@given(st.integers(1, 9), st.integers(0, 2**32))
def test_most_attractive_agrees_with_sorting_pairs(n, seed):
    dense = np.random.default_rng(seed).random((5, 9)) < 0.4
    expected = sorted(range(9), key=lambda item: (-dense[:, item].sum(), item))[:n]
    assert most_attractive(dense, n).tolist() == expected


@pytest.mark.parametrize(
    ("n", "message"),
    [
        (0, "number of items must be at least 1, got 0"),
        (6, "number of items must be at most 5, the columns there are, got 6"),
        (2.0, "number of items must be a whole number, got 2.0"),
        (True, "number of items must be a whole number, got True"),
    ],
)
def test_a_wrong_number_of_items_is_refused(n, message):
    with pytest.raises(InvalidInput) as caught:
        most_attractive(SMALL, n)
    assert str(caught.value) == message
