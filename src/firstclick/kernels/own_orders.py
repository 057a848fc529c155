"""Orders of Gaussian scores of which each row has an own part.

Given g, which all rows share, scores are independent. So x = (g, the own parts of the rows that come first)
decides the order of these, and how likely all others are to stay below them.
"""

from math import erfc, exp, inf, log, pi

import numpy as np

from firstclick.kernels.compiling import kernel
from firstclick.kernels.hashing import fill_normal, mix, uniform
from firstclick.kernels.polyhedra import EVERY, OFTEN, ROOT_HALF, SELDOM, WIDE


@kernel
def log_below(x, first, others, owns, levels, counts):  # type: ignore[no-untyped-def]
    """The logarithm of the probability that all others stay below the first rows, given x; -inf if those are
    not in their order.

    A line of `first` has the mean of a row, its loads and its own deviation; one of `others` mean and loads
    of rows of a kind, of which there are `counts`, that must stay below the row at their level.
    """
    k, d = len(first), others.shape[1] - 1
    scores = np.empty(k)
    for j in range(k):
        score = first[j, 0] + first[j, d + 1] * x[d + j]
        for i in range(d):
            score += first[j, i + 1] * x[i]
        scores[j] = score
        if j > 0 and not scores[j - 1] > score:
            return -inf
    total = 0.0
    for c in range(len(others)):
        above = scores[levels[c]] - others[c, 0]
        for i in range(d):
            above -= others[c, i + 1] * x[i]
        total += counts[c] * log_distribution(above / owns[c])
    return total


@kernel
def log_distribution(t):  # type: ignore[no-untyped-def]
    """The logarithm of the probability that a standard normal number is at most t."""
    if t > 8.3:
        return 0.0
    if t > -12.0:
        return log(0.5 * erfc(-t * ROOT_HALF))
    return -0.5 * t * t - log(-t) - 0.5 * log(2.0 * pi) - 1.0 / (t * t)


@kernel
def walk_below(x, first, others, owns, levels, counts, key, steps, points):  # type: ignore[no-untyped-def]
    """Walk by elliptical slice sampling where x is likely and the others stay below, from `x`; each step is a
    line of `points`."""
    size = len(x)
    other, tried = np.empty(size), np.empty(size)
    now = log_below(x, first, others, owns, levels, counts)
    for step in range(steps):
        own = mix(key, np.uint64(step))
        fill_normal(own, other)
        least = now + log(uniform(own, np.uint64(1000)))
        angle = 2.0 * pi * uniform(own, np.uint64(0))
        low, high = angle - 2.0 * pi, angle
        for turn in range(1, 60):
            cosine, sine = np.cos(angle), np.sin(angle)
            for i in range(size):
                tried[i] = x[i] * cosine + other[i] * sine
            found = log_below(tried, first, others, owns, levels, counts)
            if found > least:
                now = found
                for i in range(size):
                    x[i] = tried[i]
                break
            if angle < 0.0:
                low = angle
            else:
                high = angle
            angle = low + (high - low) * uniform(own, np.uint64(turn))
        for i in range(size):
            points[step, i] = x[i]


@kernel
def weigh_below(centre, root, first, others, owns, levels, counts, key, begin, draws, weights):  # type: ignore[no-untyped-def]
    """Draw x from a Gaussian, now and then from a wider one, and weigh how likely others are to stay below by
    the standard normal density over that of the mixture: the mean weight is the probability."""
    size = len(centre)
    z, x = np.empty(size), np.empty(size)
    log_size = 0.0
    for i in range(size):
        log_size += log(root[i, i])
    share = WIDE ** -(1.0 * size) * SELDOM
    for draw in range(draws):
        number = begin + draw
        fill_normal(mix(key, np.uint64(number)), z)
        if number % EVERY == 0:
            for i in range(size):
                z[i] *= WIDE
        squares, plain = 0.0, 0.0
        for i in range(size):
            total = centre[i]
            for j in range(i + 1):
                total += root[i, j] * z[j]
            x[i] = total
            plain += total * total
            squares += z[i] * z[i]
        likely = log_below(x, first, others, owns, levels, counts)
        weights[draw] = 0.0
        if likely > -inf:
            density = OFTEN * exp(-0.5 * squares) + share * exp(-0.5 * squares / (WIDE * WIDE))
            weights[draw] = exp(likely + log_size - 0.5 * plain) / density
