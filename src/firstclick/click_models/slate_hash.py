"""Which slates are held out, and how often a slate counts in a resample: a hash of its number decides.

Nothing is drawn and nothing is kept: the same slate gets the same answer whenever and in whatever batch it is
read.
"""

from math import exp, factorial

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.slate_hash import hash_numbers
from firstclick.streams import stream_key
from firstclick.validation.whole_number import whole_number

_ONE_IN = 2.0**-64
# The chance of at most 0, 1, 2, ... of a Poisson number of mean 1; from 20 on it is 1 to the last bit.
_AT_MOST = np.cumsum([exp(-1.0) / factorial(count) for count in range(20)])


def fold_of(numbers: NDArray[np.int64], folds: int) -> NDArray[np.int64]:
    """The fold, from 0 to folds - 1, of the slates with these numbers."""
    return (_hashed(stream_key(0, "click models", "fold"), numbers) % np.uint64(folds)).astype(np.int64)


def resample_weights(numbers: NDArray[np.int64], resample: int) -> NDArray[np.float64]:
    """How often each slate counts in this resample: a Poisson number of mean 1, as in a bootstrap of a log
    whose length nobody knows beforehand."""
    key = stream_key(whole_number("resample", resample, at_least=0), "click models", "resample")
    shares = _hashed(key, numbers) * _ONE_IN
    return np.searchsorted(_AT_MOST, shares, side="right").astype(np.float64)


def _hashed(key: np.uint64, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    hashed = np.empty(len(numbers), np.uint64)
    hash_numbers(key, np.ascontiguousarray(numbers, np.int64), hashed)
    return hashed
