"""Folds and resamples by a hash of slate numbers."""

from math import exp

import numpy as np
import pytest

from firstclick.click_models.slate_hash import fold_of, resample_weights
from firstclick.errors import InvalidInput


def test_folds_are_of_one_size_and_depend_on_the_number_alone():
    numbers = np.arange(100_000)
    folds = fold_of(numbers, 5)
    share = np.bincount(folds, minlength=5) / len(numbers)
    # Four standard errors: a false alarm in 1 of 3,000 for the five together. The numbers are fixed.
    assert np.abs(share - 0.2).max() < 4 * np.sqrt(0.16 / len(numbers))
    np.testing.assert_array_equal(fold_of(numbers[::-7], 5), folds[::-7])


def test_weights_of_a_resample_are_poisson_numbers_of_mean_1():
    numbers = np.arange(100_000)
    weights = resample_weights(numbers, 3)
    for count, share in enumerate([exp(-1), exp(-1), exp(-1) / 2, exp(-1) / 6]):
        error = np.sqrt(share * (1 - share) / len(numbers))
        assert abs((weights == count).mean() - share) < 4 * error
    np.testing.assert_array_equal(resample_weights(numbers[::-3], 3), weights[::-3])
    other = resample_weights(numbers, 4)
    assert abs(np.corrcoef(weights, other)[0, 1]) < 4 / np.sqrt(len(numbers))
    # The fold is no part of it.
    assert abs(weights[fold_of(numbers, 5) == 0].mean() - 1) < 4 * np.sqrt(5 / len(numbers))
    with pytest.raises(InvalidInput, match="resample"):
        resample_weights(np.arange(3), -1)
