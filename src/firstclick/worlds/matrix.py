"""The world of the paper's experiments: a user is a row of a 0/1 matrix, drawn uniformly."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from firstclick.click_models import ClickModel, make_click_model
from firstclick.errors import InvalidInput
from firstclick.kernels.attraction import BITMAP_SHARE, MATRIX, WorldArrays
from firstclick.kernels.clicks import CASCADE, DEPENDENT
from firstclick.validation.float_array import refuse_masked
from firstclick.worlds.base import World
from firstclick.worlds.bernoulli import world_arrays


class MatrixWorld(World):
    """Each user is a row of a feedback matrix, drawn at random, and is attracted by the items of that row.

    >>> MatrixWorld([[1, 0], [0, 1], [0, 0], [1, 1]]).expected_reward([0, 1])
    0.75

    Args:
        matrix: Users x items with entries 0 and 1, sparse or dense. Keep empty rows: users whom nothing
            attracts are part of the data.
        clicks: A click model, or its description such as `"pbm/1/0.7/0.5"`.
    """

    def __init__(self, matrix: Any, clicks: ClickModel | str = "cascade") -> None:
        self.matrix = check_matrix(matrix)
        self.click_model = make_click_model(clicks)
        self.n_users, self.n_items = self.matrix.shape

    def __getstate__(self) -> dict[str, Any]:
        # To another process goes the matrix, which is smaller.
        return {name: value for name, value in self.__dict__.items() if name != "_arrays"}

    def arrays(self) -> WorldArrays:
        return self._arrays

    @cached_property
    def _arrays(self) -> WorldArrays:
        columns = self.matrix.tocsc()
        counts = np.diff(columns.indptr)
        in_bitmap = counts >= max(BITMAP_SHARE * self.n_users, 1)
        bitmap_of = np.where(in_bitmap, np.cumsum(in_bitmap) - 1, -1)
        bitmaps = np.zeros((int(in_bitmap.sum()), (self.n_users + 63) // 64), np.uint64)
        for item in np.flatnonzero(in_bitmap):
            users = columns.indices[columns.indptr[item] : columns.indptr[item + 1]]
            bits = np.zeros(bitmaps.shape[1] * 64, np.uint8)
            bits[users] = 1
            bitmaps[bitmap_of[item]] = np.packbits(bits, bitorder="little").view("<u8")
        listed = np.repeat(~in_bitmap, counts)
        return world_arrays(
            np.empty((1, 0)),
            self.click_model,
            kind=MATRIX,
            n_users=self.n_users,
            bitmap_of=bitmap_of,
            bitmaps=bitmaps,
            list_start=np.concatenate([[0], np.cumsum(np.where(in_bitmap, 0, counts))]).astype(np.int64),
            list_users=columns.indices[listed].astype(np.int32),
        )

    def optimal_slate(self, k: int, view: int = 0) -> NDArray[np.int64]:
        """The greedy cover: at each step the item that attracts most users who are not attracted yet.

        Finding the best cover is NP-hard; this one reaches at least 1 - 1/e of it. Ties go to the item that
        attracts more users in all, then to the lower number. If the click model lets an attracted user go on
        unsatisfied, the same is done with what is left to gain of each user, best position first.

        Args:
            k: The length of a slate.
            view: Not used: the world has one view.
        """
        columns = self.matrix.tocsc()
        popular = np.diff(columns.indptr).astype(np.int64)
        satisfied = self._satisfied(k)
        left: NDArray[Any] = np.ones(self.n_users, np.int64 if (satisfied == 1).all() else np.float64)
        slate = np.full(k, -1, np.int64)
        for position in np.argsort(-self.click_model.worth(k), kind="stable"):
            gain = left @ self.matrix
            order = np.lexsort((np.arange(self.n_items), -popular, -gain))
            item = next(int(e) for e in order if e not in slate)
            slate[position] = item
            users = columns.indices[columns.indptr[item] : columns.indptr[item + 1]]
            left[users] *= (1 - satisfied[position]).astype(left.dtype)
        return slate

    def _satisfied(self, k: int) -> NDArray[np.float64]:
        """What a click at each position takes of what is left to gain of its user."""
        if self.click_model.kind == DEPENDENT:
            return self.click_model.by_position(k)
        return np.full(k, float(self.click_model.kind == CASCADE))

    def expected_reward(self, slate: Sequence[int] | NDArray[np.int64], view: int = 0) -> float:
        shown = self.matrix[:, np.asarray(slate, np.int64)]
        if self.click_model.kind == CASCADE:  # In whole numbers, as the data is.
            return int(np.count_nonzero(shown.sum(axis=1))) / self.n_users
        return float(self.click_model.reward(shown.toarray()).mean())


def check_matrix(matrix: Any) -> sparse.csr_matrix:
    """The matrix as canonical CSR of uint8 ones, if it is 2-D with entries 0 and 1; else InvalidInput.

    Takes a sparse matrix or array of any format, or whatever NumPy reads as a 2-D array. The given matrix
    is left as it is. Sparse duplicates add up, as everywhere in SciPy, and so are refused unless bool.
    """
    if not sparse.issparse(matrix):
        refuse_masked("feedback matrix: entries", matrix)
        try:
            matrix = np.asarray(matrix)
        except ValueError as error:
            raise InvalidInput(f"feedback matrix: not an array ({error})") from None
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InvalidInput(
            f"feedback matrix: expected users x items with at least one of each, got shape {matrix.shape}"
        )
    if matrix.dtype.kind not in "biuf":
        raise InvalidInput(f"feedback matrix: entries must be numbers 0 or 1, got type {matrix.dtype}")
    if matrix.dtype != np.bool_:
        # Wide enough that duplicates in small integers do not wrap around to 0 or 1.
        matrix = matrix.astype(np.float64)
    if sparse.issparse(matrix):
        entries = matrix.tocsr(copy=True)
        entries.sum_duplicates()
        entries.eliminate_zeros()
    else:
        entries = sparse.csr_matrix(matrix)
    wrong = np.flatnonzero(entries.data != 1)
    if len(wrong):
        first = int(wrong[0])
        user = int(np.searchsorted(entries.indptr, first, side="right")) - 1
        raise InvalidInput(
            f"feedback matrix: entries must be 0 or 1, got {entries.data[first]:g} "
            f"at row {user}, column {entries.indices[first]}"
        )
    ones = np.ones(entries.nnz, dtype=np.uint8)
    # Built anew from its parts, because the constructor brings indices to 32 bits where they fit.
    return sparse.csr_matrix((ones, entries.indices, entries.indptr), shape=entries.shape)
