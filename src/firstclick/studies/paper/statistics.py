"""What runs say about a mean and about a ratio of means, with an interval, and what they say one by one.

Nothing here is random.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

# The chance that an interval misses the truth, over both of its ends.
CHANCE = 0.05

Runs = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """An estimate, and the values that the runs do not contradict."""

    estimate: float
    low: float
    high: float


def mean_interval(values: Runs, chance: float = CHANCE) -> Interval:
    """The mean of the runs with Student's interval; for paired runs, hand over their differences."""
    mean = float(np.mean(values))
    reach = _bar(len(values), chance) * math.sqrt(_covariance_of_means(values, values))
    return Interval(mean, mean - reach, mean + reach)


def ratio_interval(numerators: Runs, denominators: Runs, chance: float = CHANCE) -> Interval | None:
    """The mean of one quantity over that of another in the same runs, with Fieller's interval.

    The interval is every ratio r for which a paired t test does not reject that numerator - r * denominator
    has mean zero: exact for normal runs, however the two go together. None where the mean of the
    denominators cannot be told from zero, or is negative: then every ratio, or none, fits the runs.
    """
    bar = _bar(len(numerators), chance) ** 2
    above, below = float(np.mean(numerators)), float(np.mean(denominators))
    var_above = _covariance_of_means(numerators, numerators)
    var_below = _covariance_of_means(denominators, denominators)
    both = _covariance_of_means(numerators, denominators)
    leading = below**2 - bar * var_below
    if below <= 0 or leading <= 0:
        return None
    spread = above**2 * var_below - 2 * above * below * both + below**2 * var_above
    spread -= bar * (var_above * var_below - both**2)
    # Never negative but for the last bits, when the runs are all but equal.
    reach = math.sqrt(bar * max(spread, 0.0))
    middle = above * below - bar * both
    return Interval(above / below, (middle - reach) / leading, (middle + reach) / leading)


def sign_chance(agreeing: int, runs: int) -> float:
    """The chance that a fair coin falls on one given side in at least so many of the runs: the sign test."""
    ways: int = sum(math.comb(runs, heads) for heads in range(agreeing, runs + 1))
    return ways / 2.0**runs


def fewest_runs(chance: float) -> int:
    """The fewest runs that pass a sign test at this chance if all of them agree."""
    return math.ceil(-math.log2(chance))


def _bar(runs: int, chance: float) -> float:
    return float(stdtrit(runs - 1, 1 - chance / 2))


def _covariance_of_means(first: Runs, second: Runs) -> float:
    deviations = (first - np.mean(first)) * (second - np.mean(second))
    return float(np.sum(deviations)) / ((len(first) - 1) * len(first))
