"""Features that tempt a shortcut to go wrong."""

import numpy as np


def kind_of_features(kind, draw, n_items, d):
    if kind == "sphere":
        rows = draw.normal(size=(n_items, d))
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)
    if kind == "long tail":
        return draw.normal(size=(n_items, d)) * (np.arange(1, n_items + 1) ** -0.7)[:, None]
    if kind == "grid":  # many ties
        return draw.integers(-1, 2, size=(n_items, d)).astype(float)
    if kind == "intercept":
        return np.column_stack([np.ones(n_items), 0.1 * draw.normal(size=(n_items, d - 1))])
    if kind == "huge intercept":  # double precision itself cannot tell some apart
        return np.column_stack([np.full(n_items, 1e8), 1e-7 * draw.normal(size=(n_items, d - 1))])
    if kind == "duplicates":
        return draw.normal(size=(5, d))[draw.integers(0, 5, n_items)]
    if kind == "one huge":
        rows = draw.normal(size=(n_items, d))
        rows[n_items // 3] *= 1e9
        return rows
    if kind == "zeros":
        return np.where(draw.random((n_items, 1)) < 0.7, 0.0, draw.normal(size=(n_items, d)))
    if kind == "tiny and large":
        return draw.normal(size=(n_items, d)) * 10.0 ** draw.integers(-60, 60, size=(n_items, 1))
    if kind == "near ties":  # single precision cannot tell them apart
        return draw.normal(size=d) + 1e-9 * draw.normal(size=(n_items, d))
    assert kind == "rank one"
    return np.outer(draw.normal(size=n_items), draw.normal(size=d))


KINDS = (
    "sphere", "long tail", "grid", "intercept", "duplicates", "one huge", "zeros", "tiny and large",
    "rank one", "near ties", "huge intercept",
)  # fmt: skip


def short_id(value):
    """The name of a parameter for pytest, which cannot write whole numbers of more than 4,300 digits."""
    return "huge" if isinstance(value, int) and abs(value) > 10**100 else None
