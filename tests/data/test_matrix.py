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
    # Built again, because SciPy remembers the answer.
    fresh = sparse.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    assert fresh.has_canonical_format
    assert (matrix.data == 1).all()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6), st.booleans()), max_size=40))
def test_entry_is_1_exactly_where_an_interaction_attracted(rows):
    matrix = feedback_matrix(log(rows, 4, 7))
    expected = np.zeros((4, 7), dtype=np.uint8)
    for user, item, attracted in rows:
        expected[user, item] |= attracted
    assert_canonical(matrix)
    np.testing.assert_array_equal(matrix.toarray(), expected)
    assert feedback_matrix(log([(1, 2, True)] * 256, 2, 5)).data.tolist() == [1]


SMALL = np.array([[0, 1, 0, 1, 0], [1, 1, 0, 0, 0], [0, 1, 0, 1, 0]])


def test_any_form_of_zeros_and_ones_becomes_canonical():
    for form in (
        SMALL, SMALL.tolist(), SMALL.astype(bool), SMALL.astype(float),
        sparse.csc_array(SMALL.astype(np.float32)), sparse.coo_matrix(SMALL.astype(bool)),
    ):  # fmt: skip
        matrix = check_matrix(form)
        assert_canonical(matrix)
        np.testing.assert_array_equal(matrix.toarray(), SMALL)


@pytest.mark.parametrize("dtype", [np.uint8, np.bool_, np.float64])
def test_loose_sparse_matrices_become_canonical_copies(dtype):
    # Unsorted, with a stored zero, and with indices wider than needed.
    parts = np.array([1, 1, 0, 1], dtype), np.array([3, 1, 0, 2], np.int64), np.array([0, 3, 4], np.int64)
    loose = sparse.csr_array(parts, shape=(2, 5))
    matrix = check_matrix(loose)
    assert_canonical(matrix)
    np.testing.assert_array_equal(matrix.toarray(), [[0, 1, 0, 1, 0], [0, 0, 1, 0, 0]])
    matrix.data[:] = 0
    matrix.indices[:] = 0
    np.testing.assert_array_equal(loose.indices, [3, 1, 0, 2])
    np.testing.assert_array_equal(loose.data, [1, 1, 0, 1])


@pytest.mark.parametrize("times", [2, 256, 257])
def test_duplicate_numbers_are_refused_and_do_not_wrap_around(times):
    ones = np.ones(times, dtype=np.uint8)
    at = np.full(times, 1), np.full(times, 3)
    with pytest.raises(InvalidInput, match=rf"got {times} at row 1, column 3$"):
        check_matrix(sparse.coo_matrix((ones, at), shape=(2, 5)))
    assert check_matrix(sparse.coo_matrix((ones == 1, at), shape=(2, 5))).nnz == 1


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[0, 1, 0], [0, 3, 1]], "entries must be 0 or 1, got 3 at row 1, column 1"),
        (sparse.csr_matrix([[0, 0, 0], [1, 0, 0.5]]), "entries must be 0 or 1, got 0.5 at row 1, column 2"),
        ([[0, np.nan, 1]], "entries must be 0 or 1, got nan at row 0, column 1"),
        ([0, 1], r"with at least one of each, got shape \(2,\)"),
        (np.zeros((0, 4)), r"with at least one of each, got shape \(0, 4\)"),
        ([["0", "1"]], "entries must be numbers 0 or 1, got type <U1"),
        ([[0, 1], [1]], "not an array"),
    ],
)
def test_other_matrices_are_refused(matrix, words):
    with pytest.raises(InvalidInput, match=f"^feedback matrix: .*{words}"):
        check_matrix(matrix)


@given(st.integers(1, 9), st.integers(0, 2**32))
def test_most_attractive_columns_come_first_and_equals_by_number(n, seed):
    dense = np.random.default_rng(seed).random((5, 9)) < 0.4
    expected = sorted(range(9), key=lambda item: (-dense[:, item].sum(), item))[:n]
    for matrix in (dense, sparse.csc_matrix(dense)):
        result = most_attractive(matrix, n)
        assert (result.tolist(), result.dtype) == (expected, np.int64)
