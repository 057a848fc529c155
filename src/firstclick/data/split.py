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
    """Split the users into a training and a test part.

    >>> import numpy as np
    >>> train, test = split(np.eye(6), seed=1)
    >>> train.shape, test.shape
    ((3, 6), (3, 6))

    Each user is in one of the halves. With an odd number of users the test half has one more. Users keep
    their order.

    Args:
        matrix: A feedback matrix, users x items.
        seed: With `run`, decides the split.
        run: The run, from 0.
        with_replacement: Draw half as many training users as there are, some of them twice. Those never
            drawn, about 61 %, are for testing.

    Returns:
        The two matrices, training first.
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
