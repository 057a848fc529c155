import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from firstclick.data import features, truncated_svd
from firstclick.errors import InvalidInput, WorkFailed


def random_matrix(n_users, n_items, seed=0):
    """Sparse, as feedback is; small ones are often short of rank."""
    rng = np.random.default_rng(seed)
    popularity = 0.6 * rng.random(n_items) ** 2 + 0.02
    taste = 0.3 + 1.4 * rng.random((n_users, 1))
    return (rng.random((n_users, n_items)) < popularity * taste).astype(np.uint8)


def full_rank(n_users, n_items, seed=1):
    """Coin flips, with singular values far from zero and from one another: V is then unique up to signs."""
    dense = np.random.default_rng(seed).integers(0, 2, (n_users, n_items), dtype=np.uint8)
    values = np.linalg.svd(dense.astype(float))[1]
    assert min(values[-1], -np.diff(values).max()) > 1e-4
    return dense


def reference(dense, rank):
    """V and the singular values by NumPy's dense SVD; the largest entry of each column is positive."""
    _, values, rows = np.linalg.svd(dense.astype(float), full_matrices=False)
    vectors = rows[:rank].T
    for column in range(rank):
        if vectors[np.abs(vectors[:, column]).argmax(), column] < 0:
            vectors[:, column] *= -1
    return vectors, values[:rank]


# Taller and wider than square, almost full rank (ARPACK), full rank (dense), and one column.
SHAPES = [(70, 31, 6), (31, 70, 6), (40, 40, 3), (13, 11, 10), (11, 13, 11), (9, 5, 5), (6, 4, 1)]


@pytest.mark.parametrize(("n_users", "n_items", "rank"), SHAPES)
def test_features_are_those_of_the_dense_svd_signs_included(n_users, n_items, rank):
    dense = full_rank(n_users, n_items)
    vectors, values = reference(dense, rank)
    result = truncated_svd(sparse.csr_matrix(dense), rank)
    assert result.shape == (n_items, rank)
    assert result.dtype == np.float64
    assert result.flags.c_contiguous
    np.testing.assert_allclose(result, vectors * values, atol=1e-9)
    unscaled = truncated_svd(dense, rank, scaled=False)
    np.testing.assert_allclose(unscaled, vectors, atol=1e-9)
    np.testing.assert_allclose(unscaled.T @ unscaled, np.eye(rank), atol=1e-12)
    with_ones = truncated_svd(dense, rank, intercept=True)
    assert with_ones.flags.c_contiguous
    np.testing.assert_array_equal(with_ones, np.column_stack([result, np.ones(n_items)]))


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 12), st.integers(2, 12), st.data())
def test_features_keep_as_much_of_the_matrix_as_their_rank_allows(n_users, n_items, data):
    seed = data.draw(st.integers(0, 2**20))
    rank = data.draw(st.integers(1, min(n_users, n_items)))
    dense = random_matrix(n_users, n_items, seed).astype(float)
    vectors = truncated_svd(dense, rank, scaled=False)
    left = np.linalg.norm(dense - dense @ vectors @ vectors.T)
    best = np.sqrt((np.linalg.svd(dense)[1][rank:] ** 2).sum())
    assert left == pytest.approx(best, abs=1e-8)


def low_rank(n_users=40, n_items=17):
    """Three kinds of users with disjoint tastes: rank 3, singular values 3 different ones."""
    dense = np.zeros((n_users, n_items), dtype=np.uint8)
    dense[:5, :9] = dense[5:17, 9:11] = dense[17:36, 12:16] = 1
    return dense


@pytest.mark.parametrize("shape", [(40, 17), (40, 61)])
@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("rank", [3, 4, 16, 17])
def test_columns_beyond_the_rank_of_the_matrix_are_exactly_zero(shape, scaled, rank):
    result = truncated_svd(low_rank(*shape), rank, scaled=scaled)
    assert (result[:, 3:] == 0.0).all()
    assert (np.linalg.norm(result[:, :3], axis=0) > 0.9).all()
    np.testing.assert_array_equal(truncated_svd(low_rank(*shape), rank, scaled=scaled), result)


def test_items_without_attraction_have_rows_of_exact_zeros():
    for dense in (random_matrix(60, 25), random_matrix(25, 60)):
        dense[:, [3, 14]] = 0
        for rank in (5, 25):
            result = truncated_svd(dense, rank, intercept=True)
            assert (result[[3, 14], :-1] == 0.0).all()
            assert (result[[3, 14], -1] == 1.0).all()
    result = truncated_svd(sparse.csr_matrix((9, 5), dtype=np.uint8), 4, intercept=True)
    np.testing.assert_array_equal(result, np.eye(5)[[4] * 5])


def test_first_of_two_nearly_equal_entries_decides_the_sign():
    vectors = np.array([[0.1, 0.0], [-0.7, 0.6], [0.7 + 1e-12, -0.8]])
    np.testing.assert_array_equal(features._signs(vectors), [-1.0, -1.0])
    vectors[2, 0] = 0.7 - 1e-12
    np.testing.assert_array_equal(features._signs(vectors), [-1.0, -1.0])


@pytest.mark.parametrize("rank", [0, 6, 2.5])
def test_impossible_rank_is_refused(rank):
    with pytest.raises(InvalidInput, match=f"^rank must be .*got {rank}$"):
        truncated_svd(random_matrix(9, 5), rank)


def test_svd_that_does_not_converge_is_failed_work(monkeypatch):
    def fails(*args, **kwargs):
        raise scipy.sparse.linalg.ArpackNoConvergence("No convergence", np.empty(0), np.empty((0, 0)))

    monkeypatch.setattr(scipy.sparse.linalg, "eigsh", fails)
    with pytest.raises(WorkFailed, match=r"^the SVD of rank 3 failed \(.*No convergence.*\); try a lower"):
        truncated_svd(random_matrix(30, 20), 3)


DIGEST = """
import hashlib, sys
from firstclick.data import split, synthetic_matrix, truncated_svd
assert "scipy.sparse.linalg" not in sys.modules
matrix = synthetic_matrix(3, n_users=900, n_items=500).matrix
train, _ = split(matrix, 4)
result = [truncated_svd(train, 20), truncated_svd(train[:80, :70], 70), truncated_svd(train, 20)]
assert result[0].tobytes() == result[2].tobytes()
print(hashlib.sha256(b"".join(array.tobytes() for array in result)).hexdigest())
"""


def test_bits_do_not_depend_on_process_or_number_of_threads():
    digests = set()
    for threads in ("1", "2"):
        environment = os.environ | {"OPENBLAS_NUM_THREADS": threads, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        digests.add(done.stdout)
    assert len(digests) == 1


class FolderMaker:
    """A folder is made when this is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("unpickled",)


def test_a_file_that_is_not_numbers_is_refused_and_never_unpickled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("object.npy", np.array([[FolderMaker()]]), allow_pickle=True)
    np.save("whole.npy", np.array([[1, 2]], dtype=object), allow_pickle=True)
    np.save("complex.npy", np.ones((2, 2)) * 1j)
    np.save("flat.npy", np.ones(3))
    Path("pickle.npy").write_bytes(pickle.dumps([[FolderMaker()]]))
    Path("named.csv").write_text("width,height\n1,2\n")
    Path("infinite.csv").write_text("1,2\n3,inf\n")
    for name, problem in (
        ("object.npy", "object.npy: not a .npy file of numbers"),
        ("whole.npy", "whole.npy: not a .npy file of numbers"),
        ("pickle.npy", "pickle.npy: not a .npy file of numbers"),
        ("complex.npy", "complex.npy: .*numbers.*complex128"),
        ("flat.npy", "flat.npy: .*two dimensions"),
        ("named.csv", "named.csv line 1: features must be numbers"),
        ("infinite.csv", "infinite.csv line 2: features must be finite"),
    ):
        with pytest.raises(InvalidInput, match=problem):
            features.read_features(name)
    assert not Path("unpickled").exists()
