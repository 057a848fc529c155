"""A small catalog, and clicks to learn from: what transcriptions in NumPy are checked with."""

import numpy as np

K, D, ITEMS = 3, 5, 23

FEATURES = np.random.default_rng(8).normal(size=(ITEMS, D)) / 2


def rounds(number=300):
    """Slates of distinct items and where they were clicked; K stands for no click."""
    draw = np.random.default_rng(2)
    return [(draw.permutation(ITEMS)[:K], int(draw.integers(0, K + 1))) for _ in range(number)]
