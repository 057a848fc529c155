"""Item features: from the feedback of training users, by a truncated SVD, or from a file."""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from firstclick.catalog.features import check_features
from firstclick.errors import InvalidInput, WorkFailed
from firstclick.files.reading import as_path, reading
from firstclick.files.table import read_table
from firstclick.streams import stream
from firstclick.validation.whole_number import whole_number
from firstclick.worlds.matrix import check_matrix

Floats = NDArray[np.float64]

# Singular values below this share of the largest are what rounding leaves of zero: the Gram matrix puts
# that near 1e-13, while the counts of a feedback matrix have no honest values so small.
NUMERICALLY_ZERO = 1e-10

# Two entries of V whose sizes differ by less than this share count as equal when the sign is chosen.
SIGN_TIE = 1e-6


def truncated_svd(train: Any, rank: int, *, scaled: bool = True, intercept: bool = False) -> Floats:
    """Compute item features from a feedback matrix by truncated SVD.

    >>> import numpy as np
    >>> likes = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 1]])
    >>> truncated_svd(likes, rank=2).shape
    (4, 2)

    Singular values fall from left to right, and the largest entry of each column is positive. The same matrix
    gives the same bits, whatever the number of threads. Items that attract nobody get zeros.

    Args:
        train: A feedback matrix, users x items.
        rank: The number of features.
        scaled: Rows of V Sigma; `False`: rows of V.
        intercept: Add a column of ones at the end.

    Returns:
        One row per item.
    """
    entries = check_matrix(train)
    n_users, n_items = entries.shape
    rank = whole_number(
        "rank", rank, at_least=1, at_most=min(n_users, n_items),
        because=f" (the training matrix is {n_users} users x {n_items} items)",
    )  # fmt: skip
    features = np.zeros((n_items, rank + intercept))
    features[:, rank:] = 1.0
    if entries.nnz == 0:
        return features
    values, vectors = _decompose(entries.astype(np.float64), rank)
    kept = values > NUMERICALLY_ZERO * values[0]
    vectors = np.where(kept, vectors * _signs(vectors), 0.0)
    vectors[np.bincount(entries.indices, minlength=n_items) == 0] = 0.0
    features[:, :rank] = vectors * values if scaled else vectors
    return features


def _decompose(matrix: sparse.csr_matrix, rank: int) -> tuple[Floats, Floats]:
    # Imported late: a third of a second that only those pay who ask for features. And before the limit
    # is set, which reaches only the BLAS libraries already loaded.
    import scipy.linalg
    import scipy.sparse.linalg
    from threadpoolctl import threadpool_limits

    # More threads sum in another order, and the last bits differ.
    with threadpool_limits(limits=1, user_api="blas"):
        if rank == min(matrix.shape):
            _, values, rows = scipy.linalg.svd(matrix.toarray(), full_matrices=False)
            return values, rows.T
        return _lanczos(matrix, rank)


def _lanczos(matrix: sparse.csr_matrix, rank: int) -> tuple[Floats, Floats]:
    # What scipy's svds does, step by step, because svds does not hand its generator on to ARPACK, which
    # draws from entropy when the Krylov space is exhausted: every matrix of low rank would differ each time.
    from scipy.linalg import qr, svd
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

    by_items = matrix.shape[0] >= matrix.shape[1]
    tall = matrix if by_items else matrix.T.tocsr()
    wide = tall.T.tocsr()
    size = tall.shape[1]
    gram = LinearOperator((size, size), matvec=lambda x: wide @ (tall @ x), dtype=np.float64)
    rng = stream(0, "svd")
    start = rng.standard_normal(size)
    try:
        _, basis = eigsh(gram, k=rank, which="LM", v0=start, rng=rng)
    except ArpackError as error:
        raise WorkFailed(f"the SVD of rank {rank} failed ({error}); try a lower `rank`") from error
    basis, _ = qr(basis, mode="economic")
    left, values, rows = svd(tall @ basis, full_matrices=False)
    return values, basis @ rows.T if by_items else left


def _signs(vectors: Floats) -> Floats:
    sizes = np.abs(vectors)
    # The first of the largest within a tolerance: with exact argmax, two entries of one size would let
    # the last bit decide the sign of a whole column.
    largest = (sizes >= sizes.max(axis=0) * (1 - SIGN_TIE)).argmax(axis=0)
    return np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def read_features(
    path: str | os.PathLike[str], *, separator: str | None = None, encoding: str = "utf-8-sig"
) -> NDArray[np.float64]:
    """Read item features from a `.npy` file, or from a CSV or TSV file of numbers without a header.

    >>> from pathlib import Path
    >>> _ = Path("features.csv").write_text("0.1,0.9\\n0.5,0.5\\n")
    >>> read_features("features.csv").tolist()
    [[0.1, 0.9], [0.5, 0.5]]

    Args:
        path: The file.
        separator: The separator of a text file; found automatically by default.
        encoding: The encoding of a text file.

    Returns:
        One row per item.

    Raises:
        InvalidInput: The file cannot be read, or holds something other than finite numbers.
    """
    path = as_path(path)
    if path.suffix == ".npy":
        try:
            with reading(path):
                array = np.load(path, allow_pickle=False)
        except InvalidInput:
            raise
        except (ValueError, EOFError):
            raise InvalidInput(f"{path.name}: not a .npy file of numbers") from None
        try:
            return check_features(array)
        except InvalidInput as error:
            raise InvalidInput(f"{path.name}: {error}") from None
    table = read_table(path, separator=separator, header=False, encoding=encoding, strict=True)
    array = np.empty((len(table.columns[0]), len(table.columns)))
    for j, column in enumerate(table.columns):
        array[:, j] = [_number(cell) for cell in column.tolist()]
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array).all(axis=1)))
        fields = [column[row] or "" for column in table.columns]
        rule = "finite" if all(_is_number(field) for field in fields) else "numbers"
        raise InvalidInput(f"{table.where(row)}: features must be {rule}, got {fields}")
    return check_features(array)


def _number(cell: str | None) -> float:
    return float(cell) if cell is not None and _is_number(cell) else np.nan


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
