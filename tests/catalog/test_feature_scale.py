import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from firstclick.catalog.feature_scale import FeatureScale
from firstclick.errors import InvalidInput


@pytest.mark.parametrize(
    ("rows", "constant", "divisor", "scaled"),
    [
        ([[3, 4], [0, 1]], 5, 5 * np.sqrt(2), [[3, 4, 5], [0, 1, 5]]),
        # A column that is constant already is the constant.
        ([[3, 4, 0], [0, 4, 0]], 0, 5, [[3, 4, 0], [0, 4, 0]]),
        # One item has no column that is constant, and zeros are scaled by 1.
        ([[3]], 3, 3 * np.sqrt(2), [[3, 3]]),
        ([[0], [0]], 1, np.sqrt(2), [[0, 1], [0, 1]]),
    ],
)
def test_features_are_scaled_beside_a_constant(rows, constant, divisor, scaled):
    rows = np.array(rows, float)
    names = [f"f{j}" for j in range(rows.shape[1])]
    scale = FeatureScale.fitted(names, rows)
    assert scale == FeatureScale(tuple(names), constant, divisor)
    assert scale.apply(rows) == pytest.approx(np.array(scaled) / divisor)


# Below the smallest normal number digits are lost, whatever is done.
numbers = st.floats(-1e100, 1e100, allow_subnormal=False) | st.floats(-2, 2, allow_subnormal=False)
matrices = nps.arrays(np.float64, nps.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=numbers)


@given(matrices)
def test_single_rows_get_the_same_bits_and_the_longest_norm_is_1(rows):
    names = [f"f{j}" for j in range(rows.shape[1])]
    scale = FeatureScale.fitted(names, rows)
    all_at_once = scale.apply(rows)
    again = FeatureScale.from_json(json.loads(json.dumps(scale.as_json())))
    assert again == scale
    for row, expected in zip(rows, all_at_once, strict=True):
        assert again.apply([row.tolist()])[0].tobytes() == expected.tobytes()
    assert all_at_once.shape == (len(rows), scale.n_features)
    assert np.linalg.norm(all_at_once, axis=1).max() == pytest.approx(1, rel=1e-9) or not rows.any()


@given(matrices, st.sampled_from([2.0**-40, 2.0**12]))
def test_unit_of_the_features_does_not_matter(rows, unit):
    rows = np.where(np.abs(rows) > 1e60, 1.0, rows)  # nothing beyond 1e100 in the other unit
    rows = np.where(np.abs(rows) < 1e-200, 0.0, rows)  # and nothing that loses its digits
    names = [f"f{j}" for j in range(rows.shape[1])]
    ours = FeatureScale.fitted(names, rows).apply(rows)
    theirs = FeatureScale.fitted(names, unit * rows).apply(unit * rows)
    assert not rows.any() or ours.tolist() == theirs.tolist()


def test_row_of_another_length_is_refused_with_the_names():
    scale = FeatureScale(("price", "size"), 1.0, 2.0)
    with pytest.raises(InvalidInput, match=r"^features must have 2 columns \(price, size\), got 3$"):
        scale.apply([[1.0, 2.0, 3.0]])


@given(matrices, st.sampled_from(["15 digits", "single precision"]))
def test_features_of_few_digits_come_back_as_they_were_written(rows, kind):
    rows = np.where(np.abs(rows) > 1e30, 1.0, np.where(np.abs(rows) < 1e-8, 0.0, rows))
    rows = rows.astype(np.float32).astype(float) if kind == "single precision" else _short(rows)
    names = [f"f{j}" for j in range(rows.shape[1])]
    scale = FeatureScale.fitted(names, rows)
    assert scale.undo(scale.apply(rows)).tolist() == rows.tolist()
    # Others come back but for rounding, and are the same to a policy.
    rows = np.random.default_rng(1).normal(size=(500, 3))
    scale = FeatureScale.fitted(["a", "b", "c"], rows)
    again = scale.undo(scale.apply(rows))
    np.testing.assert_allclose(again, rows, rtol=3e-16)
    assert scale.apply(again).tolist() == scale.apply(rows).tolist()


def _short(rows):
    return np.array([[float(f"{number:.14e}") for number in row] for row in rows])
