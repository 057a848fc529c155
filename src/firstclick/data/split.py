"""Two random halves of the users: one to learn features from, one to answer with clicks."""

from typing import Any

import numpy as np
from scipy import sparse

from firstclick.errors import InvalidInput
from firstclick.streams import stream
from firstclick.whole_number import whole_number
from firstclick.worlds.matrix import check_matrix


def split(matrix: Any, seed: int, *, run: int = 0) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Every user is in exactly one of (train, test), drawn by seed and run alone.

    Users stay in their old order within a half. With an odd number the test half has one more.
    """
    entries = check_matrix(matrix)
    run = whole_number("run", run, at_least=0)
    n_users = entries.shape[0]
    if n_users < 2:
        raise InvalidInput(f"a split needs at least 2 users, got {n_users}")
    order = stream(seed, "run", run, "split").permutation(n_users)
    half = n_users // 2
    return entries[np.sort(order[:half])], entries[np.sort(order[half:])]
