"""Pareto k: how heavy the tail of the weights is.

A generalised Pareto law is fitted to the largest weights (Zhang and Stephens 2009, with the prior of Vehtari
et al. 2024, as in PSIS). Moments of order 1/k and above are infinite: with k >= 1/2 the variance of the
weights is, so that the standard error of a weighted mean means nothing.
"""

import math

import numpy as np

from firstclick.evaluation.estimators.weighted_slates import Table

# With fewer weights above 0, k is not estimated.
MIN_WEIGHTS = 100


def tail_size(n: int) -> int:
    """How many of n weights above 0 are the tail."""
    return math.ceil(min(0.2 * n, 3 * math.sqrt(n)))


def pareto_k(weights: Table, n: int | None = None) -> float | None:
    """The shape of the tail of these weights; None if too few are above 0. Minus infinity if the largest
    are all equal: a tail with an end. `weights` may be only the largest, tail and one more, of `n` above 0.

    >>> uniform = (np.arange(5000) + 0.5) / 5000
    >>> round(pareto_k((1 - uniform) ** -0.5), 1)
    0.5
    """
    weights = np.sort(weights[weights > 0])
    n = len(weights) if n is None else n
    if n < MIN_WEIGHTS:
        return None
    size = tail_size(n)
    exceedances = weights[-size:] - weights[-size - 1]
    exceedances = exceedances[exceedances > 1e-9 * weights[-1]]
    # Weights that many slates share, as for a fixed list and a fixed logger, have no tail beyond them.
    if len(exceedances) < 5 or exceedances[-1] - exceedances[0] <= 1e-9 * weights[-1]:
        return -math.inf
    return pareto_shape(exceedances)


def pareto_shape(sample: Table) -> float:
    """The shape k of a generalised Pareto law, from sorted values above 0."""
    n = len(sample)
    n_guesses = 30 + int(math.sqrt(n))
    quartile = sample[int(n / 4 + 0.5) - 1]
    order = np.arange(1, n_guesses + 1)
    guesses = 1 / sample[-1] + (1 - np.sqrt(n_guesses / (order - 0.5))) / (3 * quartile)
    shapes = np.array([np.log1p(-guess * sample).mean() for guess in guesses])
    profile = n * (np.log(-guesses / shapes) - shapes - 1)
    chances = np.exp(profile - profile.max())
    guess = float(chances @ guesses / chances.sum())
    shape = float(np.log1p(-guess * sample).mean())
    # A weak prior, as if 10 more values had shape 1/2.
    return (n * shape + 10 * 0.5) / (n + 10)
