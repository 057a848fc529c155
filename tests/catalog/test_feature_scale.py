import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from firstclick.catalog.feature_scale import FeatureScale
from firstclick.errors import InvalidInput


def test_features_are_scaled_with_a_constant_beside_them():
    rows = np.array([[3.0, 4.0], [0.0, 1.0]])
    scale = FeatureScale.fitted(["a", "b"], rows)
    assert scale == FeatureScale(("a", "b"), 5.0, 5 * np.sqrt(2))
    scaled = scale.apply(rows)
    assert np.linalg.norm(scaled, axis=1).max() == pytest.approx(1)
    assert scaled == pytest.approx(np.array([[3, 4, 5], [0, 1, 5]]) / (5 * np.sqrt(2)))


def test_a_column_that_is_constant_already_is_the_constant():
    rows = np.array([[3.0, 4, 0], [0, 4, 0]])
    scale = FeatureScale.fitted(["a", "one", "zero"], rows)
    assert scale == FeatureScale(("a", "one", "zero"), 0.0, 5.0)
    assert scale.apply(rows).tolist() == [[0.6, 0.8, 0], [0, 0.8, 0]]


def test_one_item_has_no_column_that_is_constant_and_zeros_are_scaled_by_nothing():
    assert FeatureScale.fitted(["a"], np.array([[3.0]])) == FeatureScale(("a",), 3.0, 3 * np.sqrt(2))
    assert FeatureScale.fitted(["a"], np.zeros((2, 1))) == FeatureScale(("a",), 1.0, np.sqrt(2))


# Below the smallest normal number digits are lost, whatever is done.
numbers = st.floats(-1e100, 1e100, allow_subnormal=False) | st.floats(-2, 2, allow_subnormal=False)
matrices = nps.arrays(np.float64, nps.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=numbers)


@given(matrices)
def test_one_row_alone_gets_the_same_bits_and_the_longest_norm_is_1(rows):
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
def test_the_unit_of_the_features_does_not_matter(rows, unit):
    rows = np.where(np.abs(rows) > 1e60, 1.0, rows)  # nothing beyond 1e100 in the other unit
    rows = np.where(np.abs(rows) < 1e-200, 0.0, rows)  # and nothing that loses its digits
    names = [f"f{j}" for j in range(rows.shape[1])]
    ours = FeatureScale.fitted(names, rows).apply(rows)
    theirs = FeatureScale.fitted(names, unit * rows).apply(unit * rows)
    assert not rows.any() or ours.tolist() == theirs.tolist()


def test_a_row_of_another_length_is_refused_with_the_names():
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


def _short(rows):
    return np.array([[float(f"{number:.14e}") for number in row] for row in rows])


def test_other_features_come_back_but_for_rounding():
    rows = np.random.default_rng(1).normal(size=(500, 3))
    scale = FeatureScale.fitted(["a", "b", "c"], rows)
    again = scale.undo(scale.apply(rows))
    np.testing.assert_allclose(again, rows, rtol=3e-16)
    assert scale.apply(again).tolist() == scale.apply(rows).tolist(), "and are the same to a policy"
