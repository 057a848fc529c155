"""Two parts of the users: one to learn features from, one to answer with clicks."""

from typing import Any

import numpy as np
from scipy import sparse

from firstclick.errors import InvalidInput
from firstclick.streams import stream
from firstclick.validation.whole_number import whole_number
from firstclick.worlds.matrix import check_matrix


def split(
    matrix: Any, seed: int, *, run: int = 0, with_replacement: bool = False
) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """The users in two parts, (train, test), drawn by seed and run alone, in their old order.

    Each user is in exactly one of two halves; with an odd number the test half has one more. With
    replacement, as many users as half are drawn for training, some of them twice, and those never
    drawn, about 61 %, are for testing.

    >>> import numpy as np
    >>> train, test = split(np.eye(6), seed=1)
    >>> train.shape, test.shape
    ((3, 6), (3, 6))
    """
    entries = check_matrix(matrix)
    run = whole_number("run", run, at_least=0)
    n_users = entries.shape[0]
    if n_users < 2:
        raise InvalidInput(f"a split needs at least 2 users, got {n_users}")
    draw = stream(seed, "run", run, "split")
    half = n_users // 2
    if with_replacement:
        train = np.sort(draw.integers(n_users, size=half))
        return entries[train], entries[np.setdiff1d(np.arange(n_users), train)]
    order = draw.permutation(n_users)
    return entries[np.sort(order[:half])], entries[np.sort(order[half:])]
