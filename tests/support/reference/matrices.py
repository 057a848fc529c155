"""Slow versions of what is counted in a dense 0/1 matrix of users and items."""

import numpy as np


def share_of_users(matrix, slate):
    """The share of rows of a dense 0/1 matrix with a one in some column of the slate."""
    return np.mean(matrix[:, slate].any(axis=1)) if len(slate) else 0.0


def greedy_cover(matrix, k):
    """The greedy cover of a dense 0/1 matrix: most newly covered, then most users, then first."""
    left, slate = np.ones(len(matrix), bool), []
    for _ in range(k):
        gains = [
            (-int(np.sum(matrix[left, e])), -int(np.sum(matrix[:, e])), e)
            for e in range(matrix.shape[1])
            if e not in slate
        ]
        slate.append(min(gains)[2])
        left &= matrix[:, slate[-1]] == 0
    return slate
