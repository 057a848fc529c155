"""The feedback matrix: users x items, 1 where the item attracted the user."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from firstclick.data.interactions import Interactions
from firstclick.data.ranking import most_first
from firstclick.validation.whole_number import whole_number
from firstclick.worlds.matrix import check_matrix


def feedback_matrix(interactions: Interactions) -> sparse.csr_matrix:
    """Build the feedback matrix: 1 where an item attracted a user, else 0.

    >>> from pathlib import Path
    >>> from firstclick.data import read_interactions
    >>> _ = Path("likes.csv").write_text("ann,tea\\nann,milk\\nbob,tea\\n")
    >>> feedback_matrix(read_interactions("likes.csv")).toarray().tolist()
    [[1, 1], [0, 1]]

    Users and items without attraction keep their empty rows and columns. Leaving them out would raise every
    attraction.

    Args:
        interactions: The data.

    Returns:
        A sparse matrix, users x items, uint8, in canonical CSR form.
    """
    n_users, n_items = len(interactions.user_ids), len(interactions.item_ids)
    users = interactions.users[interactions.attracted].astype(np.int64)
    # Pairs are made unique before they become entries: summing duplicates in uint8 turns 256 into 0.
    # By hand, because np.unique takes half a minute for ten million pairs.
    pairs = np.sort(users * n_items + interactions.items[interactions.attracted])
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    indptr = np.searchsorted(pairs, np.arange(n_users + 1, dtype=np.int64) * n_items)
    ones = np.ones(len(pairs), dtype=np.uint8)
    return sparse.csr_matrix((ones, pairs % n_items, indptr), shape=(n_users, n_items))


def most_attractive(matrix: Any, n: int) -> NDArray[np.int64]:
    """The items that attract the most users.

    >>> import numpy as np
    >>> most_attractive(np.array([[1, 0, 1], [1, 0, 0]]), 2).tolist()
    [0, 2]

    Args:
        matrix: A feedback matrix, users x items.
        n: How many items.

    Returns:
        Column numbers, most attractive first. Ties go to the lower column.
    """
    entries = check_matrix(matrix)
    n_items = entries.shape[1]
    n = whole_number("number of items", n, at_least=1, at_most=n_items, because=", the columns there are")
    return most_first(np.bincount(entries.indices, minlength=n_items))[:n]
